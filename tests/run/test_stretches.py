"""A run that goes on says under what; and under other code, libraries or threads it goes on only when asked to."""

import contextlib
import io
import shutil
import signal
from pathlib import Path

import pytest
import torch

from ablab.errors import BAD_INPUT, DONE, FAILED, INTERRUPTED
from ablab.store.failures import read_failure
from ablab.store.run_folder import RunFolder
from ablab.sweep.launchers.base import Job
from ablab.sweep.launchers.task import perform
from ablab.transformer.stages.callbacks import MetricsCallback
from tests.run.conftest import TINY, typed

LINE = ("smoke=true", "logger=none", "pruning=none", "decoding=greedy", *TINY)
STEP = 4
"""Where it is stopped."""


def stopped_at(step: int, line) -> RunFolder:
    """A run with a checkpoint after this step."""
    look = MetricsCallback.on_log

    def on_log(self, measurements):
        look(self, measurements)
        if measurements.step == step:
            signal.raise_signal(signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MetricsCallback, "on_log", on_log)
        assert typed(*line).code == INTERRUPTED
    return the_run(next(word for word in line if word.startswith("outputs=")).removeprefix("outputs="))


def the_run(outputs) -> RunFolder:
    (found,) = (path for path in (Path(outputs) / "smoke" / "runs").iterdir() if path.is_dir())
    return RunFolder(found)


def altered(run: RunFolder, **changes) -> None:
    """The checkpoint as if its stretch had been another; `definitions` and `components` stand beside the stretches."""
    path = run.checkpoints / "last.pt"
    content = torch.load(path, weights_only=True)
    for beside in ("definitions", "components"):
        content[beside] |= changes.pop(beside, {})
    content["course"]["stretches"][-1] |= changes
    torch.save(content, path)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """A store with a run that was stopped; to be copied."""
    outputs = tmp_path_factory.mktemp("interrupted")
    stopped_at(STEP, (*LINE, f"outputs={outputs}"))
    return outputs


@pytest.fixture
def store(interrupted, tmp_path):
    shutil.copytree(interrupted / "smoke", tmp_path / "smoke")
    return tmp_path


NONE = "2:000000000000"
"""The digest of no code."""

CODE = {"code": NONE, "components": {"spine": NONE}}

OTHER = {
    "code": ({**CODE, "definitions": {"derive": "0" * 8}}, "code differs in derive (training)", "code"),
    "libraries": ({"versions": {"torch": "1.0"}}, "torch 1.0", "library versions"),
}


def refused(*line) -> str:
    """The line that a command ends with."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        assert typed(*line).code == BAD_INPUT
    assert err.getvalue().count("\n") == 1
    return err.getvalue()


def test_stretches_follow_each_other_and_end_at_the_last_step(store):
    assert typed(*LINE, f"outputs={store}").code == DONE
    record = the_run(store).record()
    first, second = record.stretches
    assert (first.first_step, first.last_step) == (1, STEP)
    assert (second.first_step, second.last_step) == (STEP + 1, record.cost.steps)
    assert record.mixed is None


@pytest.mark.parametrize("what", OTHER)
def test_another_condition_is_refused_in_one_line_and_nothing_changes(what, store):
    changes, said, _ = OTHER[what]
    run = the_run(store)
    altered(run, **changes)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    line = refused(*LINE, f"outputs={store}")
    assert line.startswith(f"error: mixed=false: {run.run_id} stands at step {STEP}")
    assert said in line
    assert "allowed: mixed=true" in line
    assert "rerun=true" in line
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("what", OTHER)
def test_asked_to_it_goes_on_and_is_marked(what, store):
    changes, said, mark = OTHER[what]
    altered(the_run(store), **changes)
    done = typed(*LINE, f"outputs={store}", "mixed=true")
    assert done.code == DONE
    assert said in done.out
    assert f"mixed       {mark}" in done.out
    record = the_run(store).record()
    assert record.mixed == mark
    assert [stretch.last_step for stretch in record.stretches] == [STEP, record.cost.steps]
    assert "It was trained with other code or versions" in typed(*LINE, f"outputs={store}").out


def test_what_is_not_refused_is_said_before_it_goes_on(store):
    altered(the_run(store), micro_batches=2, compile=True)
    out = typed(*LINE, f"outputs={store}").out
    line = f"stands at step {STEP}, and micro-batches, compilation changed since: it goes on, and is marked"
    assert line in out.partition("continues from step")[0]
    assert the_run(store).record().mixed == "micro-batches, compilation"


def test_a_checkpoint_that_says_nothing_of_its_code_is_of_other_code(store):
    path = the_run(store).checkpoints / "last.pt"
    content = torch.load(path, weights_only=True)
    del content["course"]["stretches"], content["definitions"], content["components"]
    torch.save(content, path)
    assert "other code (nothing is known of it)" in refused(*LINE, f"outputs={store}")
    assert typed(*LINE, f"outputs={store}", "mixed=true").code == DONE


def test_code_of_an_older_version_of_digests_is_not_said_to_have_changed(store):
    altered(the_run(store), code="0" * 12)
    done = typed(*LINE, f"outputs={store}")
    assert done.code == DONE
    assert f"stands at step {STEP} by code that cannot be compared (digest version 1): it goes on" in done.out
    record = the_run(store).record()
    assert record.mixed is None
    assert [stretch.code[:2] for stretch in record.stretches] == ["00", "2:"]
    again = typed(*LINE, f"outputs={store}").out
    assert "It was trained by code that cannot be compared (digest version 1)" in again
    assert "other code" not in again


@pytest.mark.parametrize("word", ["rerun=true", "rerun=stale"])
def test_it_can_begin_anew(word, store):
    altered(the_run(store), **CODE)
    assert typed(*LINE, f"outputs={store}", word).code == DONE
    (stretch,) = the_run(store).record().stretches
    assert stretch.first_step == 1
    assert len(list((store / "smoke" / "superseded").iterdir())) == 1


def test_the_checkpoints_threads_are_taken_over(store):
    altered(the_run(store), threads=2)
    assert "by 2 threads, not the 1 of trainer.threads=1" in refused(*LINE, f"outputs={store}")
    assert typed(*LINE, "trainer.threads=null", f"outputs={store}").code == DONE
    record = the_run(store).record()
    assert record.runtime["threads"] == 2
    assert [stretch.threads for stretch in record.stretches] == [2, 2]
    assert record.mixed is None


def test_in_a_sweep_the_run_alone_is_refused_and_says_why(store):
    run = the_run(store)
    altered(run, **CODE)
    with contextlib.redirect_stderr(io.StringIO()) as err:
        assert perform((*LINE, f"outputs={store}"), None) == FAILED
    failure = read_failure(run.failure)
    assert failure.kind == "refused"
    assert err.getvalue() == f"error: {failure.line}\n"
    assert "mixed=true" in failure.line


def test_in_a_sweep_a_run_goes_on_with_its_own_threads(store):
    """A launcher has other numbers for other numbers of jobs; one that the user typed holds, and is refused here."""
    altered(the_run(store), threads=2)
    log = str(the_run(store).log)
    line = (*(word for word in LINE if not word.startswith("trainer.threads=")), f"outputs={store}")
    of_user, of_launcher = (Job(the_run(store), "", (*line, *words)).line(3) for words in (["trainer.threads=3"], []))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        assert perform(of_user, log) != DONE
        assert "by 2 threads, not the 3 of trainer.threads=3" in said.getvalue()
        assert perform(of_launcher, log) == DONE
    assert [stretch.threads for stretch in the_run(store).record().stretches] == [2, 2]
