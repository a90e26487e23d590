"""The options of the verbs that send, show, verify and pack what runs have left: sync, dashboard, verify, pack."""

from typing import Literal

from ablab.commands.options.base import Options


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
