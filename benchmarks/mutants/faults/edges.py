"""Faults at the edges of rules: a comparison that is strict or not, a bound, one more or less."""

from benchmarks.mutants.fault import Fault

EDGES = [
    Fault(
        "edge of a tuning curve: the estimate is the next larger cost",
        "statistics/tuning_curve.py",
        "ordered[max(ceil(share * n) - 1, 0)]",
        "ordered[min(ceil(share * n), n - 1)]",
        ("statistics/test_tuning_curve.py",),
    ),
    Fault(
        "edge of a near-failure: four degrees of freedom of the other arms are too few",
        "statistics/conditions.py",
        "degrees.sum() - degrees >= FEWEST",
        "degrees.sum() - degrees > FEWEST",
        ("statistics/test_scatter.py",),
    ),
    Fault(
        "edge of planning: each other arm lends a degree of freedom for each seed",
        "statistics/power.py",
        "spare = (layout.others or 0) * degrees if",
        "spare = (layout.others or 0) * seeds if",
        ("statistics/test_planning.py",),
    ),
    Fault(
        "edge of the analysis of variance: unequal groups count by their mean size",
        "statistics/anova.py",
        "n0 = (total - (sizes**2).sum() / total) / (k - 1)",
        "n0 = total / k",
        ("statistics/test_anova.py",),
    ),
    Fault(
        "edge of learned LayerDrop: no bound on the division by how often a layer runs",
        "transformer/model/layerdrop.py",
        "keep / keep.detach().clamp(min=self.LEAST_SHARE)",
        "keep / keep.detach()",
        ("model/test_layerdrop.py",),
    ),
    Fault(
        "edge of init_from: the learned scores of LayerDrop go on",
        "transformer/stages/models.py",
        "    model.load_state_dict({**kept, **fresh})\n",
        "    model.load_state_dict({**kept, **fresh, **weights})\n",
        ("model/test_layerdrop.py",),
    ),
    Fault(
        "edge of plateau: training ends at the least rate, not under it",
        "transformer/training/state.py",
        "return self.rate(0, validations) < self.min_lr",
        "return self.rate(0, validations) <= self.min_lr",
        ("training/test_plateau.py",),
    ),
    Fault(
        "edge of valdecay: training ends at the least rate, not under it",
        "transformer/training/state.py",
        "self.rate(max(validations[-1].step, self.warmup_steps), validations) < self.min_lr",
        "self.rate(max(validations[-1].step, self.warmup_steps), validations) <= self.min_lr",
        ("training/test_plateau.py",),
    ),
    Fault(
        "edge of the index: a file whose time was put back is the same",
        "store/index.py",
        "return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino",
        "return found.st_mtime_ns, found.st_mtime_ns, found.st_size, found.st_ino",
        ("store/test_index.py",),
    ),
    Fault(
        "edge of the index: it outlives a change of what an outline has",
        "store/index.py",
        "for file in (records.__file__, __file__)",
        "for file in (__file__,)",
        ("store/test_index.py",),
    ),
    Fault(
        "edge of the index: the latest evaluation may be a pruned model's",
        "store/index.py",
        'if found is not None and "kept" not in found.settings:',
        "if found is not None:",
        ("store/test_index.py",),
    ),
]
