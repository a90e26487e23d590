"""What `ablab analyse` shows of a language model: attention, next tokens, and heads that can be spared."""

import json
import math

import numpy as np
import pytest

from ablab.commands.cli import main
from ablab.transformer.language_model.analyses import LONGEST, TEXTS, beginnings


@pytest.fixture(scope="module")
def analysed(store):
    words = (
        "analyse",
        f"run={store.first}",
        f"outputs={store.outputs}",
        "heads=true",
        "sentences=3",
        "text=the old cat",
    )
    assert main(list(words)) == 0
    return {path.stem: json.loads(path.read_text()) for path in store.run.artefacts.glob("*.json")}, words, store


def matrix(artefact, label=""):
    return np.array(next(each["values"] for each in artefact["slices"] if each["label"] == label))


def test_every_run_shows_the_beginnings_of_the_same_documents(analysed):
    artefacts, _, _ = analysed
    shown = [artefacts[f"attention_{place}"]["settings"]["text"] for place in range(1, TEXTS + 1)]
    assert len(set(shown)) == TEXTS
    assert all(0 < len(text) <= LONGEST for text in shown)


@pytest.mark.parametrize("key", ["attention_1", "attention_decoder_1"])
def test_attention_reads_no_later_token_and_sums_to_one(analysed, key):
    artefacts, _, _ = analysed
    artefact = artefacts[key]
    for each in artefact["slices"]:
        weights = np.array(each["values"])
        assert np.allclose(weights.sum(axis=1), 1, atol=0.03)  # rounded, a row of 32
        assert (np.triu(weights, k=1) == 0).all()
    assert artefact["x"]["labels"][1:] == artefact["y"]["labels"][:-1]  # what was predicted is read next
    assert {"layer 1", "layer 2", "layer 3"} <= {each["label"] for each in artefact["slices"]}


def test_the_mean_of_all_layers_is_that_of_every_single_head(analysed):
    artefact = analysed[0]["attention_decoder_1"]
    heads = [np.array(each["values"]) for each in artefact["slices"] if ", head " in each["label"]]
    assert len(heads) == 6
    assert np.allclose(np.mean(heads, axis=0), matrix(artefact, "all layers"), atol=2e-3)


def test_next_tokens_are_a_distribution_and_surprisal_is_the_loss(analysed):
    artefacts, _, store = analysed
    assert np.allclose(matrix(artefacts["next_token_of_text"]).sum(axis=1), 1, atol=1e-3)
    series = {each["label"]: each["y"] for each in artefacts["uncertainty"]["series"]}
    text = artefacts["uncertainty"]["settings"]["text"]
    found = series["surprisal of the text"]
    assert len(found) == min(len(text.encode()), 32)
    assert np.mean(found) * math.log(2) == pytest.approx(store.record.selected.scores["loss"], rel=0.3)
    assert max(series["entropy"]) <= math.log2(257) + 1e-3


def test_masked_heads_have_a_row_for_each_layer(analysed):
    assert matrix(analysed[0]["heads_decoder"]).shape == (3, 2)


def test_nothing_is_computed_twice(analysed, capsys):
    _, words, _ = analysed
    capsys.readouterr()
    assert main(list(words)) == 0
    assert "nothing is computed again" in capsys.readouterr().out


def test_a_text_that_the_model_cannot_read_at_once_is_said_to_be_cut(analysed, capsys):
    _, words, _ = analysed
    capsys.readouterr()
    text = "the old cat sat " * 40
    assert main([*(word for word in words if not word.startswith("text=")), f"text={text}"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("text=the old cat sat")]
    assert " tokens, of which the model reads the first " in line


def test_beginnings_end_at_a_space_and_lie_evenly():
    documents = ["", "  ", *(f"{number} {'word ' * 30}" for number in range(8)), "0 short"]
    found = beginnings(documents)
    assert [text.split()[0] for text in found] == ["1", "3", "5", "7"]
    assert all(text.endswith("word") and LONGEST - 5 <= len(text) <= LONGEST for text in found)
    assert beginnings(["x" * 100]) == ["x" * LONGEST]
    assert beginnings(["same", "same"]) == ["same"]
