"""The laws of corpora."""

import re

from ablab.transformer.config.schema import TranslationConfig
from ablab.transformer.data.corpus import Split
from ablab.transformer.translation.contracts.laws import Law, require


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
    for name in ("train", "valid", "test"):
        split = _pairs(config, name)
        require(split.pairs == _pairs(config, name).pairs, f"the {name} split changes from one reading to the next")
        require(len(split.pairs) > 0, f"the {name} split is empty")
        texts = all(isinstance(side, str) for pair in split.pairs for side in pair)
        require(texts, f"a pair of the {name} split is no pair of texts")
        count = corpus.pairs_in(name)
        sizes = [len(each.pairs) for each in corpus.test_splits()] if name == "test" else [len(split.pairs)]
        require(count in (None, min(sizes)), f"pairs_in({name!r}) is {count}, and the split has {min(sizes)}")
    names = [each.name for each in corpus.test_splits()]
    require(names == corpus.test_names, f"test_names is {corpus.test_names}, and the splits are {names}")


def _pairs(config: TranslationConfig, split: str) -> Split:
    found: Split = getattr(config.data, f"{split}_split")()
    return found


LAWS = (
    Law("digests are SHA-256, stay, and tell the direction", digests),
    Law("splits are pairs of texts, and the same at every reading", splits),
)
