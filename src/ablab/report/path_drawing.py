"""The path of a claim from look to look, as SVG that needs no script: each estimate with its interval, over seeds."""

from collections.abc import Iterator

from markupsafe import Markup

from ablab.report.document import ClaimLine, FollowedLine
from ablab.report.drawing import Scale
from ablab.report.format import interval_text, signed

WIDTH, HEIGHT = 380, 132
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 8, 100
"""Of the drawing in its own units, and the frame of what is drawn in it."""

STRETCH = 1.6
"""Range of the axis, in half-widths of the narrowest interval: the first ones are so wide that they would hide all."""


def path_drawing(claim: ClaimLine) -> Markup | None:
    """Return the drawing of a claim's looks, with a text alternative; None where there are none."""
    about = claim.followed
    if about is None or not about.looks:
        return None
    scale = _scale(claim, about)
    parts = [*_frame(claim, about, scale), *_looks(claim, about, scale)]
    head = Markup('<svg class="path" viewBox="0 0 {} {}" role="img" aria-label="{}">')
    return head.format(WIDTH, HEIGHT, _alternative(claim, about)) + Markup("").join(parts) + Markup("</svg>")


def _alternative(claim: ClaimLine, about: FollowedLine) -> str:
    looks = "; ".join(
        f"{one.n} seeds {signed(one.difference, claim.digits)} {interval_text(one.interval, claim.digits)}"
        for one in about.looks
    )
    return f"Looks so far, of those at {about.first} to {about.last} seeds: {looks}."


def _scale(claim: ClaimLine, about: FollowedLine) -> Scale:
    half = STRETCH * min((one.interval.high - one.interval.low) / 2 for one in about.looks)
    last = about.looks[-1].difference
    margin = claim.margin if claim.title == claim.about else 0.0
    values = [0.0, -margin, margin, last - half, last + half]
    room = 0.05 * (max(values) - min(values))
    return Scale(min(values) - room, max(values) + room)


def _x(about: FollowedLine, n: int) -> float:
    return round(LEFT + 14 + (n - about.first) / (about.last - about.first) * (WIDTH - RIGHT - LEFT - 28), 1)


def _y(scale: Scale, value: float) -> float:
    """Return the height of a value; what lies beyond the axis ends at the frame."""
    inside = min(max(value, scale.low), scale.high)
    return round(BOTTOM - (inside - scale.low) / (scale.high - scale.low) * (BOTTOM - TOP), 1)


def _frame(claim: ClaimLine, about: FollowedLine, scale: Scale) -> Iterator[Markup]:
    if claim.margin and claim.title == claim.about:
        top, bottom = _y(scale, claim.margin), _y(scale, -claim.margin)
        rect = Markup('<rect class="margin" x="{}" y="{}" width="{}" height="{}"/>')
        yield rect.format(LEFT, top, WIDTH - RIGHT - LEFT, round(bottom - top, 1))
    line = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>')
    yield line.format("zero", LEFT, WIDTH - RIGHT, _y(scale, 0.0), _y(scale, 0.0))
    yield line.format("axis", LEFT, LEFT, TOP, BOTTOM)
    yield line.format("axis", LEFT, WIDTH - RIGHT, BOTTOM, BOTTOM)
    digits = 0 if scale.high - scale.low > 10 else claim.digits
    for tick in scale.ticks[:: max(1, len(scale.ticks) // 4)]:
        place = _y(scale, tick)
        yield line.format("axis", LEFT - 4, LEFT, place, place)
        text = "0" if abs(tick) < 1e-12 else signed(tick, digits).replace("-", "\N{MINUS SIGN}")
        yield Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(LEFT - 7, place + 4, text)
    every = 1 if about.last - about.first < 14 else 5
    for n in range(about.first, about.last + 1):
        yield line.format("axis", _x(about, n), _x(about, n), BOTTOM, BOTTOM + 4)
        if (n - about.first) % every == 0:
            yield Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(_x(about, n), BOTTOM + 16, n)
    seeds = Markup('<text x="{}" y="{}" text-anchor="middle">seeds</text>')
    yield seeds.format((LEFT + WIDTH - RIGHT) / 2, BOTTOM + 30)


def _looks(claim: ClaimLine, about: FollowedLine, scale: Scale) -> Iterator[Markup]:
    for one in about.looks:
        place, low, high = _x(about, one.n), _y(scale, one.interval.low), _y(scale, one.interval.high)
        # A bar without its end goes on beyond the frame.
        ends = ((low, one.interval.low), (high, one.interval.high))
        caps = "".join(f"M{place - 4} {y}h8" for y, value in ends if scale.low < value < scale.high)
        yield Markup('<path class="interval" d="M{} {}V{}{}"/>').format(place, low, high, caps)
        said = f"{one.n} seeds: {signed(one.difference, claim.digits)} {interval_text(one.interval, claim.digits)}"
        point = Markup('<path class="mean" d="M{} {}l5 5l-5 5l-5 -5z"><title>{}</title></path>')
        yield point.format(place, _y(scale, one.difference) - 5, said)
