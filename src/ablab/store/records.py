"""Schemas of the files in a run's folder: the record, evaluations and pruning curves."""

import time
from collections.abc import Iterator, Mapping, Sequence
from operator import lt
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from ablab.code.differences import RecordedCode, comparable, same_code
from ablab.config.schema import DEFAULT, schema_of
from ablab.fields import SCHEMA
from ablab.files import one_line

NOTHING_LEARNT = 0.02
"""A run has diverged if its validation loss never was at least this fraction below the unigram loss."""


class Strict(BaseModel):
    """A model that rejects missing fields, unknown fields and non-finite numbers, so that no value is guessed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _in_order(validations: list[dict[str, float]]) -> list[dict[str, float]]:
    try:
        steps = [validation["step"] for validation in validations]
    except KeyError:
        raise ValueError("a step is needed") from None
    if not all(map(lt, steps, steps[1:])):
        raise ValueError("steps must increase")
    return validations


def _rectangular(rows: list[list[float]]) -> list[list[float]]:
    if len(set(map(len, rows))) > 1:
        raise ValueError("rows must be equally long")
    return rows


READ_LATER: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("commit", "code", "evaluation_code", "definitions_digest", "device"), (str, type(None))),
    "threads": (int, type(None)),
    **dict.fromkeys(("versions", "machine"), dict),
}
"""The entries of provenance and runtime that reports read, and what they are."""


def _as_written(values: dict[str, Any]) -> dict[str, Any]:
    for key in READ_LATER.keys() & values.keys():
        if not isinstance(values[key], READ_LATER[key]):
            raise ValueError(f"{key} is of another type")
    texts = (*values.get("versions", {}).values(), values.get("machine", {}).get("processor", ""))
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("versions and processor must be text")
    return values


class Selected(Strict):
    """The selected weights: those after `steps`, averaged if there are several, with their validation scores by name.

    `at_limit`: translations of that validation that reached the length limit. `sha256`: of the file that holds the
    weights. Older records have neither.
    """

    steps: list[int]
    scores: dict[str, float]
    at_limit: int | None = None
    sha256: str | None = None


UNNAMED = "unnamed"
"""What a record's provenance calls the files that the run may have read although no setting names them."""


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value  # such as 1e9


Count = Annotated[int, BeforeValidator(_whole)]


class ToldCost(Strict):
    """What a program says of its own cost: None of what it does not say.

    `seconds`: as it counts them, such as without its start; `tokens`: that it processed; `memory`: its peak, in bytes;
    `devices`: that it ran on.
    """

    model_config = ConfigDict(strict=True)

    seconds: Annotated[float, Field(ge=0)] | None = None
    tokens: Annotated[Count, Field(ge=0)] | None = None
    memory: Annotated[Count, Field(ge=0)] | None = None
    devices: Annotated[Count, Field(ge=1)] | None = None


class Cost(Strict):
    """The cost of training. Tokens are target tokens. What a task does not count is 0.

    `seconds` includes validation, `train_seconds` excludes it; both include pauses. `tokens_per_second`: the median of
    measurements taken every few training steps, so that a pause hardly moves it; older records have tokens /
    train_seconds. `flops_per_token`: of the layers that ran; older records also count layers that LayerDrop left out.
    `matmul_flops`: operations per second of one large matrix product in the run's precision on one of its devices, the
    median of timings taken during training; older records have one timing from after training, or none, and so do runs
    that diverged before any validation. `told`: what the program of a command says, as it says it; its tokens and its
    memory are `tokens` and `peak_memory_bytes`, too, its seconds are no other field. None where it says nothing; older
    records have none.
    """

    steps: int
    epochs: float = 0.0
    tokens: int = 0
    seconds: float
    train_seconds: float
    tokens_per_second: float = 0.0
    peak_memory_bytes: int
    parameters: int = 0
    flops_per_token: float = 0.0
    matmul_flops: float | None = None
    told: ToldCost | None = None

    @property
    def peak_memory_mib(self) -> float:
        """Peak memory in MiB."""
        return self.peak_memory_bytes / 2**20


