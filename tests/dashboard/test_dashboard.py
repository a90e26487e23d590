"""The dashboard of a study, up to the specification that W&B is sent: its runs by arm, averaged, and its verdicts."""

import json
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from ablab.commands.cli import main
from ablab.config import compose
from ablab.report.dashboard.content import content_of, last_report
from ablab.report.dashboard.send import as_sent, report, workspace
from ablab.report.tables import tables
from ablab.study.definition import define
from ablab.study.ledger import register
from ablab.study.study import Study
from ablab.tasks.plan import plan
from ablab.tracking.card import card_of_run, cards_of
from ablab.tracking.events import Events
from tests.report.synthetic import fill
from tests.tracking.conftest import serve as serve

EXPERIMENT = """
question: Does ScaleNorm help?
factors: {norm: [pre, scalenorm]}
seeds: [1, 2, 3]
claims:
  - {arm: scalenorm, expect: greater, margin: 0.5}
"""

LINE = "pruning/decoder/every_other/test_bleu"


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> tuple[str, ...]:
    folder = tmp_path_factory.mktemp("dashboard")
    (folder / "mine.yaml").write_text(EXPERIMENT)
    words = (f"experiment={folder / 'mine.yaml'}", f"outputs={folder / 'outputs'}", "logger.entity=team")
    study = fill(words, {"norm=pre": 0.4, "norm=scalenorm": 0.2}, outputs=folder / "outputs")
    for cell in study.cells:
        planned = plan(compose(study.words_of(cell)))
        events = Events(planned.folder.path, card_of_run(planned, planned.config.logger), print)
        events.log(10, {"valid/bleu": 10.0})
        for layers in (4, 2, 1):
            events.along("decoder_layers", layers, {LINE: 5.0 * layers, LINE.replace("test_bleu", "speed_ratio"): 1.0})
        events.finish(failed=False)
    assert main(["report", *words, "resamples=1000"]) == 0
    return words


@pytest.fixture
def study(words) -> Study:
    return define(words)


def panels_of(spec: Any) -> Iterator[dict[str, Any]]:
    """The panels anywhere in a specification."""
    if isinstance(spec, dict):
        if "viewType" in spec:
            yield spec
        spec = list(spec.values())
    if isinstance(spec, list):
        for each in spec:
            yield from panels_of(each)


def runsets_of(spec: Any) -> Iterator[dict[str, Any]]:
    if isinstance(spec, dict):
        yield from spec.get("runSets", ())
        spec = list(spec.values())
    if isinstance(spec, list):
        for each in spec:
            yield from runsets_of(each)


@pytest.mark.parametrize("make", [workspace, report])
def test_both_show_the_runs_of_this_study_grouped_by_arm_and_averaged_over_seeds(make, study):
    content = content_of(study, last_report(study))
    spec = as_sent(make(content, "team"))
    sets, panels = list(runsets_of(spec)), list(panels_of(spec))
    assert sets
    for runs in sets:
        (rule,) = runs["filters"]["filters"]
        assert (rule["key"]["name"], rule["op"]) == ("name", "IN")  # name is W&B's word for the id
        assert rule["value"] == list(content.runs)
        assert runs["grouping"] == [{"section": "config", "name": f"studies.value.{study.name}"}]
    assert len(panels) > 5
    for panel in panels:
        config = panel["config"]
        assert config["groupBy"] == f"studies.value.{study.name}"
        assert (config["groupAgg"], config["groupArea"]) == ("mean", "minmax")


@pytest.mark.parametrize("make", [workspace, report])
def test_a_depth_quality_curve_lies_over_its_own_axis(make, study):
    found = [panel["config"] for panel in panels_of(as_sent(make(content_of(study, last_report(study)), "team")))]
    (depth,) = [config for config in found if config["metrics"] == [LINE]]
    assert depth["xAxis"] == "axis/decoder_layers"
    steps = [config["xAxis"] for config in found if config["metrics"][0].startswith(("valid/", "train/"))]
    assert set(steps) == {"step"}


