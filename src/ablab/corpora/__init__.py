"""Parallel text from several sources, behind one interface."""

from ablab.corpora.base import Corpus, Pair, Split
from ablab.corpora.mtdata import MtData
from ablab.corpora.multi30k import Multi30k
from ablab.corpora.numbers import Numbers
from ablab.corpora.text import Text

CORPORA: dict[str, type[Corpus]] = {"numbers": Numbers, "multi30k": Multi30k, "text": Text, "mtdata": MtData}
"""By the name that `data=` selects."""

__all__ = ["CORPORA", "Corpus", "MtData", "Multi30k", "Numbers", "Pair", "Split", "Text"]
