"""Faults of the register, and of what reports make of it."""

from benchmarks.mutants.fault import Fault

REGISTER = ("store/test_register.py",)
TAMPERING = ("report/test_tampering.py",)

CUSTODY = [
    Fault(
        "register: a line need not follow the one before",
        "store/chain.py",
        "if entry and entry.before != before[number - 1]",
        "if entry and not entry.before",
        REGISTER,
    ),
    Fault(
        "register: a stamp is a number of lines",
        "store/chain.py",
        " and self.digests[int(number) - 1] == digest",
        "",
        REGISTER,
    ),
    Fault(
        "register: a torn line stays, and the next follows it",
        "store/register.py",
        "            file.truncate(end)  # a line without its end was never acknowledged\n",
        "",
        REGISTER,
    ),
    Fault(
        "register: a run that was deleted and trained again is as new",
        "store/chain.py",
        "            if self.has_ended:\n                self.replaced.append",
        "            if False:\n                self.replaced.append",
        TAMPERING,
    ),
    Fault(
        "reports: flaws leave claims confirmatory",
        "judge/claims.py",
        "    if selection.flaws:",
        "    if False:",
        TAMPERING,
    ),
    Fault(
        "register: runs that were deleted were never trained",
        "study/ledger.py",
        "ended = {*ended_runs(study.outputs), *Chain.of(study.outputs).ended}",
        "ended = {*ended_runs(study.outputs)}",
        TAMPERING,
    ),
]
