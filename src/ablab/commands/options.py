"""Each verb as users see it: its usage, what it does, and its options with their types, defaults and descriptions.

Both the commands and the help pages read them here. Nothing heavy is imported, so that help comes at once.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from ablab.errors import UserError, choices, first_error
from ablab.fields import Count, Group
from ablab.study.experiment import Compared


class Options(Group):
    """Base of the options of a verb, typed as `key=value` words.

    The docstring of a subclass is the text of the verb's help page; its first line is the verb's line in the overview.
    The docstring of a field is its description there. `usage`: first lines of the page.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)
    usage: ClassVar[Sequence[str]]


class TrainOptions(Options):
    """Train one run, then translate and score the test set; with -m, a sweep or a study.

    The weights are selected on validation. The same line, typed again, continues an interrupted run and prints the
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
    retry_failed, fail_fast, rerun=stale. On a cluster: hydra/launcher=ray or hydra/launcher=submitit_slurm, with
    settings of their own (docs/studies.md).

    Settings of a search, typed with hydra/sweeper=optuna: keys with several values or interval(),
    hydra.sweeper.trials=N, hydra.sweeper.stopping=median, hydra.sweeper.objectives=[valid_loss]; also
    hydra.sweeper.sampler, seed, training_seed and storage.
    """

    usage = ("python train.py [key=value ...]",)


class StudyOptions(Options):
    """Show the plan and the state of a study.

    Counts the runs of experiments/<name>.yaml, or of the words of any sweep, that are planned, running, failed and
    finished, and shows how each arm differs from the baseline. Starts no run.
    """

    usage = ("python study.py experiment=<name> [key=value ...]",)

    check: bool = False
    """true: build every arm, train it for a few steps and decode a sentence, each in a fresh process; the plan then
    shows its parameters and the seconds of a step"""
    watch: bool = False
    """true: a live view, also of runs that other processes train"""
    close: str | None = None
    """reason for which missing runs are given up: the report then judges the claims by the others, and repeats it"""
    format: Literal["text", "json"] = "text"
    """format of the output"""


