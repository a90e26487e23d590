"""Claims that several studies registered on the same runs: each page tells the others, and the p over all of them."""

import json
import shutil

import pytest

from ablab.commands.cli import main
from ablab.files import read_json, write_json
from ablab.judge.claims import judge
from ablab.judge.flaws import checked
from ablab.judge.selection_of_study import of_study
from ablab.store.chain import Chain
from ablab.store.pack import INDEX, unpack
from ablab.study.definition import define
from ablab.study.ledger import register
from tests.report.conftest import typed
from tests.report.synthetic import claims_of, fill

pytestmark = pytest.mark.usefixtures("undrawn")

EXPERIMENT = """
question: Does it help?
common: [smoke=false, logger=none]
factors: {layerdrop: [0, 0.1, 0.2]}
design: one_at_a_time
seeds: [1, 2, 3]
claims:
"""
CLAIMS = [
    f"  - {{arm: layerdrop={rate}, expect: {expect}, margin: {margin}}}\n"
    for rate in ("0.1", "0.2")
    for expect in ("greater", "less")
    for margin in (0.5, 1, 2)
]
"""Two arms, two directions, three margins: one of them may be lucky."""
ERRORS = {"layerdrop=0": 0.3, "layerdrop=0.1": 0.285, "layerdrop=0.2": 0.27}


class Store:
    """A store in which several files are registered before their runs are trained, once."""

    def __init__(self, folder):
        self.folder, self.outputs = folder, folder / "outputs"

    def declare(self, name, *claims, content=EXPERIMENT):
        (self.folder / f"{name}.yaml").write_text(content + "".join(claims))
        register(self.study(name))

    def study(self, name):
        return define((f"experiment={self.folder / f'{name}.yaml'}", f"outputs={self.outputs}"))

    def train(self, name):
        fill((f"experiment={self.folder / f'{name}.yaml'}",), ERRORS, outputs=self.outputs)

    def selection(self, name):
        return checked(of_study(self.study(name)))

    def lines(self, name):
        return claims_of(self.selection(name))

    def notes(self, name):
        return [note for note in self.selection(name).notes if "stud" in note]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@pytest.mark.slow
def test_twelve_files_on_the_same_runs_have_the_p_of_one_study_of_twelve_claims(store, tmp_path):
    for number, claim in enumerate(CLAIMS, 1):
        store.declare(f"v{number}", claim)
    store.train("v1")
    (tmp_path / "together").mkdir()
    together = Store(tmp_path / "together")
    together.declare("all", *CLAIMS)
    shutil.copytree(store.outputs / "runs", together.outputs / "runs")
    shutil.copytree(store.outputs / "corpora", together.outputs / "corpora")
    whole = claims_of(of_study(together.study("all")))
    for number, expected in enumerate(whole, 1):
        (line,) = store.lines(f"v{number}")
        assert (line.union.claims, line.union.p, line.union.outcome) == (12, expected.corrected, expected.outcome)
        assert line.corrected < line.union.p
        assert line.exploratory is None
        assert f"Over all 12 claims that studies registered on these runs, p = {line.union.p:.3f}" in line.words
    assert store.notes("v9") == ["11 other studies registered claims about these runs: v1, v10, v11, v12, v2, ..."]


def test_a_study_of_its_own_has_no_other_family(store):
    store.declare("alone", CLAIMS[0])
    store.train("alone")
    assert [line.union for line in store.lines("alone")] == [None]
    assert store.notes("alone") == []


def test_a_copy_under_another_name_costs_nothing_and_is_told(store):
    store.declare("one", CLAIMS[0])
    store.declare("copy", CLAIMS[0])
    store.train("one")
    assert [line.union for line in store.lines("one")] == [None]
    assert store.notes("one") == ["1 other study registered claims about these runs: copy"]


def test_secondary_claims_are_a_family_of_their_own(store):
    secondary = CLAIMS[3].replace("}", ", secondary: true}")
    store.declare("one", CLAIMS[0], secondary)
    store.declare("two", CLAIMS[6], CLAIMS[9].replace("}", ", secondary: true}"))
    store.train("one")
    first, second = store.lines("one")
    assert (first.union.claims, second.union.claims) == (2, 2)
    assert "Over all 2 secondary claims that studies" in second.words


def test_other_seeds_or_arms_are_other_runs(store):
    store.declare("one", CLAIMS[0])
    store.declare("later", CLAIMS[6], content=EXPERIMENT.replace("[1, 2, 3]", "[4, 5, 6]"))
    store.declare("some", CLAIMS[6], content=EXPERIMENT.replace("[1, 2, 3]", "[6, 7, 8]"))
    store.train("one")
    assert store.notes("one") == []
    assert store.notes("later") == ["1 other study registered claims about these runs: some"]


def test_what_is_registered_after_the_runs_takes_no_part_of_their_error(store):
    """It is exploratory on its own page."""
    store.declare("one", CLAIMS[0])
    store.train("one")
    store.declare("two", CLAIMS[6])
    assert store.notes("one") == []
    assert [line.union for line in store.lines("one")] == [None]
    assert [line.exploratory for line in store.lines("two")] == [
        "9 of the runs had finished when the claim was registered"
    ]
    assert store.notes("two") == ["1 other study registered claims about these runs: one"]
    (store.outputs / "studies" / "two" / "registered.json").unlink()
    assert store.notes("one") == [], "nor is it missed"


