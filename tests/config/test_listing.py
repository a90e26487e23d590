"""The fields that help lists are those that the run would have."""

import pytest
from omegaconf import OmegaConf

from ablab.commands.help import listed_fields, typed_choices
from ablab.config import compose

LINES = [
    "",
    "data=multi30k",
    "data=mtdata model=base",
    "optim=plateau drophead=falling norm=scalenorm_fixnorm position=learned init=xavier",
    "data=multi30k model=small optim=cosine pruning=search decoding=greedy trainer=ddp logger=none",
]


@pytest.mark.parametrize("line", LINES)
def test_each_is_listed_once_with_the_value_that_holds(line):
    listed = listed_fields(typed_choices(line.split()))
    content = OmegaConf.to_container(OmegaConf.create("\n".join(listed)), resolve=True)
    held = compose(line.split()).config.model_dump(mode="json", serialize_as_any=True)
    assert content["data"]["bleu_tokenizer"] is None, "the target language names it"
    content["data"]["bleu_tokenizer"] = held["data"]["bleu_tokenizer"]
    assert content == held


def test_fields_on_the_line_change_no_listing():
    assert typed_choices(["norm=post", "model.dropout=0", "seed=3", "--help"]) == typed_choices(["norm=post"])


@pytest.mark.parametrize("word", ["data=txt", "norm=pre,post", "norm=choice(pre,post)", "-m", "nosuch=1"])
def test_whoever_asks_for_help_is_not_refused(word):
    assert typed_choices([word]) == typed_choices([])
