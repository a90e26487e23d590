"""The drawings beside a verdict, as SVG that needs no script: the difference of a claim, and its path over looks."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ablab.judge.lines import EXPLORATORY, ClaimLine, FollowedLine, SeedDifference, interval_text
from ablab.report.forest import published_differences
from ablab.text import exactly, signed

WIDTH, HEIGHT, ASIDE = 380, 112, 22
"""Of the drawing of a difference in its own units, and the space at its sides."""

PUBLISHED, SEEDS, MEAN, AXIS = 8, 44, 62, 78
"""Heights of what is drawn: the published mark, the lowest row of seeds, the interval, and the axis."""

ROW = 24
"""Height of an interval in a row of a table."""

RADIUS, ROWS = 4, 4
"""Of a seed's point; and rows over which points are spread that would hide each other."""

LEFT, RIGHT, TOP, BOTTOM = 70, WIDTH - 12, 8, 100
"""The frame of the drawing of a path, which leaves space for the values and titles of its axes."""

STRETCH = 1.6
"""Range of a path's axis, in half-widths of the narrowest interval: the first ones are so wide that they would hide
all.
"""


@dataclass(frozen=True)
class SvgAxis:
    """Values from `low` to `high` between two places of the drawing."""

    low: float
    high: float
    first: int
    last: int

    @classmethod
    def around(cls, values: Sequence[float], first: int, last: int, room: float) -> "SvgAxis":
        """Return an axis that shows all values, and more by a share of their range."""
        space = room * (max(values) - min(values)) or 1.0
        return cls(min(values) - space, max(values) + space, first, last)

    def at(self, value: float) -> float:
        """Return the place of a value; what lies beyond the axis ends at its end."""
        inside = min(max(value, self.low), self.high)
        return round(self.first + (inside - self.low) / (self.high - self.low) * (self.last - self.first), 1)

    @property
    def ticks(self) -> list[float]:
        """At most seven round values."""
        rough = (self.high - self.low) / 6
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * nice for nice in (1, 2, 5, 10) if power * nice >= rough)
        return [step * number for number in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def drawing(claim: ClaimLine) -> Markup | None:
    """Return the drawing of a claim, with a text alternative; None where there is no difference to draw."""
    if claim.difference is None:
        return None
    published = published_differences(claim)
    axis = _axis(claim, published)
    parts = [*_margin(claim, axis), *_frame(claim, axis), *_published(published, axis)]
    parts += [*_seeds(claim, axis), *_mean(claim, axis)]
    return _svg("drawing", HEIGHT, alternative(claim), parts)


def path_drawing(claim: ClaimLine) -> Markup | None:
    """Return the drawing of a claim's looks, with a text alternative; None where there are none."""
    about = claim.followed
    if about is None or not about.looks:
        return None
    across, up = SvgAxis(about.first, about.last, LEFT + 14, RIGHT - 14), _path_axis(claim, about)
    parts = [*_path_margin(claim, up), *_path_frame(claim, up), *_numbers_of_seeds(about, across)]
    return _svg("path", BOTTOM + 32, _path_alternative(claim, about), [*parts, *_looks(claim, about, across, up)])


def intervals(estimates: Sequence[tuple[float, float, float]], said: Sequence[str]) -> list[Markup]:
    """Return a drawing of each estimate between the ends of its interval, all on one axis; `said`: what each shows."""
    axis = SvgAxis.around([0.0, *(value for each in estimates for value in each)], ASIDE, WIDTH - ASIDE, room=0.04)
    drawn = []
    for (estimate, low, high), words in zip(estimates, said, strict=True):
        zero = axis.at(0.0)
        middle = ROW // 2
        parts = [_line("zero", zero, zero, 0, ROW), _bar(axis, low, high, middle), _point(axis, estimate, middle)]
        drawn.append(_svg("drawing", ROW, words, parts))
    return drawn


def _bar(axis: SvgAxis, low: float, high: float, y: int) -> Markup:
    path = Markup('<path class="interval" d="M{0} {1}v10M{0} {2}H{3}M{3} {1}v10"/>')
    return path.format(axis.at(low), y - 5, y, axis.at(high))


def _point(axis: SvgAxis, value: float, y: int) -> Markup:
    return Markup('<path class="mean" d="M{} {}l6 6l-6 6l-6 -6z"/>').format(axis.at(value), y - 6)


def _svg(kind: str, height: int, said: str, parts: Sequence[Markup]) -> Markup:
    head = Markup('<svg class="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(kind, WIDTH, height, said)
    return head + Markup("").join(parts) + Markup("</svg>")


def _rect(x: float, y: float, width: float, height: float) -> Markup:
    rect = Markup('<rect class="margin" x="{}" y="{}" width="{}" height="{}"/>')
    return rect.format(x, y, round(width, 1), round(height, 1))


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> Markup:
    return Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(kind, x1, x2, y1, y2)


def _text(x: float, y: float, said: object, anchor: str = "middle") -> Markup:
    return Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(x, y, anchor, said)


def _tick(value: float, digits: int) -> str:
    return "0" if abs(value) < 1e-12 else f"{value:+,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _is_on_scale(claim: ClaimLine) -> bool:
    """Return whether the margin is in the unit of what is drawn: not for ranks and shares."""
    return bool(claim.margin) and claim.title == claim.about


def _margins(claim: ClaimLine) -> list[float]:
    return [-claim.margin, claim.margin] if _is_on_scale(claim) else []


def alternative(claim: ClaimLine) -> str:
    """Return what the drawing shows, in words."""
    digits, unit = claim.digits, f" {claim.unit}".rstrip()
    said = [f"{EXPLORATORY if claim.exploratory else ''}The difference is {signed(claim.difference, digits)}{unit}"]
    if claim.interval is not None:
        level = f"{100 * claim.interval.level:.4g} % interval"
        said.append(f"its {level} {interval_text(claim.interval, digits)}")
    if claim.per_seed:
        seeds = ", ".join(f"seed {one.seed} {signed(one.difference, digits)}" for one in claim.per_seed)
        said.append(f"by seed: {seeds}")
    if _is_on_scale(claim):
        said.append(f"differences within {exactly(claim.margin)} do not matter")
    ranges = published_differences(claim)
    said += [f"published: {' and '.join(_range(low, high) for low, high in ranges)}"] if ranges else []
    return "; ".join(said) + "."


def _range(low: float, high: float) -> str:
    return f"{low:+g}" if low == high else f"{low:+g} to {high:+g}"


def _axis(claim: ClaimLine, published: Sequence[tuple[float, float]]) -> SvgAxis:
    values = [0.0, claim.difference or 0.0, *(one.difference for one in claim.per_seed), *_margins(claim)]
    values += [claim.interval.low, claim.interval.high] if claim.interval else []
    values += [end for ends in published for end in ends]
    return SvgAxis.around(values, ASIDE, WIDTH - ASIDE, room=0.04)


def _margin(claim: ClaimLine, axis: SvgAxis) -> Iterator[Markup]:
    if _is_on_scale(claim):
        left, right = axis.at(-claim.margin), axis.at(claim.margin)
        yield _rect(left, PUBLISHED + 8, right - left, AXIS - PUBLISHED - 8)


def _frame(claim: ClaimLine, axis: SvgAxis) -> Iterator[Markup]:
    yield _line("axis", ASIDE, WIDTH - ASIDE, AXIS, AXIS)
    ticks = axis.ticks
    digits = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9)) if len(ticks) > 1 else claim.digits
    for tick in ticks:
        place = axis.at(tick)
        yield _line("axis", place, place, AXIS, AXIS + 4)
        yield _text(place, AXIS + 16, _tick(tick, digits))
    yield _line("zero", axis.at(0), axis.at(0), PUBLISHED + 8, AXIS)
    if claim.unit:
        yield _text(WIDTH / 2, AXIS + 31, claim.unit)


