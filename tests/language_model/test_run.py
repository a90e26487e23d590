"""One run from its line to its record, its scores from its items, and what can be done with it."""

import json
import math
import shutil
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from ablab.commands.cli import main
from ablab.config import compose
from ablab.judge.evidence import check_comparable
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.statistics.interval import NotTestable
from ablab.store.run_folder import SELECTED, all_runs
from ablab.tasks.plan import plan
from ablab.transformer.language_model.build import load_language_model
from ablab.transformer.language_model.scores import SCORES
from ablab.transformer.pruning.saved_model import find_model
from ablab.transformer.pruning.surgery import kept_at, prune
from ablab.transformer.training.cost import parameter_count
from ablab.transformer.translation.verbs import prune as verb
from tests.language_model.conftest import TINY, WORDS, text
from tests.run.conftest import typed

transformers = pytest.importorskip("transformers")


def said(capsys, *words):
    capsys.readouterr()
    code = main(list(words))
    return code, capsys.readouterr()


def opened(reference, outputs):
    return load_language_model(find_model(str(reference), outputs, task="language_model"), torch.device("cpu"))


def test_a_record_has_the_scores_of_the_task(store):
    record, (evaluation,) = store.record, [each for each in store.run.evaluations() if "kept" not in each.settings]
    assert record.task == "language_model"
    for name, score in SCORES.items():
        value = score.value(record, evaluation)
        assert value is not None, name
        assert math.isfinite(value), name
    assert set(record.validations[0]) == {"step", "loss", "perplexity", "bits_per_byte", "accuracy"}
    assert record.selected.scores["loss"] < math.log(257)
    assert record.cost.tokens > 0
    assert "bits per byte" in store.said.out


def test_a_loss_beyond_any_perplexity_is_an_answer(tmp_path, capsys):
    """At 709 nats a token its exponential is infinite, which no record holds."""
    assert SCORES["test_perplexity"].of_sums(np.array([[1e6, 1.0], [3.0, 2.0]])).tolist() == [
        math.exp(700),
        math.exp(1.5),
    ]
    (tmp_path / "t").write_text(text(40))
    words = [f"data.train={tmp_path / 't'}", "data.separator=blank_line", "data.tokenizer=byte", "optim.lr=10"]
    short = ["schedule.warmup_steps=2", "training.max_steps=4", "training.valid_every=2", "pruning=none", "logger=none"]
    size = ["model.decoder_layers=1", "model.d_model=64", "model.d_ff=64", f"outputs={tmp_path}"]
    code, told = said(capsys, "train", "task=language_model", "data=documents", *words, *short, *size)
    assert code == 0
    assert "diverged" in told.out
    assert "perplexity 1.01e+304" in told.out
    (run,) = all_runs(tmp_path)
    assert run.record().state == "diverged"
    assert len(run.evaluations()) == 1


def test_an_evaluation_counts_and_tells_the_test_documents_that_were_trained_on(tmp_path):
    documents = text(40).split("\n\n")
    for name, part in (("train", documents), ("valid", ["a house"]), ("test", ["A house", documents[3], "no cat, no"])):
        (tmp_path / name).write_text("\n\n".join(part))
    places = [f"data.{name}={tmp_path / name}" for name in ("train", "valid", "test")]
    said = typed(*TINY, *places, f"outputs={tmp_path / 'outputs'}")
    assert said.code == 0, said.out
    assert "test: 1 of 3 test documents are training documents too\n" in said.out
    (run,) = all_runs(tmp_path / "outputs" / "smoke")
    evaluation = run.latest_evaluation()
    assert {split: shared.model_dump() for split, shared in evaluation.overlap.items()} == {
        "train": {"of": 3, "pairs": 1, "sources": 1, "near": 1},
        "valid": {"of": 3, "pairs": 0, "sources": 0, "near": 1},
    }


