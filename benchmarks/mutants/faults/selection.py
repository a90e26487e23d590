"""Faults of validation, of the end of training, and of the weights that meet the test set."""

from benchmarks.mutants.fault import Fault

VALIDATION = ("training/test_validation.py",)
CHOICE = ("training/test_selection.py",)
COURSE = ("training/test_state.py",)

SELECTION = [
    Fault(
        "validation: the loss with dropout on",
        "transformer/training/loss.py",
        "    with evaluating(model):\n        for batch",
        "    if model is not None:\n        for batch",
        VALIDATION,
    ),
    Fault(
        "validation: translations with dropout on",
        "transformer/decoding/translator.py",
        "        with evaluating(self.model):\n",
        "        if self.model is not None:\n",
        VALIDATION,
    ),
    Fault(
        "validation: the loss is the smoothed one",
        "transformer/training/loss.py",
        "label_smoothing=0.0)\n            total += float(loss.true)",
        "label_smoothing=0.1)\n            total += float(loss.total)",
        VALIDATION,
    ),
    Fault(
        "validation: a mean over batches, not over tokens",
        "transformer/training/loss.py",
        "total += float(loss.true)\n            tokens += loss.tokens",
        "total += float(loss.true) / loss.tokens\n            tokens += 1",
        VALIDATION,
    ),
    Fault(
        "the best validation is always that of the lowest loss",
        "transformer/training/validation.py",
        "return (score if monitor in self.higher_is_better else -score, -self.loss)",
        "return (-self.loss,)",
        COURSE,
    ),
    Fault(
        "the best validation: of equals the last",
        "transformer/training/validation.py",
        "return other is None or self.order(monitor) > other.order(monitor)",
        "return other is None or self.order(monitor) >= other.order(monitor)",
        COURSE,
    ),
    Fault(
        "the best validation: equal BLEU is not ordered by the loss",
        "transformer/training/validation.py",
        "return (score if monitor in self.higher_is_better else -score, -self.loss)",
        "return (score if monitor in self.higher_is_better else -score,)",
        COURSE,
    ),
    Fault(
        "patience: training ends one validation late",
        "transformer/training/state.py",
        "state.validations.index(leader) >= self.patience",
        "state.validations.index(leader) > self.patience",
        COURSE,
    ),
    Fault(
        "select=averaged: the last k, not those that end at the best",
        "transformer/training/selection.py",
        "steps[max(0, leader - self.average_last) : leader]",
        "steps[-self.average_last :]",
        CHOICE,
    ),
    Fault(
        "select=averaged: one too few",
        "transformer/training/selection.py",
        "steps[max(0, leader - self.average_last) : leader]",
        "steps[max(0, min(leader - 1, leader - self.average_last + 1)) : leader]",
        CHOICE,
    ),
    Fault(
        "select=averaged: one that may still count is thrown away",
        "transformer/training/selection.py",
        "recent = [validation.step for validation in validations][1 - self.average_last :]",
        "recent = [validation.step for validation in validations][min(-1, 2 - self.average_last) :]",
        CHOICE,
    ),
    Fault(
        "select=averaged_last: the first k",
        "transformer/training/selection.py",
        "return sorted({*self._multiples(end), end})[-self.average_last :]",
        "return sorted({*range(self.average_every, end + 1, self.average_every), end})[: self.average_last]",
        CHOICE,
    ),
    Fault(
        "select=averaged_last: without the weights where training ends",
        "transformer/training/selection.py",
        "return sorted({*self._multiples(end), end})[-self.average_last :]",
        "return [*self._multiples(end)] or [end]",
        CHOICE,
    ),
    Fault(
        "select=best_or_averaged: always the mean",
        "transformer/training/selection.py",
        "[single] if mean == single else [single, mean]",
        "[mean]",
        CHOICE,
    ),
    Fault(
        "select=best_or_averaged: the mean counts where both are equal",
        "transformer/training/checkpoints.py",
        "validation.better_than(chosen[2], self.selection.monitor)",
        "not chosen[2].better_than(validation, self.selection.monitor)",
        CHOICE,
    ),
]
