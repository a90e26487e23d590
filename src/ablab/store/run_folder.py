"""The folder of each run: paths of its files, reading and writing them, and all runs of a store."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from ablab.code.find import Part
from ablab.config.plain_yaml import checked
from ablab.errors import UserError, reason
from ablab.files import read_json, read_lines, sha256, write_json, write_lines, write_text
from ablab.files.disk import half_written, keep_names, move, replacing
from ablab.store.chain import complete
from ablab.store.former import completed, reshaped
from ablab.store.records import Curve, Evaluation, NBest, Record, Strict, n_best_lines
from ablab.store.register import Register, is_waiting, waited_for
from ablab.store.shared import with_definitions, without_definitions

SELECTED = "selected.safetensors"
"""File of the selected weights, in the folder of checkpoints."""

STATE = "state.json"
"""What training leaves of a task of one's own, in place of weights."""

TOKENIZERS = ("src.model", "tgt.model", "text_tokenizer.json")
"""Files beside weights, of those that a task has, without which they cannot be used."""

CARD = "model.json"
"""File that describes a model cut out of a run, in a folder of its own."""

LAST = "last.pt"
"""File of the training state from which a run resumes."""

PREVIOUS = "previous.pt"
"""File of the training state before it, for a resume that finds the last one damaged."""

CANDIDATE = "step_"
"""Prefix of files of weights that may still be selected, alone or in a mean; the step follows."""

EMPTY: Mapping[str, Part] = MappingProxyType({})

AnyStrict = TypeVar("AnyStrict", bound=Strict)


@dataclass(frozen=True)
class PathInside:
    """An attribute of a run's folder: the path of this name in it."""

    name: str

    def __get__(self, folder: "RunFolder", kind: object = None) -> Path:
        return folder.path / self.name


class PathBeside(PathInside):
    """A hidden path beside the folder, which stays where it is when the folder is moved."""

    def __get__(self, folder: "RunFolder", kind: object = None) -> Path:
        return folder.path.parent / f".{folder.path.name}.{self.name}"


