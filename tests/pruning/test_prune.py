"""A pruned model is a model: it stands alone, translates, is trained further, and is saved whole or not at all."""

import csv
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ablab.commands.cli import main
from ablab.transformer.pruning.curve_files import comparable
from ablab.transformer.pruning.saved_model import find_model, of_run
from ablab.transformer.pruning.strategies import Kept
from ablab.transformer.pruning.surgery import prune
from ablab.transformer.stages.models import ModelBuilder, load_model
from ablab.transformer.translation.verbs.prune import _judged
from tests.pruning.conftest import DEEPER, pruned, the_run
from tests.run.conftest import TINY, make_store, typed

CPU = torch.device("cpu")
SHAPE = ("model.encoder_layers=2", "model.decoder_layers=2")


@pytest.fixture(scope="module")
def small(deep):
    """2+2 layers, cut out of 2+3 by the paper's rule."""
    said = pruned(deep, "save=2+2")
    (place,) = [word for line in said.out.splitlines() if "translate" in line for word in line.split() if "=" in word]
    return place.removeprefix("run=")


@pytest.fixture
def alone(small, tmp_path):
    """The same, carried away from its run."""
    return shutil.copytree(small, tmp_path / "carried")


def test_it_says_what_the_full_model_says_without_those_layers(deep, alone):
    run = the_run(deep)
    full, tokenizers = load_model(of_run(run, run.record()), CPU)
    model, own = load_model(find_model(str(alone), alone), CPU)
    card = json.loads((alone / "model.json").read_text())
    kept = Kept(tuple(card["kept"]["encoder"]), tuple(card["kept"]["decoder"]))
    assert kept == Kept((0, 1), (0, 1))
    src, tgt = torch.tensor([[5, 9, 7, 3]]), torch.tensor([[2, 5, 6]])
    assert torch.equal(model(src, tgt), prune(full, kept)(src, tgt))
    assert [a.model for a in own] == [b.model for b in tokenizers]
    assert card["parameters"] == sum(tensor.numel() for tensor in load_file(alone / "model.safetensors").values())


def test_a_part_that_knows_its_depth_is_what_it_was_in_the_full_model(deep, alone, monkeypatch):
    """Such as a residual of one's own that is scaled by the number of layers."""
    known = ModelBuilder.residual

    def scaled(builder, place):
        residual, depth = known(builder, place), builder.model.decoder_layers
        residual.register_forward_hook(lambda _, given, found: found / (depth + place.layer))
        return residual

    monkeypatch.setattr(ModelBuilder, "residual", scaled)
    test_it_says_what_the_full_model_says_without_those_layers(deep, alone)


def test_it_translates_without_its_run(alone, capsys, monkeypatch, tmp_path):
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one two\n\nthree\n")))
    assert main(["translate", f"run={alone}", f"outputs={tmp_path}"]) == 0
    assert capsys.readouterr().out.count("\n") == 3


def test_it_is_trained_further_from_equal_weights(alone, tmp_path):
    # The rate is so small that nothing can move by more than rounding.
    line = (
        "smoke=true",
        *TINY,
        *DEEPER,
        *SHAPE,
        "optim.lr=1e-12",
        f"outputs={tmp_path}",
        "logger=none",
        "pruning=none",
    )
    assert typed(*line, f"init_from={alone}").code == 0
    (run,) = (path for path in (tmp_path / "smoke" / "runs").iterdir() if path.is_dir())
    before, after = load_file(alone / "model.safetensors"), load_file(run / "checkpoints" / "selected.safetensors")
    assert before.keys() == after.keys()
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)
    assert "init_from" in (run / "recipe.yaml").read_text()


