"""Claims of a study that adds seeds until they are settled."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from ablab.judge.document import ClaimLine, FollowedLine, LookLine, Span
from ablab.judge.runs import ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.sequential import Followed, Watched, follow_watched
from ablab.statistics.verdict import Outcome


def follow_claims(selection: SelectedArms, claims: Sequence[Watched]) -> list[Followed]:
    """Follow the claims of each family. Where no seed will be added any more, a claim that was open is inconclusive."""
    looks = selection.looks
    assert looks is not None
    found: dict[int, Followed] = {}
    for secondary in (False, True):
        members = [number for number, claim in enumerate(selection.claims) if claim.secondary == secondary]
        found |= zip(members, follow_watched([claims[number] for number in members], looks), strict=True)
    return [_ended(one) if selection.ended else one for one in (found[number] for number in range(len(claims)))]


def seeds_of(arms: Sequence[ArmRuns]) -> int:
    """Return how many seeds have ended in all of the arms, from the first on and without one missing.

    A look needs all seeds before it: one that still trains must not be left out because others ended sooner.
    """
    ended = [{run.seed for run in arm.runs if run.has_ended} for arm in arms]
    return next(seed for seed in count() if not all(seed + 1 in seeds for seeds in ended))


def _ended(one: Followed) -> Followed:
    if one.state != "open":
        return one
    outcome: Outcome = "inconclusive" if one.verdict.reason is None else "not testable"
    return replace(one, verdict=replace(one.verdict, outcome=outcome))


def with_looks(line: ClaimLine, followed: Followed, selection: SelectedArms) -> ClaimLine:
    """Add the looks to a claim's line, in words too."""
    assert selection.looks is not None
    about = FollowedLine(
        state=followed.state,
        first=selection.looks.first,
        last=selection.looks.last,
        looks=[LookLine(n=one.n, difference=one.difference, interval=Span.of(one.interval)) for one in followed.looks],
        chance=followed.chance,
        bias=followed.bias if followed.state == "settled" else None,
    )
    words = f"{line.words} {look_words(about, line)}" if line.reason is None else line.words
    return line.model_copy(update={"followed": about, "words": words})


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
        return f"The last look, at {line.n} seeds, has not settled it."
    later = "" if about.chance is None else f"a later look would settle it with a chance of {percent(about.chance)}"
    if about.state == "hopeless":
        return f"After {line.n} of at most {about.last} seeds there is no point in going on: {later}."
    return f"It is open after {line.n} of at most {about.last} seeds{later and '; '}{later}."


def percent(chance: float) -> str:
    """Return a chance in words."""
    return "less than 1 %" if chance < 0.01 else f"{100 * chance:.0f} %"
