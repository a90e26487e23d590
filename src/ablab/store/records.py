"""What is on record of a run: the record when training has ended, evaluations and curves beside it."""

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from ablab.config.former import of_schema_1
from ablab.errors import LostError, OtherCodeError
from ablab.files import write_json
from ablab.lines import one_line
from ablab.provenance import same_code

SCHEMA: Literal[2] = 2
"""Of what is written now; records of SCHEMA 1 are read as what they were, and never continued."""

NOTHING_LEARNT = 0.02
"""A run whose chosen weights have a validation loss not this share below the unigram loss has diverged."""


class Strict(BaseModel):
    """A record is read strictly: a field that is missing or unknown, or no number, is an error, never a guess."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _in_order(validations: list[dict[str, float]]) -> list[dict[str, float]]:
    if not all({"step", "loss", "bleu"} <= set(validation) for validation in validations):
        raise ValueError("step, loss and bleu are needed")
    if any(later["step"] <= earlier["step"] for earlier, later in pairwise(validations)):
        raise ValueError("steps must increase")
    return validations


def _rectangular(rows: list[list[int]]) -> list[list[int]]:
    if len({len(row) for row in rows}) > 1:
        raise ValueError("rows must be equally long")
    return rows


class Selected(Strict):
    """Which weights count: those after `steps`, averaged when there are several, and what validation says."""

    steps: list[int]
    loss: float
    perplexity: float
    bleu: float


class Cost(Strict):
    """What training cost. Tokens are target tokens.

    `seconds`: with validation; `train_seconds`: without; both count pauses. `tokens_per_second`: in training, the
    median of looks every few steps, so that a pause hardly moves it; older records have tokens / train_seconds.
    `flops_per_token`: of the layers that ran; older records count those too that LayerDrop left out. `matmul_flops`:
    what the machine did a second in one large matrix product, in the run's precision, the median of timings beside the
    training; older records have one from after its end, or none, as runs have that diverged before any validation.
    """

    steps: int
    epochs: float
    tokens: int
    seconds: float
    train_seconds: float
    tokens_per_second: float
    peak_memory_bytes: int
    parameters: int
    flops_per_token: float
    matmul_flops: float | None = None

    @property
    def share_of_limit(self) -> float | None:
        """Training's own operations, of those that the machine could have done."""
        return self.matmul_flops and self.tokens_per_second * self.flops_per_token / self.matmul_flops


class Stretch(Strict):
    """A part of training that one process computed: its steps, and what decides how they are rounded.

    `code`: digest of training's code. `versions`: of the libraries that decide numbers. `threads`: of each process.
    `last_step`: the last that a checkpoint kept; below `first_step` where only the choice of weights was left.
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


MAY_DIFFER = {
    "versions": "library versions",
    "threads": "threads",
    "device": "device",
    "devices": "number of devices",
    "micro_batches": "micro-batches",
    "compile": "compilation",
}
"""What else may change between two stretches, and what a reader calls it."""


def of_older_schema(name: str, schema_version: int) -> str | None:
    """What whoever uses an older run, or a model made of one, must know; None for one of today."""
    if schema_version == SCHEMA:
        return None
    return f"{name} is of SCHEMA {schema_version}: its line gives other numbers today, under another id"


class Record(Strict):
    """Written once, atomically, when training ends. `state` is an outcome; both are kept and never retried.

    `stretches`: of training, in order; older records have none.
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
    runtime: dict[str, Any]
    provenance: dict[str, Any]
    config: dict[str, Any]
    stretches: list[Stretch] = Field(default_factory=list)
    ended: str

    @property
    def settings(self) -> dict[str, Any]:
        """Its configuration in today's fields."""
        return of_schema_1(self.config) if self.schema_version == 1 else self.config

    @property
    def former(self) -> str | None:
        """What whoever uses an older run must know; None for one of today."""
        return of_older_schema(self.run_id, self.schema_version)

    @property
    def mixed(self) -> str | None:
        """`code, threads`: what changed during training; None where nothing did."""
        pairs = [(self.stretches[0], stretch) for stretch in self.stretches[1:]]
        code = ["code"] if any(not same_code(one.code, other.code) for one, other in pairs) else []
        changed = [
            words
            for name, words in MAY_DIFFER.items()
            if any(getattr(one, name) != getattr(other, name) for one, other in pairs)
        ]
        return ", ".join([*code, *changed]) or None


class Evaluation(Strict):
    """One way of judging the selected weights. Hypotheses lie beside it, one line per sentence."""

    schema_version: Literal[1, 2] = SCHEMA
    evaluation_id: str
    settings: dict[str, Any]
    test_name: str
    sentences: int
    bleu: float
    chrf: float
    signatures: dict[str, str]
    brevity_penalty: float
    length_ratio: float
    seconds: float
    sentences_per_second: float
    references: str
    statistics: Annotated[list[list[int]], AfterValidator(_rectangular)]
    provenance_code: str
    ended: str

    @model_validator(mode="after")
    def _every_sentence(self) -> "Evaluation":
        if len(self.statistics) != self.sentences:
            raise ValueError(f"statistics of {len(self.statistics)} sentences, not of {self.sentences}")
        return self


class Point(Strict):
    """The model with some of its layers, beside the full one. Layers count from 0; chosen without the test set.

    `valid_*`: greedy BLEU and loss on validation, where strategies choose. `bleu`, `chrf`: of the evaluation on the
    test set. `bytes`: of the weights. `sentences_per_second`: of the search that made the evaluation, with all
    translations as long as their sources; `speed_ratio`: over the full model's, measured in turns.
    """

    curve: Literal["decoder", "encoder", "both"]
    encoder: list[int]
    decoder: list[int]
    parameters: int
    bytes: int
    valid_loss: float
    valid_bleu: float
    evaluation_id: str
    bleu: float
    chrf: float
    sentences_per_second: float
    speed_ratio: float


class Curve(Strict):
    """Quality against depth of one run under one pruning strategy. `combinations`: how many sets of layers the
    strategy has looked at on validation before it chose; searching overfits.
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
    ended: str


NBest = Sequence[tuple[float, str]]
"""Score and text of each hypothesis of one sentence, the best first."""


def n_best_lines(n_best: Sequence[NBest]) -> Iterator[str]:
    """Number of the sentence from 0, score, text; separated by tabs."""
    for number, hypotheses in enumerate(n_best):
        yield from (f"{number}\t{score:.4f}\t{one_line(text)}\n" for score, text in hypotheses)


def now() -> str:
    """UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


Kind = Literal["memory", "killed", "timeout", "refused", "error"]


class Failure(BaseModel):
    """`kind`: memory (of a device or of the machine), killed (by a signal), timeout (of a queue), refused (it began
    under other code), or error. `line`: the last of the error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    line: str
    attempts: int
    log: str | None
    ended: str


def read_failure(path: Path) -> Failure | None:
    """What is on record, if anything is."""
    try:
        return Failure.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def write_failure(path: Path, kind: Kind, line: str, log: str | None, ended: str) -> Failure:
    """One more attempt has failed."""
    before = read_failure(path)
    failure = Failure(kind=kind, line=line, attempts=1 + (before.attempts if before else 0), log=log, ended=ended)
    write_json(path, failure.model_dump())
    return failure


def kind_of(error: BaseException) -> Kind:
    """Its class. PyTorch says that memory is out in several ways, not all of them by type."""
    said = str(error)
    if isinstance(error, OtherCodeError):
        return "refused"
    if isinstance(error, LostError) and "was killed by" in said:
        return "killed"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "memory"
    if "DefaultCPUAllocator" in said or "out of memory" in said:
        return "memory"
    return "error"
