"""The options of the verbs about the runs of a store: ls, show, diff, rm."""

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