def test_claims_that_were_registered_by_an_edit_before_the_runs_count(store):
    store.declare("one", CLAIMS[0])
    store.declare("two", CLAIMS[6])
    store.declare("two", CLAIMS[7])
    store.train("one")
    (line,) = store.lines("one")
    assert line.union.claims == 3


@pytest.mark.parametrize("how", ["deleted", "edited"])
def test_a_registration_that_is_gone_is_told(store, how):
    store.declare("one", CLAIMS[0])
    store.declare("two", CLAIMS[6])
    store.train("one")
    place = store.study("two").folder
    if how == "deleted":
        shutil.rmtree(place)
    else:
        (entry,) = read_json(place / "registered.json")
        write_json(place / "registered.json", [{**entry, "claims": []}])
    assert "what other studies registered before these runs is gone or was edited: two" in store.notes("one")
    assert [line.exploratory for line in store.lines("one")] == [None]


def test_an_archive_tells_what_others_registered_and_an_older_one_that_it_lacks_that(store, tmp_path):
    store.declare("one", CLAIMS[0])
    store.declare("two", CLAIMS[6], CLAIMS[7])
    store.train("one")
    path = tmp_path / "one.zip"
    main(["pack", f"experiment={tmp_path / 'one.yaml'}", f"outputs={store.outputs}", f"to={path}", "text=false"])
    index = unpack(path, tmp_path / "received")
    received = Store(tmp_path)
    received.outputs = tmp_path / "received"
    assert received.notes("one") == store.notes("one")
    assert [line.union.claims for line in received.lines("one")] == [3]
    older = index.model_copy(update={"files": {key: one for key, one in index.files.items() if "two" not in key}})
    write_json(received.outputs / INDEX, older.model_dump())
    shutil.rmtree(received.outputs / "studies/two")
    assert received.notes("one") == ["what other studies registered before these runs was not packed: two"]


def test_an_archive_asks_of_another_study_no_more_than_it_has(store, tmp_path, capsys):
    """Its claims alone: neither what was closed of it, nor that the report is about them."""
    store.declare("one", CLAIMS[0])
    store.train("one")
    more = EXPERIMENT.replace("0.2]", "0.3]")
    store.declare("two", "  - {arm: layerdrop=0.3, expect: greater}\n", content=more)
    place, path = f"outputs={store.outputs}", tmp_path / "one.zip"
    assert main(["study", f"experiment={tmp_path / 'two.yaml'}", "close=no machine", place]) == 0
    assert main(["report", f"experiment={tmp_path / 'one.yaml'}", place]) == 0
    main(["pack", f"experiment={tmp_path / 'one.yaml'}", place, f"to={path}", "text=false"])
    unpack(path, tmp_path / "received")
    stamp = f"stamp={Chain.of(store.outputs).stamp}"
    for words in ([f"archive={path}"], [stamp, f"outputs={tmp_path / 'received'}"], [stamp, place]):
        capsys.readouterr()
        main(["verify", *words])
        said = capsys.readouterr().out
        assert "register " in said
        assert "is gone" not in said
        assert "two: claims" not in said
    (store.outputs / "studies/two/closed.json").unlink()
    assert main(["verify", stamp, place]) == 1
    assert "closed.json is gone, and the study was closed" in capsys.readouterr().out


def test_runs_of_the_other_study_that_are_missing_leave_its_claims_their_places(store):
    more = EXPERIMENT.replace("0.2]", "0.2, 0.3]")
    store.declare("one", CLAIMS[0])
    store.declare("two", "  - {arm: layerdrop=0.3, expect: greater}\n", content=more)
    store.train("one")
    (line,) = store.lines("one")
    assert line.union.claims == 2
    assert line.union.p == pytest.approx(2 * line.p)


def test_looks_after_each_seed_are_told_and_have_no_p_over_all(store):
    looks = EXPERIMENT.replace("[1, 2, 3]", "{from: 3, to: 5}")
    store.declare("one", CLAIMS[0])
    store.declare("two", CLAIMS[6], content=looks)
    store.train("one")
    (line,) = store.lines("one")
    assert line.union.p == pytest.approx(2 * line.p)
    assert store.notes("two") == ["1 other study registered claims about these runs: one"]
    assert [one.union for one in judge(store.selection("two"))] == [None]


def test_the_page_has_it(store):
    store.declare("one", CLAIMS[0])
    store.declare("two", CLAIMS[6])
    store.train("one")
    code, out, err = typed(f"experiment={store.folder / 'one.yaml'}", f"outputs={store.outputs}", "resamples=1000")
    assert (code, err) == (0, "")
    assert "Note: 1 other study registered claims about these runs: two" in out
    (claim,) = json.loads((store.outputs / "reports" / "one" / "report.json").read_text())["claims"]
    assert claim["union"]["claims"] == 2
