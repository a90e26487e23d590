"""Results and registrations that were tampered with: the report says what, and the claims are exploratory.

What people do without tampering, kills included, gives no such line.
"""

import json
import shutil

import pytest

from ablab.commands.cli import main
from ablab.commands.verification import faults_of, verify_runs
from ablab.judge.custody import links
from ablab.judge.flaws import checked
from ablab.judge.selection_of_study import of_study
from ablab.store.chain import Chain
from ablab.store.finished import FinishedRun
from ablab.store.register import REGISTER, waiting_for
from ablab.study.definition import define
from ablab.study.extending import close
from ablab.study.ledger import register
from ablab.tracking.console import Console
from tests.report.conftest import typed
from tests.report.synthetic import fill

pytestmark = pytest.mark.usefixtures("undrawn")

EXPERIMENT = """
question: Does it help?
common: [smoke=false, logger=none]
factors: {layerdrop: [0, 0.1]}
seeds: [1, 2, 3]
claims: [{arm: layerdrop=0.1, expect: greater}]
"""
ERRORS = {"layerdrop=0": 0.3, "layerdrop=0.1": 0.2}
ELSEWHERE = "came from elsewhere, or the end of the register was cut"


class Place:
    """A store with one study, and what its report says."""

    def __init__(self, folder):
        self.file = folder / "tried.yaml"
        self.declare(EXPERIMENT)
        self.outputs = folder / "outputs"

    def declare(self, content):
        self.file.write_text(content)

    @property
    def words(self):
        return (f"experiment={self.file}", f"outputs={self.outputs}")

    @property
    def study(self):
        return define(self.words)

    @property
    def register(self):
        return self.outputs / REGISTER

    def launch(self, *words, **options):
        register(define((*self.words, *words)))
        fill((self.words[0], *words), ERRORS, outputs=self.outputs, **options)

    def report(self, *words):
        """The lines on the register at the top, which are the reason why each claim is exploratory."""
        code, out, err = typed(*self.words, *words, "resamples=1000")
        assert (code, err) == (0, "")
        (path,) = [path for path in (self.outputs / "reports").iterdir() if path.name.startswith("tried")]
        data = json.loads((path / "report.json").read_text())
        reasons = {claim["exploratory"] for claim in data["claims"]}
        self.exploratory = reasons.pop()
        assert not reasons
        flaws = [note for note in data["notes"] if self.exploratory is not None and note in self.exploratory]
        assert all(f"Note: {flaw}" in out for flaw in flaws)
        return flaws

    def folder(self, number=0):
        return self.study.cells[number].planned.folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("made")
    Place(place).launch()
    return place


