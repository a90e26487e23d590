"""What a result came from: code, versions, machine. Facts beside a record; no part of a run's identity."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import ablab

PACKAGES = (
    "torch",
    "pytorch-lightning",
    "hydra-core",
    "omegaconf",
    "numpy",
    "sacrebleu",
    "sentencepiece",
    "wandb",
)


@cache
def code_digest() -> str:
    """12 hex digits over the package's own source, however it is installed."""
    package = Path(ablab.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def provenance() -> dict[str, Any]:
    """Commit and uncommitted changes where there is a checkout, versions, and the machine."""
    return {
        "ablab": ablab.__version__,
        "code": code_digest(),
        "commit": _git("rev-parse", "HEAD"),
        "diff": _git("diff", "HEAD", "--", "src", "conf") or None,
        "python": platform.python_version(),
        "versions": versions(),
        "machine": {
            "host": platform.node(),
            "system": platform.platform(),
            "processor": _cpuinfo("model name") or platform.processor(),
            "cores": os.cpu_count(),
        },
    }


@cache
def versions() -> dict[str, str]:
    """Of the libraries that decide results."""
    return {name: found for name in PACKAGES if (found := _version(name))}


def comes_from_elsewhere(recorded: Mapping[str, Any]) -> str | None:
    """Which code or versions a record's provenance names that are not those of now; None where all are."""
    if recorded["code"] != code_digest():
        commit = recorded.get("commit")
        return f"code {recorded['code']}" + (f" (commit {commit[:8]})" if commit else "")
    theirs = recorded.get("versions", {})
    other = [f"{name} {theirs.get(name)}" for name, version in versions().items() if theirs.get(name) != version]
    return ", ".join(other) or None


def fast_bfloat16() -> bool | None:
    """Whether this processor computes in bfloat16 itself; None where the system does not tell.

    Without such instructions PyTorch emulates it, a hundred times slower than single precision.
    """
    flags = _cpuinfo("flags").split()
    return bool({"avx512_bf16", "amx_bf16"} & set(flags)) if flags else None


def _git(*arguments: str) -> str | None:
    checkout = Path(ablab.__file__).parents[2]
    if not (checkout / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpuinfo(key: str) -> str:
    """The first core's entry in Linux's list; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")