@dataclass(frozen=True)
class RunFolder:
    """The folder `outputs/runs/<run_id>` and the paths inside it."""

    path: Path

    checkpoints = PathInside("checkpoints")
    """The folder of the training state and the selected weights."""
    artefacts = PathInside("artefacts")
    """The folder of series, matrices, tables and pictures."""
    metrics = PathInside("metrics.csv")
    """The file of training and validation curves."""
    validated_layers = PathInside("validated_layers.json")
    """Validation scores of every set of layers, or of heads, that a pruning strategy has tried."""
    head_importance = PathInside("head_importance.json")
    """The importance of every head on validation."""
    spent = PathInside("spent.json")
    """Where the run's time went."""
    pruned = PathInside("pruned")
    """The folder of smaller models cut out of this run, one folder each."""
    lock = PathBeside("lock")
    """The lock held by the process that works on the run."""
    pulse = PathBeside("pulse")
    """The heartbeat file of the process that works on the run."""
    job = PathBeside("job")
    """The file that names the run's last job in a queue."""
    owner = PathBeside("owner")
    """The token of the process that works on the run."""
    failure = PathInside("failure.json")
    """The reason why the last attempt failed; absent otherwise."""
    log = PathInside("log.txt")
    """Output of the run as part of a sweep."""
    parts = PathInside("parts")
    """The folder with the sources of parts that are not ablab's: to be read, never imported."""

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def outputs(self) -> Path:
        """The store that contains the folder."""
        return self.path.parents[1]

    @property
    def has_begun(self) -> bool:
        """True if the folder has the run's recipe, so that it is a run of the store."""
        return (self.path / "recipe.yaml").exists()

    @property
    def continues(self) -> bool:
        """True if training would resume from a checkpoint."""
        states = (self.checkpoints / name for name in (LAST, PREVIOUS))
        return any(map(Path.exists, states)) and not (self.path / "record.json").exists()

    def begin(self, recipe: dict[str, Any], parts: Mapping[str, Part] = EMPTY) -> None:
        """Create the folder, write the recipe, and copy the sources of its parts that are not ablab's, by group."""
        import yaml
        from omegaconf._utils import get_omega_conf_dumper

        self.path.mkdir(parents=True, exist_ok=True)
        for group, part in parts.items():
            for place, source in part.sources().items():
                with replacing(self.parts / place) as temporary:
                    shutil.copyfile(source, temporary)
            origin = {"target": part.target, "code": part.code, "from": str(part.folder)}
            write_json(self.parts / f"{group}.json", origin)
        # As OmegaConf writes it, which would take ${ in a text for an interpolation.
        dumper = get_omega_conf_dumper()
        text = yaml.dump(recipe, default_flow_style=False, allow_unicode=True, sort_keys=False, Dumper=dumper)
        write_text(self.path / "recipe.yaml", text)

    def origin_of(self, group: str) -> str | None:
        """Return the folder from which the run's part of a group came; None if it is ablab's or not known."""
        path = self.parts / f"{group}.json"
        return str(read_json(path)["from"]) if path.exists() else None

    def tidy(self) -> None:
        """Remove half-written files that a kill has left, and, once there is a record, weights that were not selected.

        A file that was entered in the register before the kill gets its name instead. Call it only while holding the
        run's lock: otherwise a temporary file may belong to a process that is writing it.
        """
        places = (
            self.path,
            self.checkpoints,
            self.artefacts,
            self.pruned,
            self.path / "evaluations",
            self.path / "curves",
        )
        for path in [path for place in places for path in half_written(place)]:
            if is_waiting(path):
                complete(self.outputs, waited_for(path))
            else:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if (self.path / "record.json").exists():
            spare = [*self.checkpoints.glob(f"{CANDIDATE}*"), *self.checkpoints.glob(PREVIOUS)]
            for path in spare:
                path.unlink(missing_ok=True)
            if spare:
                keep_names(self.checkpoints)  # a sweep looks at no finished run again

    def recipe(self) -> dict[str, Any]:
        """Return the recipe; UserError if it cannot be read or has no seed."""
        import yaml
        from omegaconf._utils import get_yaml_loader

        path = self.path / "recipe.yaml"
        try:
            content = yaml.load(checked(path.read_text(encoding="utf-8")), Loader=get_yaml_loader())
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
            raise UserError(f"{path}: cannot be read as a recipe ({str(error).splitlines()[0]})") from None
        if not isinstance(content, dict) or "seed" not in content:
            raise UserError(f"{path}: cannot be read as a recipe (it has no seed)")
        return {str(key): value for key, value in content.items()}

    def record(self) -> Record | None:
        """Return the record, or None while training has not ended."""
        try:
            record, store = _read(self.path / "record.json", Record), self.path.parent.parent
        except (FileNotFoundError, NotADirectoryError):
            return None
        record.provenance.update(with_definitions(record.provenance, store))
        return completed(record, store)

    def write_record(self, record: Record) -> None:
        """Write record.json atomically, after the definitions that it names; from then on the run counts as trained."""
        provenance = without_definitions(record.provenance, self.outputs)
        self._enter("record.json", {**record.model_dump(), "provenance": provenance})

    def evaluation(self, evaluation_id: str) -> Evaluation | None:
        """Return an earlier evaluation, or None."""
        path = self.path / "evaluations" / f"{evaluation_id}.json"
        return _evaluation(path) if path.exists() else None

    def hypotheses(self, evaluation_id: str) -> list[str]:
        """Return an evaluation's translations, one per sentence; an empty list if the file is gone."""
        path = self.translations(evaluation_id)
        return read_lines(path) if path.exists() else []

    def translations(self, evaluation_id: str) -> Path:
        """Return the path of an evaluation's hypotheses."""
        return self.path / "evaluations" / f"{evaluation_id}.txt"

    def n_best(self, evaluation_id: str) -> Path:
        """Return the path of an evaluation's n best translations of each sentence."""
        return self.path / "evaluations" / f"{evaluation_id}.n_best.tsv"

    def has_evaluation(self, evaluation_id: str) -> bool:
        """Return whether the evaluation exists, without reading it."""
        return (self.path / "evaluations" / f"{evaluation_id}.json").exists()

    def evaluation_ids(self) -> set[str]:
        """Return the ids of all evaluations, without reading them."""
        return {path.stem for path in (self.path / "evaluations").glob("[!.]*.json")}

    def evaluations(self) -> list[Evaluation]:
        """Return all evaluations, oldest first."""
        found = [_evaluation(path) for path in (self.path / "evaluations").glob("[!.]*.json")]
        return sorted(found, key=lambda evaluation: (evaluation.ended, evaluation.evaluation_id))

    def latest_evaluation(self) -> Evaluation | None:
        """Return the latest evaluation of the whole model, or None.

        A pruning curve leaves many more, which take a second to read in a large store: their beginnings show them.
        """
        paths = (self.path / "evaluations").glob("[!.]*.json")
        found = [_evaluation(path) for path in paths if not is_of_pruned(path)]
        whole = [one for one in found if "kept" not in one.settings]
        return max(whole, key=lambda one: (one.ended, one.evaluation_id), default=None)

    def write_evaluation(
        self, evaluation: Evaluation, hypotheses: Sequence[str] | None, n_best: Sequence[NBest] | None = None
    ) -> None:
        """Write an evaluation, its hypotheses first, if it has any: an evaluation that can be read is complete."""
        digests = {}
        if hypotheses is not None:
            translations = self.translations(evaluation.evaluation_id)
            write_lines(translations, hypotheses)
            digests["hypotheses"] = sha256(translations)
        if n_best is not None:
            lists = self.n_best(evaluation.evaluation_id)
            write_text(lists, "".join(n_best_lines(n_best)))
            digests["n_best"] = sha256(lists)
        evaluation = evaluation.model_copy(update=digests)
        self._enter(f"evaluations/{evaluation.evaluation_id}.json", evaluation.model_dump())

    def curve(self, curve_id: str) -> Curve | None:
        """Return an earlier pruning curve, or None."""
        path = self.path / "curves" / f"{curve_id}.json"
        return _curve(path) if path.exists() else None

    def curves(self) -> list[Curve]:
        """Return all pruning curves, oldest first."""
        found = [_curve(path) for path in (self.path / "curves").glob("[!.]*.json")]
        return sorted(found, key=lambda curve: (curve.ended, curve.curve_id))

    def write_curve(self, curve: Curve) -> None:
        """Write a pruning curve atomically."""
        self._enter(f"curves/{curve.curve_id}.json", curve.model_dump())

    def _enter(self, file: str, content: Any) -> None:
        """Write a file that the store's register covers."""
        Register(self.outputs).write(self.path / file, content, "written", run=self.run_id, file=file)

    def set_aside(self) -> Path | None:
        """Move the folder, if it exists, to `superseded/` and return its new path; nothing is ever overwritten."""
        if not self.path.exists():
            return None
        aside = self.outputs / "superseded"
        aside.mkdir(parents=True, exist_ok=True)
        number = 1
        while (aside / f"{self.run_id}-{number}").exists():
            number += 1
        moved = aside / f"{self.run_id}-{number}"
        move(self.path, moved)
        Register(self.outputs).append("set aside", run=self.run_id)
        return moved


