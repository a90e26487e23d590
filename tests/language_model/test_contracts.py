"""The laws of a language model's parts: those of ablab keep them, and parts that look over a border break them."""

import pytest
import torch

from ablab.commands.cli import main
from ablab.transformer.language_model import contracts
from ablab.transformer.language_model.contracts import OF_MODEL
from ablab.transformer.language_model.training import LanguageModelValidation
from ablab.transformer.model.attention import SelfAttention
from ablab.transformer.model.norms import LayerNorm
from ablab.transformer.translation.contracts.laws import BrokenError
from tests.contracts.test_check import TRAINING
from tests.language_model.conftest import TINY, text
from tests.language_model.models import composed
from tests.parts.conftest import study

__all__ = ["study"]

ARMS = {
    "default": (),
    "rope, rmsnorm, swiglu": ("position=rope", "norm=rmsnorm", "feed_forward=swiglu"),
    "learned, post": ("position=learned", "norm=post", "layerdrop=0.2", "drophead=constant"),
}


@pytest.mark.parametrize("law", OF_MODEL, ids=lambda law: law.sentence)
@pytest.mark.parametrize("arm", ARMS)
def test_ablabs_parts_keep_the_laws(arm, law):
    law.check(composed(*ARMS[arm]))


def broken(config):
    def breaks(law):
        try:
            law.check(config)
        except BrokenError:
            return True
        return False

    return {law.check for law in OF_MODEL if breaks(law)}


def test_a_norm_that_averages_over_a_row_breaks_the_laws_of_documents_and_the_future(monkeypatch):
    plain = LayerNorm.forward
    monkeypatch.setattr(LayerNorm, "forward", lambda self, x: plain(self, x - 0.1 * x.mean(dim=1, keepdim=True)))
    assert {contracts.documents, contracts.losses, contracts.future} <= broken(composed())


def test_an_attention_that_forgets_the_mask_of_documents_breaks_their_laws(monkeypatch):
    plain = SelfAttention.mix

    def causal(self, queries, memory, mask, **options):
        return plain(self, queries, memory, None, **{**options, "causal": queries.size(2) > 1})

    monkeypatch.setattr(SelfAttention, "mix", causal)
    assert broken(composed()) == {contracts.documents, contracts.losses}


def test_positions_that_do_not_begin_anew_break_the_law_of_documents(monkeypatch):
    from ablab.transformer.model.language_model import TokenInput

    plain = TokenInput.forward
    monkeypatch.setattr(
        TokenInput, "forward", lambda self, embedded, start=0, documents=None: plain(self, embedded, start)
    )
    assert broken(composed("position=learned")) == {contracts.documents}


def test_check_runs_them_all_and_a_run_that_is_continued(tmp_path, capsys):
    (tmp_path / "text.txt").write_text(text())
    words = [word for word in TINY if not word.startswith(("smoke", "logger", "trainer"))]
    assert main(["check", "norm=rmsnorm", *words, f"data.train={tmp_path / 'text.txt'}"]) == 0
    said = capsys.readouterr().out
    assert said.count("holds") == len(OF_MODEL) + 3  # with the optimiser, the rates and the run
    assert "never crosses a document" in said
    assert "stopped and continued" in said


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("schedule=once", "the learning rate at step 30 of 40 is -5.0"),
        ("drophead=deep", "decoder layer 3, is 0.675"),
        ("optim=decaying", "moves without a gradient"),
    ],
)
def test_parts_of_training_are_held_to_their_laws(word, why, study):
    group, _, option = word.partition("=")
    own = {"optim": "clip: 1.0\n", "drophead": "sites: [decoder]\n"}.get(group, "")
    study(TRAINING, {f"{group}/{option}": f"_target_: parts.{option}\n{own}"})
    config = composed(word, "training.max_steps=8")
    said = []
    for law in (*contracts.laws({group}, []),)[len(OF_MODEL) : -1]:  # without the run
        try:
            law.check(config)
        except BrokenError as error:
            said.append(str(error))
    assert why in " ".join(said)


def test_a_pruning_strategy_is_checked_in_translation(capsys):
    assert main(["check", "task=language_model", "pruning=random"]) == 2
    assert "allowed: the line without task=language_model" in capsys.readouterr().err


def test_a_validation_is_ordered_by_its_loss_and_goes_through_a_checkpoint():
    better, worse = LanguageModelValidation(2, 1.0, 0.5, 40.0), LanguageModelValidation(1, 1.5, 0.7, 30.0)
    assert better.better_than(worse, "loss")
    assert not worse.better_than(better, "loss")
    assert LanguageModelValidation.of_numbers(better.numbers) == better
    assert torch.tensor(better.perplexity).isclose(torch.tensor(1.0).exp())