def test_arms_scored_on_other_texts_are_not_compared(store, tmp_path):
    """Which has no references that would say so. A text under another name is the same one."""

    def arm(name, *words):
        said = typed(*store.words, *words)
        assert said.code == 0, said.out
        planned = plan(compose([*store.words, *words]))
        found = ArmRun.read(planned.folder, planned.evaluation_id)
        assert found.evaluation is not None
        return ArmRuns(name, [found])

    for name, seed in (("one", 5), ("same", 5), ("other", 6)):
        (tmp_path / f"{name}.txt").write_text(text(12, seed))
    one, same, other = (arm(name, f"data.test={tmp_path / name}.txt") for name in ("one", "same", "other"))
    fewer = arm("fewer", f"data.test={tmp_path / 'one.txt'}", "data.test_documents=5")
    assert one.runs[0].evaluation.test_name != same.runs[0].evaluation.test_name
    check_comparable(one, same)
    for unlike in (other, fewer):
        with pytest.raises(NotTestable, match="test texts differ between one and"):
            check_comparable(one, unlike)


def test_arms_whose_tokenizers_lose_text_are_compared_only_if_they_lose_the_same(tmp_path):
    """What a tokenizer loses no model has to predict: it would win by bits per byte."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    def arm(name, words, test):
        vocabulary = {word: number for number, word in enumerate(["<unk>", *words])}
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.WhitespaceSplit()
        tokenizer.save(str(tmp_path / f"{name}.json"))
        place = f"data.tokenizer={tmp_path / name}.json"
        line = [*TINY, f"data.train={tmp_path / 'train'}", f"data.test={test}", place, f"outputs={tmp_path / name}"]
        said = typed(*line)
        assert said.code == 0, said.out
        planned = plan(compose(line))
        return ArmRuns(name, [ArmRun.read(planned.folder, planned.evaluation_id)]), said.out

    train, test, kept = (tmp_path / name for name in ("train", "test", "kept"))
    train.write_text(text(40))
    test.write_text("the old dog\n\nThe cat sees a house\n\na mountain")
    kept.write_text("the old dog\n\na house")
    rare, told = arm("rare", WORDS, test)
    assert "test: scored on the text as its tokenizer gives it back, 2 of 3 documents changed, digest" in told
    alike, _ = arm("alike", [*WORDS, "river"], test)
    check_comparable(rare, alike)
    other, _ = arm("other", [*WORDS, "mountain"], test)
    with pytest.raises(NotTestable, match=r"differ between rare and other: text as its .*, 1 of 3 .*; text"):
        check_comparable(rare, other)
    exact, told = arm("exact", WORDS, kept)
    assert "scored on" not in told
    assert exact.runs[0].evaluation.signatures == {}


def test_scores_are_those_of_the_items_which_are_documents(store):
    (evaluation,) = [each for each in store.run.evaluations() if "kept" not in each.settings]
    nats, size = np.array(evaluation.items["bits_per_byte"]).sum(axis=0)
    tokens = np.array(evaluation.items["loss"])[:, 1]
    assert evaluation.scores["bits_per_byte"] == pytest.approx(nats / size / math.log(2))
    assert evaluation.scores["loss"] == pytest.approx(nats / tokens.sum())
    assert (tokens == np.array(evaluation.items["bits_per_byte"])[:, 1] + 1).all()  # a byte a token, and the end
    assert evaluation.scores["perplexity"] == pytest.approx(math.exp(evaluation.scores["loss"]))


def test_the_record_is_verified_and_a_false_score_is_found(store, capsys, tmp_path):
    copy = shutil.copytree(store.outputs, tmp_path / "store")
    assert said(capsys, "verify", f"run={store.first}", f"outputs={copy}")[0] == 0
    path = next((copy / "runs" / store.first / "evaluations").glob("*.json"))
    content = json.loads(path.read_text())
    content["scores"]["bits_per_byte"] += 0.1
    path.write_text(json.dumps(content))
    code, told = said(capsys, "verify", f"run={store.first}", f"outputs={copy}")
    assert code != 0
    assert "from its items" in told.out + told.err


def test_the_curve_removes_layers_of_the_one_stack(store):
    (curve,) = store.run.curves()
    assert [len(point.decoder) for point in curve.points] == [3, 2, 1]
    assert {point.curve for point in curve.points} == {"decoder"}
    assert all(point.encoder == [] for point in curve.points)
    assert (
        curve.points[0].scores["bits_per_byte"]
        == store.run.evaluation(curve.points[0].evaluation_id).scores["bits_per_byte"]
    )
    assert "decoder alone" in store.said.out
    header = (store.run.artefacts / "depth_quality.csv").read_text().splitlines()[0]
    assert "test_bits_per_byte" in header
    assert "bleu" not in header


def test_heads_are_removed_by_importance(store):
    done = typed(*store.words, "pruning=importance")
    assert done.code == 0, done.out
    curve = next(curve for curve in store.run.curves() if curve.of_heads)
    counts = [sum(map(len, point.heads["decoder"])) for point in curve.points]
    assert counts[0] == 6
    assert counts == sorted(counts, reverse=True)
    assert min(counts) == 3
    assert all(point.heads["encoder"] == point.heads["cross"] == [] for point in curve.points)


def test_the_same_line_trains_nothing_again(store):
    assert "nothing is trained again" in typed(*store.words).out


def test_a_model_that_was_trained_in_lower_case_reads_prompts_and_texts_so(tmp_path, capsys):
    words = [word for word in TINY if not word.startswith("data")]
    line = (*words, "data=numbers", "data.lowercase=true", "data.tokenizer=char", f"outputs={tmp_path}")
    assert typed(*line).code == 0
    (run,) = all_runs(tmp_path / "smoke")
    words = ("generate", f"run={run.run_id}", f"outputs={tmp_path / 'smoke'}", "max_tokens=12")
    lower, upper = (said(capsys, *words, f"prompt={prompt}")[1] for prompt in ("one two", "One TWO"))
    assert upper.out == lower.out.replace("one two", "One TWO")
    assert upper.err == ""
    code, _ = said(capsys, "analyse", *words[1:3], "text=One TWO")
    assert code == 0
    (artefact,) = (json.loads(path.read_text()) for path in run.artefacts.glob("next_token_of_text.json"))
    assert artefact["settings"]["text"] == "one two"


def test_generate_continues_a_prompt_and_a_seed_decides_it(store, capsys):
    words = ("generate", f"run={store.first}", f"outputs={store.outputs}", "prompt=the cat", "max_tokens=12")
    first, again, other = (said(capsys, *words, f"seed={seed}")[1].out for seed in (1, 1, 2))
    assert first == again != other
    assert first.startswith("the cat")
    code, told = said(capsys, *words, "samples=2", "format=json")
    assert code == 0
    assert len(json.loads(told.out)["continuations"]) == 2
    code, told = said(capsys, *words, "temperature=0", "top_p=0.5")
    assert code == 2
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("temperature=1e-40", "temperature=1e-40: allowed: 0, or from 1e-06 on"),
        ("temperature=-1", "temperature=-1: allowed: 0, or from 1e-06 on"),
        ("prompt=\udcff", "not UTF-8; allowed: text"),
    ],
)
def test_what_cannot_be_generated_is_one_line(store, capsys, word, why):
    code, told = said(capsys, "generate", f"run={store.first}", f"outputs={store.outputs}", word)
    assert code == 2
    assert why in told.err
    assert told.err.count("\n") == 1


def test_unknown_characters_of_a_prompt_are_told(store, capsys, tmp_path):
    """Pieces cut what they lack into bytes; characters have one sign for all that are unknown."""
    prompt, rest = "prompt=the 漢字", ("max_tokens=2", "temperature=0")
    assert said(capsys, "generate", f"run={store.first}", f"outputs={store.outputs}", prompt, *rest)[1].err == ""
    words = [word for word in store.words if not word.startswith("outputs=")]
    typed(*words, "data.tokenizer=char", "training.max_steps=1", "training.valid_every=1", f"outputs={tmp_path}")
    (run,) = (path for path in (tmp_path / "smoke/runs").iterdir() if path.is_dir())
    code, told = said(capsys, "generate", f"run={run}", prompt, *rest)
    assert (code, told.err) == (0, "unknown to the tokenizer, and read as one sign: 2 tokens of prompt\n")


def test_a_tokenizer_that_was_written_anew_is_not_taken_for_that_of_the_run(store, capsys, tmp_path):
    """Its validation text would be cut by the new one, and its test text by its own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    path = tmp_path / "tokenizer.json"
    for ids in (letters, letters[::-1]):
        tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(ids)}, []))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.save(str(path))
        if ids is letters:
            words = [word for word in store.words if not word.startswith(("outputs=", "data.tokenizer="))]
            few = ("training.max_steps=1", "training.valid_every=1", "pruning=none")
            assert typed(*words, f"data.tokenizer={path}", *few, f"outputs={tmp_path}").code == 0
    (run,) = (folder for folder in (tmp_path / "smoke/runs").iterdir() if folder.is_dir())
    for line in (("prune", f"run={run}", "pruning=every_other"), ("analyse", f"run={run}", "heads=true")):
        code, told = said(capsys, *line)
        assert code == 2
        assert f"data.tokenizer={path} is not the file that it was trained with; allowed: that file" in told.err