def _evaluation(path: Path) -> Evaluation:
    evaluation = _read(path, Evaluation)
    _check_named(path, evaluation.evaluation_id)
    return evaluation


def _curve(path: Path) -> Curve:
    curve = _read(path, Curve)
    _check_named(path, curve.curve_id)
    return curve


def _check_named(path: Path, inner: str) -> None:
    """Raise UserError for a file that is named otherwise: the register would be asked about the one that it names."""
    if inner != path.stem:
        raise UserError(f"{path}: says that it is {inner}: it was edited, or copied from that")


def _read(path: Path, kind: type[AnyStrict]) -> AnyStrict:
    written = path.read_bytes()
    try:
        return kind.model_validate_json(written)
    except ValidationError as error:
        refused = error
    if (former := reshaped(kind.__name__, _parsed(written))) is not None:
        try:
            return kind.model_validate(former)
        except ValidationError as error:
            refused = error
    raise UserError(f"{path}: cannot be read as {kind.__name__} of this version ({reason(refused)})")


def _parsed(written: bytes) -> Any:
    """Return what JSON says; None where it is none."""
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return None


def is_of_pruned(path: Path) -> bool:
    """Return whether an evaluation begins with layers or heads that were kept, as those of pruned models do."""
    with path.open("rb") as file:
        settings = file.read(BEGINNING).partition(b'"settings"')[2]
    return settings.lstrip(b": \n\r\t{").startswith(b'"kept"')


BEGINNING = 400
"""Bytes of an evaluation that tell what it is of."""


def model_files(folder: Path, *names: str) -> list[Path]:
    """Return these files of a model and its tokenizers."""
    return [folder / name for name in names] + [path for name in TOKENIZERS if (path := folder / name).is_file()]


def all_runs(outputs: Path) -> Iterator[RunFolder]:
    """Yield the folder of every run of a store that has begun, also of one that has ended and lost its recipe."""
    runs = outputs / "runs"
    for folder in map(RunFolder, sorted(runs.iterdir()) if runs.is_dir() else ()):
        if folder.has_begun or (folder.path / "record.json").exists():
            yield folder
