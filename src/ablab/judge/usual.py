"""The evaluation, or the curve, by which runs are compared where they have several."""

from collections import Counter
from collections.abc import Mapping, Sequence

from ablab.store.records import Curve, Evaluation

Found = Mapping[str, Evaluation] | Mapping[str, Curve]


def shared(usual: str, of_arm: Sequence[Found]) -> str:
    """Return the id to use for each run of the arm: the usual one where any of its runs has it, else the arm's
    commonest.
    """
    return usual if any(usual in found for found in of_arm) else most_common(of_arm)


def most_common(runs: Sequence[Found]) -> str:
    """Return the id that most runs have, the latest of several; comparing different searches would be no comparison."""
    counts = Counter(one for found in runs for one in found)
    ended = {one: found[one].ended for found in runs for one in found}
    return max(counts, key=lambda one: (counts[one], ended[one], one), default="")
