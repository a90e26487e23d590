"""The options of each verb, with their types, defaults and descriptions, as its help page has them."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from ablab.tasks.verbs import Options, Outputs, TextOrJson

LoopFile = Annotated[str, Field(description="the file of the loop: experiments/<name>.yaml, or a path")]


class TrainOptions(Options):
    """Train one run, then translate and score the test set; with -m, a sweep or a study.

    The weights are selected on validation. If you repeat the command, it continues an interrupted run, and prints the
    result of a finished one.

      python train.py                                    the built-in corpus, a minute or two on a laptop
      python train.py norm=scalenorm layerdrop=0.2       swap parts, set fields
      python train.py data=multi30k data.path=FOLDER     real text
      python train.py smoke=true                         every stage in seconds; scores mean nothing
      python train.py data=text --help                   this page, with the fields of that option
      python train.py -m norm=pre,post seed=1,2,3        a sweep: arms by seeds; only what is missing runs
      python train.py -m experiment=norms                a study, declared in experiments/norms.yaml
      python train.py -m experiment=search               a search of settings: experiments/search.yaml

    Settings of a sweep: hydra.launcher.jobs=N for N runs at a time, which share the cores (by default, as many as cores
    and memory are good for), hydra.launcher.threads=N for the threads of each, hydra.launcher.gpus=[0,1] with
    hydra.launcher.per_gpu=N for N runs on each GPU; retry_failed, fail_fast, rerun=stale. On a cluster:
    hydra/launcher=ray or hydra/launcher=submitit_slurm, which have their own settings (docs/studies.md).

    Settings of a search, used with hydra/sweeper=optuna: keys with several values or interval(),
    hydra.sweeper.trials=N, hydra.sweeper.stopping=median, hydra.sweeper.objectives=[valid_loss]; also
    hydra.sweeper.sampler, seed, training_seed and storage.
    """

    usage = ("python train.py [key=value ...]",)
    takes_settings = True


class StudyOptions(Options):
    """Show the plan and the state of a study.

    Shows how many runs of experiments/<name>.yaml, or of any sweep given by its settings, are planned, running, failed
    and finished, and how each arm differs from the baseline. Starts no run.
    """

    usage = ("python study.py experiment=<name> [key=value ...]",)
    takes_settings = True
    output = "ablab.sweep.progress.StudyState"

    check: bool = False
    """true: build every arm, train it for a few steps and decode a sentence, each in a fresh process; the plan then
    shows its parameters and the seconds per step"""
    watch: bool = False
    """true: show a live view, which includes runs that other processes train"""
    cancel: bool = False
    """true: cancel the study's jobs in the queue of Slurm; those that run write a checkpoint first"""
    close: str | None = None
    """give up the missing runs, for the reason given here; the report then evaluates the claims on the other runs, and
    repeats the reason"""
    format: TextOrJson = "text"


class ReportOptions(Options):
    """Report what a study has found: statistics, verdicts, pictures, LaTeX.

    Takes a study, any sweep given by its settings, or any finished runs, and reads only the store. Shows arms with
    intervals over seeds, differences over the seeds that both arms have, a verdict for each claim, curves and
    sentences. Writes one self-contained page, Markdown, LaTeX, CSV and JSON to outputs/reports/<name>/.
    """

    usage = (
        "python report.py experiment=<name> [key=value ...]",
        "python report.py runs=<id>,<id>,... [key=value ...]",
        "python report.py where='model=tiny data=multi30k' [key=value ...]",
        "python report.py table=results.csv [key=value ...]",
    )
    output = "ablab.judge.document.Document"

    runs: str | None = None
    """finished runs, separated by commas: the id of each, a prefix of its id, or its path; the first is the baseline"""
    where: str | None = None
    """conditions key=value, separated by spaces: all finished runs of the store that meet them"""
    table: str | None = None
    """results of runs from elsewhere: CSV, JSON lines or Parquet in columns arm, seed, metric, value and, if there are
    any, item and corpus, or with a row for each run; a store of MLflow, such as mlruns or sqlite:///mlflow.db; a folder
    of TensorBoard's event files; a folder of results of lm-evaluation-harness"""
    claims: str | None = None
    """file of claims about the table; by default the one beside it, results.yaml for results.csv"""
    metric: str | None = None
    """metric by which arms are compared: test_bleu, test_chrf, test_loss, test_loss_per_character, valid_bleu,
    valid_loss, valid_loss_per_character, training_speed, decoding_speed, memory, your own metric, or one of the table;
    by default that of the experiment, otherwise that of the task, or the first of the table"""
    better: Literal["higher", "lower"] | None = None
    """direction of the metric of a table that has no file of claims, which says it otherwise"""
    baseline: str | None = None
    """arm with which the others are compared; by default that of the experiment, or the first of runs"""
    resamples: Annotated[int, Field(ge=1000, le=100_000)] = 10_000
    """number of resamples in each resampling test"""
    verify: bool = False
    """true: first compute BLEU and chrF again from the stored translations and the raw references"""
    format: TextOrJson = "text"
    outputs: Outputs = "outputs"


