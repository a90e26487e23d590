"""The Ray launcher: runs as tasks of a cluster. The store is a folder that all nodes see under the same path."""

import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from traceback import format_exception
from typing import Any

from ablab.code.machine import cores
from ablab.errors import DONE, FAILED, INTERRUPTED, LostError, UserError, choices
from ablab.store.heartbeat import JOB
from ablab.store.run_folder import RunFolder
from ablab.sweep.launchers.base import POLL_SECONDS, Cause, Ending, Job, Launcher, cause_of
from ablab.sweep.launchers.local import LocalProcesses, Places

ASK_EVERY = 5.0
"""Seconds between two looks at the head of the cluster."""

AWAY = 30.0
"""Seconds without an answer after which the head counts as lost. Ray would end this process after 60."""

NO_TOKEN = "the cluster asks for a token; set RAY_AUTH_MODE=token, and the token (~/.ray/auth_token, RAY_AUTH_TOKEN)"


@dataclass(frozen=True)
class Resources:
    """Resources of one run. `cpus` is also its number of threads; `retries`: after the loss of a node or process."""

    cpus: float
    gpus: float
    memory_gb: float | None
    retries: int

    @classmethod
    def of(cls, cpus: float, gpus: float, memory_gb: float | None, retries: int, jobs: int | None) -> "Resources":
        """Check the settings before anything starts; UserError for a bad one."""
        if find_spec("ray") is None:
            raise UserError("hydra/launcher=ray: Ray is not installed; install it with pip install 'ablab[ray]'")
        if cpus <= 0:
            raise UserError(f"hydra.launcher.cpus={cpus:g}: allowed: numbers above 0")
        if gpus < 0 or (gpus > 1 and gpus % 1):
            raise UserError(f"hydra.launcher.gpus={gpus:g}: allowed: 0, a share of one, or whole ones")
        if memory_gb is not None and memory_gb <= 0:
            raise UserError(f"hydra.launcher.memory_gb={memory_gb:g}: allowed: numbers above 0")
        if retries < 0:
            raise UserError(f"hydra.launcher.retries={retries}: allowed: 0 and more")
        if jobs is not None and jobs < 1:
            raise UserError(f"hydra.launcher.jobs={jobs}: allowed: 1 and more")
        return cls(cpus, gpus, memory_gb, retries)

    @property
    def threads(self) -> int:
        """Threads of one run."""
        return max(1, int(self.cpus))

    def wanted(self) -> dict[str, float]:
        """Return what a node must have, under Ray's names; memory in bytes."""
        memory = 0 if self.memory_gb is None else int(self.memory_gb * 1e9)
        return {key: value for key, value in (("CPU", self.cpus), ("GPU", self.gpus), ("memory", memory)) if value}

    def options(self) -> dict[str, Any]:
        """Return the resources as Ray's options. A task's process ends with it, so that each run has a fresh one."""
        memory = {} if self.memory_gb is None else {"memory": int(self.memory_gb * 1e9)}
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, "max_retries": self.retries, "max_calls": 1, **memory}