def test_a_packed_run_is_verified_and_generates(store, capsys, tmp_path):
    archive = tmp_path / "run.zip"
    words = (f"runs={store.first}", f"outputs={store.outputs}", f"to={archive}", "weights=true")
    assert said(capsys, "pack", *words)[0] == 0
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path / "elsewhere")
    assert said(capsys, "verify", f"archive={archive}")[0] == 0
    words = (f"run={store.first}", f"outputs={tmp_path / 'elsewhere'}")
    assert said(capsys, "generate", *words, "prompt=a cat")[1].out.startswith("a cat")
    assert "documents)" in said(capsys, "show", *words)[1].out


@pytest.mark.parametrize(
    ("words", "save", "folder"), [((), "2", "decoder-"), (("pruning=importance",), "4", "heads-4-")], ids=["2", "heads"]
)
def test_a_pruned_model_is_saved_and_used_without_its_run(store, words, save, folder, capsys, tmp_path):
    code, told = said(capsys, "prune", f"run={store.first}", f"outputs={store.outputs}", *words, f"save={save}")
    assert code == 0, told.err
    assert f"Saved: {save} {'heads' if words else 'layers'}" in told.out
    (place,) = store.run.pruned.glob(f"{folder}*")
    alone = shutil.copytree(place, tmp_path / "alone")
    curve = next(curve for curve in store.run.curves() if curve.of_heads == bool(words))
    kept = json.loads((alone / "model.json").read_text())
    point = next(
        each for each in curve.points if [each.decoder, each.heads] == [kept["kept"]["decoder"], kept["heads"]]
    )
    (whole, _), (small, tokenizer) = opened(store.first, store.outputs), opened(alone, tmp_path)
    text = torch.tensor([[tokenizer.end, *b"the old cat sees"]])
    with torch.inference_mode():
        full = prune(whole, kept_at(point))
        assert_close(small.logits(small(text)), full.logits(full(text)))
    assert parameter_count(small) == point.parameters < parameter_count(whole)
    assert said(capsys, "generate", f"run={alone}", "prompt=a cat", "max_tokens=5")[1].out.startswith("a cat")
    code, told = said(capsys, "translate", f"run={alone}")
    assert code == 2
    assert "is a model of task=language_model; allowed: models of task=translation" in told.err
    assert told.err.count("\n") == 1


