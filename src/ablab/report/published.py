"""Differences that a paper published, read from the text of a claim, so that they can be drawn."""

import re

from ablab.judge.document import ClaimLine

SIGNED = r"[+\-\N{MINUS SIGN}]\d+(?:\.\d+)?"
FOLLOWS = r"(?=\s*(?:$|[,;.()]|(?:to|on|for|in|with|at|over|after|by)\b|{unit}))"


def published_differences(claim: ClaimLine) -> list[tuple[float, float]]:
    """Return the published differences as ranges (low, high) in the unit of the claim, low = high for one number.

    `-0.2 to +1.53 BLEU` is one range; `+1.53 BLEU for gl-en, +0.75 for sk-en` are two numbers. Only numbers with a
    sign are differences, and only where one of them bears the unit: `25.7 against 25.8 BLEU` gives none, nor does
    `+0.6 on MNLI` for a claim about BLEU.
    """
    text = claim.published or ""
    if claim.title != claim.about or not claim.unit:
        return []
    unit = re.escape(claim.unit)
    if not re.search(rf"(?<!\w){SIGNED}\s*{unit}\b", text):
        return []
    follows = FOLLOWS.replace("{unit}", unit)
    found = re.finditer(rf"(?<![\w.])({SIGNED})(?:\s+to\s+({SIGNED}))?{follows}", text)
    ranges = [sorted(_number(part) for part in (match[1], match[2] or match[1])) for match in found]
    return [(low, high) for low, high in ranges]


def _number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))
