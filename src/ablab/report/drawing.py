"""The drawing beside a verdict, as SVG that needs no script: seeds, interval, margin, zero and published value."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ablab.report.document import ClaimLine, SeedDifference
from ablab.report.format import interval_text, signed
from ablab.report.published import published_differences

WIDTH, HEIGHT, ASIDE = 380, 112, 22
"""Of the drawing in its own units, and the space at its sides."""

PUBLISHED, SEEDS, MEAN, AXIS = 8, 44, 62, 78
"""Heights of what is drawn: the published mark, the lowest row of seeds, the interval, and the axis."""

RADIUS, ROWS = 4, 4
"""Of a seed's point; and rows over which points are spread that would hide each other."""


@dataclass(frozen=True)
class Scale:
    """The axis: values from `low` to `high` across the drawing."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return the place of a value."""
        return round(ASIDE + (value - self.low) / (self.high - self.low) * (WIDTH - 2 * ASIDE), 1)

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
    scale = _scale(claim, published)
    parts = [*_margin(claim, scale), *_axis(claim, scale), *_published(published, scale)]
    parts += [*_seeds(claim, scale), *_mean(claim, scale)]
    head = Markup('<svg class="drawing" viewBox="0 0 {} {}" role="img" aria-label="{}">')
    return head.format(WIDTH, HEIGHT, alternative(claim)) + Markup("").join(parts) + Markup("</svg>")


def alternative(claim: ClaimLine) -> str:
    """Return what the drawing shows, in words."""
    digits, unit = claim.digits, f" {claim.unit}".rstrip()
    said = [f"The difference is {signed(claim.difference, digits)}{unit}"]
    if claim.interval is not None:
        level = f"{100 * claim.interval.level:.4g} % interval"
        said.append(f"its {level} {interval_text(claim.interval, digits)}")
    if claim.per_seed:
        seeds = ", ".join(f"seed {one.seed} {signed(one.difference, digits)}" for one in claim.per_seed)
        said.append(f"by seed: {seeds}")
    if _is_on_scale(claim):
        said.append(f"differences within {claim.margin:g} do not matter")
    ranges = published_differences(claim)
    said += [f"published: {' and '.join(_range(low, high) for low, high in ranges)}"] if ranges else []
    return "; ".join(said) + "."


def _range(low: float, high: float) -> str:
    return f"{low:+g}" if low == high else f"{low:+g} to {high:+g}"


def _is_on_scale(claim: ClaimLine) -> bool:
    """Return whether the margin is in the unit of what is drawn: not for ranks and shares."""
    return bool(claim.margin) and claim.title == claim.about


def _scale(claim: ClaimLine, published: Sequence[tuple[float, float]]) -> Scale:
    values = [0.0, claim.difference or 0.0, *(one.difference for one in claim.per_seed)]
    values += [claim.interval.low, claim.interval.high] if claim.interval else []
    values += [-claim.margin, claim.margin] if _is_on_scale(claim) else []
    values += [end for ends in published for end in ends]
    room = 0.04 * (max(values) - min(values)) or 1.0
    return Scale(min(values) - room, max(values) + room)


def _margin(claim: ClaimLine, scale: Scale) -> Iterator[Markup]:
    if _is_on_scale(claim):
        left, right = scale.at(-claim.margin), scale.at(claim.margin)
        rect = Markup('<rect class="margin" x="{}" y="{}" width="{}" height="{}"/>')
        yield rect.format(left, PUBLISHED + 8, round(right - left, 1), AXIS - PUBLISHED - 8)


def _axis(claim: ClaimLine, scale: Scale) -> Iterator[Markup]:
    line = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>')
    yield line.format("axis", ASIDE, WIDTH - ASIDE, AXIS, AXIS)
    ticks = scale.ticks
    digits = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9)) if len(ticks) > 1 else claim.digits
    for tick in ticks:
        place = scale.at(tick)
        yield line.format("axis", place, place, AXIS, AXIS + 4)
        text = "0" if abs(tick) < 1e-12 else f"{tick:+,.{digits}f}".replace("-", "\N{MINUS SIGN}")
        yield Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(place, AXIS + 16, text)
    yield line.format("zero", scale.at(0), scale.at(0), PUBLISHED + 8, AXIS)
    if claim.unit:
        yield Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(WIDTH / 2, AXIS + 31, claim.unit)


def _published(published: Sequence[tuple[float, float]], scale: Scale) -> Iterator[Markup]:
    for low, high in published:
        left, right = scale.at(low), scale.at(high)
        if left != right:
            line = Markup('<line class="published" x1="{}" x2="{}" y1="{}" y2="{}"/>')
            yield line.format(left, right, PUBLISHED, PUBLISHED)
        for place in dict.fromkeys((left, right)):
            yield Markup('<path class="published" d="M{} {}l5 -8h-10z"/>').format(place, PUBLISHED + 6)


def _seeds(claim: ClaimLine, scale: Scale) -> Iterator[Markup]:
    point = Markup('<circle class="seed" cx="{}" cy="{}" r="{}"><title>seed {}: {}</title></circle>')
    for one, row in _spread(claim.per_seed, scale):
        said = signed(one.difference, claim.digits)
        yield point.format(scale.at(one.difference), SEEDS - 2.2 * RADIUS * row, RADIUS, one.seed, said)


def _spread(seeds: Sequence[SeedDifference], scale: Scale) -> Iterator[tuple[SeedDifference, int]]:
    """Yield each seed with the lowest row in which it hides no other; with very many, some do."""
    ends = [-math.inf] * ROWS
    for one in sorted(seeds, key=lambda one: one.difference):
        place = scale.at(one.difference)
        row = next((row for row, end in enumerate(ends) if place - end >= 2 * RADIUS), ends.index(min(ends)))
        ends[row] = place
        yield one, row


def _mean(claim: ClaimLine, scale: Scale) -> Iterator[Markup]:
    if claim.interval is not None:
        left, right = scale.at(claim.interval.low), scale.at(claim.interval.high)
        path = Markup('<path class="interval" d="M{0} {1}v10M{0} {2}H{3}M{3} {1}v10"/>')
        yield path.format(left, MEAN - 5, MEAN, right)
    yield Markup('<path class="mean" d="M{} {}l6 6l-6 6l-6 -6z"/>').format(scale.at(claim.difference or 0.0), MEAN - 6)
