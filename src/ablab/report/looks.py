"""Claims of a study that adds seeds until they are settled."""

from collections.abc import Sequence
from dataclasses import replace

from ablab.report.document import ClaimLine, FollowedLine, LookLine, SeedDifference
from ablab.report.estimates import span
from ablab.report.selection import Selection
from ablab.statistics.interval import NotTestable
from ablab.statistics.looks import Looks
from ablab.statistics.moderated import Moderated
from ablab.statistics.sequential import Followed, follow
from ablab.statistics.verdict import Case, Failures


def follow_claims(selection: Selection, cases: Sequence[Case], seeds: Sequence[Sequence[int]]) -> list[Followed]:
    """Follow the claims of each family. `seeds`: those that all arms of a claim have, in order.

    A look needs all seeds before it: one that still trains must not be left out because others ended sooner. Where no
    seed will be added any more, a claim that was open is inconclusive.
    """
    looks = selection.looks
    assert looks is not None
    cases = [_up_to(case, _without_gap(own), looks) for case, own in zip(cases, seeds, strict=True)]
    found: dict[int, Followed] = {}
    for secondary in (False, True):
        members = [number for number, claim in enumerate(selection.claims) if claim.secondary == secondary]
        found |= zip(members, follow([cases[number] for number in members], looks), strict=True)
    return [_ended(one) if selection.ended else one for one in (found[number] for number in range(len(cases)))]


def _without_gap(seeds: Sequence[int]) -> int:
    """Return how many seeds there are from the first on, without one missing."""
    return next((number for number, seed in enumerate(seeds) if seed != number + 1), len(seeds))


def _up_to(case: Case, seeds: int, looks: Looks) -> Case:
    if seeds < looks.first and not isinstance(case.evidence, Failures):
        return replace(case, evidence=[0.0] * seeds)  # before the first look nothing is read
    if isinstance(case.evidence, Moderated | Failures | NotTestable):
        return case
    return replace(case, evidence=list(case.evidence)[:seeds])


def _ended(one: Followed) -> Followed:
    if one.state != "open" or one.verdict.reason is not None:
        return one
    return replace(one, verdict=replace(one.verdict, outcome="inconclusive"))


def with_looks(line: ClaimLine, followed: Followed, selection: Selection) -> ClaimLine:
    """Add the looks to a claim's line, in words too. Only the seeds up to the look that settled it count."""
    assert selection.looks is not None
    about = FollowedLine(
        state=followed.state,
        first=selection.looks.first,
        last=selection.looks.last,
        looks=[LookLine(n=one.n, difference=one.difference, interval=span(one.interval)) for one in followed.looks],
        chance=followed.chance,
        bias=followed.bias if followed.state == "settled" else None,
    )
    counted: list[SeedDifference] = line.per_seed[: line.n] if followed.looks else line.per_seed
    words = f"{line.words} {look_words(about, line)}" if line.reason is None else line.words
    return line.model_copy(update={"followed": about, "per_seed": counted, "words": words})


def look_words(about: FollowedLine, line: ClaimLine) -> str:
    """Return a sentence on where a claim stands between its looks."""
    if about.state == "settled":
        sentence = f"It was settled by the look at {line.n} of at most {about.last} seeds"
        if about.bias is None or round(about.bias, line.digits) == 0:
            return f"{sentence}."
        bias = f"{abs(about.bias):.{line.digits}f} {line.unit}".rstrip()
        return (
            f"{sentence}; an estimate at such a stop is too {'high' if about.bias > 0 else 'low'} by {bias} on average."
        )
    if about.state == "spent":
        return f"The last look, at {about.last} seeds, has not settled it."
    later = "" if about.chance is None else f"a later look would settle it with a chance of {percent(about.chance)}"
    if about.state == "hopeless":
        return f"After {line.n} of at most {about.last} seeds there is no point in going on: {later}."
    return f"It is open after {line.n} of at most {about.last} seeds{later and '; '}{later}."


def percent(chance: float) -> str:
    """Return a chance in words."""
    return "less than 1 %" if chance < 0.01 else f"{100 * chance:.0f} %"
