"""`ablab export`: a model for CTranslate2, whole or pruned, compared with ours on the test set."""

import io
import sys
import time
from threading import Event, Thread

import pytest

from ablab.commands.cli import main
from ablab.config import compose
from ablab.files.disk import lock_at
from ablab.judge.evidence import check_comparable
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.statistics.interval import NotTestable
from ablab.tasks import identity

ctranslate2 = pytest.importorskip("ctranslate2")


@pytest.fixture(scope="module")
def small(store):
    """A model that was cut out of the run."""
    assert main(["prune", f"run={store.run.path}", "save=1+1", "logger=none", "pruning.curves=[both]"]) == 0
    (place,) = store.run.pruned.iterdir()
    return place


@pytest.mark.parametrize("quantization", ["float32", "int8"])
@pytest.mark.parametrize("which", ["whole", "pruned"])
def test_a_model_is_exported_and_compared(which, quantization, store, small, capsys, tmp_path):
    model = store.run.path if which == "whole" else small
    folder = tmp_path / "out"
    assert main(["export", f"run={model}", f"quantization={quantization}", f"folder={folder}", "check=5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "5 test sentences" in lines[1]
    assert lines[-1] == f"Results: {folder}"
    if quantization == "float32":
        assert ": 0 differ" in lines[1]
    differ = ": 0 differ" not in lines[1]
    assert (folder / "differences.tsv").exists() == differ


def test_it_goes_beside_its_weights_and_is_never_overwritten(store, capsys):
    assert main(["export", f"run={store.run.run_id}", f"outputs={store.outputs}", "check=0"]) == 0
    folder = store.run.path / "exports" / "ctranslate2-float32"
    assert capsys.readouterr().out.splitlines()[-1] == f"Results: {folder}"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["export", f"run={store.run.run_id}", f"outputs={store.outputs}", "check=0"]) == 2
    assert "exists" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_either_backend_translates_alike_and_an_export_is_made_once(small, capsys, monkeypatch):
    text = "twelve\n\none hundred and five\nninety-nine\n"

    def translated(backend: str) -> tuple[list[str], str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["translate", f"run={small}", f"backend={backend}", "beam_size=2"]) == 0
        out, err = capsys.readouterr()
        return out.split("\n"), err

    ours, _ = translated("ablab")
    theirs, said = translated("ctranslate2")
    assert f"is exported to {small / 'exports' / 'ctranslate2-float32'}" in said
    assert len(theirs) == len(ours) == 5
    assert theirs[1] == ""
    assert [theirs[i] for i in (0, 2, 3)] == [ours[i] for i in (0, 2, 3)]
    assert "exported" not in translated("ctranslate2")[1]


def test_of_two_that_translate_at_once_one_exports(small, capsys, monkeypatch):
    """As a shell's loop over files begins them after training: the second finds the model that the first has made."""
    folder = small / "exports" / "ctranslate2-float32"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"twelve\n")))
    assert main(["translate", f"run={small}", "backend=ctranslate2"]) == 0
    wanted = capsys.readouterr().out
    aside, begun = folder.rename(folder.with_name("aside")), Event()

    def export() -> None:
        with lock_at(folder.with_name(f".{folder.name}.lock")):
            begun.set()
            time.sleep(1)
            aside.rename(folder)

    Thread(target=export).start()
    begun.wait()
    monkeypatch.setattr("ablab.transformer.export.ctranslate2.to_ctranslate2", lambda *_, **__: pytest.fail("a second"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"twelve\n")))
    assert main(["translate", f"run={small}", "backend=ctranslate2"]) == 0
    assert capsys.readouterr().out == wanted