def _published(published: Sequence[tuple[float, float]], axis: SvgAxis) -> Iterator[Markup]:
    for low, high in published:
        left, right = axis.at(low), axis.at(high)
        if left != right:
            yield _line("published", left, right, PUBLISHED, PUBLISHED)
        for place in dict.fromkeys((left, right)):
            yield Markup('<path class="published" d="M{} {}l5 -8h-10z"/>').format(place, PUBLISHED + 6)


def _seeds(claim: ClaimLine, axis: SvgAxis) -> Iterator[Markup]:
    point = Markup('<circle class="seed" cx="{}" cy="{}" r="{}"><title>seed {}: {}</title></circle>')
    for one, row in _spread(claim.per_seed, axis):
        said = signed(one.difference, claim.digits)
        yield point.format(axis.at(one.difference), SEEDS - 2.2 * RADIUS * row, RADIUS, one.seed, said)


def _spread(seeds: Sequence[SeedDifference], axis: SvgAxis) -> Iterator[tuple[SeedDifference, int]]:
    """Yield each seed with the lowest row in which it hides no other; with very many, some do."""
    ends = [-math.inf] * ROWS
    for one in sorted(seeds, key=lambda one: one.difference):
        place = axis.at(one.difference)
        row = next((row for row, end in enumerate(ends) if place - end >= 2 * RADIUS), ends.index(min(ends)))
        ends[row] = place
        yield one, row