@pytest.fixture
def place(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return Place(tmp_path)


def test_what_nobody_touched_has_no_flaw(place):
    assert place.report() == []
    assert place.exploratory is None


def test_runs_that_were_deleted_and_trained_again(place):
    for number in (0, 1):
        shutil.rmtree(place.folder(number).path)
    ids = f"{place.folder(0).run_id}, {place.folder(1).run_id}"
    assert place.report() == [f"runs that had ended are gone: {ids}"]
    place.launch()
    assert place.report() == [f"runs that had ended were deleted and trained again: {ids}"]


@pytest.mark.parametrize("kind", ["evaluations", "record", "curves"])
def test_a_score_that_was_edited(place, kind):
    folder, planned = place.folder().path, place.study.cells[0].planned
    name = {
        "evaluations": f"evaluations/{planned.evaluation_id}.json",
        "record": "record.json",
        "curves": f"curves/{planned.curve_id}.json",
    }[kind]
    content = json.loads((folder / name).read_text())
    (content if "scores" in content else content.get("selected") or content["points"][1])["scores"]["bleu"] += 0.5
    (folder / name).write_text(json.dumps(content))
    (flaw,) = place.report()
    assert flaw == f"results are not what was entered: they were edited: {place.folder().run_id}/{name}"


def test_claims_that_were_edited_in_their_registration(place):
    path = place.study.folder / "registered.json"
    path.write_text(path.read_text().replace('"greater"', '"less"'))
    place.declare(EXPERIMENT.replace("greater", "less"))
    assert place.report() == ["registered.json is not what was entered: it was edited"]


def test_verify_follows_the_registration_too(place, tmp_path, capsys):
    """In the store and in an archive: a claim that was dropped would make the others easier to support."""
    archive = tmp_path / "a.zip"
    path = place.study.folder / "registered.json"
    whole = path.read_text()
    for content, code in ((whole, 0), (whole.replace('"greater"', '"less"'), 1)):
        path.write_text(content)
        assert main(["pack", *place.words, f"to={archive}", "text=false"]) == 0
        capsys.readouterr()
        assert main(["verify", f"archive={archive}"]) == code
        assert ("registered.json is not what was entered: it was edited" in capsys.readouterr().out) == bool(code)
        faults = faults_of(checked(of_study(place.study)), Console(bars=False))
        assert faults == [f"{place.outputs}: registered.json is not what was entered: it was edited"] * bool(code)


@pytest.mark.parametrize("gone", ["registered.json", ""])
def test_a_registration_that_was_deleted_and_made_anew(place, gone):
    path = place.study.folder / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    (flaw,) = place.report()
    assert flaw.startswith("registered.json is gone, and the study was registered on 20")
    place.declare(EXPERIMENT.replace("greater", "less"))
    place.launch()
    (flaw,) = place.report()
    assert flaw.startswith("registered.json was made anew: the study was registered on 20")
    assert flaw.endswith(", and 1 of 2 entries are left")
    assert json.loads((place.study.folder / "registered.json").read_text())[0]["runs_already_done"] == 6


@pytest.mark.parametrize("how", ["remove", "edit", "words"])
def test_a_line_of_the_register_that_was_changed(place, how):
    lines = place.register.read_text().splitlines(keepends=True)
    assert '"curves/' in lines[4]
    if how == "remove":
        del lines[4]
    else:
        lines[4] = lines[4].replace("curves", "kurves") if how == "edit" else "what?\n"
    place.register.write_text("".join(lines))
    said = {flaw.rpartition(": ")[0]: flaw.rpartition(": ")[2] for flaw in place.report()}
    (broken,) = [lines for flaw, lines in said.items() if flaw.startswith("the register is broken, since lines do not")]
    assert broken == ("5" if how == "remove" else "6")
    assert (said.get("lines of the register cannot be read") == "5") == (how == "words")
    (unknown,) = [files for flaw, files in said.items() if flaw.startswith("results that the register does not know")]
    assert unknown == f"{place.folder().run_id}/curves/{place.study.cells[0].planned.curve_id}.json"


def test_an_end_that_was_cut(place):
    assert place.report() == []
    lines = place.register.read_text().splitlines(keepends=True)
    place.register.write_text("".join(lines[:-3]))
    for _ in range(2):  # the second report replaces the first, which it must not hide
        stamped, unknown = place.report()
        assert stamped.startswith(f"an earlier report of this name bears register {len(lines)}:")
        assert stamped.endswith(", which this register never had: its end was cut, or it was replaced")
        run = place.folder(len(place.study.cells) - 1).run_id
        assert unknown == f"runs that the register does not know, so that they {ELSEWHERE}: {run}"
    place.launch()  # which does not heal it
    assert len(place.report()) == 2


def test_a_register_that_was_deleted(place):
    assert place.report() == []
    place.register.unlink()
    flaws = place.report()
    assert flaws[0] == "the store has no register: it is older than registers, or its register was deleted"
    fill((place.words[0], "seed=7"), ERRORS, outputs=place.outputs)  # a new one begins
    assert [flaw.partition(" bears ")[0] for flaw in place.report()] == [
        "an earlier report of this name",
        "the study was registered before the register began",
    ]


def test_a_register_with_the_study_that_was_deleted(place):
    """Without a report before, what is there when the new register begins is older than it."""
    place.register.unlink()
    shutil.rmtree(place.study.folder)
    place.launch()
    assert place.report() == []
    assert place.exploratory == "6 of the runs had finished when the claim was registered"


def test_runs_that_were_seen_in_another_study_are_counted_however_they_were_judged(place):
    """By beam and by greedy search: the runs are the same."""
    greedy = place.file.with_name("tried_greedily.yaml")
    greedy.write_text(EXPERIMENT.replace("logger=none", "logger=none, decoding=greedy"))
    shutil.rmtree(place.folder().path)
    words = (f"experiment={greedy}", f"outputs={place.outputs}")
    register(define(words))
    (entry,) = json.loads((define(words).folder / "registered.json").read_text())
    assert entry["runs_already_done"] == 6


def test_runs_that_came_from_another_store(place, tmp_path):
    other = Place(tmp_path)
    other.outputs = tmp_path / "other"
    register(other.study)
    shutil.copytree(place.outputs / "runs", other.outputs / "runs")
    (flaw,) = other.report()
    assert flaw.startswith(f"runs that the register does not know, so that they {ELSEWHERE}: ")
    assert flaw.endswith(", ...")


def test_an_ad_hoc_report_tells_of_its_runs_too(place):
    shutil.rmtree(place.folder().path)
    fill((place.words[0],), ERRORS, outputs=place.outputs)
    code, out, _ = typed("where=data=numbers", f"outputs={place.outputs}", "resamples=1000")
    assert code == 0
    assert f"Note: runs that had ended were deleted and trained again: {place.folder().run_id}\n" in out


def test_a_rerun_is_said_for_what_it_is(place):
    folder = place.folder()
    folder.set_aside()
    assert place.report() == [f"runs that had ended were set aside (rerun or rm): {folder.run_id}"]
    place.launch()
    assert place.report() == [f"runs that had ended were set aside (rerun or rm) and trained again: {folder.run_id}"]


def test_a_move_whose_entry_was_killed_is_no_deletion(place, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("ablab.store.run_folder.Register.append", lambda *_, **__: None)
        place.folder().set_aside()
    place.launch()
    assert place.report() == [
        f"runs that had ended were set aside (rerun or rm) and trained again: {place.folder().run_id}"
    ]


def test_legitimate_use_has_no_flaw(tmp_path):
    """Launched, interrupted, launched again, evaluated later, given up in part, reported in between, copied."""
    place = Place(tmp_path)
    missing = {(arm, seed) for arm in ERRORS for seed in (2, 3)}
    place.launch(missing=missing)
    assert place.report() == []
    place.launch(missing={("layerdrop=0.1", 3)})
    folder, planned = place.folder(), place.study.cells[0].planned
    another = folder.evaluation(planned.evaluation_id).model_copy(update={"evaluation_id": "later"})
    folder.write_evaluation(another, ["x"])
    close(place.study, "the machine is gone")
    assert place.report() == []
    assert place.exploratory == "1 run of its arms was given up after 5 runs of the study had ended"
    fill((place.words[0], "norm=post"), ERRORS, outputs=place.outputs)
    assert place.report() == []
    shutil.copytree(place.outputs, tmp_path / "copy")
    shutil.rmtree(place.outputs)
    place.outputs = tmp_path / "copy"
    assert place.report() == []


def test_a_kill_between_entry_and_name_has_no_flaw(place):
    """Before the same line is typed again, and after."""
    for path in (place.folder().path / "record.json", place.study.folder / "registered.json"):
        path.rename(waiting_for(path))
        typed(*place.words, "resamples=1000")
        data = json.loads((place.outputs / "reports" / "tried" / "report.json").read_text())
        assert not any("gone" in note or "register " in note for note in data["notes"])
        place.folder().tidy()
        register(place.study)
        assert path.exists()
        assert place.report() == []


def test_a_kill_between_entry_and_name_of_what_was_there_before_has_no_flaw(place, capsys, monkeypatch):
    """The second registration of a study, and an evaluation: nothing was edited, and nothing is gone."""
    place.declare(EXPERIMENT.replace("seeds: [1, 2, 3]", "seeds: [1, 2, 3, 4]"))
    monkeypatch.setattr("ablab.store.register.rename", _killed)
    with pytest.raises(KeyboardInterrupt):
        register(place.study)
    monkeypatch.undo()
    folder = place.folder()
    (evaluation, *_) = sorted((folder.path / "evaluations").glob("*.json"))
    evaluation.rename(waiting_for(evaluation))
    assert not any("edited" in flaw or "gone" in flaw for flaw in place.report())
    assert not any(link.fault for link in links(folder, Chain.of(place.outputs)) if "evaluations" in link.file)
    assert main(["pack", f"runs={folder.run_id}", f"to={place.outputs}.zip", f"outputs={place.outputs}"]) == 2
    assert "a kill came before it had its name; allowed: to pack once the line" in capsys.readouterr().err


def _killed(*_):
    raise KeyboardInterrupt


def test_what_ends_while_runs_are_verified_is_in_the_register(place, capsys):
    """Links of one run after another are checked, which takes long, and another run may be evaluated meanwhile."""
    folder, chain = place.folder(), Chain.of(place.outputs)
    found = folder.evaluations()[0].model_copy(update={"evaluation_id": "another0000"})
    folder.write_evaluation(found, None)
    assert any(link.fault == "is not in the register" for link in links(folder, chain))
    before = Chain.of
    calls = iter([chain])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chain, "of", lambda store: next(calls, None) or before(store))
        verified = verify_runs([FinishedRun(folder, folder.record())], Console())
    assert [one.broken for one in verified if one.broken and "register" in one.broken] == []


def test_a_closing_that_was_deleted(place):
    place.declare(EXPERIMENT.replace("seeds: [1, 2, 3]", "seeds: [1, 2, 3, 4]"))
    register(place.study)
    close(place.study, "no time")
    (place.study.folder / "closed.json").unlink()
    (flaw,) = place.report()
    assert flaw.startswith("closed.json is gone, and the study was closed on 20")


def test_a_stamp_alone_is_no_news(place, monkeypatch):
    told = []
    monkeypatch.setattr("ablab.commands.report.track_report", lambda *_: told.append(1) or True)
    place.report()
    fill((place.words[0], "norm=post"), ERRORS, outputs=place.outputs)
    path = place.outputs / "reports" / "tried" / "report.json"
    before = json.loads(path.read_text())["stamp"]
    place.report()
    assert json.loads(path.read_text())["stamp"] != before
    assert len(told) == 1