def test_of_a_program_it_shows_the_scores_that_its_runs_tell(tmp_path, monkeypatch, capsys):
    """And nothing of a training that is not ours, of which there would be no value."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.py").write_text(
        "import json, sys\nout, seed, rate = sys.argv[1:]\n"
        "json.dump({'scores': {'loss': float(rate) + int(seed)}}, open(out, 'w'))\n"
    )
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "rate.yaml").write_text(
        'command: [python, one.py, "{result}", "{seed}", "{rate}"]\ninputs: [one.py]\nquestion: Which rate?\n'
        "scores: {loss: {better: lower}}\nfactors: {rate: [1, 2]}\nseeds: [1, 2]\n"
    )
    assert main(["train", "-m", "experiment=rate"]) == 0
    assert main(["report", "experiment=rate"]) == 0
    capsys.readouterr()
    program = define(("experiment=rate",))
    spec = as_sent(workspace(content_of(program, last_report(program)), "team"))
    drawn = {metric for panel in panels_of(spec) for metric in panel["config"]["metrics"]}
    assert drawn == {"valid/loss", "summary_metrics.selected/loss"}


def test_ids_are_those_under_which_the_runs_are_sent(study):
    cards = [cards_of(cell.planned.folder.path)[-1] for cell in study.cells]
    assert [card.id_there for card in cards] == list(content_of(study, last_report(study)).runs)
    assert [card.config["studies"] for card in cards] == [{study.name: cell.arm} for cell in study.cells]


def test_verdicts_and_tables_are_those_of_the_report(study):
    content = content_of(study, last_report(study))
    text = json.dumps(as_sent(report(content, "team")), ensure_ascii=False)
    assert len(content.document.claims) == 1
    assert content.document.claims[0].words in text
    for table in tables(content.document):
        if table.key in ("claims", "arms", "differences"):
            for row in table.rows:
                assert " | ".join(row) in text


def test_arms_have_the_names_that_the_page_has(study):
    document = last_report(study)
    assert [arm.name for arm in document.arms] == ["PreNorm", "ScaleNorm"]
    assert "norm=scalenorm" not in document.claims[0].words


def test_of_fewer_seeds_it_shows_the_report_of_those(words, tmp_path, capsys):
    """Verdicts of all seeds beside the runs of two would be those of other runs."""
    shutil.copytree(define(words).outputs, tmp_path / "outputs")
    whole = (words[0], f"outputs={tmp_path / 'outputs'}", words[2])
    register(define(whole))
    assert main(["report", *whole, "resamples=1000"]) == 0
    fewer = (*whole, "seed=1,2")
    capsys.readouterr()
    assert main(["dashboard", *fewer, "dry_run=true"]) == 2
    said = capsys.readouterr().err
    assert "mine-seeds-1-2/report.json: there is no report" in said
    assert main(["report", *fewer, "resamples=1000"]) == 0
    capsys.readouterr()
    assert main(["dashboard", *fewer, "dry_run=true"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["report"]["displayName"] == "Study mine-seeds-1-2"
    assert "both arms have 2" in printed


def test_a_dry_run_prints_it_and_asks_no_server(words, capsys, monkeypatch):
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    assert main(["dashboard", *words, "dry_run=true"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["workspace"]["entity"] == "team"
    assert printed["report"]["displayName"].startswith("Study ")


def test_typed_again_the_line_changes_what_it_made(words, study, serve, capsys):
    server = serve()
    assert main(["dashboard", *words]) == 0
    first = capsys.readouterr().out
    assert "6 runs have something to send first" in first
    (told,) = server.views.of_type("runs")
    (shown,) = server.views.of_type("project-view")
    assert shown["displayName"] == study.name
    assert main(["dashboard", *words, "format=json"]) == 0
    places = json.loads(capsys.readouterr().out)
    assert all("/team/ablab" in place and place in first for place in places.values())
    assert (len(server.views.known), len(server.views.of_type("runs"))) == (2, 1)
    assert told["displayName"] == server.views.of_type("runs")[0]["displayName"]


def test_a_server_that_refuses_costs_a_line(words, serve, capsys):
    serve("refuses")
    assert main(["dashboard", *words]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: W&B has not taken the dashboard")
    assert said.count("\n") == 1


def test_what_is_missing_is_said_in_a_line(words, tmp_path, capsys, monkeypatch):
    def refused(*line: str) -> str:
        assert main(["dashboard", *line]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        return said

    other = [words[0], f"outputs={tmp_path}"]
    assert "type first: ablab report experiment=" in refused(*other)
    assert list(tmp_path.iterdir()) == []
    assert "allowed: logger=wandb" in refused(words[0], words[1], "logger=none")
    assert "say experiment=<name>" in refused()
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert "there is no key for http://127.0.0.1:9" in refused(*words)
    monkeypatch.setitem(sys.modules, "wandb_workspaces", None)
    assert "pip install 'ablab[dashboard]'" in refused(*words)
