"""What a run leaves: the folder's layout, the record when training has ended, and evaluations beside it."""

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from ablab.errors import UserError
from ablab.files import read_json, write_json, write_text

SCHEMA = 1
SELECTED = "selected.safetensors"
"""The weights that count, in the folder of checkpoints."""


VALIDATED = "step_"
"""What the names of validated weights begin with; they may yet be selected."""


class Strict(BaseModel):
    """A record is read strictly: a field that is missing or unknown is an error, never a guess."""

    model_config = ConfigDict(extra="forbid", frozen=True)


AnyStrict = TypeVar("AnyStrict", bound=Strict)


class Selected(Strict):
    """Which weights count: those after `steps`, averaged when there are several, and what validation says."""

    steps: list[int]
    loss: float
    perplexity: float
    bleu: float


class Cost(Strict):
    """What training cost. Tokens are target tokens; `tokens_per_second` leaves validation out."""

    steps: int
    epochs: float
    tokens: int
    seconds: float
    train_seconds: float
    tokens_per_second: float
    peak_memory_bytes: int
    parameters: int
    flops_per_token: float


class Record(Strict):
    """Written once, atomically, when training ends. `state` is an outcome; both are kept and never retried."""

    schema_version: int = SCHEMA
    run_id: str
    condition_id: str
    name: str
    choices: dict[str, str]
    state: Literal["finished", "diverged"]
    reason: str
    time_limited: bool
    selected: Selected | None
    validations: list[dict[str, float]]
    cost: Cost
    data: dict[str, Any]
    runtime: dict[str, Any]
    provenance: dict[str, Any]
    config: dict[str, Any]
    ended: str


class Evaluation(Strict):
    """One way of judging the selected weights. Hypotheses lie beside it, one line per sentence."""

    schema_version: int = SCHEMA
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
    statistics: list[list[int]]
    provenance_code: str
    ended: str


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

    schema_version: int = SCHEMA
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
        yield from (f"{number}\t{score:.4f}\t{text}\n" for score, text in hypotheses)


