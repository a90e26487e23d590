"""The list: each fault changes what a part of a paper does, and crashes nothing."""

from benchmarks.mutants.fault import Fault
from benchmarks.mutants.faults.architecture import ARCHITECTURE
from benchmarks.mutants.faults.custody import CUSTODY
from benchmarks.mutants.faults.decoding import DECODING
from benchmarks.mutants.faults.edges import EDGES
from benchmarks.mutants.faults.own import OWN
from benchmarks.mutants.faults.pruning import PRUNING
from benchmarks.mutants.faults.regularisers import REGULARISERS
from benchmarks.mutants.faults.selection import SELECTION
from benchmarks.mutants.faults.statistics import STATISTICS
from benchmarks.mutants.faults.steps import STEPS
from benchmarks.mutants.faults.today import TODAY
from benchmarks.mutants.faults.trust import TRUST

ROOMS: dict[str, list[Fault]] = {
    "Architecture and initial weights": ARCHITECTURE,
    "Regularisers": REGULARISERS,
    "Optimiser steps": STEPS,
    "Validation and the choice of weights": SELECTION,
    "Decoding": DECODING,
    "Pruning and analysis": PRUNING,
    "Statistics": STATISTICS,
    "The register": CUSTODY,
    "Arms of today": TODAY,
    "Parts of one's own": OWN,
    "What guards a run": TRUST,
    "Edges of rules": EDGES,
}
"""By what they concern."""

FAULTS: list[Fault] = [fault for faults in ROOMS.values() for fault in faults]
