"""Outlines of records and evaluations: what lists of runs tell, without definitions, validations and sentences.

An outline is made of a file that was read and validated whole. It is plain JSON inside, so that the index can keep it.
Reports never read outlines.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal, TypeVar

from ablab.config.former import of_schema_1
from ablab.fields import flatten
from ablab.store.records import Cost, Evaluation, Record, Selected, Stretch, mixture

AnyOutline = TypeVar("AnyOutline", bound="Outline")


class Part:
    """A part that many outlines share, such as the configuration of an arm without its seed."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content

    @cached_property
    def flat(self) -> dict[str, Any]:
        """The content by dotted names."""
        return flatten(self.content)


class Outline:
    """What is told of a file. `own`: plain JSON that no other outline has; `parts`: what others may share."""

    def __init__(self, own: Mapping[str, Any], *parts: Part) -> None:
        self.own, self.parts = own, parts

    def sharing(self: AnyOutline, shared: Callable[[Part], Part]) -> AnyOutline:
        """Return the outline with each part as `shared` returns it."""
        return type(self)(self.own, *map(shared, self.parts))


class OfPruned(Outline):
    """Stands for an evaluation of a pruned model, which no list tells."""


ORIGIN = ("code", "components", "versions", "commit")
"""Entries of provenance that an outline has, besides the definitions of the training code."""


class RecordOutline(Outline):
    """The outline of a record. Parts: the configuration without the value of its seed, choices, and origin."""

    @classmethod
    def of(cls, record: Record) -> "RecordOutline":
        """Return the outline of a record."""
        plain = record.model_dump(
            include={"schema_version", "condition_id", "name", "state", "reason", "selected", "cost", "ended"}
        )
        plain["stretches"] = [stretch.model_dump() for stretch in record.stretches]
        config = dict(record.config)
        if "seed" in config:
            plain["seed"], config["seed"] = config["seed"], None
        found = record.provenance
        origin = {key: found[key] for key in ORIGIN if key in found}
        if "definitions" in found:
            origin["definitions"] = {"training": found["definitions"].get("training", {})}
        return cls(plain, Part(config), Part(record.choices), Part(origin))

    @property
    def name(self) -> str:
        return str(self.own["name"])

    @property
    def condition_id(self) -> str:
        return str(self.own["condition_id"])

    @property
    def ended(self) -> str:
        return str(self.own["ended"])

    @property
    def reason(self) -> str:
        return str(self.own["reason"])

    @property
    def state(self) -> Literal["finished", "diverged"]:
        return "diverged" if self.own["state"] == "diverged" else "finished"

    @property
    def seed(self) -> Any:
        """The seed; KeyError where the configuration has none."""
        return self.own["seed"]

    @property
    def choices(self) -> dict[str, str]:
        return dict(self.parts[1].content)

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Of where the run comes from, what the comparison with the present code and libraries needs."""
        return self.parts[2].content

    @cached_property
    def selected(self) -> Selected | None:
        found = self.own["selected"]
        return None if found is None else Selected.model_validate(found)

    @cached_property
    def cost(self) -> Cost:
        return Cost.model_validate(self.own["cost"])

    @cached_property
    def stretches(self) -> list[Stretch]:
        return [Stretch.model_validate(stretch) for stretch in self.own["stretches"]]

    @property
    def mixed(self) -> str | None:
        """What changed during training, as of the record."""
        return mixture(self.stretches) if len(self.own["stretches"]) > 1 else None

    @property
    def flat(self) -> dict[str, Any]:
        """The configuration in the fields of the current schema, by dotted names."""
        seed = {"seed": self.own["seed"]} if "seed" in self.own else {}
        if self.own["schema_version"] == 1:
            return flatten(of_schema_1({**self.parts[0].content, **seed}))
        return {**self.parts[0].flat, **seed}


OF_EVALUATION = (
    *("evaluation_id", "test_name", "bleu", "chrf", "loss", "loss_per_character", "sentences_per_second", "ended"),
)


class EvaluationOutline(Outline):
    """The outline of an evaluation: everything but its sentences. Part: the settings."""

    @classmethod
    def of(cls, evaluation: Evaluation) -> "EvaluationOutline":
        """Return the outline of an evaluation."""
        return cls({key: getattr(evaluation, key) for key in OF_EVALUATION}, Part(evaluation.settings))

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.parts[0].content

    @property
    def evaluation_id(self) -> str:
        return str(self.own["evaluation_id"])

    @property
    def test_name(self) -> str:
        return str(self.own["test_name"])

    @property
    def ended(self) -> str:
        return str(self.own["ended"])

    @property
    def bleu(self) -> float:
        return float(self.own["bleu"])

    @property
    def chrf(self) -> float:
        return float(self.own["chrf"])

    @property
    def loss(self) -> float | None:
        return None if self.own["loss"] is None else float(self.own["loss"])

    @property
    def loss_per_character(self) -> float | None:
        return None if self.own["loss_per_character"] is None else float(self.own["loss_per_character"])

    @property
    def sentences_per_second(self) -> float:
        return float(self.own["sentences_per_second"])


AnyRecord = Record | RecordOutline
AnyEvaluation = Evaluation | EvaluationOutline
