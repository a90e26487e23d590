"""Shapes are checked in tests marked `shapes`: there, every annotation of the model and of decoding is a law."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from jaxtyping import config as jaxtyping
from jaxtyping import install_import_hook

from tests.long_tests import mark

install_import_hook(["ablab.transformer.model", "ablab.transformer.decoding"], "beartype.beartype")
# As in an activated environment: some systems have no `python`, which commands of studies name.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
torch.set_num_threads(1)
settings.register_profile("ablab", deadline=None, derandomize=True)
settings.load_profile("ablab")


@pytest.hookimpl(tryfirst=True)  # before what -m leaves out is left out
def pytest_collection_modifyitems(items):
    mark(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    # A checked model takes twice the time; so a few laws check, which together run every arm in every mode.
    jaxtyping.update("jaxtyping_disable", item.get_closest_marker("shapes") is None)


def pytest_collection_finish():
    """Thousands of collected tests live to the end; looking through them for garbage takes a twentieth of the time."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(autouse=True)
def _fresh_default_generator():
    """No test depends on which ran before it."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _one_thread():
    """A run in this process leaves its number of threads behind: a fixture's to its test, a test's to the next."""
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _hears_ctrl_c():
    """A shell that starts the tests in the background may have told them to ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _waits_for_no_disk():
    """No test here loses power, and thousands of files are written; those that see a failing disk bring their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


def pytest_terminal_summary(terminalreporter):
    """A skip is silent, so their number is said; continuous integration bounds it."""
    skipped = len(terminalreporter.stats.get("skipped", []))
    bound = os.environ.get("ABLAB_MOST_SKIPS")
    terminalreporter.write_line(f"{skipped} tests were skipped" + (f", of at most {bound}" if bound else ""))


def pytest_sessionfinish(session, exitstatus):
    """More skips than are expected where tests run regularly are a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    bound = os.environ.get("ABLAB_MOST_SKIPS")
    if reporter is not None and bound and len(reporter.stats.get("skipped", [])) > int(bound) and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
