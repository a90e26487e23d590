"""What ablab.open gives."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import ablab
from ablab.api.run import Run
from ablab.api.store import LEADS, Runs


def test_runs_scores_and_curves(place, ids):
    store = ablab.open("outputs")
    assert sorted(run.id for run in store.runs()) == sorted(ids)
    run = store.run(ids[0])
    assert (run.state, run.seed, run.record.run_id) == ("finished", 1, run.id)
    assert run.scores["test_bleu"] == run.evaluation.scores["bleu"]
    assert [row["decoder"] for row in run.curve()] == [4, 3, 2, 1]
    assert run.curve()[0]["bleu"] == run.scores["test_bleu"]
    assert [row["step"] for row in run.training_curve()] == list(range(100, 1001, 100))
    assert len(run.hypotheses()) == run.evaluation.sentences
    assert len(run.evaluations) == 4


def test_the_latest_evaluation_is_never_of_a_pruned_model(place, ids):
    folder = ablab.open("outputs").run(ids[0]).folder
    whole = [one for one in folder.evaluations() if "kept" not in one.settings]
    assert folder.latest_evaluation() == whole[-1]


def test_conditions_choose_runs_as_they_do_in_a_report(place, ids):
    store = ablab.open("outputs")
    assert [run.id for run in store.runs("state=interrupted")] == [ids[3]]
    assert {run.id for run in store.runs("layerdrop=0.1")} >= {ids[2]}
    best = max(store.runs("state=finished"), key=lambda run: run.scores["test_bleu"])
    others = store.runs(f"test_bleu<{best.scores['test_bleu']}")
    assert best not in others
    assert len(others) == 2


def test_what_is_wrong_is_one_line(place, tmp_path):
    store = ablab.open("outputs")
    for wrong in (
        lambda: ablab.open(tmp_path / "nowhere"),
        lambda: store.run("r0"),
        lambda: store.runs("layerdrp=0"),
        lambda: store.study("nosuch"),
    ):
        with pytest.raises(ablab.Error) as caught:
            wrong()
        assert "\n" not in str(caught.value)


def test_a_study_has_the_verdicts_of_its_report(place, ids):
    study = ablab.open("outputs").study("tried.yaml")
    assert [arm.name for arm in study.arms] == ["layerdrop=0", "layerdrop=0.1"]
    assert [claim.outcome for claim in study.claims] == [study.document.claims[0].outcome]
    assert {row["id"] for row in study.table()} == set(ids)
    assert "tabular" in study.to_latex()


def test_tables_become_data_frames(place, ids):
    frame = ablab.open("outputs").runs().to_pandas()
    assert list(frame["id"]) == sorted(ids)
    assert frame["test_bleu"].notna().sum() == 3


def test_a_frame_tells_arms_apart_and_shows_first_what_varies(place, ids):
    """A run that has not ended knows no more than its recipe, and moves no column."""
    frame = ablab.open("outputs").runs().to_pandas().set_index("id")
    assert set(frame["study"]) == {"tried"}
    assert dict(frame["arm"]) == {**dict.fromkeys(ids[:2], "layerdrop=0"), **dict.fromkeys(ids[2:], "layerdrop=0.1")}
    assert set(frame["label"]) == {"no LayerDrop", "LayerDrop 0.1"}
    assert frame["minutes"].notna().sum() == frame["parameters"].notna().sum() == 3
    columns = list(frame.columns)
    settings = columns[columns.index("memory") + 1 :]
    varying = [name for name in settings if frame[name].dropna().astype(str).nunique() > 1]
    assert settings[: len(varying)] == varying
    assert {"layerdrop", "layerdrop_encoder"} <= set(varying)
    assert {"optim.lr", "norm.kind"} <= set(settings)


def test_columns_keep_their_places_whichever_run_is_first(place, ids):
    runs = ablab.open("outputs").runs()
    orders = {tuple(Runs(order).table().columns) for order in (runs, reversed(runs))}
    assert {order[: order.index("test_bleu") + 1] for order in orders} == {
        (*LEADS[:3], *LEADS[4:], "test_bleu")  # no run of it is damaged
    }


def test_a_label_needs_no_file(place, ids):
    store = ablab.open("outputs")
    file = Path("outputs/studies/tried/tried.yaml")
    for spoil in (lambda: file.write_text(f"{file.read_text()}seeds_are: few"), file.unlink):
        spoil()
        assert store.run(ids[0]).label == "no LayerDrop"


def test_the_frame_of_a_study_has_the_same_labels_and_costs(place, ids):
    store = ablab.open("outputs")
    ours, all_runs = (of.to_pandas().set_index("id") for of in (store.study("tried.yaml"), store.runs()))
    for column in ("study", "arm", "label", "seed", "parameters", "minutes", "valid_loss", "test_bleu"):
        known = ours[column].dropna()
        assert len(known) >= 3
        assert known.equals(all_runs[column].dropna()[known.index].astype(known.dtype)), column


def test_without_pandas_one_line_says_what_to_install(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ablab.Error, match=r"pip install 'ablab\[pandas\]'"):
        ablab.open("outputs").runs().to_pandas()


def test_a_model_of_lower_case_reads_lower_case(monkeypatch):
    """As `ablab translate` does: capitals are not in its vocabulary."""
    seen = []

    class Fake:
        def __init__(self, *_):
            pass

        def encode(self, sentences):
            seen.extend(sentences)
            return sentences

        def hypotheses(self, sentences, *_):
            return []

    for lowercase in (False, True):
        saved = SimpleNamespace(lowercase=lowercase, extra_tokens=50)
        monkeypatch.setattr("ablab.transformer.translation.verbs.translate.find_model", lambda *_, saved=saved: saved)
        monkeypatch.setattr("ablab.transformer.stages.models.load_model", lambda *_: ())
        monkeypatch.setattr("ablab.transformer.decoding.translator.Translator", Fake)
        folder = SimpleNamespace(path="r1", outputs=Path())
        Run.translate(SimpleNamespace(record=None, folder=folder), ["A Man."])
    assert seen == ["A Man.", "a man."]


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("beam_size", 0, "greater than or equal to 1"),
        ("beam_size", 1.5, "a whole number"),
        ("max_extra_tokens", -3, "greater than or equal to 0"),
        ("length_penalty", -0.5, "greater than or equal to 0"),
        ("length_penalty", math.nan, "a finite number"),
        ("device", "cuda", "'cpu' or 'gpu'"),
    ],
)
def test_a_bad_setting_of_a_translation_is_refused_in_one_line(key, value, allowed):
    run = SimpleNamespace(record=None, path="nowhere", folder=SimpleNamespace(outputs=Path()))
    with pytest.raises(ablab.Error, match=f"^{key}={value}: allowed: {allowed}$"):
        Run.translate(run, ["a"], **{key: value})


def test_a_study_is_found_by_any_name_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("experiments").mkdir()
    Path("experiments", "1.10=a, b.yaml").write_text("question: why\nseeds: [1]\nfactors: {norm: [pre, post]}\n")
    Path("my store, 1").mkdir()
    with pytest.raises(ablab.Error, match=r"1\.10.*: none of its runs has .* my store, 1"):
        ablab.open("my store, 1").study("1.10=a, b")


def test_a_study_without_its_file_is_read_from_the_store(place, ids, monkeypatch, tmp_path):
    Path("tried.yaml").rename("elsewhere")
    study = ablab.open("outputs").study("tried")
    assert [arm.name for arm in study.arms] == ["layerdrop=0", "layerdrop=0.1"]
    assert any("reported from the store alone" in note for note in study.notes)


def test_an_evaluation_that_is_not_there_is_none(place, ids):
    run = ablab.open("outputs").run(ids[0])
    for wrong in ("nope", 0):
        with pytest.raises(ablab.Error, match=f"evaluation {wrong}: .*allowed|evaluation {wrong}: .*did you mean"):
            run.hypotheses(wrong)
    assert run.hypotheses(run.evaluation.evaluation_id) == run.hypotheses()


def test_translations_that_are_gone_are_not_none(place, ids):
    run = ablab.open("outputs").run(ids[0])
    path = run.folder.translations(run.evaluation.evaluation_id)
    moved = path.rename(path.with_suffix(".moved"))
    try:
        with pytest.raises(ablab.Error, match=r"\.txt: is gone"):
            run.hypotheses()
    finally:
        moved.rename(path)


def test_what_is_no_path_is_one_line(place):
    store = ablab.open("outputs")
    for wrong in (lambda: ablab.open(5), lambda: store.run(3), lambda: store.study(Path("x"))):
        with pytest.raises(ablab.Error):
            wrong()


def test_a_metric_called_minutes_is_no_cost(place, ids):
    study = ablab.open("outputs").study("tried.yaml")
    renamed = study.document.model_copy(update={"metric": "minutes"})
    object.__setattr__(study, "document", renamed)
    scores = [run.score for arm in study.arms for run in arm.runs]
    assert [row["minutes"] for row in study.table()] == scores
