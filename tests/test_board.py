"""The page over a store: what it lists, draws and compares, in a browser, and that it needs no network."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest
from werkzeug.serving import make_server

from ablab.api import open as open_store
from ablab.commands import board
from ablab.commands.cli import main
from ablab.commands.ls import listing
from ablab.tasks.registry import known_scores
from ablab.tasks.score import Score
from tests.report.browser import CHROMIUM, Browser
from tests.report.synthetic import fill

WORDS = ("norm=pre,scalenorm", "seed=1,2,3", "logger=none")
ROWS = "document.querySelectorAll('.ag-center-cols-container .ag-row').length"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    found = tmp_path_factory.mktemp("board") / "outputs"
    study = fill(WORDS, {"norm=pre": 0.2, "norm=scalenorm": 0.1}, outputs=found)
    rows = [{"run_id": cell.planned.run_id, "arm": cell.arm} for cell in study.cells]
    for place in ("studies/norms", "reports/norms"):
        (found / place).mkdir(parents=True)
    (found / "studies/norms/runs.json").write_text(json.dumps(rows))
    (found / "reports/norms/report.html").write_text("<title>the report of norms</title>")
    return found


@pytest.mark.parametrize("content", ["[", "[1]", '{"a": 1}'])
def test_a_study_whose_list_of_runs_is_damaged_has_no_number_of_runs(content, outputs, tmp_path):
    shutil.copytree(outputs, tmp_path / "copy")
    (tmp_path / "copy/studies/norms/runs.json").write_text(content)
    (said,) = board.studies(open_store(tmp_path / "copy"))
    assert "norms: its runs.json cannot be read" in str(said)


@pytest.fixture
def address(outputs, monkeypatch):
    monkeypatch.setattr(board, "PULSE", 0.3)
    server = make_server("127.0.0.1", 0, board.page(open_store(outputs)).server, threaded=True)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.fixture
def shown(address, tmp_path):
    browser = Browser(tmp_path)
    browser.show(1400, 1200)
    browser.call("Page.navigate", url=address)
    yield browser
    browser.close()


def wait(browser, condition):
    """Wait until an expression is true; fail with what the page shows after ten seconds."""
    look = f"({condition}) || n > 200 ? go(!!({condition})) : setTimeout(() => look(n + 1), 50)"
    assert browser.value(f"new Promise((go) => {{ const look = (n) => {look}; look(0); }})"), browser.value(
        "document.body.innerText"
    )


def typed(browser, where):
    browser.value("(() => { const at = document.querySelector('#where'); at.focus(); at.select(); })()")
    browser.call("Input.insertText", text=where)
    browser.press("Enter")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_runs_are_listed_chosen_drawn_and_compared_and_nothing_comes_from_elsewhere(shown, outputs):
    wait(shown, f"{ROWS} === 6")
    wait(shown, "document.querySelectorAll('#curves .scatterlayer .trace').length === 6")
    typed(shown, "norm=scalenorm")
    wait(shown, f"{ROWS} === 3")
    typed(shown, "norm=scalenrom")
    wait(shown, "document.querySelector('#said').innerText.includes('did you mean norm=scalenorm?')")
    typed(shown, "seed=1")
    wait(shown, f"{ROWS} === 2")
    for number in (0, 1):
        shown.value(
            f"document.querySelectorAll('.ag-center-cols-container .ag-row input, .ag-row input')[{number}].click()"
        )
    wait(shown, "document.querySelector('#compared').innerText.includes('norm.kind')")
    wait(shown, "document.querySelectorAll('#curves .scatterlayer .trace').length === 2")
    names = "performance.getEntriesByType('resource').map((one) => one.name)"
    assert shown.value(f"{names}.filter((name) => !name.includes('//127.0.0.1:'))") == []
    assert "norms: 6 of 6 runs have ended" in shown.value("document.querySelector('#studies').innerText")
    run = next((outputs / "runs").iterdir()).name
    record = shown.value(f"fetch('/runs/{run}').then((answer) => answer.json()).then((one) => one.run_id)")
    assert record == run, "where a report's links to its runs lead"
    report = shown.value("fetch(document.querySelector('#studies a').href).then((answer) => answer.text())")
    assert report == "<title>the report of norms</title>"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_what_happens_in_the_store_is_seen(shown, outputs, tmp_path):
    wait(shown, f"{ROWS} === 6")
    gone = next((outputs / "runs").iterdir())
    shutil.move(gone, tmp_path / "gone")
    wait(shown, f"{ROWS} === 5")
    shutil.move(tmp_path / "gone", gone)
    wait(shown, f"{ROWS} === 6")


def test_a_port_that_is_taken_is_refused_in_a_line(outputs, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["board", f"port={port}", f"outputs={outputs}"]) == 2
    assert capsys.readouterr().err == f"error: port={port}: Address already in use; allowed: a free one, 0 for any\n"


def test_runs_of_one_name_have_a_curve_each():
    """Such as an arm and a seed that two studies share."""
    rows = [{"step": 1, "loss": 2.0}], [{"step": 1, "loss": 3.0}]
    traces = board.figure([("plain, seed 1", each) for each in rows], "loss")["data"]
    assert [trace["y"] for trace in traces] == [(2.0,), (3.0,)]


def test_names_that_look_like_tags_are_seen():
    """Plotly would read `<s>` as one, and show nothing."""
    (trace,) = board.figure([("level=<s> & more, seed 1", [{"step": 1, "loss": 2.0}])], "loss")["data"]
    assert trace["name"] == "level=&lt;s> &amp; more, seed 1"


def test_scores_have_the_digits_that_their_runs_declare(outputs):
    listed = listing(open_store(outputs).runs()).runs
    one = listed[0].model_copy(update={"scores": {"err": 1.12e-4, "test_bleu": 20.0}})
    known = {"err": Score("err", "", 7, False, "validation", "err"), "test_bleu": known_scores()["test_bleu"]}
    formats = {column["field"]: column.get("valueFormatter", {}) for column in board.columns_of([one], known)}
    assert "'.7f'" in formats["err"]["function"]
    assert "'.2f'" in formats["test_bleu"]["function"]


def test_a_damaged_run_has_not_ended_and_a_report_of_any_name_has_a_link(outputs, tmp_path):
    copy = shutil.copytree(outputs, tmp_path / "copy")
    store = open_store(copy)
    (name,) = store.studies
    first, *_ = store.of_study(name)
    whole = "".join(map(str, board._study(store, name)))
    (store.folder(first).path / "record.json").write_text("{")
    assert "".join(map(str, board._study(open_store(copy), name))) != whole
    (copy / "reports" / name).rename(copy / "reports" / "e?f")
    (copy / "studies" / name).rename(copy / "studies" / "e?f")
    *_, link = board._study(open_store(copy), "e?f")
    assert link.href == "/reports/e%3Ff/report.html"


def test_it_serves_until_ctrl_c(outputs):
    line = [sys.executable, "-m", "ablab", "board", "port=0", f"outputs={outputs}"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as serving:
        said = serving.stdout.readline()
        with urllib.request.urlopen(said.split(": ", 1)[1].split()[0]) as answer:
            assert b"<title>ablab: " in answer.read()
        serving.send_signal(signal.SIGINT)
        assert serving.stdout.read() == "The board has ended; the runs are as they were\n"
    assert serving.returncode == 0