def test_the_smallest_model_within_some_bits_on_validation_is_saved(store):
    curve = next(curve for curve in store.run.curves() if not curve.of_heads)

    def smallest(*bits):
        scores = zip(curve.points, bits, strict=True)
        points = [point.model_copy(update={"valid": {**point.valid, "bits_per_byte": b}}) for point, b in scores]
        return verb._smallest_within(curve.model_copy(update={"points": points}))

    assert smallest(2.0, 2.019, 2.1).decoder == curve.points[1].decoder
    assert smallest(2.0, 2.019, 1.5).decoder == curve.points[2].decoder
    assert smallest(2.0, 2.021, 2.1) is None
    assert smallest(0.01, 0.02, 9.0).decoder == curve.points[1].decoder  # few bits are a good score, unlike few BLEU


def test_training_starts_from_the_weights_of_a_run_or_of_a_pruned_one(store, capsys):
    words = [*store.words, "training.max_steps=1", "training.valid_every=1", "pruning=none", "optim.lr=1e-9"]
    runs = store.run.path.parent
    before = {*runs.glob("r*")}
    done = typed(*words, f"init_from={store.first}", "seed=2")
    assert done.code == 0, done.out
    (new,) = (path for path in {*runs.glob("r*")} - before if path.is_dir())
    began, ended = (load_file(path / "checkpoints" / SELECTED) for path in (store.run.path, new))
    assert_close(ended, began, rtol=0, atol=1e-6)
    assert said(capsys, "prune", f"run={store.first}", f"outputs={store.outputs}", "save=2")[0] == 0
    (small,) = store.run.pruned.glob("decoder-*")
    fits = typed(*words, f"init_from={small}", "model.decoder_layers=2")
    assert fits.code == 0, fits.out


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("model.decoder_layers=2", "its model.decoder_layers is 3, not 2"),
        ("norm=rmsnorm", "its norm is kind=layernorm, not rmsnorm"),
        ("data.tokenizer=char", "its vocabulary is another"),
    ],
)
def test_weights_that_do_not_fit_are_refused_in_a_line(store, word, told, capsys):
    words = [each for each in store.words if each.partition("=")[0] != word.partition("=")[0]]
    capsys.readouterr()
    assert typed(*words, f"init_from={store.first}", word).code == 2
    found = capsys.readouterr().err
    assert told in found
    assert found.count("\n") == 1


