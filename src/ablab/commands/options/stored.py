"""The options of the verbs about a store: ls, show, diff and rm, and sync, dashboard, verify and pack."""

from typing import Annotated, Literal

from pydantic import Field

from ablab.commands.options.base import Options


class LsOptions(Options):
    """List the runs of a store, finished or not.

    Shows each run's id, state, seed, scores of the latest evaluation, and name. The row of a damaged run is marked.

      ablab ls where='norm=scalenorm test_bleu>30' sort=-test_bleu
      ablab ls columns=id,seed,optim.lr,valid_loss format=csv
    """

    usage = ("ablab ls [where='key=value ...'] [key=value ...]",)

    where: str = ""
    """conditions, separated by spaces: groups, fields, seed, state and scores, with =, !=, <, <=, > or >="""
    sort: str | None = None
    """column to sort by, the lowest first; -test_bleu: the highest first"""
    columns: str | None = None
    """columns of the table, separated by commas: id, name, state, study, arm, ended, scores, groups, and fields"""
    limit: Annotated[int, Field(ge=1)] | None = None
    """largest number of runs to list"""
    format: Literal["text", "json", "csv"] = "text"
    """format of the output; text is cut to fit the terminal, json and csv are not cut"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class ShowOptions(Options):
    """Show one run: what it is, what it has, and how it was trained.

    Shows how it differs from the defaults; its scores, evaluations, curves, pruned models, analyses and exports; each
    stretch of its training, with machine and code; and whether its results match the register.
    """

    usage = ("ablab show run=<id> [key=value ...]",)

    run: str
    """a run: its id, a prefix of its id, its display name, or its path"""
    format: Literal["text", "json"] = "text"
    """format of the output"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class DiffOptions(Options):
    """Compare two runs: recipe, code, libraries, machine and scores.

    ablab diff r1a2b r3c4d
    """

    usage = ("ablab diff <id> <id> [key=value ...]", "ablab diff runs=<id>,<id> [key=value ...]")

    runs: str | None = None
    """the two runs, separated by a comma"""
    format: Literal["text", "json"] = "text"
    """format of the output"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class RmOptions(Options):
    """Set runs aside, bring them back, or delete what was set aside.

    Moves runs to superseded/ in the folder of outputs, and enters that in its register, so that reports and verify say
    what happened to them. Names the studies, reports and runs that depend on them. Refuses runs that are being trained.

      ablab rm run=r1a2b dry_run=true
      ablab rm where='state=failed'
      ablab rm where='state=failed' undo=true
      ablab rm where='state=failed' forever=true
    """

    usage = ("ablab rm run=<id> [key=value ...]", "ablab rm where='key=value ...' [key=value ...]")

    run: str | None = None
    """a run: its id, a prefix of its id, or its display name"""
    runs: str | None = None
    """several runs, separated by commas"""
    where: str | None = None
    """conditions, separated by spaces, as in ablab ls: all runs that meet them"""
    dry_run: bool = False
    """true: only say what would be done"""
    undo: bool = False
    """true: bring back these runs if they were set aside"""
    forever: bool = False
    """true: delete these runs if they were set aside; this cannot be undone"""
    format: Literal["text", "json"] = "text"
    """format of the output"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class SyncOptions(Options):
    """Upload to W&B what was logged offline.

    Uploads the sessions of all runs and studies that W&B does not have yet. You can repeat the command at any time:
    nothing is sent twice.
    """

    usage = ("ablab sync [key=value ...]",)

    dry_run: bool = False
    """true: only list what W&B does not have yet"""
    format: Literal["text", "json"] = "text"
    """format of the output"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class DashboardOptions(Options):
    """Make the workspace and the report of a study in W&B.

    The workspace has the study's runs, grouped by arm and averaged over seeds: test scores, learning curves and
    depth-quality curves. The W&B Report has the verdicts and tables of ablab report, and panels of the runs behind
    them. If you repeat the command, it updates what it made before. Needs pip install 'ablab[dashboard]', and a login.

      ablab dashboard experiment=norms logger.entity=my-team
      ablab dashboard experiment=norms dry_run=true
    """

    usage = ("ablab dashboard [experiment=<name>] [key=value ...]",)

    dry_run: bool = False
    """true: only print the specification, as JSON; nothing is sent, and no account is needed"""
    format: Literal["text", "json"] = "text"
    """text: lines with both addresses; json: the addresses as JSON"""


class VerifyOptions(Options):
    """Check what figures rest on, down to the bytes, and score the translations again.

    Compares digests: of results with the register, of recipes with run ids, of translations, references, weights,
    tokenizers, corpora and checkpoints with those on record. Then computes BLEU and chrF again. Names the first broken
    link of each run, and exits with code 1 if there is one.

      ablab verify run=r1a2b
      ablab verify experiment=norms
      ablab verify archive=norms.zip
    """

    usage = (
        "ablab verify run=<id> [key=value ...]",
        "ablab verify experiment=<name> [key=value ...]",
        "ablab verify archive=<file>",
    )

    run: str | None = None
    """a finished run: its id, a prefix of its id, or its path"""
    runs: str | None = None
    """several finished runs, separated by commas"""
    archive: str | None = None
    """an archive written by ablab pack; no store is needed"""
    format: Literal["text", "json"] = "text"
    """format of the output"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class PackOptions(Options):
    """Pack a study into one archive that others can verify, and go on with.

    It holds the register, recipes, records, translations, references, curves and the report, with the digest of each
    file; ablab verify checks it on any machine. Training corpora are left out. Unpacked into an empty folder of
    outputs, it is a store: its report can be written again, and the study's line, typed again, trains what is missing.
    """

    usage = (
        "ablab pack experiment=<name> [key=value ...]",
        "ablab pack runs=<id>,<id>,... [key=value ...]",
    )

    runs: str | None = None
    """finished runs, separated by commas: the id of each, a prefix of its id, or its path"""
    weights: bool = False
    """true: also pack the selected weights and the tokenizers"""
    text: bool = True
    """false: leave out what shows sentences, which may not be yours to share: translations, references, analyses and
    the report"""
    to: str | None = None
    """file to write; by default packs/<name>.zip in the folder of outputs"""
    outputs: str = "outputs"
    """folder of all runs and studies"""