class Stretch(Strict):
    """A part of training that one process computed: its steps, and everything that affects rounding.

    `code`: digest of the training code. `versions`: of the libraries that decide numbers. `threads`: per process.
    `last_step`: the last step that a checkpoint kept; below `first_step` if only the selection of weights was left.
    `began_from`, `left`: SHA-256 of the file of the state that it began from, None at step 0, and of the one that it
    left. What a stretch left, the next began from. Older records have neither.
    """

    code: str
    versions: dict[str, str]
    threads: int
    device: str
    devices: int
    micro_batches: int
    compile: bool
    first_step: int
    last_step: int
    began_from: str | None = None
    left: str | None = None


MAY_DIFFER = {
    "versions": "library versions",
    "threads": "threads",
    "device": "device",
    "devices": "number of devices",
    "micro_batches": "micro-batches",
    "compile": "compilation",
}
"""Other fields that may change between two stretches, with their names in messages."""


def mixture(stretches: Sequence[Stretch]) -> str | None:
    """Return what changed from the first stretch of a training on, such as `code, threads`; None if nothing did."""
    pairs = [(stretches[0], stretch) for stretch in stretches[1:]]
    changed_code = [
        comparable(a.code, b.code) and not same_code(RecordedCode(a.code), RecordedCode(b.code)) for a, b in pairs
    ]
    code = ["code"] if any(changed_code) else []
    changed = [
        words
        for name, words in MAY_DIFFER.items()
        if any(getattr(one, name) != getattr(other, name) for one, other in pairs)
    ]
    return ", ".join([*code, *changed]) or None


def of_older_schema(name: str, schema_version: int) -> str | None:
    """Return a warning for users of a run or model of an older schema; None for the current schema."""
    if schema_version == SCHEMA:
        return None
    return f"{name} is of SCHEMA {schema_version}: its line gives other numbers today, under another id"


