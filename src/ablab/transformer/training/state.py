"""Progress of a training run, which checkpoints store besides the weights, and the criteria that end it."""

import abc
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Annotated, Any

from pydantic import Field

from ablab.fields import Count, Formerly, NonNegative
from ablab.store.records import Stretch
from ablab.transformer.training.schedules import plateau
from ablab.transformer.training.validation import Validation, best


@dataclass
class TrainingState:
    """Progress so far, summed over resumes. `seconds` counts training and validation, not start-up.

    `layer_tokens`: by stack, the tokens of the steps in which each layer ran. `product_speeds`: speeds of a large
    matrix product timed during training, in operations per second. `kind`: of its validations.
    """

    step: int = 0
    seconds: float = 0.0
    train_seconds: float = 0.0
    tokens: int = 0
    layer_tokens: dict[str, list[int]] = field(default_factory=dict)
    product_speeds: list[float] = field(default_factory=list)
    peak_memory: int = 0
    validations: list[Validation] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)
    kind: type[Validation] = Validation

    def begin(self, stretch: Stretch) -> None:
        """Append the stretch that begins now; removes earlier ones without a saved step."""
        kept = [each for each in self.stretches if each.first_step <= each.last_step]
        kept[-1:] = [each.model_copy(update={"left": stretch.began_from}) for each in kept[-1:]]
        self.stretches = [*kept, stretch]

    def stretches_so_far(self) -> list[Stretch]:
        """Return the stretches, with the last step of the present one filled in."""
        return [
            *self.stretches[:-1],
            *(stretch.model_copy(update={"last_step": self.step}) for stretch in self.stretches[-1:]),
        ]

    def count(self, step: int, tokens: int, ran: Mapping[str, Sequence[bool]]) -> None:
        """Count one step of `tokens` tokens; `ran`: by stack, which layers ran."""
        self.step = step
        self.tokens += tokens
        for stack, flags in ran.items():
            before = self.layer_tokens.get(stack, [0] * len(flags))
            self.layer_tokens[stack] = [count + tokens * flag for count, flag in zip(before, flags, strict=True)]

    def layer_shares(self) -> dict[str, list[float]]:
        """Return by stack the share of all tokens for which each layer ran."""
        return {stack: [count / self.tokens for count in counts] for stack, counts in self.layer_tokens.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a checkpoint."""
        return {
            "step": self.step,
            "seconds": self.seconds,
            "train_seconds": self.train_seconds,
            "tokens": self.tokens,
            "layer_tokens": self.layer_tokens,
            "product_speeds": self.product_speeds,
            "peak_memory": self.peak_memory,
            "validations": [list(astuple(validation)) for validation in self.validations],
            "stretches": [stretch.model_dump() for stretch in self.stretches_so_far()],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], kind: type[Validation] = Validation) -> "TrainingState":
        """Restore the state from the values of `as_dict`; `kind`: of its validations."""
        validations = [kind(*values) for values in content["validations"]]
        stretches = [Stretch.model_validate(values) for values in content.get("stretches", [])]
        return cls(**{**content, "validations": validations, "stretches": stretches, "kind": kind})


class ValidationSchedule(abc.ABC):
    """A learning rate that depends on the validations so far."""

    @abc.abstractmethod
    def rate(self, step: int, validations: Sequence[Validation]) -> float:
        """Return the rate at step >= 1, after these validations."""

    def is_over(self, validations: Sequence[Validation]) -> bool:
        """Return whether training ends after these validations."""
        return False


@dataclass(frozen=True)
class Plateau(ValidationSchedule):
    """A rate that decays when validation stalls: no warm-up, `peak` times `decay` for each stall.

    A stall is `decay_patience` validations in a row without a better one by `decay_monitor`. Training ends under
    `min_lr`.
    """

    peak: float
    decay: Annotated[float, Field(gt=0, lt=1)]
    decay_patience: Count
    decay_monitor: Annotated[str, Formerly("loss")]
    min_lr: NonNegative

    def rate(self, step: int, validations: Sequence[Validation]) -> float:
        """Return the rate after the validations so far."""
        orders = [validation.order(self.decay_monitor) for validation in validations]
        return plateau(orders, peak=self.peak, decay=self.decay, patience=self.decay_patience)

    def is_over(self, validations: Sequence[Validation]) -> bool:
        return self.rate(0, validations) < self.min_lr


@dataclass(frozen=True)
class ValDecay(Plateau):
    """A linear warm-up to `peak` at `warmup_steps`, then Plateau (Nguyen and Salazar 2019, appendix A).

    Validations during warm-up count for nothing: the rate still rises.
    """

    warmup_steps: Count

    def rate(self, step: int, validations: Sequence[Validation]) -> float:
        later = [validation for validation in validations if validation.step >= self.warmup_steps]
        return super().rate(step, later) * min(1.0, step / self.warmup_steps)

    def is_over(self, validations: Sequence[Validation]) -> bool:
        return bool(validations) and self.rate(max(validations[-1].step, self.warmup_steps), validations) < self.min_lr


@dataclass(frozen=True)
class StopCriteria:
    """Criteria that end training, apart from failure.

    `total_steps`: the limit by steps or epochs, if any. `schedule`: of the learning rate, if it may end training.
    """

    total_steps: int | None
    max_seconds: float | None
    patience: int | None
    monitor: str
    schedule: ValidationSchedule | None

    def reached(self, state: TrainingState) -> str | None:
        """Return why a resumed training is already over, or None; a run may be killed after its last checkpoint."""
        if not state.validations or state.validations[-1].step != state.step:
            return None
        return self.before_validation(state) or self.after_validation(state)

    def before_validation(self, state: TrainingState) -> str | None:
        """Return why training ends at this step, or None."""
        if self.total_steps is not None and state.step >= self.total_steps:
            return "steps"
        if self.max_seconds is not None and state.seconds >= self.max_seconds:
            return "minutes"
        return None

    def after_validation(self, state: TrainingState) -> str | None:
        """Return why training ends after the latest validation, or None."""
        if self.patience is not None:
            leader = best(state.validations, self.monitor)
            if len(state.validations) - 1 - state.validations.index(leader) >= self.patience:
                return "patience"
        if self.schedule is not None and self.schedule.is_over(state.validations):
            return "learning rate"
        return None
