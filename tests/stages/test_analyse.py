"""What an analysis leaves: numbers that the definitions give, once, whoever asks and in whatever order."""

import contextlib
import io
import json
import shutil

import pytest
import torch

from ablab.commands.cli import main
from ablab.store.artefacts import comparable_artefacts
from ablab.store.finished import FinishedRun
from ablab.store.run_folder import all_runs
from ablab.tasks.plan import reopened
from ablab.transformer.analysis import attentions, masked
from ablab.transformer.data.prepared import prepare
from ablab.transformer.pruning.saved_model import of_run
from ablab.transformer.stages import inside
from ablab.transformer.stages.asked import Asked
from ablab.transformer.stages.models import load_model
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.translation import analyse as look
from ablab.transformer.translation import analyses
from ablab.transformer.translation.analyses import SITES
from ablab.transformer.translation.evaluate import evaluate
from ablab.transformer.translation.validation import loss_of_pairs
from tests.run.conftest import Said, make_store, typed

PAIRS = [f"attention_{number}" for number in (1, 2, 3, 4)]
HEADS = [f"heads_{site}" for site in SITES]
LOOKS = [
    *(f"attention_{site}_1" for site in SITES),
    *("next_token", "uncertainty", "position_vectors", "position_similarity", "bleu_by_length", "chrf_by_length"),
]
EVERY = [*PAIRS, *LOOKS]