def now() -> str:
    """UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass(frozen=True)
class RunFolder:
    """`outputs/runs/<run_id>`: where each thing lies."""

    path: Path

    @property
    def run_id(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def outputs(self) -> Path:
        """The store that it lies in."""
        return self.path.parents[1]

    @property
    def checkpoints(self) -> Path:
        """The last state and the selected weights."""
        return self.path / "checkpoints"

    @property
    def artefacts(self) -> Path:
        """Generic series, matrices, tables and pictures."""
        return self.path / "artefacts"

    @property
    def metrics(self) -> Path:
        """Training and validation curves."""
        return self.path / "metrics.csv"

    @property
    def validated_layers(self) -> Path:
        """What validation said of each set of layers that a pruning strategy looked at."""
        return self.path / "validated_layers.json"

    @property
    def pruned(self) -> Path:
        """Smaller models that were cut out of this one, a folder each."""
        return self.path / "pruned"

    @property
    def lock(self) -> Path:
        """Held while somebody works on the run; beside the folder, so that the folder can be moved."""
        return self.path.parent / f".{self.path.name}.lock"

    @property
    def pulse(self) -> Path:
        """What whoever works on it is doing."""
        return self.path.parent / f".{self.path.name}.pulse"

    @property
    def failure(self) -> Path:
        """Why the last attempt failed; not there otherwise."""
        return self.path / "failure.json"

    @property
    def log(self) -> Path:
        """What was printed while it ran in a sweep."""
        return self.path / "log.txt"

    def begin(self, recipe: dict[str, Any]) -> None:
        """Make the folder and write what the run is."""
        from omegaconf import OmegaConf

        self.path.mkdir(parents=True, exist_ok=True)
        write_text(self.path / "recipe.yaml", OmegaConf.to_yaml(OmegaConf.create(recipe)))

    def tidy(self) -> None:
        """Remove what a kill has left half-written, and once the choice is on record, weights that were not chosen.

        Only for whoever works on the run: to others a file that is being written is a temporary one.
        """
        places = (
            self.path,
            self.checkpoints,
            self.artefacts,
            self.pruned,
            self.path / "evaluations",
            self.path / "curves",
        )
        for path in (path for place in places for path in place.glob(".*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if (self.path / "record.json").exists():
            for path in self.checkpoints.glob(f"{VALIDATED}*"):
                path.unlink()

    def recipe(self) -> dict[str, Any]:
        """What the run is."""
        from omegaconf import OmegaConf

        content = OmegaConf.to_container(OmegaConf.load(self.path / "recipe.yaml"))
        assert isinstance(content, dict)
        return {str(key): value for key, value in content.items()}

    def record(self) -> Record | None:
        """The record, or None while training has not ended."""
        path = self.path / "record.json"
        if not path.exists():
            return None
        return _read(path, Record)

    def write_record(self, record: Record) -> None:
        """Training has ended."""
        write_json(self.path / "record.json", record.model_dump())

    def evaluation(self, evaluation_id: str) -> Evaluation | None:
        """An evaluation that was made before."""
        path = self.path / "evaluations" / f"{evaluation_id}.json"
        return _read(path, Evaluation) if path.exists() else None

    def has_evaluation(self, evaluation_id: str) -> bool:
        """Whether it was made; without reading it."""
        return (self.path / "evaluations" / f"{evaluation_id}.json").exists()

    def evaluations(self) -> list[Evaluation]:
        """All of them, the oldest first."""
        found = [_read(path, Evaluation) for path in (self.path / "evaluations").glob("*.json")]
        return sorted(found, key=lambda evaluation: (evaluation.ended, evaluation.evaluation_id))

    def write_evaluation(
        self, evaluation: Evaluation, hypotheses: Sequence[str], n_best: Sequence[NBest] | None = None
    ) -> None:
        """The hypotheses first: an evaluation that can be read is complete."""
        folder = self.path / "evaluations"
        text = "".join(f"{line}\n" for line in hypotheses)
        write_text(folder / f"{evaluation.evaluation_id}.txt", text)
        if n_best is not None:
            write_text(folder / f"{evaluation.evaluation_id}.n_best.tsv", "".join(n_best_lines(n_best)))
        write_json(folder / f"{evaluation.evaluation_id}.json", evaluation.model_dump())

    def curve(self, curve_id: str) -> Curve | None:
        """A depth-quality curve that was made before."""
        path = self.path / "curves" / f"{curve_id}.json"
        return _read(path, Curve) if path.exists() else None

    def curves(self) -> list[Curve]:
        """All of them, the oldest first."""
        found = [_read(path, Curve) for path in (self.path / "curves").glob("*.json")]
        return sorted(found, key=lambda curve: (curve.ended, curve.curve_id))

    def write_curve(self, curve: Curve) -> None:
        """A curve is complete when it can be read."""
        write_json(self.path / "curves" / f"{curve.curve_id}.json", curve.model_dump())

    def set_aside(self) -> Path | None:
        """Move the folder to `superseded/`, if there is one; nothing is ever overwritten."""
        if not self.path.exists():
            return None
        aside = self.outputs / "superseded"
        aside.mkdir(parents=True, exist_ok=True)
        number = 1
        while (aside / f"{self.run_id}-{number}").exists():
            number += 1
        return Path(shutil.move(self.path, aside / f"{self.run_id}-{number}"))


def _read(path: Path, kind: type[AnyStrict]) -> AnyStrict:
    try:
        return kind.model_validate(read_json(path))
    except ValueError as error:
        raise UserError(
            f"{path}: cannot be read as {kind.__name__} of this version ({str(error).splitlines()[0]})"
        ) from None


def all_runs(outputs: Path) -> Iterator[RunFolder]:
    """Every run of a store that has begun."""
    runs = outputs / "runs"
    if runs.is_dir():
        yield from (RunFolder(path) for path in sorted(runs.iterdir()) if (path / "recipe.yaml").exists())


def find_run(reference: str, outputs: Path) -> RunFolder:
    """The run that a path, an id, an unambiguous prefix of one, or a display name refers to."""
    if (Path(reference) / "record.json").exists():
        return RunFolder(Path(reference).resolve())
    if (Path(reference) / "model.json").exists():
        raise UserError(f"run={reference}: a model that was cut out of a run; allowed here: the run itself")
    runs = list(all_runs(outputs))
    exact = [run for run in runs if run.run_id == reference]
    found = exact or [run for run in runs if reference and run.run_id.startswith(reference)]
    if not found:
        found = [run for run in runs if (record := run.record()) and record.name == reference]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f"run={reference}: several runs match: {', '.join(run.run_id for run in found)}")
    known = [run.run_id for run in runs]
    raise UserError(f"run={reference}: no such run in {outputs}/runs; there are {', '.join(known[:10]) or 'none'}")