class TryOptions(Options):
    """Propose a change to a loop: it is tried on fresh seeds beside the noise floor, and kept or dropped.

    The change and its reason are registered before any run. The referee draws the seeds, and looks after as many of
    them as the loop says. A kept change belongs to the stack from which the next proposals start. A change that was
    judged before costs nothing, nor does one without effect. Exit codes: 0 kept, 10 dropped, 11 failed, 12 diverged, 13
    without effect.

      ablab try optim.lr=0.002 because='a higher peak'
      ablab try norm=scalenorm optim.lr=0.01 because='they belong together' format=json
    """

    usage = ("ablab try key=value ... because='<reason>' [experiment=loop] [hydra.launcher.jobs=N]",)
    takes_settings = True
    output = "ablab.report.loop.Answer"

    because: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    """why the change should help"""
    experiment: LoopFile = "loop"
    format: TextOrJson = "text"
    outputs: Outputs = "outputs"


class ConfirmOptions(Options):
    """Confirm the changes that a loop has kept, on fresh seeds and the sealed test set.

    Compares all kept changes together with the first baseline, and with the same without each of them, with one error
    over all comparisons. Says what stands. Writes a page and its data to outputs/reports/<loop>/.
    """

    usage = ("ablab confirm [experiment=loop] [hydra.launcher.jobs=N]",)
    output = "ablab.report.loop.ConfirmedLoop"

    experiment: LoopFile = "loop"
    format: TextOrJson = "text"
    outputs: Outputs = "outputs"


class LoopOptions(Options):
    """Show the ledger of a loop: each proposal with its reason and what became of it, the floor, and the budget."""

    usage = ("ablab loop [experiment=loop]",)
    output = "ablab.report.loop.LoopState"

    experiment: LoopFile = "loop"
    format: TextOrJson = "text"
    outputs: Outputs = "outputs"


class FloorOptions(Options):
    """Train the noise floor of a loop: seeds of its baseline, or of the changes that it has kept.

    `ablab try` trains it where it is missing, and anew where code or versions are others than those of its runs.
    """

    usage = ("ablab floor [experiment=loop] [seeds=N] [hydra.launcher.jobs=N]",)

    experiment: LoopFile = "loop"
    seeds: Annotated[int, Field(ge=2)] | None = None
    """number of seeds; by default that of the file"""
    outputs: Outputs = "outputs"


class DemoOptions(Options):
    """Report a study that is shipped: a verdict in seconds, without training anything.

    The runs are unpacked as a store, which ls, show, diff, report and verify read.
    """

    usage = ("ablab demo [to=FOLDER]",)

    to: str = "ablab_demo"
    """folder of the store"""


class LsOptions(Options):
    """List the runs of a store, finished or not.

    Shows each run's id, state, seed, scores of the latest evaluation, and name. The row of a damaged run is marked.

      ablab ls where='norm=scalenorm test_bleu>30' sort=-test_bleu
      ablab ls columns=id,seed,optim.lr,valid_loss format=csv
    """

    usage = ("ablab ls [where='key=value ...'] [key=value ...]",)
    output = "ablab.commands.ls.Listing"

    where: str = ""
    """conditions, separated by spaces: groups, fields, seed, state, study, arm, ended (a day), size (in MB) and
    scores, with =, !=, <, <=, > or >="""
    sort: str | None = None
    """column to sort by, the lowest first; -test_bleu: the highest first"""
    columns: str | None = None
    """columns of the table, separated by commas: id, name, state, study, arm, label, ended, age, size, scores, groups,
    and fields"""
    by: Literal["arm"] | None = None
    """arm: a row for each arm of each study, with its runs by state, the means of their scores, and their size"""
    limit: Annotated[int, Field(ge=1)] | None = None
    """largest number of runs to list"""
    format: Literal["text", "json", "csv"] = "text"
    """format of the output; text is cut to fit the terminal, json and csv are not cut"""
    smoke: bool = False
    """list the smoke runs, which lie in a store of their own"""
    outputs: Outputs = "outputs"