def test_export_is_read_by_transformers(store, capsys, tmp_path):
    words = ("export", f"run={store.first}", f"outputs={store.outputs}", f"folder={tmp_path / 'gpt2'}")
    code, told = said(capsys, *words, "format=llama")
    assert code == 2
    assert "LayerNorm" in told.err
    assert not (tmp_path / "gpt2").exists()
    assert said(capsys, *words, "format=gpt2")[0] == 0
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "gpt2").eval()
    model, tokenizer = opened(store.first, store.outputs)
    text = torch.tensor([[tokenizer.end, *b"the old cat sees"]])
    with torch.inference_mode():
        assert_close(theirs(text).logits, model.logits(model(text)), rtol=1e-4, atol=1e-4)
    assert said(capsys, *words, "format=gpt2")[0] == 2  # the folder is not empty


def test_a_pruned_model_is_exported_too(store, capsys):
    assert said(capsys, "prune", f"run={store.first}", f"outputs={store.outputs}", "save=2")[0] == 0
    (small,) = store.run.pruned.glob("decoder-*")
    words = ("export", f"run={small}", f"outputs={store.outputs}")
    code, told = said(capsys, *words)
    assert code == 2
    assert told.err == f"error: format: missing; {small} is a model of task=language_model; allowed: gpt2, llama\n"
    code, told = said(capsys, *words, "format=gpt2")
    assert code == 0, told.err
    theirs = transformers.AutoModelForCausalLM.from_pretrained(small / "exports" / "gpt2").eval()
    model, tokenizer = opened(small, store.outputs)
    text = torch.tensor([[tokenizer.end, *b"the old cat sees"]])
    with torch.inference_mode():
        assert_close(theirs(text).logits, model.logits(model(text)), rtol=1e-4, atol=1e-4)
    assert len(model.decoder.layers) == 2


@pytest.mark.parametrize(
    "verb",
    [("translate",), ("analyse", "attention=cross"), ("export", "format=ctranslate2"), ("export",)],
    ids=" ".join,
)
def test_what_is_of_translation_refuses_the_run_in_a_line(store, verb, capsys, monkeypatch):
    code, told = said(capsys, verb[0], f"run={store.first}", f"outputs={store.outputs}", *verb[1:])
    assert code == 2
    assert told.err.startswith("error: ")
    assert told.err.count("\n") == 1
    assert "language_model" in told.err or "a language model" in told.err


def test_generate_refuses_a_run_of_translation_in_a_line(tmp_path, capsys):
    code, told = said(capsys, "generate", "run=r0", f"outputs={tmp_path}")
    assert code == 2
    assert told.err.count("\n") == 1


def test_weights_are_those_of_the_builder(store):
    weights = load_file(store.run.checkpoints / SELECTED)
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())
    assert {name.split(".")[0] for name in weights} == {"words", "decoder"}


def test_a_data_set_of_hugging_face_made_here_trains(tmp_path):
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"text": text(60).split("\n\n")})
    datasets.DatasetDict({"train": made}).save_to_disk(tmp_path / "saved")
    made.to_parquet(tmp_path / "files" / "train.parquet")
    line = [word for word in TINY if not word.startswith(("data=", "data.separator="))]
    for name in ("saved", "files"):
        done = typed(*line, "data=huggingface", f"data.name={tmp_path / name}", "pruning=none", f"outputs={tmp_path}")
        assert done.code == 0, done.out
    (run,) = (path for path in (tmp_path / "smoke" / "runs").iterdir() if path.is_dir())  # equal text is an equal run
    assert (run / "record.json").exists()
