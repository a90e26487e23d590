"""How many runs a sweep makes at a time where nobody says: by cores, memory, and what a run gains from more threads."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ablab.code import machine as machine_of
from ablab.commands.cli import main
from ablab.config import compose
from ablab.study.definition import define
from ablab.sweep.launchers import local
from ablab.sweep.launchers.local import OF_MEMORY, Places
from ablab.sweep.progress import Board
from ablab.tasks.registry import task_of_option
from ablab.transformer.stages.task import NUMBERS, memory_of
from hydra_plugins.ablab_hydra.launchers import LocalLauncher

GIB = 2**30
SIZES = Path(__file__).parents[2] / "benchmarks" / "results" / "sizes.json"


@pytest.fixture
def machine(monkeypatch):
    def of(cores, gib):
        monkeypatch.setattr(local, "cores", lambda: cores)
        monkeypatch.setattr(local, "memory", lambda: gib * GIB)

    return of


@pytest.mark.parametrize(
    ("cores", "runs", "jobs", "threads"),
    [
        (1, 6, 1, 1),
        (2, 1, 1, 2),
        (2, 2, 2, 1),
        (2, 3, 1, 2),  # the third alone, on one thread, would outlast what the first two gain
        (2, 4, 2, 1),
        (2, 5, 2, 1),
        (2, 6, 2, 1),
        (16, 3, 3, 5),
        (16, 12, 12, 1),
        (16, 100, 15, 1),  # seven rounds, as with 16
    ],
)
def test_a_sweep_takes_the_number_that_ends_soonest(machine, cores, runs, jobs, threads):
    machine(cores, 1000)
    assert Places.for_runs(runs, GIB, None) == Places(jobs, threads)


def test_no_more_runs_than_memory_has_room_for(machine):
    machine(8, 10)
    need = int(OF_MEMORY * 10 * GIB / 4)
    assert Places.for_runs(8, need, None) == Places(4, 2)
    assert Places.for_runs(8, need + 1, None).jobs < 4
    assert Places.for_runs(8, 100 * GIB, None) == Places(1, 8)


def test_typed_threads_are_kept(machine):
    machine(8, 100)
    assert Places.for_runs(8, GIB, 4) == Places(2, 4)
    assert Places.for_runs(8, GIB, 8) == Places(1, 8)
    assert Places.for_runs(8, GIB, 9) == Places(1, 9)


@pytest.mark.parametrize("row", ["small", "deep", "base", "base in 4 parts", "big in 4 parts"])
def test_the_estimate_of_memory_is_near_what_was_measured(row):
    size, _, parts = row.partition(" in ")
    words = [f"model={size}", "data.vocab_size=32000", f"trainer.micro_batches={parts[:1] or 1}"]
    if size in ("small", "deep"):
        words.append("optim.batch_tokens=4096")
    measured = json.loads(SIZES.read_text())["rows"][row]["gb"] * 1e9
    assert 0.85 < memory_of(compose(words).config) / measured < 1.3


def test_each_table_of_words_needs_memory():
    def needs(*words):
        return memory_of(compose(["model=base", "data.vocab_size=32000", *words]).config)

    one, two, three = needs(), needs("data.joint_vocab=false", "model.tie=target_output"), needs("model.tie=none")
    table = 4 * NUMBERS * 32_000 * 512
    assert two - one == three - two == table
    text = ["task=language_model", "data.vocab_size=32000"]
    tied, untied = (memory_of(compose([*text, f"model.tie={tie}"]).config) for tie in ("all", "none"))
    assert untied - tied == 4 * NUMBERS * 32_000 * compose(text).config.model.d_model


@pytest.mark.parametrize(
    ("files", "cores", "gib"),
    [
        ({}, 8, 4.0),
        ({"cpu.max": "max 100000", "memory.max": "max"}, 8, 4.0),
        ({"cpu.max": "250000 100000", "memory.max": str(2 * GIB)}, 3, 2.0),
        ({"slurm/job/cpu.max": "100000 100000", "slurm/memory.max": str(GIB), "memory.max": str(3 * GIB)}, 1, 1.0),
        ({"other/cpu.max": "100000 100000"}, 8, 4.0),
    ],
)
def test_a_container_or_a_slice_has_fewer_cores_and_less_memory(tmp_path, monkeypatch, files, cores, gib):
    (tmp_path / "own").write_text("0::/slurm/job\n")
    monkeypatch.setattr(machine_of, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(machine_of, "CGROUP", tmp_path)
    monkeypatch.setattr(machine_of.os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(machine_of.os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096}.get(name, 4 * GIB // 4096))
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{content}\n")
    assert (machine_of.cores(), machine_of.memory() / GIB) == (cores, gib)


def test_a_group_of_the_first_version_has_its_quota_in_two_files(tmp_path, monkeypatch):
    (tmp_path / "own").write_text("4:cpu,cpuacct:/docker/ab\n3:memory:/docker/ab\n")
    monkeypatch.setattr(machine_of, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(machine_of, "CGROUP", tmp_path)
    monkeypatch.setattr(machine_of.os, "sched_getaffinity", lambda pid: set(range(8)))
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    for quota, cores in (("-1", 8), ("150000", 2)):
        (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(f"{quota}\n")
        assert machine_of.cores() == cores


def test_each_of_several_processes_needs_memory():
    one, two = (
        compose(["trainer.accelerator=cpu", f"trainer.devices={number}", "trainer.micro_batches=2"]).config
        for number in (1, 2)
    )
    task = task_of_option(one.task)
    assert task.memory(two) == 2 * task.memory(one)
    assert task.memory(compose(["trainer=gpu"]).config) is None


def settled(tmp_path, *words):
    said = []
    launcher = LocalLauncher(None, None, [], 1)
    launcher.settle(Board(define([*words, f"outputs={tmp_path / 'outputs'}", "logger=none"])), said.append)
    return launcher.places, said


def made(tmp_path, *words, threads):
    own = ("seed=1", f"trainer.threads={threads}", f"outputs={tmp_path / 'outputs'}", "logger=none")
    assert main(["train", *words, *own]) == 0


def test_what_is_left_changes_nothing(tmp_path, machine):
    """A run that is made after a stop has as many threads as its study's others."""
    machine(2, 100)
    words = ("norm=pre,post", "seed=1,2", "smoke=true", "pruning=none")
    first = settled(tmp_path, *words)
    assert first[0] == Places(2, 1)
    made(tmp_path, *words[2:], "norm=pre", threads=1)
    assert settled(tmp_path, *words) == first


