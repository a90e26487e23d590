"""The laws of corpora."""

import hashlib
import json
import re

from ablab.transformer.config.schema import TranslationConfig
from ablab.transformer.data.corpus import SPLITS, Parallel
from ablab.transformer.translation.contracts.laws import Law, in_another_process, require


def digests(config: TranslationConfig) -> None:
    """Ask twice for each digest."""
    corpus = config.data
    for name in ("train_digest", "test_digest"):
        first, second = getattr(corpus, name)(), getattr(corpus, name)()
        require(first == second, f"{name} is {first}, then {second}")
        require(re.fullmatch("[0-9a-f]{64}", first) is not None, f"{name} is {first!r}, no hex SHA-256")
    reverse = corpus.model_copy(update={"src": corpus.tgt, "tgt": corpus.src})
    require(reverse.train_digest() != corpus.train_digest(), "train_digest is the same for the other direction")


def splits(config: TranslationConfig) -> None:
    """Read each split twice."""
    corpus = config.data
    for name in SPLITS:
        split, again = (getattr(corpus, f"{name}_split")() for _ in range(2))
        require(split.pairs == again.pairs, f"the {name} split changes from one reading to the next")
        require(len(split.pairs) > 0, f"the {name} split is empty")
        texts = all(isinstance(side, str) for pair in split.pairs for side in pair)
        require(texts, f"a pair of the {name} split is no pair of texts")
        count = corpus.pairs_in(name)
        sizes = [len(each.pairs) for each in corpus.test_splits()] if name == "test" else [len(split.pairs)]
        require(count in (None, min(sizes)), f"pairs_in({name!r}) is {count}, and the split has {min(sizes)}")
    names = [each.name for each in corpus.test_splits()]
    require(names == corpus.test_names, f"test_names is {corpus.test_names}, and the splits are {names}")


class LawOfProcesses:
    """Read the splits in another process, in which sets and hashes of texts have another order.

    `words`: of a run that reads them.
    """

    def __init__(self, words: list[str]) -> None:
        self.words = words

    def __call__(self, config: TranslationConfig) -> None:
        here = read(config.data)
        found = in_another_process(PROGRAM, self.words)
        others = [name for name, digest in here.items() if found[name] != digest]
        require(not others, f"the {', '.join(others)} split is another in a second process (by the order of a set?)")


PROGRAM = f"""
import json, sys
from ablab.config import compose
from {__name__} import read
print(json.dumps(read(compose(sys.argv[1:]).config.data)))
"""


def read(corpus: Parallel) -> dict[str, str]:
    """Return a digest of the pairs of each split."""
    splits = {name: getattr(corpus, f"{name}_split")().pairs for name in SPLITS}
    return {name: hashlib.sha256(json.dumps(pairs).encode()).hexdigest() for name, pairs in splits.items()}


def laws(words: list[str]) -> tuple[Law, ...]:
    """Return the laws of corpora; `words` describe a run that reads the one that is checked."""
    return (
        Law("digests are SHA-256, stay, and tell the direction", digests),
        Law("splits are pairs of texts, and the same at every reading", splits),
        Law("another process reads the same splits", LawOfProcesses(words)),
    )
