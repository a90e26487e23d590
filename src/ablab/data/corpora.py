"""The registry of corpora that `data=` selects from."""

from ablab.data.corpus import Corpus, Pair, Split
from ablab.data.mtdata import MtData
from ablab.data.multi30k import Multi30k
from ablab.data.numbers import Numbers
from ablab.data.text import Text

CORPORA: dict[str, type[Corpus]] = {"numbers": Numbers, "multi30k": Multi30k, "text": Text, "mtdata": MtData}
"""Corpus classes by name."""

__all__ = ["CORPORA", "Corpus", "MtData", "Multi30k", "Numbers", "Pair", "Split", "Text"]