class ShowOptions(Options):
    """Show one run: what it is, what it has, and how it was trained.

    Shows how it differs from the defaults; its scores, evaluations, curves, pruned models, analyses and exports; each
    stretch of its training, with machine and code; and whether its results match the register.
    """

    usage = ("ablab show run=<id> [key=value ...]",)
    output = "ablab.commands.show.ShownRun"

    run: str
    """a run: its id, a prefix of its id, its display name, or its path"""
    format: TextOrJson = "text"
    outputs: Outputs = "outputs"


class DiffOptions(Options):
    """Compare two runs: recipe, code, libraries, machine and scores.

    ablab diff r1a2b r3c4d
    """

    usage = ("ablab diff <id> <id> [key=value ...]", "ablab diff runs=<id>,<id> [key=value ...]")
    output = "ablab.commands.diff.RunDifference"

    runs: str | None = None
    """the two runs, separated by a comma"""
    format: TextOrJson = "text"
    outputs: Outputs = "outputs"


def _days(age: str) -> str:
    if re.fullmatch("[0-9]{1,5}d", age) is None:
        raise ValueError("allowed: a number of days, such as 30d")
    return age


class RmOptions(Options):
    """Set runs aside, bring them back, or delete what was set aside.

    Moves runs to superseded/ in the folder of outputs, and enters that in its register, so that reports and verify say
    what happened to them. Names the studies, reports and runs that depend on them. Refuses runs that are being trained.

      ablab rm run=r1a2b dry_run=true
      ablab rm where='state=failed'
      ablab rm where='state=failed' undo=true
      ablab rm where='state=failed' forever=true
      ablab rm older=30d where='study=first' dry_run=true
    """

    usage = (
        *("ablab rm run=<id> [key=value ...]", "ablab rm where='key=value ...' [key=value ...]"),
        "ablab rm older=<days>d [key=value ...]",
    )
    output = "ablab.commands.rm.RemovedRuns"

    run: str | None = None
    """a run: its id, a prefix of its id, or its display name"""
    runs: str | None = None
    """several runs, separated by commas"""
    where: str | None = None
    """conditions, separated by spaces, as in ablab ls: all runs that meet them"""
    older: Annotated[str, AfterValidator(_days)] | None = None
    """a number of days, such as 30d: runs that ended before, of those that meet the conditions if there are any"""
    dry_run: bool = False
    """true: only say what would be done"""
    undo: bool = False
    """true: bring back these runs if they were set aside"""
    forever: bool = False
    """true: delete these runs if they were set aside; this cannot be undone"""
    format: TextOrJson = "text"
    outputs: Outputs = "outputs"


class SyncOptions(Options):
    """Upload to W&B what was logged offline.

    Uploads the sessions of all runs and studies that W&B does not have yet. You can repeat the command at any time:
    nothing is sent twice.
    """

    usage = ("ablab sync [key=value ...]",)
    output = "ablab.commands.sync.Unsent"

    dry_run: bool = False
    """true: only list what W&B does not have yet"""
    format: TextOrJson = "text"
    outputs: Outputs = "outputs"


class DashboardOptions(Options):
    """Make the workspace and the report of a study in W&B.

    The workspace has the study's runs, grouped by arm and averaged over seeds: test scores, learning curves and
    depth-quality curves. The W&B Report has the verdicts and tables of ablab report, and panels of the runs behind
    them. If you repeat the command, it updates what it made before. Needs pip install 'ablab[dashboard]', and a login.

      ablab dashboard experiment=norms logger.entity=my-team
      ablab dashboard experiment=norms dry_run=true
    """

    usage = ("ablab dashboard [experiment=<name>] [key=value ...]",)
    takes_settings = True

    dry_run: bool = False
    """true: only print the specification, as JSON; nothing is sent, and no account is needed"""
    format: Literal["text", "json"] = "text"
    """text: lines with both addresses; json: the addresses as JSON"""


class BoardOptions(Options):
    """Serve a page over the store on this machine: runs, studies, live curves, and two runs side by side.

    Nothing is fetched from elsewhere, and nothing is sent. Needs pip install 'ablab[board]'.

      ablab board
      ablab board port=0                 any free port
    """

    usage = ("ablab board [key=value ...]",)

    port: Annotated[int, Field(ge=0, le=65535)] = 8765
    """port of the page, which only this machine can reach"""
    outputs: Outputs = "outputs"


