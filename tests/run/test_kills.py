"""Killed at any moment and continued, a run ends as one that was never stopped: weights, record, curves, files."""

import json
import multiprocessing
import os
import pkgutil
import re
import shutil
import signal
from itertools import count
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from ablab.store.chain import Chain
from ablab.store.metrics import read_metrics
from ablab.store.register import file_digest
from ablab.store.run_folder import RunFolder
from ablab.transformer.training import loop
from tests.run.conftest import TINY, typed

LINE = (
    *TINY,
    "optim.lr=0.03",
    "logger=none",
    "model.decoder_layers=2",
    "model.word_dropout=0.1",
    "trainer.micro_batches=2",
    "data.train_size=300",
    "data.valid_size=8",
    "data.test_size=8",
    "data.vocab_size=200",
    "data.max_tokens=60",
    "optim.batch_tokens=256",
    "schedule.warmup_steps=20",
    "training.max_steps=400",
    "training.valid_every=15",
    "training.patience=3",
    "training.monitor=bleu",
    "training.select=averaged_last",
    "training.average_last=3",
    "training.average_every=7",
    "decoding=greedy",
    "decoding.max_extra_tokens=5",
    "pruning.curves=[decoder]",
)
"""Rates of every kind are on, snapshots are taken between validations, and patience ends training."""

KILLS = {
    # where -> (what is replaced, how often it is passed before, before or after it acts)
    "mid-epoch": ("ablab.transformer.training.module.TrainingModule.training_step", 22, "before"),
    "mid-accumulation": ("ablab.transformer.training.module.TrainingModule.manual_backward", 37, "before"),
    "with a validation due": ("ablab.transformer.training.module.TrainingModule.training_step", 29, "after"),
    "during validation": ("ablab.transformer.translation.validation.Validator._translate", 1, "after"),
    "between snapshot and checkpoint": ("ablab.transformer.training.checkpoints.Checkpoints.save_last", 4, "before"),
    "between validated weights and checkpoint": (
        "ablab.transformer.training.checkpoints.Checkpoints.save_last",
        2,
        "before",
    ),
    "writing a checkpoint": ("torch.save", 1, "after"),
    "between checkpoint and tidying up": ("ablab.transformer.training.checkpoints.Checkpoints.save_last", 5, "after"),
    "between validation and the next step": ("ablab.transformer.training.checkpoints.Checkpoints.save", 2, "after"),
    "telling the callbacks": ("ablab.transformer.stages.callbacks.MetricsCallback.on_validation", 1, "after"),
    "drawing attention": ("ablab.transformer.translation.callbacks.draw_attention", 0, "before"),
    "after the last checkpoint": ("ablab.transformer.training.checkpoints.Checkpoints.choose", 0, "before"),
    "between selection and record": ("ablab.store.run_folder.RunFolder.write_record", 0, "before"),
    "with the record written and not entered": ("ablab.store.register.Register.append", 0, "before"),
    "with the record entered and without its name": ("ablab.store.register.Register.append", 0, "after"),
    "with the record": ("ablab.store.run_folder.RunFolder.write_record", 0, "after"),
    "during the evaluation": ("ablab.store.run_folder.RunFolder.write_evaluation", 0, "before"),
    "writing the evaluation": ("ablab.store.register.write_json", 1, "before"),
    "with the evaluation entered and without its name": ("ablab.store.register.Register.append", 1, "after"),
    "during the curve": ("ablab.store.run_folder.RunFolder.write_evaluation", 1, "after"),
    "before the curve is written": ("ablab.store.run_folder.RunFolder.write_curve", 0, "before"),
    "with the curve entered and without its name": ("ablab.store.register.Register.append", 3, "after"),
    "drawing": ("ablab.transformer.pruning.curve_files.draw", 0, "before"),
}

FRESH = multiprocessing.get_context("forkserver")


def _die(where, passes, when, line, hurried=False):
    """In a process of its own: train until the moment comes, on a clock that hurries to the next second when asked."""
    if hurried:
        loop.time = SimpleNamespace(perf_counter=count(0.0, 1.0).__next__)
    place, _, name = where.rpartition(".")
    owner, calls = pkgutil.resolve_name(place), []
    real = getattr(owner, name)

    def replacement(*arguments, **options):
        calls.append(1)
        if len(calls) > passes and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **options)
        if len(calls) > passes:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, replacement)
    typed(*line)