def _mean(claim: ClaimLine, axis: SvgAxis) -> Iterator[Markup]:
    if claim.interval is not None:
        yield _bar(axis, claim.interval.low, claim.interval.high, MEAN)
    yield _point(axis, claim.difference or 0.0, MEAN)


def _path_alternative(claim: ClaimLine, about: FollowedLine) -> str:
    looks = "; ".join(
        f"{one.n} seeds {signed(one.difference, claim.digits)} {interval_text(one.interval, claim.digits)}"
        for one in about.looks
    )
    return f"Looks so far, of those at {about.first} to {about.last} seeds: {looks}."


def _path_axis(claim: ClaimLine, about: FollowedLine) -> SvgAxis:
    half = STRETCH * min((one.interval.high - one.interval.low) / 2 for one in about.looks)
    last = about.looks[-1].difference
    return SvgAxis.around([0.0, *_margins(claim), last - half, last + half], BOTTOM, TOP, room=0.05)


def _path_margin(claim: ClaimLine, up: SvgAxis) -> Iterator[Markup]:
    if _is_on_scale(claim):
        top, bottom = up.at(claim.margin), up.at(-claim.margin)
        yield _rect(LEFT, top, RIGHT - LEFT, bottom - top)


def _path_frame(claim: ClaimLine, up: SvgAxis) -> Iterator[Markup]:
    yield _line("zero", LEFT, RIGHT, up.at(0.0), up.at(0.0))
    yield _line("axis", LEFT, LEFT, TOP, BOTTOM)
    yield _line("axis", LEFT, RIGHT, BOTTOM, BOTTOM)
    title = Markup('<text transform="translate(14 {}) rotate(-90)" text-anchor="middle">{}</text>')
    yield title.format((TOP + BOTTOM) / 2, f"difference, {claim.unit}" if 0 < len(claim.unit) < 8 else "difference")
    digits = 0 if up.high - up.low > 10 else claim.digits
    for tick in up.ticks[:: max(1, len(up.ticks) // 4)]:
        place = up.at(tick)
        yield _line("axis", LEFT - 4, LEFT, place, place)
        yield _text(LEFT - 7, place + 4, _tick(tick, digits), "end")


def _numbers_of_seeds(about: FollowedLine, across: SvgAxis) -> Iterator[Markup]:
    every = 1 if about.last - about.first < 14 else 5
    for n in range(about.first, about.last + 1):
        yield _line("axis", across.at(n), across.at(n), BOTTOM, BOTTOM + 4)
        if (n - about.first) % every == 0:
            yield _text(across.at(n), BOTTOM + 16, n)
    yield _text((LEFT + RIGHT) / 2, BOTTOM + 30, "seeds")


def _looks(claim: ClaimLine, about: FollowedLine, across: SvgAxis, up: SvgAxis) -> Iterator[Markup]:
    for one in about.looks:
        place, low, high = across.at(one.n), up.at(one.interval.low), up.at(one.interval.high)
        # An end beyond the frame is an arrow.
        ends = ((low, one.interval.low, 5), (high, one.interval.high, -5))
        shape = {True: "M{0} {1}h8", False: "M{0} {2}L{3} {1}L{4} {2}"}
        caps = "".join(
            shape[up.low < value < up.high].format(place - 4, y, y - back, place, place + 4) for y, value, back in ends
        )
        yield Markup('<path class="interval" d="M{} {}V{}{}"/>').format(place, low, high, caps)
        said = f"{one.n} seeds: {signed(one.difference, claim.digits)} {interval_text(one.interval, claim.digits)}"
        point = Markup('<path class="mean" d="M{} {}l5 5l-5 5l-5 -5z"><title>{}</title></path>')
        yield point.format(place, up.at(one.difference) - 5, said)
