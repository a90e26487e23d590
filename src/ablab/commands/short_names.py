"""Names of runs in a list, which may be too long for it: the words that all have are left out, and the rest is put
so that what tells the runs from each other comes first.
"""

from collections import Counter
from collections.abc import Sequence

from ablab.identity import parts_of


class ShortNames:
    """The names of a list. `shared`: the words that all of several have, which the list says once."""

    def __init__(self, names: Sequence[str]) -> None:
        split = [parts_of(name) for name in names]
        first, *others = split or [[]]
        self.shared = [word for word in first if all(word in other for other in others)] if others else []
        self._order = _varying_first(split)

    def of(self, name: str) -> str:
        """Return one of the names without the shared words."""
        own = [word for word in parts_of(name) if word not in self.shared]
        return ",".join(sorted(own, key=lambda word: self._order[_key_of(word)]))


def _varying_first(names: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the place of each key: the more names agree in its value, or lack it, the later. The seed is last.

    A long name is cut, and what it has in common with most runs of a store is what it may lose.
    """
    words = Counter(word for name in names for word in name)
    having = Counter(_key_of(word) for word in words.elements())
    alike = {key: len(names) - number for key, number in having.items()}
    for word, number in words.items():
        alike[_key_of(word)] = max(alike[_key_of(word)], number)
    ranked = sorted(alike, key=lambda key: (key == "", alike[key]))
    return {key: place for place, key in enumerate(ranked)}


def _key_of(word: str) -> str:
    """Return the key of a word of a name; none of a seed, which has a column, and of a word without a key."""
    key, is_set, _ = word.partition("=")
    return key if is_set else ""
