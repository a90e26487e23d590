"""A run of a store as data: read when asked for, and never changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ablab.api.tables import Rows
from ablab.config.labels import label
from ablab.config.schema import DEFAULT
from ablab.errors import UserError, choices, lacking
from ablab.fields import flatten
from ablab.files import size
from ablab.store.failures import Failure, read_failure
from ablab.store.heartbeat import read_pulse
from ablab.store.index import Index
from ablab.store.metrics import read_metrics
from ablab.store.pack import has_no_texts
from ablab.store.records import AnyEvaluation, Curve, Evaluation, Record, Stretch
from ablab.store.run_folder import RunFolder
from ablab.study.ledger import State, state_of
from ablab.tasks.conditions import ARM, ENDED, ID, LABEL, NAME, own_names, typed, values_of
from ablab.tasks.registry import task_named, task_recorded
from ablab.tasks.score import Score
from ablab.tasks.task import Task

Scores = dict[str, float]

DAMAGED = "damaged"
"""State of a run whose recipe, record or evaluation cannot be read; the others are those of a study's ledger."""


class PlannedAs(NamedTuple):
    """What a run was planned as: an arm of a study. `label`: what people call the arm."""

    study: str
    arm: str
    label: str


@dataclass(frozen=True)
class Run:
    """A run that has begun. Everything but the folder is read when it is first asked for.

    `arm`: what a study planned it as last, such as `("norms", "norm=post", "PostNorm")`, if one did. `index`: of its
    store, in a list of many runs.
    """

    folder: RunFolder
    arm: PlannedAs | None = field(default=None, compare=False)
    index: Index | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.state} {self.name}>"

    @property
    def id(self) -> str:
        """The run id, `r` and 11 hex digits."""
        return self.folder.run_id

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self.folder.path

    @cached_property
    def damage(self) -> str | None:
        """What cannot be read of record or evaluation, or of a recipe without record, in one line; None if sound."""
        try:
            _ = self.record, self.seed, self.judged  # the recipe, slow to read, only where there is no record
            if not self.folder.has_begun:
                return f"{self.path / 'recipe.yaml'}: is gone"
        except (UserError, OSError) as error:
            return str(error)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            return f"{self.path}: its settings cannot be read ({error})"
        return None

    @cached_property
    def record(self) -> Record | None:
        """The record; None until training has ended. Error where it cannot be read."""
        return self.folder.record()

    @cached_property
    def judged(self) -> AnyEvaluation | None:
        """The latest evaluation of the whole model, in a list without its sentences; None without one."""
        return self.evaluation if self.index is None else self.index.latest_evaluation(self.folder)

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """All that decides the selected weights, by dotted names."""
        return flatten(self.folder.recipe())

    @property
    def name(self) -> str:
        """Its differences from the defaults and its seed; until training has ended, its arm and seed, if planned."""
        if self.damage is None and self.record is not None:
            return self.record.name
        return "" if self.arm is None or self.damage is not None else f"{self.arm.arm},s{self.seed}"

    @property
    def label(self) -> str:
        """What people call it: as the study does that planned it, or else by its differences from the defaults."""
        differing = self.name.rpartition("s")[0].rstrip(",")
        return label(differing) if self.arm is None else self.arm.label

    @cached_property
    def size(self) -> int:
        """Bytes of its folder."""
        return size(self.path)

    @property
    def seed(self) -> int:
        return int(self.recipe["seed"] if self.record is None else self.record.config["seed"])

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration by dotted names; until training has ended, only what the recipe has of it."""
        return self.recipe if self.record is None else flatten(self.record.settings)

    @property
    def described(self) -> dict[str, Any]:
        """Its groups and settings, as a table has them; nothing of a damaged run."""
        if self.damage is not None:
            return {}
        return self.settings if self.record is None else {**self.record.choices, **self.settings}

    @cached_property
    def state(self) -> str:
        """How the run is doing: finished, diverged, trained, running, failed, interrupted, or damaged."""
        if self.damage is not None:
            return DAMAGED
        judged = self.record is not None and (self.record.selected is None or self.judged is not None)
        return state_of(
            self.folder, self.record, lambda: read_pulse(self.folder.pulse), lambda: self.failure, is_complete=judged
        ).value

    @property
    def failure(self) -> Failure | None:
        """Why the last attempt failed; None if it did not."""
        return read_failure(self.folder.failure)

    @property
    def has_ended(self) -> bool:
        return self.state in (State.FINISHED.value, State.DIVERGED.value)

    @cached_property
    def evaluation(self) -> Evaluation | None:
        """The latest evaluation of the whole model, which scores are of; None without one."""
        return self.folder.latest_evaluation()

    @property
    def evaluations(self) -> list[Evaluation]:
        """All evaluations, oldest first, those of pruned models included: their `settings` have `kept`."""
        return self.folder.evaluations()

    @property
    def task(self) -> str:
        """The name of its task."""
        if self.damage is not None:
            return DEFAULT
        return str(self.recipe.get("task.kind", DEFAULT)) if self.record is None else self.record.task

    @property
    def scores(self) -> Scores:
        """The scores and costs that the run has, by the names that experiments use."""
        found = {name: score.value(self.record, self.judged) for name, score in self.measured.items()}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def measured(self) -> Mapping[str, Score]:
        """The scores and costs that its task declares, by the same names; empty before it has ended."""
        found = self.declaring
        return {} if found is None else found.measured

    @property
    def declaring(self) -> Task | None:
        """Its task with the scores that its latest evaluation declares; None before it has ended."""
        if self.damage is not None or self.record is None:
            return None
        return task_recorded(self.record.settings, None if self.judged is None else self.judged.settings)

    @property
    def stretches(self) -> list[Stretch]:
        """The parts of training that one process each computed, in order: more than one if training was resumed."""
        return [] if self.record is None else self.record.stretches

    @property
    def curves(self) -> list[Curve]:
        """All pruning curves, oldest first."""
        return self.folder.curves()

    def curve(self, what: Literal["layers", "heads"] = "layers") -> Rows:
        """Return the latest pruning curve, a row for each point; no rows where none was measured.

        Columns: curve (which, as decoder or both: the whole model is a point of each), encoder and decoder (numbers of
        layers that remain) and, of a curve of heads, heads; parameters, bytes, the scores on validation (valid_loss in
        nats per token) and on the test set, sentences_per_second, and speed_ratio to the full model.
        """
        if what not in ("layers", "heads"):
            raise UserError(f"curve: {what!r}: allowed: layers, heads")
        found = [curve for curve in self.curves if curve.of_heads == (what == "heads")]
        rows = []
        for point in found[-1].points if found else ():
            row: dict[str, Any] = {"encoder": len(point.encoder), "decoder": len(point.decoder)}
            if point.heads is not None:
                row["heads"] = sum(len(kept) for layers in point.heads.values() for kept in layers)
            measured = point.model_dump(exclude={*row, "heads", "evaluation_id", "valid", "scores"})
            valid = {f"valid_{name}": value for name, value in point.valid.items()}
            rows.append({**row, **measured, **valid, **point.scores})
        return Rows(rows)

    def training_curve(self) -> Rows:
        """Return the rows of metrics.csv: step, seconds, loss, learning_rate, valid_bleu and others, where measured."""
        return Rows(read_metrics(self.folder.metrics) if self.folder.metrics.exists() else ())

    def hypotheses(self, evaluation: str | None = None) -> list[str]:
        """Return the translations of the test set, one per sentence, of the latest evaluation, or of one by its id."""
        if (asked := evaluation) is None:
            if self.evaluation is None:
                return []
            asked = self.evaluation.evaluation_id
        if not self.folder.has_evaluation(asked):
            ids = sorted(self.folder.evaluation_ids())
            raise UserError(f"{self.id}: evaluation {asked}: {choices(str(asked), ids)}")
        if has_no_texts(self.folder):
            raise UserError(f"{self.id}: its translations were not packed; allowed: a store or an archive with texts")
        found, path = self.folder.evaluation(asked), self.folder.translations(asked)
        if found is not None and found.hypotheses is not None and not path.exists():
            raise UserError(f"{path}: is gone; allowed: a store that has it")
        return self.folder.hypotheses(asked)

    def translate(
        self,
        sentences: Sequence[str],
        *,
        beam_size: int = 4,
        length_penalty: float = 0.6,
        max_extra_tokens: int | None = None,
        device: Literal["cpu", "gpu"] = "cpu",
    ) -> list[str]:
        """Translate sentences with the selected weights. Error for a run that has none. Loads torch.

        A beam of 1 is greedy search, in which `length_penalty` has no effect.
        """
        if isinstance(sentences, str):
            raise UserError(f"translate({sentences!r}): allowed: a list of sentences")
        try:
            return task_named(DEFAULT if self.record is None else self.task).outputs_for(
                self.folder,
                sentences,
                beam_size=beam_size,
                length_penalty=length_penalty,
                max_extra_tokens=max_extra_tokens,
                device=device,
            )
        except ModuleNotFoundError as error:
            if (what := lacking(error)) is None:
                raise
            raise UserError(what) from None

    @cached_property
    def values(self) -> dict[str, str]:
        """What conditions are about: groups, fields, seed, state, scores, study, arm, end, name and id, as typed."""
        itself = {ID: self.id, NAME: self.name}
        if self.damage is not None:
            return {**itself, "state": self.state}
        study, arm, name = self.arm or ("", "", "")
        planned = {key: value for key, value in (("study", study), (ARM, arm), (LABEL, name)) if value}
        if self.record is None:
            fields = typed(self.recipe)
            known = {**_groups(self.recipe), **fields, **own_names(task_named(self.task), fields)}
        else:
            known = {**values_of(self.record, self.judged), ENDED: self.record.ended}
        return {**itself, **known, **planned, "state": self.state}

    def row(self) -> dict[str, Any]:
        """Return the run as a row of a table: what it is, its scores, its groups and its settings."""
        head: dict[str, Any] = {"id": self.id, "name": self.name, "state": self.state}
        if self.damage is not None:
            return {**head, "damage": self.damage}
        head["seed"] = self.seed
        head["study"], head["arm"] = self.arm[:2] if self.arm else (None, None)
        head["label"] = self.label or None
        if self.record is None:
            return {**head, **self.described}
        head |= {"condition": self.record.condition_id, "ended": self.record.ended}
        head |= {"parameters": self.record.cost.parameters or None, "minutes": round(self.record.cost.seconds / 60, 2)}
        if self.judged is not None:
            head["test_set"] = self.judged.test_name
        return {**head, **self.scores, **self.described}


def _groups(recipe: dict[str, Any]) -> dict[str, str]:
    """Return the groups of which a recipe names the kind; the options of others are known once training has ended."""
    return {key.removesuffix(".kind"): str(kind) for key, kind in recipe.items() if key.endswith(".kind")}
