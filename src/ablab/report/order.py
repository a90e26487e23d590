"""The order of arms in tables: the baseline, then the arms by their effect, the best first."""

from ablab.judge.document import ArmLine, DifferenceLine, Document


def differences_by_effect(document: Document) -> list[DifferenceLine]:
    """Return the differences, the best first, and those that have none last.

    In the order of the study where arms have baselines of their own: their differences do not compare.
    """
    if document.within:
        return document.differences
    sign = -1.0 if document.higher_is_better else 1.0
    return sorted(document.differences, key=lambda line: (line.difference is None, sign * (line.difference or 0.0)))


def arms_by_effect(document: Document) -> list[ArmLine]:
    """Return the arms in the order of their differences, after the baseline."""
    if document.within:
        return document.arms
    places = {line.arm: place for place, line in enumerate(differences_by_effect(document))}
    return sorted(document.arms, key=lambda arm: (not arm.is_baseline, places.get(arm.name, len(places))))
