"""Corpora of documents for tests, with the fields of the shipped options."""

from ablab.config.groups import option_values
from ablab.config.kinds import defaults_of, option
from ablab.transformer.data.documents.texts import one_side


def corpus(name, /, **changes):
    values = option_values("data", name)
    return one_side(option("data", {**defaults_of("data", values["kind"]), **values, **changes}))


def documents(train, **changes):
    return corpus("documents", **{"train": str(train), "tokenizer": "byte", **changes})