@pytest.mark.parametrize("word", ["attention=maps", "device=gpu"])
def test_what_only_our_own_search_can_do_is_said(word, small, capsys):
    assert main(["translate", f"run={small}", "backend=ctranslate2", word]) == 2
    assert capsys.readouterr().err == f"error: {word}: not with backend=ctranslate2; allowed: backend=ablab\n"


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["run=nothing"], ["run=nothing", "no such run"]),
        ([], ["run: missing"]),
        (["run=RUN", "format=onnx"], ["format=onnx", "ctranslate2"]),
        (["run=RUN", "quantization=int4"], ["quantization=int4", "float32", "int8"]),
        (["run=RUN", "to=x"], ["to=x: no such key", "folder"]),
    ],
)
def test_what_export_cannot_do_is_said_in_one_line(words, parts, store, capsys):
    assert main(["export", *(word.replace("RUN", str(store.run.path)) for word in words)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err


# As the engine of evaluations


def evaluated(store, *words):
    """The evaluation that the run's line with these words adds, or has."""
    line = (*store.words, "pruning=none", *words)
    assert main(["train", *line]) == 0
    planned = compose(line).config
    return store.run.evaluation(identity.evaluation_id(identity.evaluation(planned)))


def test_another_engine_gives_an_evaluation_of_its_own(store, capsys):
    own = evaluated(store)
    capsys.readouterr()
    float32, int8 = (
        evaluated(store, "decoding.engine=ctranslate2", f"decoding.quantization={each}") for each in ("float32", "int8")
    )
    said = capsys.readouterr().out
    assert len({own.evaluation_id, float32.evaluation_id, int8.evaluation_id}) == 3
    assert store.run.hypotheses(float32.evaluation_id) == store.run.hypotheses(own.evaluation_id)
    assert float32.scores == own.scores, "the translations are equal, and the loss is our model's"
    assert own.signatures == {key: float32.signatures[key] for key in ("bleu", "chrf")}
    assert float32.signatures["engine"] == f"ctranslate2 {ctranslate2.__version__} float32"
    assert int8.signatures["engine"].endswith(" int8")
    assert float32.signatures["engine"] in said


def test_the_engine_is_in_the_settings_of_an_evaluation_only_where_it_is_another(store):
    def settings(*words):
        return identity.evaluation(compose((*store.words, *words)).config)["decoding"]

    usual = settings()
    assert usual == settings("decoding.engine=own")
    assert not {"engine", "quantization"} & set(usual)
    assert settings("decoding.engine=ctranslate2") == {**usual, "engine": "ctranslate2"}
    both = ("decoding.engine=ctranslate2", "decoding.quantization=int8")
    assert settings(*both) == {**usual, "engine": "ctranslate2", "quantization": "int8"}
    recipes = [identity.recipe(compose((*store.words, *words)).config) for words in ((), both)]
    assert recipes[0] == recipes[1], "no run is another for it"


def test_arms_are_not_compared_across_engines(store):
    def arm(name, evaluation):
        return ArmRuns(name, [ArmRun.read(store.run, evaluation.evaluation_id)])

    own, other = evaluated(store), evaluated(store, "decoding.engine=ctranslate2")
    check_comparable(arm("a", own), arm("b", own))
    check_comparable(arm("a", other), arm("b", other))
    with pytest.raises(NotTestable, match=r"signatures differ between a and b: .*ctranslate2"):
        check_comparable(arm("a", own), arm("b", other))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["position=rope"], "decoding.engine=ctranslate2: RotaryPosition: not known to the export to CTranslate2"),
        (["feed_forward=swiglu"], "decoding.engine=ctranslate2: SwiGLU: not known"),
        (["pruning=importance"], "decoding.engine=ctranslate2: takes no model that lacks heads"),
        (["decoding.max_extra_tokens=2048"], "decoding.max_extra_tokens=2048: a model of engine=ctranslate2 writes"),
    ],
)
def test_an_engine_that_lacks_a_part_is_refused_before_anything_is_prepared(words, line, store, tmp_path, capsys):
    usual = [word for word in store.words if not word.startswith("outputs=")]
    assert main(["train", *usual, f"outputs={tmp_path}", "decoding.engine=ctranslate2", *words]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"error: {line}")
    assert "allowed" in said
    assert not (tmp_path / "smoke" / "corpora").exists()


def test_quantization_is_refused_where_nothing_reads_it(store, capsys):
    assert main(["train", *store.words, "decoding.quantization=int8"]) == 2
    assert "allowed with decoding.engine=ctranslate2" in capsys.readouterr().err


def test_a_curve_is_measured_and_timed_with_the_engine(store):
    words = ("decoding.engine=ctranslate2", "pruning.curves=[decoder]", "pruning=first", "logger=none", "save=none")
    assert main(["prune", f"run={store.run.path}", *words]) == 0
    curve = store.run.curves()[-1]
    assert curve.settings["decoding"]["engine"] == "ctranslate2"
    for point in curve.points:
        assert store.run.evaluation(point.evaluation_id).signatures["engine"].startswith("ctranslate2")
        assert point.sentences_per_second > 0
