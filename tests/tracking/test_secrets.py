"""Keys and passwords that a run can see stand in no file that it leaves, and in nothing that it prints."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.run.conftest import TINY

SECRETS = {
    "WANDB_API_KEY": "f00d" * 10,
    "HF_TOKEN": "hf_0123456789secret",
    "AWS_SECRET_ACCESS_KEY": "aws/0123456789/secret",
    "OPTUNA_STORAGE": "postgresql://me:optunasecret@host/db",
    "http_proxy": "http://me:proxysecret@127.0.0.1:1",
}
IN_ADDRESS = "ghp_0123456789secret"
"""A token in the address of the repository that the run is made in."""

WORDS = (*SECRETS.values(), "optunasecret", "proxysecret", IN_ADDRESS)


def _typed(*words: str, folder: Path, **more: str) -> str:
    command = [sys.executable, "-m", "ablab", *words, "outputs=out"]
    environment = {**os.environ, **SECRETS, **more}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def _contents(path: Path) -> list[bytes]:
    """The content of a file, and of those that are packed in it."""
    found = [path.read_bytes()]
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            found += [packed.read(name) for name in packed.namelist()]
    elif tarfile.is_tarfile(path):
        with tarfile.open(path) as tar:
            found += [file.read() for member in tar if (file := tar.extractfile(member)) is not None]
    return found


@pytest.mark.slow
def test_no_secret_is_printed_or_kept(serve, tmp_path):
    server = serve()
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org"]
    for words in (["init", "-q"], ["remote", "add", "origin", f"https://me:{IN_ADDRESS}@example.org/me/it.git"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    (tmp_path / "mine.yaml").write_text("question: q\nfactors: {norm: [pre, scalenorm]}\nseeds: [1]\n")
    line = ("smoke=true", *TINY, "pruning=none")
    where = {**server.environment, "WANDB_API_KEY": SECRETS["WANDB_API_KEY"]}
    study = ("experiment=mine.yaml", *line)
    said = _typed("train", *line, "logger.mode=online", folder=tmp_path, **where)
    said += _typed("train", "-m", *study, "logger.mode=offline", folder=tmp_path, **where)
    said += _typed("sync", folder=tmp_path, **where)
    said += _typed("report", *study, "resamples=1000", folder=tmp_path)
    said += _typed("pack", *study, folder=tmp_path)
    assert server.runs
    files = [path for path in tmp_path.rglob("*") if path.is_file() and ".git" not in path.parts]
    assert len(files) > 50
    assert any(path.name == "log.txt" for path in files)
    for content in (said.encode(), *(content for path in files for content in _contents(path))):
        for word in WORDS:
            assert word.encode() not in content