class Record(Strict):
    """The record of a trained run, written once and atomically when training ends.

    `state` is an outcome: both are kept and neither is retried. `stretches`: of training, in order. `metrics`: SHA-256
    of metrics.csv. Older records have neither.
    """

    schema_version: Literal[1, 2] = SCHEMA
    run_id: str
    condition_id: str
    name: str
    choices: dict[str, str]
    state: Literal["finished", "diverged"]
    reason: str
    time_limited: bool
    selected: Selected | None
    validations: Annotated[list[dict[str, float]], AfterValidator(_in_order)]
    cost: Cost
    data: dict[str, Any]
    runtime: Annotated[dict[str, Any], AfterValidator(_as_written)]
    provenance: Annotated[dict[str, Any], AfterValidator(_as_written)]
    config: dict[str, Any]
    stretches: list[Stretch] = Field(default_factory=list)
    metrics: str | None = None
    ended: str

    @property
    def share_of_limit(self) -> float | None:
        """Training's operations per second as a fraction of those of a large matrix product on each of its devices.

        None where nobody timed that product, or where the number of devices changed: the speed is of either.
        """
        cost, devices = self.cost, {each.devices for each in self.stretches if each.first_step <= each.last_step} or {1}
        if not cost.matmul_flops or len(devices) > 1:
            return None
        return cost.tokens_per_second * cost.flops_per_token / (cost.matmul_flops * max(devices))

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration in the fields of the current schema."""
        return schema_of(self.task).of_schema_1(self.config) if self.schema_version == 1 else self.config

    @property
    def task(self) -> str:
        """The name of its task."""
        return task_in(self.config)

    @property
    def former(self) -> str | None:
        """A warning if the record has an older schema; None for the current one."""
        return of_older_schema(self.run_id, self.schema_version)

    @property
    def mixed(self) -> str | None:
        """What changed during training, such as `code, threads`; None if nothing did."""
        return mixture(self.stretches)


def task_in(settings: Mapping[str, Any]) -> str:
    """Return the name of the task that a configuration is of."""
    return str(settings.get("task", {}).get("kind", DEFAULT))


class EvaluatedSet(Strict):
    """One of several test sets that are evaluated together, in their order."""

    name: str
    sentences: int


class SharedSentences(Strict):
    """Of `of` test pairs, how many share with another split: both sides, the source, the source or nearly.

    Each number includes the one before it. Sources are the same for spaces, Unicode form and characters that nobody
    sees, and nearly the same for case and punctuation, too.
    """

    of: int
    pairs: int
    sources: int
    near: int


# Counts first: asked of each number, the question takes a quarter of the time that an evaluation is read in.
Rows = Annotated[list[list[int]] | list[list[int | float]], Field(union_mode="left_to_right")]


class Evaluation(Strict):
    """One evaluation of the selected weights. Its hypotheses lie in a text file beside it, one line per sentence.

    `scores`: by name. `items`: for each score that is computed from sums over test items, its summands, [items, k].
    `test_sets`: where there are several; the scores are over all of their sentences. `references`: digest of the test
    set. `hypotheses`, `n_best`: SHA-256 of the file of hypotheses, and of that of the n best; older evaluations have
    none, nor has one that kept the best alone. `at_limit`: translations that reached the length limit; None for older
    evaluations. `overlap`: of the test set with training (`train`) and validation (`valid`); None where the corpus is
    gone, or older than this count. `provenance_code`: digest of the code that evaluated; `components`: what it is made
    of, by name; older evaluations have none.
    """

    schema_version: Literal[1, 2] = SCHEMA
    evaluation_id: str
    settings: dict[str, Any]
    test_name: str
    sentences: int
    test_sets: list[EvaluatedSet] | None = None
    scores: dict[str, float]
    signatures: dict[str, str] = {}
    brevity_penalty: float | None = None
    length_ratio: float | None = None
    seconds: float
    sentences_per_second: float = 0.0
    references: str = ""
    hypotheses: str | None = None
    n_best: str | None = None
    at_limit: int | None = None
    overlap: dict[Literal["train", "valid"], SharedSentences] | None = None
    items: Mapping[str, Annotated[Rows, AfterValidator(_rectangular)]] = {}
    provenance_code: str
    components: dict[str, str] = {}
    ended: str

    @model_validator(mode="after")
    def _every_sentence(self) -> "Evaluation":
        for rows in self.items.values():
            if len(rows) != self.sentences:
                raise ValueError(f"statistics of {len(rows)} sentences, not of {self.sentences}")
        if self.test_sets is not None and sum(each.sentences for each in self.test_sets) != self.sentences:
            raise ValueError(f"test sets must have {self.sentences} sentences in all")
        return self


class EvaluationOutline(Strict):
    """What lists of runs tell of an evaluation: everything but its sentences."""

    model_config = ConfigDict(from_attributes=True)

    evaluation_id: str
    settings: dict[str, Any]
    test_name: str
    scores: dict[str, float]
    sentences_per_second: float
    ended: str


AnyEvaluation = Evaluation | EvaluationOutline


class Point(Strict):
    """A point of a pruning curve: the model with some of its layers, or of its heads.

    `heads`: by site and layer, the heads that remain, of a curve of heads. Layers and heads count from 0 and are chosen
    without the test set. `valid`: scores of validation, by which strategies choose. `scores`: on the test set. `bytes`:
    size of the weights. `sentences_per_second`: of the search that the evaluation used, with all translations as long
    as their sources; `speed_ratio`: relative to the full model, with the models timed in turns.
    """

    curve: Literal["decoder", "encoder", "both", "heads"]
    encoder: list[int]
    decoder: list[int]
    parameters: int
    bytes: int
    valid: dict[str, float]
    evaluation_id: str
    scores: dict[str, float]
    sentences_per_second: float
    speed_ratio: float
    heads: dict[str, list[list[int]]] | None = None


class Curve(Strict):
    """Quality against depth, or against heads, of one run under one pruning strategy.

    `combinations`: the number of sets of layers or heads that the strategy scored on validation before it chose; a
    search overfits. `provenance_code`, `components`: as of an evaluation.
    """

    schema_version: Literal[1, 2] = SCHEMA
    curve_id: str
    settings: dict[str, Any]
    label: str
    test_name: str
    combinations: int
    points: list[Point]
    timing: dict[str, Any]
    provenance_code: str
    components: dict[str, str] = {}
    ended: str

    @field_validator("settings")
    @classmethod
    def _has_a_strategy(cls, settings: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(settings.get("pruning"), dict):
            raise ValueError("pruning: allowed: the settings of a strategy")
        return settings

    @property
    def of_heads(self) -> bool:
        """Return whether heads were removed, not layers."""
        return self.settings["pruning"].get("what") == "heads"


NBest = Sequence[tuple[float, str]]
"""Score and text of each hypothesis of one sentence, best first."""


def n_best_lines(n_best: Sequence[NBest]) -> Iterator[str]:
    """Yield tab-separated lines: number of the sentence from 0, score, text."""
    for number, hypotheses in enumerate(n_best):
        yield from (f"{number}\t{score:.4f}\t{one_line(text)}\n" for score, text in hypotheses)


def now() -> str:
    """Return the current time in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
