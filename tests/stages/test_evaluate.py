"""The evaluation judges the weights that validation chose, by the same definitions."""

import contextlib
import io

import pytest

from ablab.commands.cli import main
from ablab.judge.arms import set_scores
from ablab.store.records import SharedSentences
from ablab.store.run_folder import RunFolder
from ablab.transformer.data.prepared import SPELT_OUT
from ablab.transformer.data.scoring import score
from ablab.transformer.data.tokenizer import load_tokenizers
from tests.run.conftest import TINY, Said, typed
from tests.translation import TRANSLATION

TRAIN = [(f"a b c {n}", f"x y {n} z") for n in range(60)]
HELD_OUT = [("a b 1", "x 1 z"), ("", "z"), ("c 7", "x y 7"), ("a 3", " "), ("b " * 300, "y " * 300)]
"""Two pairs with an empty side, and one longer than any table of positions."""


def written(folder, name, pairs):
    for side, language in enumerate(("en", "de")):
        (folder / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs))
    return f"data.{name}={folder / name}"


def typed_prune(*words):
    """`python prune.py <words>`, in this process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main(["prune", *words])
    return Said(code, out.getvalue())


def trained(folder, *words):
    """A run on these files, and what its line printed."""
    line = (
        *("data=text", written(folder, "train", TRAIN), written(folder, "valid", HELD_OUT), "data.vocab_size=40"),
        *("training.max_steps=8", "training.valid_every=4", "training.select=last", "logger=none"),
        *("decoding.max_extra_tokens=3", f"outputs={folder / 'outputs'}", *TINY, "drophead=none", *words),
    )
    said = typed(*line)
    assert said.code == 0, said.out
    (run,) = (folder / "outputs" / "runs").glob("r*")
    return RunFolder(run), said.out


def test_the_test_loss_of_the_validation_text_is_the_validation_loss(tmp_path):
    """Of the whole model, and of each pruned one."""
    run, out = trained(tmp_path, f"data.test={tmp_path / 'valid'}", "pruning=every_other")
    (curve,) = run.curves()
    losses = {evaluation.evaluation_id: evaluation.scores["loss"] for evaluation in run.evaluations()}
    assert len(losses) > 1
    shared = SharedSentences(of=5, pairs=3, sources=3, near=3)
    assert [evaluation.overlap["valid"] for evaluation in run.evaluations()] == [shared] * len(losses)
    assert out.count("valid: 3 of 5 test sources are validation sources too, 3 with the same target\n") == 1
    assert losses == {point.evaluation_id: pytest.approx(point.valid["loss"], rel=1e-5) for point in curve.points}
    (whole,) = (evaluation for evaluation in run.evaluations() if "kept" not in evaluation.settings)
    assert whole.scores["loss"] == pytest.approx(run.record().selected.scores["loss"], rel=1e-5)
    assert whole.scores["loss_per_character"] == pytest.approx(
        run.record().selected.scores["loss_per_character"], rel=1e-5
    )
    assert f"test loss   {whole.scores['loss']:.3f} nats per token" in out
    texts = [tgt for src, tgt in HELD_OUT if src.strip() and tgt.strip()]
    tokens = sum(len(ids) + 1 for ids in load_tokenizers(run.checkpoints)[1].encode(texts))
    for validation in run.record().validations:
        assert validation["loss_per_character"] == pytest.approx(validation["loss"] * tokens / len("".join(texts)))
    cut = [f"{whole.at_limit} of 5 test translations reached the limit, 3 tokens beyond the source" in out]
    cut.append(f"{run.record().selected.at_limit} validation translations reached the limit" in out)
    assert cut == [whole.at_limit > 0, run.record().selected.at_limit > 0]


def test_what_a_vocabulary_lacks_is_part_of_the_loss_per_character(tmp_path):
    words = ("data.tokenizer=char", "data.vocab_size=6", f"data.test={tmp_path / 'valid'}", "pruning=none")
    run, _ = trained(tmp_path, *words)
    target = load_tokenizers(run.checkpoints)[1]
    texts = [tgt for src, tgt in HELD_OUT if src.strip() and tgt.strip()]
    tokens = sum(len(ids) + 1 for ids in target.encode(texts))
    unknown = target.unknown_characters(texts) * SPELT_OUT
    assert unknown > 0
    record, (evaluation,) = run.record(), run.evaluations()
    for scores in (*record.validations, record.selected.scores, evaluation.scores):
        nats = scores["loss"] * tokens + unknown
        assert scores["loss_per_character"] == pytest.approx(nats / len("".join(texts)))


def test_several_test_sets_are_judged_together_and_counted_apart(tmp_path):
    """As their concatenation is; what the statistics of each give is its own BLEU."""
    news, talks = [("a b 1", "x 1 z"), ("c 7", "x y 7")], [(f"a {n}", f"x y {n}") for n in range(3)]
    words = [written(tmp_path, name, pairs).partition("=")[2] for name, pairs in (("news", news), ("talks", talks))]
    both = written(tmp_path, "both", [*news, *talks]).partition("=")[2]
    run, out = trained(tmp_path, f"data.test=[{','.join(words)}]", "pruning=none")
    assert "test        news + talks, 5 sentences" in out
    again, _ = trained(tmp_path, f"data.test={both}", "pruning=none")
    assert again == run
    together, apart = sorted(run.evaluations(), key=lambda evaluation: evaluation.test_name)
    assert apart.evaluation_id != together.evaluation_id
    for name in ("scores", "items"):
        assert getattr(apart, name) == getattr(together, name)
    assert [(one.name, one.sentences) for one in apart.test_sets] == [("news", 2), ("talks", 3)]
    assert together.test_sets is None
    hypotheses = run.hypotheses(apart.evaluation_id)
    alone = [score(hypotheses[:2], [tgt for _, tgt in news]), score(hypotheses[2:], [tgt for _, tgt in talks])]
    assert set_scores(apart, TRANSLATION.scores["test_bleu"]) == pytest.approx([each.bleu for each in alone])


def test_more_pairs_than_the_overlap_leaves_are_refused(tmp_path, capsys):
    held = [(f"A  b, C {n}!", f"other {n}") for n in range(10)]
    words = (written(tmp_path, "train", TRAIN), written(tmp_path, "valid", HELD_OUT), written(tmp_path, "test", held))
    said = typed(
        *("data=text", *words, "data.vocab_size=40", "data.overlap=drop", f"data.train_pairs={len(TRAIN)}"),
        *("training.max_steps=2", "logger=none", f"outputs={tmp_path / 'outputs'}", *TINY, "drophead=none"),
    )
    assert said.code == 2
    assert "data.train_pairs=60: the corpus has 50 training pairs; allowed: 1 to 50" in capsys.readouterr().err


def test_a_run_without_what_is_held_out_keeps_its_test_set(tmp_path):
    held = [(f"A  b, C {n}!", f"other {n}") for n in range(10)]
    words = (written(tmp_path, "test", held), "data.overlap=drop", "pruning=none")
    run, out = trained(tmp_path, *words)
    record = run.record()
    assert record.data["train"]["dropped_overlap"] == 10
    assert record.data["train"]["pairs"] == len(TRAIN)
    assert record.data["train"]["kept"] == len(TRAIN) - 10
    assert "dropped     training pairs: 10 with a held-out source, or nearly" in out
    assert "sources too" not in out
    (evaluation,) = run.evaluations()
    assert evaluation.overlap["train"] == SharedSentences(of=10, pairs=0, sources=0, near=0)
    said = typed_prune(f"run={run.path}", f"data.test={tmp_path / 'valid'}")
    assert said.code == 2
    assert "left the sentences of another test set out of its training" in said.out


def test_a_test_set_without_a_pair_of_two_sides_has_no_loss(tmp_path):
    pairs = [("", "z"), ("a 3", " "), ("a b", "x y")]
    run, out = trained(tmp_path, written(tmp_path, "test", pairs), "data.test_pairs=2", "pruning=none")
    (evaluation,) = run.evaluations()
    assert (evaluation.sentences, set(evaluation.scores)) == (2, {"bleu", "chrf"})
    assert "test loss" not in out