class VerifyOptions(Options):
    """Check what figures rest on, down to the bytes, and score the translations again.

    Compares digests: of results with the register, of recipes with run ids, of translations, references, weights,
    tokenizers, corpora and checkpoints with those on record. Then computes BLEU and chrF again. Names the first broken
    link of each run, and exits with code 1 if there is one. Notes say in what a study is not as it was registered.
    A stamp that others hold shows whether the register is still the one that it was.

      ablab verify run=r1a2b
      ablab verify experiment=norms stamp=57:3f9a1c0d2b4e5f60
      ablab verify archive=norms.zip stamp=norms.tsr
    """

    usage = (
        "ablab verify run=<id> [key=value ...]",
        "ablab verify experiment=<name> [key=value ...]",
        "ablab verify archive=<file> [key=value ...]",
        "ablab verify stamp=<stamp or file> [key=value ...]",
    )
    output = "ablab.commands.verification.Verified"

    run: str | None = None
    """a finished run: its id, a prefix of its id, or its path"""
    runs: str | None = None
    """several finished runs, separated by commas"""
    archive: str | None = None
    """an archive written by ablab pack; no store is needed"""
    stamp: str | None = None
    """a stamp of the register, or a file with stamps: text, the answer of a time authority (.tsr), or a proof of
    OpenTimestamps (.ots)"""
    format: TextOrJson = "text"
    outputs: Outputs = "outputs"


class PackOptions(Options):
    """Pack a study into one archive that others can verify, and go on with.

    It holds the register, recipes, records, translations, references, curves and the report, with the digest of each
    file; ablab verify checks it on any machine. Training corpora are left out. Unpacked into an empty folder of
    outputs, it is a store: its report can be written again, and the study's line, typed again, trains what is missing.
    Beside it lie the stamp of the register (.stamp) and a request to a time authority (.tsq), with the lines to type
    for a stamp that others hold.
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
    outputs: Outputs = "outputs"


class RegisterOptions(Options):
    """Register claims about a table before there are results.

    Enters the file of claims in the register, outputs/register.jsonl, with its digest and the time. The report of the
    table then says that its claims were registered before, and calls what came or was changed later exploratory. The
    file must fix the metric, its direction, the baseline and the seeds. A study needs none of this: its first launch
    registers its claims.

      ablab register claims.yaml table=results.csv
      ablab report table=results.csv claims=claims.yaml
    """

    usage = ("ablab register <claims.yaml> [key=value ...]",)

    table: str | None = None
    """the table that will have the results, as in ablab report; by default the one beside the file, results.csv for
    results.yaml, if it is there"""
    outputs: str = "outputs"
    """folder of all runs and studies, whose register takes the claims"""


class NewOptions(Options):
    """Start your own study: make a folder with a part and an experiment that run.

    The folder holds parts.py, conf/norm/softsign.yaml, experiments/softsign.yaml and tests/test_parts.py. The part is a
    norm that ablab does not have; replace it with your own part. docs/extending.md describes the kinds of parts.

    With kind=command, it holds a small program instead, train.py, and a study of it: docs/commands.md.
    """

    usage = ("ablab new <folder>",)

    kind: Annotated[Literal["part", "command"], Field(description="what the study is of")] = "part"


class CheckOptions(Options):
    """Check that a part keeps the laws of its kind, or that the arms of a study run and differ by their seeds.

    Of a part, builds a small model with the parts that the settings choose, which are those of ablab train. Runs it,
    and trains it twice for a few steps, once stopped and continued. Padding and future tokens must change nothing,
    evaluation must draw no random numbers, rate 0 must be the identity, all precisions must agree, and the continued
    run must end with equal weights.

    Of a study, tries every arm in a fresh process, as ablab study check=true does. An arm that is a program runs twice
    with one seed and once with another: equal seeds should give equal scores, and other seeds must give others.

      ablab check norm=dyt
      ablab check task=language_model norm=dyt          also that nothing crosses a document
      ablab check schedule=trapezoid training.max_steps=100
      ablab check experiment=norms
    """

    usage = ("ablab check group=option [key=value ...]", "ablab check experiment=<name> [key=value ...]")
    takes_settings = True
    output = "ablab.tasks.verbs.PartsChecked"

    format: TextOrJson = "text"


class CompletionOptions(Options):
    """Let Tab complete verbs, options, fields and values, including those of your own parts.

    Prints a script for the shell. Add the line for your shell to the file that the shell reads when it starts:

      eval "$(ablab completion bash)"        ~/.bashrc
      eval "$(ablab completion zsh)"         ~/.zshrc, after compinit
      ablab completion fish | source         ~/.config/fish/config.fish
    """

    usage = ("ablab completion bash|zsh|fish",)
