"""What became of each run is read from the store, and found there under its arm and seed."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from filelock import FileLock

from ablab.run import run
from ablab.store.failures import write_failure
from ablab.store.heartbeat import DEAD, Pulse
from ablab.store.locks import BusyError, locked
from ablab.study.design import Arm
from ablab.study.ledger import State, entry_of, link, register
from ablab.sweep.progress import Board
from ablab.sweep.watch import Watch
from ablab.tracking.console import Console
from tests.report.synthetic import fill


def test_odd_names_stay_within_the_study_and_apart(study, tmp_path):
    cell = study.cells[0]
    cell.planned.folder.path.mkdir(parents=True)
    names = ["..", "a/b", "a_b", "x" * 300, "norm=pre"]
    odd = replace(study, arms=[Arm(n, ()) for n in names], cells=[replace(cell, arm=n) for n in names])
    link(odd)
    link(odd)
    links = [path for path in odd.folder.rglob("*") if path.is_symlink()]
    assert len(links) == 5
    assert all(path.resolve() == cell.planned.folder.path.resolve() for path in links)


def test_states_are_read_from_the_store(study):
    cell = study.cells[0]
    folder = cell.planned.folder
    assert entry_of(cell).state is State.PLANNED
    folder.begin(cell.planned.recipe)
    assert entry_of(cell).state is State.INTERRUPTED
    write_failure(folder.failure, "error", "x", None)
    assert entry_of(cell).state is State.FAILED
    with locked(folder):
        assert entry_of(cell).state is State.RUNNING
    assert entry_of(cell).state is State.FAILED


def test_a_run_elsewhere_is_alive_as_long_as_it_says_so(study):
    cell = study.cells[0]
    folder = cell.planned.folder
    folder.path.mkdir(parents=True)
    pulse = Pulse(host="elsewhere", pid=1, began=0, updated=time.time())
    folder.pulse.write_text(pulse.model_dump_json())
    assert entry_of(cell).state is State.RUNNING
    with pytest.raises(BusyError, match="by process 1 on elsewhere; wait for it"):  # whatever its lock says here
        run(cell.planned, Console(bars=False))
    os.utime(folder.pulse, (time.time() - DEAD - 1,) * 2)
    assert entry_of(cell).state is State.PLANNED


def test_two_launches_at_once_are_both_registered(study):
    """Each waits for the other: what is read and then written must be one step."""
    started = []
    with ThreadPoolExecutor(2) as pool:
        study.folder.mkdir(parents=True)
        with FileLock(study.folder / ".registered.lock"):
            for seeds in ((1, 2), (1, 2, 3)):
                started.append(pool.submit(register, replace(study, seeds=seeds)))
            time.sleep(0.3)
            assert not any(launch.done() for launch in started)
        for launch in started:
            launch.result()
    entries = json.loads((study.folder / "registered.json").read_text())
    assert sorted(entry["seeds"] for entry in entries) == [[1, 2], [1, 2, 3]]


def test_a_launch_of_some_seeds_leaves_the_runs_of_others_to_the_study(study):
    """As long as their arms are the same: what another launch made of an arm is none of it."""

    def listed(cells):
        register(replace(study, cells=cells))
        return {row["run_id"] for row in json.loads((study.folder / "runs.json").read_text())}

    every = {cell.planned.run_id for cell in study.cells}
    assert listed(study.cells) == every
    assert listed(study.cells[:1]) == every
    changed = replace(study.cells[0], words=(*study.cells[0].words, "model.dropout=0.3"))
    others = {cell.planned.run_id for cell in study.cells if cell.arm == changed.arm}
    assert listed([changed, *(cell for cell in study.cells if cell.arm != changed.arm)]) == every - others | {
        changed.planned.run_id
    }


@pytest.mark.parametrize("damaged", ["[{", "[{}]", "[1]", "{}", "7"])
def test_a_damaged_list_of_runs_is_written_anew_and_that_is_said(study, damaged):
    """`{}` has no rows that could be lost."""
    register(study)
    path = study.folder / "runs.json"
    whole = path.read_bytes()
    path.write_text(damaged)
    said = [line for line in register(study) if "runs.json: damaged" in line]
    assert (path.read_bytes() == whole, len(said)) == (True, damaged != "{}")


@pytest.mark.parametrize(("each", "is_said"), [(0.5, True), (0.001, False)])
def test_a_sweep_says_once_how_long_it_takes_as_soon_as_a_run_has_a_speed(each, is_said, study, capsys):
    folder = study.cells[0].planned.folder
    folder.path.mkdir(parents=True)
    watch = Watch(Board(study), Console(bars=False), None, set())
    pulse = Pulse(host="elsewhere", pid=1, began=0, updated=time.time())
    for known in ({}, {"seconds_per_step": each, "total_steps": 1200}, {"seconds_per_step": each, "total_steps": 1200}):
        folder.pulse.write_text(pulse.model_copy(update={"stage": "training", **known}).model_dump_json())
        watch.board.refresh()
        watch.polled()
    runs = len(study.runs)
    minutes = round(each * 1200 * runs / 60)
    line = f"About {minutes} min 0 s of training for {runs} runs, one at a time, at the speed of the first\n"
    assert capsys.readouterr().out == (line if is_said else "")


def test_an_arm_that_is_called_as_a_file_of_the_study_leaves_it_its_name(tmp_path):
    (tmp_path / "x.yaml").write_text(
        "question: q\ndesign: arms\narms: {plain: [], arms.csv: [layerdrop=0.1]}\nbaseline: plain\nseeds: [1]\n"
    )
    errors = {"plain": 0.3, "arms.csv": 0.2}
    study = fill((f"experiment={tmp_path / 'x.yaml'}",), errors, outputs=tmp_path)
    link(study)
    assert sorted(path.name for path in study.folder.iterdir() if path.is_dir()) == ["arms.csv_", "plain"]
    assert (study.folder / "arms.csv_" / "1").readlink().name == study.cells_of("arms.csv")[0].planned.run_id