def test_it_names_a_run_by_its_weights_and_not_by_its_place(alone, tmp_path):
    from ablab.config import compose
    from ablab.tasks.plan import plan

    words = [*TINY, *DEEPER, *SHAPE, f"outputs={tmp_path}"]
    other = shutil.copytree(alone, tmp_path / "other")
    names = [plan(compose([*words, f"init_from={place}"])).run_id for place in (alone, other)]
    assert names[0] == names[1] != plan(compose(words)).run_id
    (other / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes() + b" ")
    assert plan(compose([*words, f"init_from={other}"])).run_id != names[0]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("model.decoder_layers=3",), ["model.decoder_layers is 2, not 3", "allowed: 2"]),
        (("model.d_model=32",), ["model.d_model is 16, not 32"]),
        (("model.attention_bias=all",), ["model.attention_bias is no_key, not all", "allowed: no_key"]),
        (("norm=scalenorm",), ["its norm is kind=layernorm, not scalenorm"]),
        (("position=learned",), ["its position is kind=sinusoidal, not learned"]),
        (("data.vocab_size=280",), ["its vocabulary is another"]),
    ],
)
def test_weights_that_do_not_fit_are_refused_before_anything_is_written(words, parts, alone, capsys, tmp_path):
    line = ("smoke=true", *TINY, *DEEPER, *SHAPE, f"outputs={tmp_path}/o", *words, f"init_from={alone}")
    assert main(["train", *line]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: init_from=")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err
    assert not (tmp_path / "o" / "smoke" / "runs").exists() or not list((tmp_path / "o" / "smoke" / "runs").glob("r*"))


def test_auto_saves_the_smallest_within_a_bleu_on_validation(deep, monkeypatch):
    from ablab.transformer.translation.verbs import prune as verb

    run = the_run(deep)
    curve = next(curve for curve in run.curves() if curve.label == "every_other")
    scores = [20.0, 19.2, 18.0, 20.0, 19.5, 3.0]
    points = [
        point.model_copy(update={"valid": {"bleu": s}, "scores": {"bleu": 0}})
        for point, s in zip(curve.points, scores, strict=True)
    ]
    chosen = verb._smallest_within(curve.model_copy(update={"points": points}))
    assert (len(chosen.encoder), len(chosen.decoder)) == (1, 2)
    worse = [point.model_copy(update={"valid": {"bleu": 1.0 if n % 3 else 20.0}}) for n, point in enumerate(points)]
    assert verb._smallest_within(curve.model_copy(update={"points": worse})) is None
    blind = [point.model_copy(update={"valid": {"bleu": 0.0}}) for point in points]
    assert verb._smallest_within(curve.model_copy(update={"points": blind})) is None


def test_saving_again_replaces_it_whole(deep, small):
    before = sorted(path.name for path in the_run(deep).pruned.iterdir())
    assert pruned(deep, "save=2+2").code == 0
    assert sorted(path.name for path in the_run(deep).pruned.iterdir()) == before
    assert load_model(find_model(small, the_run(deep).path), CPU)


def test_saving_again_repairs_it_and_keeps_what_was_exported_from_it(deep, small):
    place = Path(small)
    export = place / "exports" / "ctranslate2-float32" / "model.bin"
    export.parent.mkdir(parents=True)
    export.write_bytes(b"of these weights")
    whole, folder = (place / "model.safetensors").read_bytes(), place.stat().st_ino
    (place / "model.safetensors").write_bytes(whole[:-1])
    assert pruned(deep, "save=2+2").code == 0
    assert (place / "model.safetensors").read_bytes() == whole
    assert export.read_bytes() == b"of these weights"
    assert place.stat().st_ino == folder, "it was there all the while"


@pytest.mark.parametrize("card", ["{", "[]", '{"sha256": "of other weights"}'])
def test_saving_again_replaces_what_is_of_other_weights(card, deep, small):
    place = Path(small)
    (place / "model.json").write_text(card)
    export = place / "exports" / "model.bin"
    export.parent.mkdir(exist_ok=True)
    export.touch()
    assert pruned(deep, "save=2+2").code == 0
    assert load_model(find_model(small, the_run(deep).path), CPU)
    assert not export.exists()


def test_a_failure_while_saving_leaves_nothing(deep, monkeypatch):
    def full_disk(*_):
        raise OSError("no space left on device")

    run = the_run(deep)
    before = sorted(run.pruned.iterdir()) if run.pruned.exists() else []
    monkeypatch.setattr("ablab.transformer.pruning.surgery.write_json", full_disk)
    with pytest.raises(OSError, match="no space"):
        pruned(deep, "save=1+1")
    assert (sorted(run.pruned.iterdir()) if run.pruned.exists() else []) == before


@pytest.mark.slow
def test_a_smoke_run_names_its_own_store(tmp_path, capsys):
    assert main(["train", "smoke=true", *TINY, f"outputs={tmp_path}", "init_from=r1234567890a"]) == 2
    assert "(smoke=true has a store of its own; allowed: a path)" in capsys.readouterr().err


def test_the_name_of_a_test_set_is_not_what_tells_it():
    one, same, other = ({"beam": 4, "test": {"name": name, "digest": digest}} for name, digest in ("aa", "ba", "ab"))
    assert _judged(one) == _judged(same) != _judged(other)


def test_the_curve_that_is_asked_for_is_drawn_though_a_later_one_has_its_label(deep):
    asked = the_run(deep).curves()[0]
    later = asked.model_copy(update={"curve_id": "p1", "points": asked.points[:1], "ended": "2999-01-01T00:00:00Z"})
    assert comparable([asked, later], asked) == [asked]
    assert comparable([asked, later], later) == [later]


def test_several_runs_are_drawn_together(deep, tmp_path):
    one, other = the_run(deep), make_store(tmp_path, "logger=none", "pruning=none").run
    words = ["pruning.curves=[decoder]", "save=none", f"picture={tmp_path}/both.png"]
    assert main(["prune", f"runs={one.path},{other.path}", *words]) == 0
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "both.csv").open(newline="") as file:
        assert {row["run"] for row in csv.DictReader(file)} == {one.run_id, other.run_id}