class RayTasks(Launcher):
    """Executes each run as a task; Ray schedules it, and restarts it if its node is lost."""

    def __init__(
        self, address: str | None, resources: Resources, jobs: int | None, runtime_env: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self.address, self.resources, self.jobs, self.runtime_env = address, resources, jobs, runtime_env
        self.one_machine = address is None
        self._tasks: dict[Any, Job] = {}
        self._head: tuple[str, int] | None = None
        self._asked = self._answered = time.monotonic()

    def open(self) -> AbstractContextManager[object]:
        """Connect to the cluster, or start one on this machine for the duration of the sweep."""
        import ray

        stack = ExitStack()
        if not ray.is_initialized():
            with _same_sigterm():
                _connect(self.address, self.runtime_env)
            stack.callback(ray.shutdown)
        self._head = _head()
        self._check_capacity(ray.nodes())
        self._work = ray.remote(**self.resources.options())(_work)
        return stack

    def _check_capacity(self, nodes: Iterable[Mapping[str, Any]]) -> None:
        """Raise UserError if no node has all that a run wants: it would wait for one forever."""
        wanted = self.resources.wanted()
        there = [{key: node["Resources"].get(key, 0) for key in wanted} for node in nodes if node["Alive"]]
        if not any(all(node[key] >= wanted[key] for key in wanted) for node in there):
            most = {key: max((node[key] for node in there), default=0) for key in wanted}
            raise UserError(
                f"hydra.launcher: {_listed(wanted)}: no node has that (at most {_listed(most)}); it would wait forever"
            )

    @property
    def running(self) -> Sequence[Job]:
        """Submitted tasks, whether Ray has started them or not."""
        return list(self._tasks.values())

    @property
    def room(self) -> int:
        """Unlimited unless `jobs` is set: Ray queues tasks that do not fit yet."""
        return sys.maxsize if self.jobs is None else self.jobs - len(self._tasks)

    def start(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            log, here = str(job.folder.log.resolve()), str(Path.cwd())
            self._tasks[self._work.remote(list(job.words), log, here, _carried(), self.resources.threads)] = job

    def ended(self) -> Iterator[Ending]:
        """Yield the tasks that have ended; LostError if the head of the cluster stays away."""
        import ray

        self._check_head()
        done, _ = ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=POLL_SECONDS, fetch_local=False)
        for task in done:
            yield self._ending(task, self._tasks.pop(task))

    def _check_head(self) -> None:
        """Raise LostError if nothing answers at the head's address: Ray would end this process without our word."""
        now = time.monotonic()
        if self._head is None or now - self._asked < ASK_EVERY:
            return
        self._asked = now
        try:
            socket.create_connection(self._head, timeout=ASK_EVERY).close()
            self._answered = now
        except OSError as error:
            if now - self._answered > AWAY:
                where = ":".join(map(str, self._head))
                raise LostError(
                    f"hydra.launcher: the head of the Ray cluster, {where}, does not answer ({error}); the runs end "
                    "with it, each with a checkpoint, and the same line, typed again, goes on"
                ) from None

    def _ending(self, task: Any, job: Job) -> Ending:
        import ray
        from ray.exceptions import (
            OutOfMemoryError,
            RayError,
            RayTaskError,
            RuntimeEnvSetupError,
            TaskCancelledError,
        )

        try:
            code = ray.get(task)
        except TaskCancelledError:
            return Ending(job, INTERRUPTED)
        except OutOfMemoryError as error:
            return Ending(job, FAILED, Cause("memory", _first_line(error)))
        except RayTaskError as error:  # before the run began: it catches its own
            return Ending(job, FAILED, Cause("error", f"{type(error.cause).__name__}: {_first_line(error.cause)}"))
        except RuntimeEnvSetupError as error:
            return Ending(job, FAILED, Cause("error", f"hydra.launcher.runtime_env: {_last_line(error)}"))
        except RayError as error:
            return Ending(job, FAILED, Cause("killed", _first_line(error)))
        return Ending(job, code, None if code == DONE else cause_of(code, job.folder.log))

    def end(self, *, kill: bool) -> None:
        """Cancel all tasks: Ray interrupts running ones, as Ctrl-C does, and drops waiting ones."""
        import ray

        for task in self._tasks:
            ray.cancel(task, force=kill)


@contextmanager
def _same_sigterm() -> Iterator[None]:
    """Handle SIGTERM after the block as before it: Ray lets it end the process, and with it all runs at once."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _connect(address: str | None, runtime_env: Mapping[str, Any]) -> None:
    import ray

    if address is not None and (place := re.fullmatch(r"(?:ray://)?\[?([^\]]+?)\]?:(\d+)", address)):
        try:  # Ray itself would retry for minutes
            socket.create_connection((place[1], int(place[2])), timeout=10).close()
        except OSError as error:
            raise UserError(f"hydra.launcher.address={address}: no cluster answers ({error})") from None
    logging.getLogger("ray._private.authentication").setLevel(logging.ERROR)  # a warning at every start, for no fault
    # No usage data leaves the machine unless the user asks for it.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    here: dict[str, Any] = {"address": address or "local"}
    if runtime_env:
        here["runtime_env"] = dict(runtime_env)
    if address is None:
        here |= {"include_dashboard": False, "num_cpus": cores()}
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, configure_logging=False, **here)
    except (ConnectionError, ValueError, RuntimeError) as error:
        if "AuthenticationError" in "".join(format_exception(error)):
            raise UserError(f"hydra.launcher.address={address}: {NO_TOKEN}") from None
        raise UserError(f"hydra.launcher.address={address}: no cluster answers ({_first_line(error)})") from None


def _head() -> tuple[str, int] | None:
    """Return where the head of the cluster listens; None where a client in between knows it alone."""
    import ray

    with suppress(AttributeError, RuntimeError):
        if found := re.fullmatch(r"\[?(.+?)\]?:(\d+)", str(ray.get_runtime_context().gcs_address)):
            return found[1], int(found[2])
    return None


def _as_typed(value: Any) -> Any:
    """Return a number or a truth value as the text that was typed: variables are texts."""
    return str(value).lower() if isinstance(value, bool | int | float) else value


def checked(runtime_env: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an environment for Ray's processes if Ray takes it; UserError otherwise."""
    if runtime_env:
        from ray.runtime_env import RuntimeEnv

        known = sorted(name for name in RuntimeEnv.known_fields if not name.startswith("_"))
        if unknown := sorted(runtime_env.keys() - set(known)):
            raise UserError(f"hydra.launcher.runtime_env.{unknown[0]}: no such field; {choices(unknown[0], known)}")
        if isinstance(variables := runtime_env.get("env_vars"), Mapping):
            typed = {name: _as_typed(value) for name, value in variables.items()}
            runtime_env = {**runtime_env, "env_vars": typed}
        try:
            RuntimeEnv(**runtime_env)
        except (TypeError, ValueError) as error:
            raise UserError(f"hydra.launcher.runtime_env: {_first_line(error)}") from None
    return runtime_env


def _carried() -> dict[str, str]:
    """Return the environment variables that a run needs wherever it runs, such as where its tracker is."""
    return {key: value for key, value in os.environ.items() if key.startswith(("ABLAB_", "WANDB_", "MLFLOW_"))}


def _listed(resources: Mapping[str, float]) -> str:
    """Return resources under the launcher's names, such as `cpus=2, memory_gb=8`."""
    names = {"CPU": ("cpus", 1), "GPU": ("gpus", 1), "memory": ("memory_gb", 1e9)}
    return ", ".join(f"{name}={resources[key] / unit:.4g}" for key, (name, unit) in names.items() if key in resources)


def _work(words: Sequence[str], log: str, folder: str, environment: Mapping[str, str], threads: int) -> int:
    """Execute a run from a process of the cluster, in the user's working folder, with all output in the run's log.

    The run is a process of its own, as of the local launcher. Ray kills its workers within milliseconds when the
    launcher, the head or the node's daemon is lost; the run outlives its worker by a checkpoint.
    """
    import ray

    os.chdir(folder)
    os.environ.update({**environment, JOB: ray.get_runtime_context().get_task_id() or ""})
    run = RunFolder(Path(log).parent)
    run.path.mkdir(parents=True, exist_ok=True)
    run.log.touch()
    del sys.modules["__main__"].__file__  # multiprocessing would import Ray's script into the run
    (ending,) = LocalProcesses(Places(1, threads)).run([Job(run, run.run_id, words)])
    return ending.code


def _last_line(error: BaseException) -> str:
    return " ".join(str(error).strip().split("\n")[-1].split())


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).strip().split("\n")[0].split())
