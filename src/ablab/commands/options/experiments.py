"""The options of the verbs that train and report: train, study, report."""

from typing import Annotated, Literal

from pydantic import Field

from ablab.commands.options.base import Options
from ablab.study.experiment import Compared


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

    Settings of a sweep: hydra.launcher.jobs=N for N runs at a time (they share the cores), hydra.launcher.threads=N
    for the threads of each, hydra.launcher.gpus=[0,1] with hydra.launcher.per_gpu=N for N runs on each GPU;
    retry_failed, fail_fast, rerun=stale. On a cluster: hydra/launcher=ray or hydra/launcher=submitit_slurm, which have
    their own settings (docs/studies.md).

    Settings of a search, used with hydra/sweeper=optuna: keys with several values or interval(),
    hydra.sweeper.trials=N, hydra.sweeper.stopping=median, hydra.sweeper.objectives=[valid_loss]; also
    hydra.sweeper.sampler, seed, training_seed and storage.
    """

    usage = ("python train.py [key=value ...]",)


class StudyOptions(Options):
    """Show the plan and the state of a study.

    Shows how many runs of experiments/<name>.yaml, or of any sweep given by its settings, are planned, running, failed
    and finished, and how each arm differs from the baseline. Starts no run.
    """

    usage = ("python study.py experiment=<name> [key=value ...]",)

    check: bool = False
    """true: build every arm, train it for a few steps and decode a sentence, each in a fresh process; the plan then
    shows its parameters and the seconds per step"""
    watch: bool = False
    """true: show a live view, which includes runs that other processes train"""
    close: str | None = None
    """give up the missing runs, for the reason given here; the report then evaluates the claims on the other runs, and
    repeats the reason"""
    format: Literal["text", "json"] = "text"
    """format of the output"""


class ReportOptions(Options):
    """Report what a study has found: statistics, verdicts, pictures, LaTeX.

    Takes a study, any sweep given by its settings, or any finished runs, and reads only the store. Shows arms with
    intervals over seeds, differences paired by seed, a verdict for each claim, curves and sentences. Writes one
    self-contained page, Markdown, LaTeX, CSV and JSON to outputs/reports/<name>/.
    """

    usage = (
        "python report.py experiment=<name> [key=value ...]",
        "python report.py runs=<id>,<id>,... [key=value ...]",
        "python report.py where='model=tiny data=multi30k' [key=value ...]",
        "python report.py table=results.csv [key=value ...]",
    )

    runs: str | None = None
    """finished runs, separated by commas: the id of each, a prefix of its id, or its path; the first is the baseline"""
    where: str | None = None
    """conditions key=value, separated by spaces: all finished runs of the store that meet them"""
    table: str | None = None
    """CSV file with results of runs from elsewhere, in columns arm, seed, metric, value and, for test items, item"""
    metric: Compared | None = None
    """metric by which arms are compared: test_bleu, test_chrf, test_loss, test_loss_per_character, valid_bleu,
    valid_loss, valid_loss_per_character, training_speed, decoding_speed, memory, or your own metric; by default that of
    the experiment, otherwise test_bleu"""
    baseline: str | None = None
    """arm with which the others are compared; by default that of the experiment, or the first of runs"""
    resamples: Annotated[int, Field(ge=1000, le=100_000)] = 10_000
    """number of resamples in each resampling test"""
    verify: bool = False
    """true: first compute BLEU and chrF again from the stored translations and the raw references"""
    format: Literal["text", "json"] = "text"
    """format of the output"""
    outputs: str = "outputs"
    """folder of all runs and studies"""