def analyse(outputs, *words) -> Said:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(["analyse", f"outputs={outputs}", *words])
    return Said(code, out.getvalue())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A store of two arms, nothing analysed yet."""
    store = make_store(tmp_path_factory.mktemp("trained"), "norm=scalenorm", "pruning=none", "logger=none")
    assert typed(*store.words, "norm=pre", "layerdrop=0").code == 0
    return store.outputs


@pytest.fixture
def outputs(trained, tmp_path):
    """The same, for one test to write into."""
    return shutil.copytree(trained, tmp_path / "store")


@pytest.fixture(scope="module")
def analysed(trained, tmp_path_factory):
    outputs = shutil.copytree(trained, tmp_path_factory.mktemp("analysed") / "store")
    said = analyse(outputs, f"runs={ids(outputs)}", "heads=true", "sentences=100000")
    assert said.code == 0
    return outputs, said.out


def ids(outputs):
    return ",".join(run.run_id for run in all_runs(outputs))


def artefacts(outputs):
    """By run and name, without clock and code."""
    return {
        (run.run_id, key): artefact.model_copy(update={"provenance": {}})
        for run in all_runs(outputs)
        for key, artefact in comparable_artefacts(run.artefacts).items()
    }


def scalenorm(outputs):
    return next(run for run in all_runs(outputs) if "scalenorm" in run.record().name)


@pytest.mark.slow
def test_each_run_has_what_its_model_has(analysed):
    outputs, said = analysed
    for run in all_runs(outputs):
        gains = ["scalenorm_g"] * (run.run_id == scalenorm(outputs).run_id)
        assert sorted(comparable_artefacts(run.artefacts)) == sorted([*EVERY, *HEADS, *gains])
        for key in (*EVERY, *HEADS, *gains):
            assert (run.artefacts / f"{key}.png").read_bytes().startswith(b"\x89PNG")
            assert key in said
    *_, following, places = said.rstrip().splitlines()
    assert following == f"Next: ablab report runs={ids(outputs)} outputs={outputs}"
    assert places == f"Results: {', '.join(str(run.artefacts) for run in all_runs(outputs))}"


@pytest.mark.slow
def test_rows_of_attention_are_distributions_over_readable_tokens(analysed):
    outputs, _ = analysed
    for run in all_runs(outputs):
        for key in PAIRS:
            found = comparable_artefacts(run.artefacts)[key]
            assert [part.label for part in found.slices] == ["all layers", "layer 1"]
            for part in found.slices:
                assert len(part.values) == len(found.y.labels)
                for row in part.values:
                    assert len(row) == len(found.x.labels)
                    assert sum(row) == pytest.approx(1, abs=1e-3)
            for axis, side in ((found.x, "source"), (found.y, "reference")):
                *tokens, end = axis.labels
                assert end == "</s>"
                assert not any(token.startswith("\u2581") for token in tokens if len(token) > 1)
                assert "".join(tokens).replace("·", "").replace("\u2581", "") == found.settings[side].replace(" ", "")


@pytest.mark.slow
def test_arms_show_the_same_sentences_of_the_test_set(analysed):
    outputs, _ = analysed
    one, other = ([comparable_artefacts(run.artefacts)[key] for key in PAIRS] for run in all_runs(outputs))
    assert [each.settings for each in one] == [each.settings for each in other]
    assert [each.y for each in one] == [each.y for each in other]
    (text,) = outputs.glob("corpora/*/references.txt")
    assert {each.settings["reference"] for each in one} <= set(text.read_text().splitlines())


@pytest.mark.slow
def test_importance_is_the_validation_loss_without_the_head_less_that_on_record(analysed):
    outputs, _ = analysed
    run = scalenorm(outputs)
    planned = reopened(FinishedRun(run, run.record()), [])
    model, _ = load_model(of_run(run, run.record()), torch.device("cpu"))
    valid = prepare(planned.config.data, outputs / "corpora", print).valid
    for site in SITES:
        found = comparable_artefacts(run.artefacts)[f"heads_{site}"]
        assert found.settings["sentences"] == len(valid[0])
        (values,) = (part.values for part in found.slices)
        for attention, row in zip(attentions(model, site), values, strict=True):
            for head, gained in enumerate(row):
                with masked(attention, head):
                    without = loss_of_pairs(model, *valid)
                assert gained == pytest.approx(without - run.record().selected.scores["loss"], abs=2e-5)


@pytest.mark.slow
def test_a_report_lays_the_arms_side_by_side(analysed):
    outputs, said = analysed
    words = said.rstrip().splitlines()[-2].removeprefix("Next: ablab report ").split()
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["report", *words, "resamples=1000"]) == 0
    (page,) = outputs.glob("reports/*/report.json")
    pictures = json.loads(page.read_text())["artefacts"]
    panels = {picture["key"]: picture["panels"] for picture in pictures}
    assert set(panels) == {*EVERY, *HEADS, "scalenorm_g"}
    fixed, lines = ("position_vectors", "position_similarity"), ("bleu_by_length", "chrf_by_length", "uncertainty")
    for key in {*EVERY, *HEADS} - {*fixed, *lines}:
        assert len(panels[key]) == 2
    assert [len(panels[key]) for key in fixed] == [1, 1]
    assert {len(panel["lines"]) for key in lines for panel in panels[key]} == {2}
    assert {len(panel["lines"]) for panel in panels["scalenorm_g"]} == {1}


@pytest.mark.slow
def test_nothing_is_computed_twice_and_the_order_of_runs_is_nothing(analysed, outputs, monkeypatch):
    told = analyse(outputs, f"runs={','.join(reversed(ids(outputs).split(',')))}", "heads=true", "sentences=100000")
    assert told.code == 0
    assert artefacts(outputs) == artefacts(analysed[0])
    monkeypatch.setattr("ablab.transformer.translation.analyse.add_artefacts", None)
    again = analyse(outputs, f"run={scalenorm(outputs).run_id}", "heads=true", "sentences=100000")
    assert again.code == 0
    assert "nothing is computed again" in again.out


@pytest.mark.parametrize("content", ["", "another reference\n"])
def test_a_changed_test_text_is_refused_as_no_map_of_it_would_be_of_what_was_translated(content, outputs, capsys):
    (references,) = outputs.glob("corpora/*/references.txt")
    references.write_text(content)
    said = analyse(outputs, f"run={scalenorm(outputs).run_id}")
    assert said.code == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"is not the test text that {scalenorm(outputs).run_id} translated" in told


def test_an_interruption_loses_one_artefact_and_other_settings_only_what_they_change(outputs, monkeypatch):
    run = scalenorm(outputs)
    words = (f"run={run.run_id}", "heads=true", "sentences=2")

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(inside, "importance", interrupted)
        assert analyse(outputs, *words).code == 130
    assert sorted(comparable_artefacts(run.artefacts)) == sorted([*EVERY, "scalenorm_g"])
    kept = {path.name: path.stat().st_mtime_ns for path in run.artefacts.glob("*.json")}
    assert analyse(outputs, *words).code == 0
    first = artefacts(outputs)
    assert analyse(outputs, *words[:2], "sentences=3").code == 0
    for name, written in kept.items():
        assert (run.artefacts / name).stat().st_mtime_ns == written
    changed = {key for key, artefact in artefacts(outputs).items() if first[key] != artefact}
    assert changed == {(run.run_id, key) for key in HEADS}


def test_callbacks_are_told_of_every_picture(outputs):
    told = []

    class Told(Callback):
        def on_picture(self, step, key, draw, caption, of=""):
            assert draw().exists()
            assert of
            told.append((step, key))

    run = scalenorm(outputs)
    record = run.record()
    planned = reopened(FinishedRun(run, record), [])
    wanted = look.Wanted("scalenorm_g", {"analysis": "scalenorm_g"})
    look.add_artefacts(planned, record, [wanted], Told())
    assert told == [(record.cost.steps, "analysis/scalenorm_g")]


@pytest.mark.slow
def test_other_words_ask_for_more_or_fewer_heads_and_for_a_text(outputs):
    run = scalenorm(outputs)
    assert analyse(outputs, f"run={run.run_id}", "attention=cross").code == 0
    few = {path: path.stat().st_mtime_ns for path in run.artefacts.glob("*.json")}
    assert not any(path.stem.startswith(f"attention_{site}") for path in few for site in SITES)
    assert analyse(outputs, f"run={run.run_id}", "attention=all", "text=two three").code == 0
    for path, written in few.items():
        assert path.stat().st_mtime_ns == written
    found = comparable_artefacts(run.artefacts)
    assert {f"attention_{site}_{place}" for site in SITES for place in (1, 2, 3, 4)} < set(found)
    settings = found["next_token_of_text"].settings
    assert settings["source"] == "two three"
    assert settings["search"]["beam_size"] == 4
    assert "nothing is computed again" in analyse(outputs, f"run={run.run_id}", "text=two three").out
    assert "nothing is computed again" not in analyse(outputs, f"run={run.run_id}", "text=two").out


def test_a_text_is_looked_into_along_the_greedy_translation_too(outputs):
    run = scalenorm(outputs)
    record = run.record()
    planned = reopened(FinishedRun(run, record), ["decoding=greedy"])
    evaluate(planned, record, Callback())
    wanted = [each for each in analyses.wanted(planned, record, Asked(text="two three")) if each.key.endswith("text")]
    look.add_artefacts(planned, record, wanted, Callback())
    settings = comparable_artefacts(run.artefacts)["next_token_of_text"].settings
    assert settings["search"]["beam_size"] == 1
    assert "length_penalty" not in settings["search"]


def test_quality_by_length_needs_no_model(outputs, monkeypatch):
    run = scalenorm(outputs)
    assert analyse(outputs, f"run={run.run_id}").code == 0
    first = comparable_artefacts(run.artefacts)["bleu_by_length"]
    (run.artefacts / "bleu_by_length.json").unlink()
    monkeypatch.setattr("ablab.transformer.translation.analyse.load_model", None)
    assert analyse(outputs, f"run={run.run_id}").code == 0
    assert comparable_artefacts(run.artefacts)["bleu_by_length"].series == first.series


@pytest.mark.slow
def test_without_translations_there_is_no_chrf_by_length(outputs):
    run = scalenorm(outputs)
    for path in (run.path / "evaluations").glob("*.txt"):
        path.unlink()
    assert analyse(outputs, f"run={run.run_id}").code == 0
    assert {"bleu_by_length"} == {key for key in comparable_artefacts(run.artefacts) if key.endswith("by_length")}


BAD = {
    "": ["run: say which finished run"],
    "run=x runs=y": ["run: say which"],
    "runs=,": ["runs=,: names no run"],
    "run=nothing": ["run=nothing: no such run"],
    "RUN heads=perhaps": ["heads=perhaps: allowed: true, false"],
    "RUN sentences=5": ["sentences=5: only masked heads need them; allowed: with heads=true"],
    "RUN heads=true sentences=0": ["sentences=0", "greater than or equal to 1"],
    "RUN attention=none": ["attention=none: allowed: 'cross', 'heads' or 'all'"],
    "RUN text=": ["text="],
    "RUN schedule=noam": ["schedule=noam: a finished run keeps its schedule; allowed: with schedule=true"],
    "RUN haeds=true": ["haeds=true: no such key", "did you mean heads?"],
    "RUN norm=post": ["norm=post: no such key", "trainer"],
    "RUN decoding=greedy": ["decoding=greedy: no such key"],
    "RUN data.src=fr": ["data.src=fr: no such key here"],
    "RUN hello": ["hello: no such key"],
    "RUN data.test_pairs=3": ["has not been scored on test", "type its train line again"],
    "UNFINISHED": ["has not finished; type its train line again"],
    "DIVERGED": ["diverged (too hot); it has no weights to use"],
    "DAMAGED": ["scalenorm_g.json: not readable as JSON"],
}


@pytest.mark.parametrize("line", BAD)
def test_what_analyse_cannot_do_is_said_in_one_line(line, outputs, capsys):
    one, other = all_runs(outputs)
    if line == "UNFINISHED":
        (other.path / "record.json").unlink()
    elif line == "DIVERGED":
        record = json.loads((other.path / "record.json").read_text())
        (other.path / "record.json").write_text(
            json.dumps(record | {"state": "diverged", "reason": "too hot", "selected": None})
        )
    elif line == "DAMAGED":
        (other.artefacts / "scalenorm_g.json").write_text("{")
    words = line.replace("RUN", f"run={one.run_id}").split() if not line.isupper() else [f"run={other.run_id}"]
    before = sorted(outputs.rglob("*.[jp]*"))
    assert main(["analyse", f"outputs={outputs}", *words]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    for part in BAD[line]:
        assert part in err
    assert sorted(outputs.rglob("*.[jp]*")) == before