class ReportOptions(Options):
    """Report what a study has found: statistics, verdicts, pictures, LaTeX.

    Reads a study, the words of any sweep, or any finished runs, from the store alone. Shows arms with intervals over
    seeds, differences paired by seed, a verdict for each claim, curves and sentences: one self-contained page,
    Markdown, LaTeX, CSV and JSON, in outputs/reports/<name>/.
    """

    usage = (
        "python report.py experiment=<name> [key=value ...]",
        "python report.py runs=<id>,<id>,... [key=value ...]",
        "python report.py where='model=tiny data=multi30k' [key=value ...]",
        "python report.py table=results.csv [key=value ...]",
    )

    runs: str | None = None
    """finished runs, each by its id, a prefix of it, or its path, with commas between; the first is the baseline"""
    where: str | None = None
    """conditions, key=value with spaces between: all finished runs of the store that meet them"""
    table: str | None = None
    """CSV file with results of runs from elsewhere, in columns arm, seed, metric, value and, for test items, item"""
    metric: Compared | None = None
    """metric by which arms are compared: test_bleu, test_chrf, test_loss, valid_bleu, valid_loss, training_speed,
    decoding_speed, memory, or one of your own; by default that of the experiment, otherwise test_bleu"""
    baseline: str | None = None
    """arm that the others are compared with; by default that of the experiment, or the first of runs"""
    resamples: Annotated[int, Field(ge=1000, le=100_000)] = 10_000
    """number of resamples of each resampling test"""
    verify: bool = False
    """true: first compute BLEU and chrF again from the stored translations and the raw references"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


def _save(value: str) -> str:
    if value not in ("auto", "none") and not re.fullmatch(r"\d+(\+\d+)?", value):
        raise ValueError(
            "allowed: auto, none, or encoder+decoder layers, such as 6+3, or a number of heads, such as 24"
        )
    return value


def _picture(value: str) -> str:
    if not value.endswith(".png") or value.rpartition("/")[2] == ".png":
        raise ValueError("allowed: a name that ends with .png")
    return value


class PruneOptions(Options):
    """Measure how quality falls as layers or heads go, and save a smaller model.

    Measures test BLEU, chrF, validation loss and decoding speed with fewer and fewer layers, or heads. They are
    chosen on validation or by rule; nothing is trained, and nothing is measured twice.
    """

    usage = (
        "python prune.py run=<id> [pruning=<strategy>] [key=value ...]",
        "python prune.py runs=<id>,<id>,... [pruning=<strategy>] [key=value ...]",
    )

    run: str | None = None
    """a finished run: its id, a prefix of it, its display name, or its path"""
    runs: str | None = None
    """several of them, by id, prefix or path, with commas between: each gets its curve, and one picture shows all"""
    save: Annotated[str, AfterValidator(_save)] = "auto"
    """model to save in the run's folder: auto, the smallest within 1 BLEU of the full one on validation; none; or
    encoder+decoder layers, such as 6+3; or a number of heads, such as 24"""
    picture: Annotated[str, AfterValidator(_picture)] | None = None
    """file for the picture of several runs, a .png; a .csv is written beside it"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class TranslateOptions(Options):
    """Translate standard input, one sentence per line, with a run's selected weights."""

    usage = ("python translate.py run=<id> [key=value ...] < in.txt > out.txt",)

    run: str
    """a finished run: its id, a prefix of it, its display name, or its path; or the path of a pruned model"""
    beam_size: Count = 4
    """hypotheses that the search keeps; 1 is greedy search"""
    length_penalty: Annotated[float, Field(ge=0)] = 0.6
    """alpha of ((5 + length) / 6) ** alpha"""
    n_best: Count = 1
    """hypotheses per sentence, best first, at most beam_size; above 1, a line is number <tab> score <tab>
    translation"""
    max_extra_tokens: Annotated[int, Field(ge=0)] = 50
    """tokens by which a translation may exceed its source"""
    attention: str | None = None
    """folder for pictures of the cross-attention, one per sentence"""
    device: Literal["cpu", "gpu"] = "cpu"
    """device that translates"""
    backend: Literal["ablab", "ctranslate2"] = "ablab"
    """engine; ctranslate2, installed by pip install 'ablab[ctranslate2]', is fast on CPUs, but cuts translations that
    reach the length limit, and leaves an empty sentence empty"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class AnalyseOptions(Options):
    """Look inside a run: attention, positions, heads, quality by length; draw schedules.

    Of the selected weights: the vectors of positions and their cosine similarity; attention to four test sentences,
    the same for every run; the distribution of the next token along one of them; the learned g of every ScaleNorm;
    when asked, by how much masking a head raises the validation loss. Of the evaluation: BLEU and chrF by length of
    the source. Kept in the run's artefacts/, where report.py finds them to compare arms; nothing is computed twice.

      ablab analyse run=<id>                                   all of these but masked heads
      ablab analyse run=<id> attention=all                     every single head on four sentences
      ablab analyse run=<id> text='a sentence'                 also its next tokens, along its best translation
      ablab analyse schedule=true drophead=vshape schedule=cosine
                                                               learning rate and DropHead rate, before any run

    Fields of trainer, logger and data that change no weights can be set too: trainer=gpu, data.path=FOLDER.
    """

    usage = ("ablab analyse run=<id> [key=value ...]", "ablab analyse schedule=true [key=value ...]")

    run: str | None = None
    """a finished run: its id, a prefix of it, its display name, or its path"""
    runs: str | None = None
    """several of them, by id, prefix or path, with commas between"""
    attention: Literal["cross", "heads", "all"] = "heads"
    """cross: cross-attention as the mean over heads; heads: also every single head of encoder, decoder and
    cross-attention on one sentence; all: on all four"""
    text: Annotated[str, Field(min_length=1, pattern=r"\S")] | None = None
    """source sentence whose next tokens are shown too, along the model's own best translation"""
    heads: bool = False
    """true: mask every head of every attention in turn"""
    sentences: Count | None = None
    """validation sentences on which heads are masked, only with heads=true; 200 unless set"""
    schedule: bool = False
    """true: draw learning rate and DropHead rate of the run that the other words describe, as for train.py, at each
    step; another word schedule=<option> is that group"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class ExportOptions(Options):
    """Write a model for CTranslate2, and compare its translations with ablab's.

    Converts a whole or a pruned model for another inference engine, translates test sentences with both engines, and
    reports how many translations differ.
    """

    usage = ("ablab export run=<id> [key=value ...]",)

    run: str
    """a finished run: its id, a prefix of it, its display name, or its path; or the path of a pruned model"""
    format: Literal["ctranslate2"] = "ctranslate2"
    """engine, installed by pip install 'ablab[ctranslate2]'"""
    quantization: Literal["float32", "int8"] = "float32"
    """type of the weights in the export"""
    folder: Annotated[str, Field(min_length=1)] | None = None
    """folder of the export; by default exports/<format>-<quantization> in the folder of the model"""
    check: Annotated[int, Field(ge=0)] = 1000
    """test sentences that both engines translate; 0: no comparison"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class SyncOptions(Options):
    """Upload to W&B what was logged offline.

    Uploads the sessions of all runs and studies that are not there yet. Type it again at any time: what was sent is
    not sent again.
    """

    usage = ("ablab sync [key=value ...]",)

    dry_run: bool = False
    """true: only list what is missing there"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class SelfcheckOptions(Options):
    """Kill a run again and again, and check that it ends bit for bit the same.

    Trains a small model on the built-in corpus, once undisturbed and once killed (SIGKILL) at random moments and
    continued, in a temporary folder, and compares weights, record and translations bit for bit.
    """

    usage = ("ablab selfcheck resume [key=value ...]",)

    kills: Count = 5
    """times that the run is killed"""
    seed: Annotated[int, Field(ge=0)] = 1
    """seed of the random moments"""
    words: str = ""
    """more words for the run, such as words='trainer.threads=4 norm=scalenorm'"""


class CheckOptions(Options):
    """Check that a part keeps the laws of its kind: one of your own, or any other.

    Builds a small model with the parts that the words of a train line choose, runs it, and trains it twice for a few
    steps, once stopped and continued. Padding and the future must change nothing, evaluation must draw nothing, rate 0
    must be the identity, every precision must agree, and the continued run must end with equal weights.

      ablab check norm=dyt
      ablab check schedule=trapezoid training.max_steps=100
    """

    usage = ("ablab check group=option [key=value ...]",)


class NewOptions(Options):
    """Begin a study of your own: a folder with a part and an experiment that run.

    The folder holds parts.py, conf/norm/softsign.yaml, experiments/softsign.yaml and
    tests/test_parts.py: a norm that ablab does not have, to be replaced by yours.
    docs/extending.md tells what parts there can be.
    """

    usage = ("ablab new <folder>",)


class VerifyOptions(Options):
    """Check what figures rest on, down to the bytes, and score the translations again.

    Compares digests: of results with the register, of recipes with run ids, of translations, references, weights,
    tokenizers, corpora and checkpoints with those on record. Then computes BLEU and chrF again. Names the first broken
    link of each run, and ends with 1 if there is one.

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
    """finished run, by its id, a prefix of it, or its path"""
    runs: str | None = None
    """several of them, with commas between"""
    archive: str | None = None
    """archive that ablab pack has written; no store is needed"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class PackOptions(Options):
    """Pack a study into one archive that others can verify.

    It holds the register, recipes, records, translations, references, curves and the report, with the digest of each
    file; ablab verify checks it on any machine. Training corpora are left out.
    """

    usage = (
        "ablab pack experiment=<name> [key=value ...]",
        "ablab pack runs=<id>,<id>,... [key=value ...]",
    )

    runs: str | None = None
    """finished runs, each by its id, a prefix of it, or its path, with commas between"""
    weights: bool = False
    """true: also pack the selected weights and the tokenizers"""
    to: str | None = None
    """file to write; by default packs/<name>.zip in the folder of outputs"""
    outputs: str = "outputs"
    """folder of all runs and studies"""


class CompletionOptions(Options):
    """Let Tab complete verbs, options, fields and values, those of your own parts too.

    Prints a script for the shell. In the file that the shell reads when it starts:

      eval "$(ablab completion bash)"        ~/.bashrc
      eval "$(ablab completion zsh)"         ~/.zshrc, after compinit
      ablab completion fish | source         ~/.config/fish/config.fish
    """

    usage = ("ablab completion bash|zsh|fish",)


OPTIONS: Mapping[str, type[Options]] = {
    "train": TrainOptions,
    "study": StudyOptions,
    "report": ReportOptions,
    "prune": PruneOptions,
    "translate": TranslateOptions,
    "analyse": AnalyseOptions,
    "export": ExportOptions,
    "sync": SyncOptions,
    "verify": VerifyOptions,
    "pack": PackOptions,
    "new": NewOptions,
    "check": CheckOptions,
    "selfcheck": SelfcheckOptions,
    "completion": CompletionOptions,
}
"""The options of each verb, in the order of the overview."""

AnyOptions = TypeVar("AnyOptions", bound=Options)


def read_words(kind: type[AnyOptions], arguments: Sequence[str]) -> AnyOptions:
    """Parse `key=value` words into options; UserError for unknown, missing or invalid keys.

    Values are plain strings, as a run's display name with its commas would not survive Hydra's grammar.
    """
    words: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if key not in kind.model_fields:
            raise UserError(f"{argument}: no such key; {choices(key, kind.model_fields)}")
        if not equals:
            raise UserError(f"{key}: no value; allowed: {key}=<value>")
        words[key] = value
    for name, field in kind.model_fields.items():
        if field.is_required() and name not in words:
            raise UserError(f"{name}: missing; say {name}=<id>")
    try:
        return kind.model_validate(words, strict=False)
    except ValidationError as error:
        raise UserError(first_error(error, words)) from None


def split_words(kind: type[AnyOptions], arguments: Sequence[str]) -> tuple[AnyOptions, list[str]]:
    """Parse the words whose keys are options of the verb; return the options, and the other words."""
    own = [word for word in arguments if word.partition("=")[0] in kind.model_fields]
    return read_words(kind, own), [word for word in arguments if word not in own]