def test_arms_that_are_added_get_the_threads_of_the_others(tmp_path, machine):
    """Else they would not be made alike. Three runs alone are made one at a time here, and six two at a time."""
    machine(2, 100)
    words = ("seed=1,2,3", "smoke=true", "pruning=none")
    assert settled(tmp_path, *words)[0] == Places(1, 2)
    made(tmp_path, *words[1:], threads=2)
    assert settled(tmp_path, *words, "norm=pre,post")[0] == Places(1, 2)
    machine(1, 100)
    assert settled(tmp_path, *words, "norm=pre,post")[0] == Places(1, 1)


def test_one_line_says_what_was_chosen(tmp_path, machine):
    machine(2, 100)
    places, (line,) = settled(tmp_path, "norm=pre,post", "seed=1,2")
    assert line.startswith("2 runs at a time, 1 thread each: 2 cores, 100 GiB of memory, about 0.8 GiB a run (hydra.")
    assert places == Places(2, 1)
    places, (line,) = settled(tmp_path, "norm=pre,post", "seed=1,2", "trainer.threads=2")
    assert (places, line[:7]) == (Places(1, 2), "One run")


def test_typed_numbers_are_kept_in_silence(tmp_path, machine):
    machine(2, 100)
    said = []
    launcher = LocalLauncher(1, None, [], 1)
    launcher.settle(Board(define(["norm=pre,post", "seed=1,2", f"outputs={tmp_path}"])), said.append)
    assert (launcher.places, said) == (Places(1, 2), [])


def test_each_study_of_a_line_is_chosen_for_by_itself(tmp_path, machine):
    """Tuning comes before the runs proper; after a stop between them, these must have the same threads."""
    machine(2, 100)
    own = (f"outputs={tmp_path / 'outputs'}", "logger=none")
    tuning, proper = (Board(define([*words, *own])) for words in (["norm=pre,post", "seed=1,2"], ["seed=1,2,3"]))
    launcher, said = LocalLauncher(None, None, [], 1), []
    for board, places in ((tuning, Places(2, 1)), (proper, Places(1, 2)), (proper, Places(1, 2))):
        launcher.settle(board, said.append)
        assert launcher.places == places
    assert len(said) == 2


def test_runs_of_a_loop_are_made_one_at_a_time(tmp_path, machine):
    """A floor of four seeds and a proposal of three would have other threads."""
    machine(2, 100)
    study = define(["norm=pre,post", "seed=1,2", f"outputs={tmp_path / 'outputs'}"])
    launcher, said = LocalLauncher(None, None, [], 1), []
    launcher.settle(Board(replace(study, typed=())), said.append)
    assert (launcher.places, said) == (Places(1, 2), [])


def test_claims_about_speed_let_nothing_else_run(tmp_path, machine):
    machine(16, 100)
    places, (line,) = settled(tmp_path, "experiment=ladder")
    assert places == Places(1, 16)
    assert line == "One run at a time: a claim is about a speed or memory, which others at work would change"


def test_a_program_runs_alone_unless_one_says_otherwise(tmp_path, machine, monkeypatch):
    machine(2, 100)
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine", "kind=command"]) == 0
    monkeypatch.chdir(tmp_path / "mine")
    places, (line,) = settled(tmp_path, "experiment=schedule")
    assert places == Places(1, 2)
    assert line == "One run at a time: what memory one needs is unknown (hydra.launcher.jobs=N for another number)"