BAD = {
    "": ["run: say which finished run"],
    "run=x runs=y": ["run: say which"],
    "runs=,": ["runs=,: names no run"],
    "run=nothing": ["run=nothing: no such run"],
    "RUN save=3": ["save=3: no point of this curve; allowed: 2+3"],
    "RUN save=9+9": ["save=9+9: no point of this curve", "2+3"],
    "RUN pruning=search pruning.depths=[1] save=2+2": ["save=2+2: no point of this curve; allowed: 2+3, 2+1, 1+1"],
    "RUN picture=x.gif": ["picture=x.gif", ".png"],
    "RUN pruning=evry_other": ["pruning=evry_other", "did you mean every_other"],
    "RUN pruning=none": ["pruning=none", "gets no curve"],
    "RUN pruning.depths=[4]": ["pruning.depths=[4]", "allowed: 1 to 3"],
    "RUN pruning.depths=[": ["pruning.depths=[", "allowed: as in YAML"],
    "RUN pruning=search pruning.beam=0": ["pruning.beam=0", "greater than or equal to 1"],
    "RUN pruning=data_driven": ["pruning=data_driven: keeps", "layerdrop_rates=learned"],
    "RUN norm=post": ["norm=post: no such key here", "pruning"],
    "RUN layerdrop=0.5": ["layerdrop=0.5: no such key here"],
    "RUN seed=2": ["seed=2: no such key here"],
    "RUN hello": ["'hello': not an override"],
}


@pytest.mark.parametrize("line", BAD)
def test_what_prune_cannot_do_is_said_in_one_line(line, deep, capsys):
    run = the_run(deep)
    before = sorted(path for path in run.path.rglob("*"))
    assert main(["prune", *line.replace("RUN", f"run={run.path}").split()]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    for part in BAD[line]:
        assert part in err
    assert sorted(path for path in run.path.rglob("*")) == before


def test_runs_that_no_picture_can_hold_are_refused_before_anything_is_measured(deep, small, tmp_path, capsys):
    other = make_store(tmp_path, "logger=none", "pruning=none", "decoding=greedy").run
    assert main(["prune", f"runs={the_run(deep).path},{other.path}"]) == 2
    assert "differ" in capsys.readouterr().err
    assert not other.curves()
    assert main(["prune", f"run={small}"]) == 2
    assert "cut out of a run" in capsys.readouterr().err


def test_a_run_that_diverged_has_nothing_to_prune(tmp_path, capsys):
    store = make_store(tmp_path, "optim.lr=1e30", "optim.clip=null", "logger=none")
    assert main(["prune", f"run={store.run.path}"]) == 2
    assert "diverged" in capsys.readouterr().err


@pytest.mark.slow
def test_learned_rates_choose_what_remains(tmp_path):
    store = make_store(
        tmp_path, "layerdrop_rates=learned", "model.decoder_layers=3", "logger=none", "pruning=data_driven"
    )
    run = store.run
    model, _ = load_model(of_run(run, run.record()), CPU)
    rates = model.decoder.layerdrop.rates()
    assert sum(rates) / 3 == pytest.approx(0.2, abs=1e-6)
    (curve,) = run.curves()
    for point in curve.points:
        if point.curve == "decoder":
            dropped = set(range(3)) - set(point.decoder)
            assert all(rates[kept] <= rates[gone] for kept in point.decoder for gone in dropped)
