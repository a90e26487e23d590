"""A run does not depend on where it was started: a notebook, a login node, a closed terminal, leftovers of a shell."""

import multiprocessing.util
import os
import platform
import signal
import subprocess
import sys
import tempfile
import warnings
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

import pytest
from lightning_fabric.plugins.environments import SLURMEnvironment

from ablab.code.folders import VARIABLE, take_folders, user_confs
from ablab.code.machine import TORCHRUN, place, settle_in
from ablab.commands.cli import main
from ablab.errors import UserError
from ablab.sweep.launchers import local
from ablab.transformer.data.kept import cache_folder
from ablab.transformer.training.module import _quiet
from tests.run.conftest import TINY

SETTLED = "from ablab.code.machine import settle_in; settle_in(); "


def in_shell(program: str, streams: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    """A program in Python, as a shell with such redirections starts it."""
    line = f'exec {sys.executable} -c "$PROGRAM" {streams}'
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PROGRAM": program, **environment}
    return subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("streams", [">&-", "<&- >&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_leads_nowhere_and_no_file_takes_its_number(streams, tmp_path):
    program = (
        f"{SETTLED}import os, sys, subprocess; print('out', flush=True); print('err', file=sys.stderr, flush=True); "
        f"file = open({str(tmp_path / 'file')!r}, 'w'); assert file.fileno() > 2; "
        "assert not sys.stdout.isatty(); "
        "child = subprocess.run([sys.executable, '-c', 'import os; [os.fstat(n) for n in (0, 1, 2)]']); "
        "file.write(str(child.returncode))"
    )
    done = in_shell(program, streams)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "file").read_text() == "0"
    assert (done.stdout, done.stderr) == ("" if ">&-" in streams.replace("2>&-", "") else "out\n", done.stderr)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_an_encoding_lacks_is_written_by_its_code(encoding):
    done = in_shell(SETTLED + "print('a\\u03bbz')", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stdout) == (0, "a\\u03bbz\n")
    assert in_shell(SETTLED + "print('a\\u03bbz')", PYTHONIOENCODING="utf-8").stdout == "a\u03bbz\n"


def test_pictures_are_drawn_whatever_backend_a_notebook_names():
    done = in_shell(
        SETTLED + "import matplotlib; print(matplotlib.get_backend())", MPLBACKEND="module://no_such_backend"
    )
    assert (done.returncode, done.stdout.lower()) == (0, "agg\n"), done.stderr


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
@pytest.mark.parametrize("told", [{}, {"MALLOC_TRIM_THRESHOLD_": "131072"}])
def test_freed_memory_is_kept_for_the_next_step_unless_the_user_says_otherwise(told):
    program = (
        "from ablab.code.machine import keep_memory; keep_memory(); import resource\n"
        "for _ in range(20): blocks = [bytearray(2**21) for _ in range(16)]; del blocks\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt * resource.getpagesize() / 2**25)"
    )
    done = in_shell(program, **told)
    assert done.returncode == 0, done.stderr
    assert (float(done.stdout) < 10) is not bool(told), "20 steps of 32 MiB, each page of which is touched once or anew"


@pytest.mark.parametrize(
    ("rank", "size", "expected"), [("0", "1", (0, 1)), ("0", "2", (0, 2)), ("1", "2", (1, 2)), ("", "", (0, 0))]
)
def test_torchruns_variables_say_which_process_this_is_and_empty_ones_nothing(rank, size, expected, monkeypatch):
    values = [rank, size, *(["127.0.0.1", "29500"] if rank else ["", ""])]
    for name, value in zip(TORCHRUN, values, strict=True):
        monkeypatch.setenv(name, value)
    settle_in()
    assert place() == expected


@pytest.mark.parametrize(("rank", "size"), [("2", "2"), ("-1", "2"), ("a", "2"), ("0", "b"), ("0", "0"), ("0", "1.0")])
def test_what_torchrun_never_says_is_refused(rank, size, monkeypatch):
    for name, value in zip(TORCHRUN, (rank, size, "127.0.0.1", "29500"), strict=True):
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=f"^RANK={rank}, WORLD_SIZE={size}: not torchrun's; allowed: "):
        place()


def test_variables_that_torchrun_has_left_behind_are_one_line(tmp_path):
    left = dict(zip(TORCHRUN, ("0", "2", "127.0.0.1", "29598"), strict=True))
    program = (
        "import sys; from datetime import timedelta; from ablab.transformer.training import workers; "
        "workers.GRACE = 1; from ablab.commands.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    line = [sys.executable, "-c", program, "train", "smoke=true", *TINY, "logger=none", f"outputs={tmp_path}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **left}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    *_, last = done.stderr.splitlines()
    assert last.startswith("error: trainer.devices=1: torchrun's WORLD_SIZE is 2; allowed: 2; where torchrun did not")
    assert "Traceback" not in done.stderr


def test_lightnings_advice_on_srun_is_not_told(monkeypatch, tmp_path):
    (tmp_path / "srun").touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="srun"):
            SLURMEnvironment._validate_srun_used()
        with _quiet():
            SLURMEnvironment._validate_srun_used()