def killed(moment, line, **options):
    process = FRESH.Process(target=_die, args=(*moment, line), kwargs=options)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def the_run(outputs):
    (found,) = [path for path in (outputs / "runs").iterdir() if path.is_dir()]
    return RunFolder(found)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    FRESH.set_forkserver_preload(
        ["ablab.transformer.translation.prune_curve", "ablab.transformer.stages.train", "tests.run.test_kills"]
    )
    outputs = tmp_path_factory.mktemp("undisturbed")
    assert typed(*LINE, f"outputs={outputs}").code == 0
    return the_run(outputs)


CLOCK = {"seconds", "train_seconds", "tokens_per_second", "sentences_per_second", "speed_ratio"}
APART = {
    *CLOCK,
    "peak_memory_bytes",
    "matmul_flops",
    "ended",
    "provenance",
    "provenance_code",
    "config",
    "runtime",
    "stretches",
    "metrics",
    "timing",
}


def timeless(content):
    if isinstance(content, dict):
        return {key: timeless(value) for key, value in content.items() if key not in APART}
    return [timeless(value) for value in content] if isinstance(content, list) else content


def left(run):
    """All that a run leaves, the clock and the machine apart."""
    found = {str(path.relative_to(run.path)) for path in run.path.rglob("*") if path.is_file()}
    told = {name for name in found if name.endswith(".json")} - {"spent.json"}  # which has seconds alone
    texts = {name: timeless(json.loads((run.path / name).read_text())) for name in told}
    texts |= {name: (run.path / name).read_text() for name in found if name.endswith((".txt", ".yaml"))}
    curves = [{key: row[key] for key in set(row) - CLOCK} for row in read_metrics(run.metrics)]
    return found, texts, curves


@pytest.mark.slow
def test_the_undisturbed_run_ends_by_patience(undisturbed):
    """Or the kills around the end would not be where they say."""
    assert undisturbed.record().reason == "patience"
    assert len(undisturbed.record().validations) >= 4
    (*snapshots, end) = undisturbed.record().selected.steps
    assert len(snapshots) == 2
    assert all(step % 7 == 0 for step in snapshots)
    assert end == undisturbed.record().cost.steps
    assert undisturbed.curves()


@pytest.mark.parametrize(
    "where", [each if each == "mid-epoch" else pytest.param(each, marks=pytest.mark.slow) for each in KILLS]
)
def test_a_kill_leaves_no_trace(where, undisturbed, tmp_path):
    shutil.copytree(undisturbed.outputs / "corpora", tmp_path / "corpora")  # made once
    line = (*LINE, f"outputs={tmp_path}")
    killed(KILLS[where], line)
    assert typed(*line).code == 0
    same(the_run(tmp_path), undisturbed)


@pytest.mark.slow
def test_a_kill_costs_minutes_and_not_the_steps_since_the_last_validation(undisturbed, tmp_path):
    """Training goes on from a step that has no validation and no snapshot."""
    shutil.copytree(undisturbed.outputs / "corpora", tmp_path / "corpora")
    line = (*LINE, f"outputs={tmp_path}")
    moment = ("ablab.transformer.training.module.TrainingModule.training_step", 27, "before")
    killed(moment, (*line, "trainer.checkpoint_every=0.1"), hurried=True)
    said = typed(*line)
    assert said.code == 0
    (step,) = re.findall(r"continues from step (\d+)", said.out)
    assert 21 < int(step) < 28
    same(the_run(tmp_path), undisturbed)


def same(run, undisturbed):
    """Weights, records, curves, files."""
    ours, theirs = (load_file(r.checkpoints / "selected.safetensors") for r in (run, undisturbed))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    for mine, other in zip(left(run), left(undisturbed), strict=True):
        assert mine == other
    assert entered(run) == {name: file_digest(run.path / name) for name in entered(undisturbed)}


def entered(run):
    """The digest of each file that the register has of the run, none of which was ever made twice."""
    history = Chain.of(run.outputs).histories[run.run_id]
    assert (history.replaced, history.made_again, history.times_set_aside) == ([], set(), 0)
    return history.files
