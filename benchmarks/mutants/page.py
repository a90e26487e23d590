"""What was found, as a page of the documentation."""

from collections import Counter

from benchmarks.mutants.fault import TESTS
from benchmarks.mutants.faults import FAULTS, ROOMS
from benchmarks.mutants.judged import LIVED, UNJUDGED, Judged

INTRODUCTION = """# Mutation testing

A suite of tests is worth what it notices. Each line below is one small edit of the product that crashes nothing but
changes what some part of a paper does: a rescaling left out, a step too late, a mean over the wrong things. Each was
made on its own, in a copy of the sources, and the tests that concern it were run. The table names the first test that
failed.

    python -m benchmarks.mutants --jobs 2

The list is in [benchmarks/mutants/faults](../benchmarks/mutants/faults); `--only WORD` tries those whose name has the
word. A result holds only for the sources it was found with: the next run tries only faults that have not been
tried with the present ones, and `--again` tries everything. This page has the last result of each fault, and the
commits at which these were found. The command fails if a fault survives, or if its text is no longer in the sources.
"""


def page(judged: Judged) -> str:
    """Markdown."""
    last = {fault.name: judged.last(fault) for fault in FAULTS}
    found = {name: UNJUDGED if each is None else each.by for name, each in last.items()}
    count = {word: list(found.values()).count(word) for word in (LIVED, UNJUDGED)}
    noticed = len(FAULTS) - sum(count.values())
    rest = "".join(f", {number} {word.lower()}" for word, number in count.items() if number)
    tried = Counter(each.commit for each in last.values() if each is not None)
    where = ", ".join(f"{commit} ({number})" for commit, number in tried.most_common())
    lines = [INTRODUCTION, f"{len(FAULTS)} faults, {noticed} noticed{rest}. Last tried at commit {where}."]
    for room, faults in ROOMS.items():
        lines += ["", f"## {room}", "", "| fault | in | noticed by |", "| --- | --- | --- |"]
        lines += [f"| {fault.name} | `{fault.file}` | {_shown(found[fault.name])} |" for fault in faults]
    return "\n".join(lines) + "\n"


def _shown(by: str) -> str:
    if by in (LIVED, UNJUDGED):
        return f"**{by}**"
    path, _, test = by.removeprefix(TESTS).partition("::")
    return f"`{path}`: {test.removeprefix('test_').replace('_', ' ')}"