def options_in(folder: Path) -> Path:
    (folder / "norm").mkdir(parents=True)
    (folder / "norm" / "mynorm.yaml").write_text("kind: mynorm\n")
    return folder.resolve()


def test_a_folder_of_options_may_have_a_colon_in_its_name(monkeypatch, tmp_path):
    one, other = options_in(tmp_path / "co:lon" / "my"), options_in(tmp_path / "plain")
    monkeypatch.delenv(VARIABLE, raising=False)
    words, folders = take_folders(["study", "--config-dir", str(one), f"--config-dir={other}"])
    assert words == ["study"]
    monkeypatch.setenv(VARIABLE, folders)
    assert user_confs()[:2] == (one, other)
    third = options_in(tmp_path / "third")
    monkeypatch.setenv(VARIABLE, take_folders(["-cd", str(third)])[1])
    assert user_confs()[:3] == (third, one, other)
    monkeypatch.setenv(VARIABLE, f"{other}{os.pathsep}{third}")  # as in PATH
    assert user_confs()[:2] == (other, third)


@pytest.mark.parametrize("rest", ["", "norm=pre"])
def test_a_folder_of_the_variable_that_is_not_there_is_refused(rest, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(VARIABLE, f"{tmp_path}/nowhere")
    assert main(["study", rest]) == 2
    assert capsys.readouterr().err.startswith(f"error: {VARIABLE}: {tmp_path}/nowhere is no folder; allowed: ")


@pytest.mark.parametrize(("length", "is_short"), [(local.LONGEST, True), (local.LONGEST + 1, False), (118, False)])
def test_sockets_have_room_however_long_the_name_of_the_temporary_folder(length, is_short, tmp_path):
    folder = Path("/tmp", "x" * (length - 5))
    folder.mkdir()
    program = (
        "import os, tempfile; from multiprocessing.connection import Listener; "
        "from ablab.sweep.launchers.local import _short_sockets\n"
        "with _short_sockets(): pass\n"
        "with Listener(family='AF_UNIX') as one: print(os.path.dirname(os.path.dirname(one.address)))\n"
        "print(tempfile.gettempdir())"
    )
    try:
        done = in_shell(program, TMPDIR=str(folder))
    finally:
        folder.rmdir()
    assert done.stdout.splitlines() == [str(folder) if is_short else "/tmp", str(folder)], done.stderr


def test_ctrl_c_while_the_server_starts_is_the_launchers_alone(monkeypatch):
    """The server inherits what is blocked while it is started, and its imports take seconds."""
    found = []

    def blocked():
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])

    monkeypatch.setattr(
        forkserver, "ensure_running", lambda: found.extend((blocked(), signal.getsignal(signal.SIGTERM)))
    )
    monkeypatch.setattr(resource_tracker, "ensure_running", lambda: found.append(blocked()))
    local.start_server([])
    assert found == [False, True, signal.SIG_IGN], "the tracker, when it begins, ends what blocks SIGINT"
    assert not blocked()
    assert multiprocessing.util.get_temp_dir()


def test_without_a_home_folder_a_cache_is_temporary_and_a_path_below_it_is_one_line(monkeypatch, capsys, tmp_path):
    def homeless(path):
        if str(path).startswith("~"):
            raise RuntimeError("Could not determine home directory.")
        return path

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(Path, "expanduser", homeless)
    assert cache_folder("facts").is_relative_to(tempfile.gettempdir())
    texts = ('data.train="~/a"', 'data.valid="~/b"', 'data.test="~/c"', "data.src=en", "data.tgt=de")
    assert main(["study", "data=text", *texts, f"outputs={tmp_path}/o"]) == 2
    assert capsys.readouterr().err == "error: ~: there is no home folder (HOME is not set); allowed: paths without ~\n"
