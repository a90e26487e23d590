"""Processes that share the work on a large text: each calls functions of this package for one part after another.

They are new interpreters that talk through pipes, not forks: threads of torch, CUDA and OpenMP do not survive a fork,
and the processes of `multiprocessing` would import the user's script again. They end when their pipe closes, however
this process ends.
"""

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from ablab.code.machine import cores
from ablab.errors import LostError

Task = TypeVar("Task")
Result = TypeVar("Result")

MOST = 16
"""Processes at most: one of them writes, and more would wait for it."""

WORTH = 2
"""Parts of a text for each process, below which starting one takes longer than it saves."""


class Processes:
    """As many processes as there are cores, or as `parts` of a text are worth; for a short text this one alone."""

    def __init__(self, parts: int) -> None:
        count = min(cores(), MOST, parts // WORTH)
        self.count = count if count > 1 else 0
        self._all: list[subprocess.Popen[bytes]] = []
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(max(1, self.count))  # each waits for the answer of one process

    def __enter__(self) -> "Processes":
        try:
            for _ in range(self.count):
                self._all.append(_started())
                self._idle.put(self._all[-1])
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results in the order of the tasks, of which few are under way at any time."""
        pending: deque[Future[Result]] = deque()
        for task in tasks:
            if not self.count:
                yield function(task)
                continue
            pending.append(self._threads.submit(self._asked, function, task))
            if len(pending) > 2 * self.count:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

    def call(self, function: Callable[[Task], Result], task: Task) -> Result:
        """Return one result."""
        (result,) = self.map(function, [task])
        return result

    def _asked(self, function: Callable[[Task], Result], task: Task) -> Result:
        process = self._idle.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            pickle.dump((function, task), process.stdin, protocol=5)
            process.stdin.flush()
            succeeded, answer = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = process.wait()
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            raise LostError(f"a process that prepared the corpus was ended {how}; is there memory enough?") from None
        finally:
            self._idle.put(process)
        if not succeeded:
            raise answer
        result: Result = answer
        return result

    def _end(self) -> None:
        for process in self._all:
            process.kill()
        for process in self._all:
            process.wait()
        self._threads.shutdown(cancel_futures=True)
        for process in self._all:
            for pipe in (process.stdin, process.stdout):
                _close(pipe)


def _close(pipe: Any) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        return


def _started() -> subprocess.Popen[bytes]:
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "ablab.transformer.data.processes"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **path})


def serve() -> None:
    """Answer what comes through the pipe. Ctrl-C is for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    asked: queue.SimpleQueue[tuple[Callable[[Any], Any], Any]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(asked,), daemon=True).start()
    while True:
        function, task = asked.get()
        try:
            answer: tuple[bool, Any] = True, function(task)
        except Exception as error:
            answer = False, error
        pickle.dump(answer, answers, protocol=5)
        answers.flush()


def _receive(asked: "queue.SimpleQueue[tuple[Callable[[Any], Any], Any]]") -> None:
    """Pass on what comes through the pipe, and end the process when it closes, even in the middle of a task."""
    # Not sys.stdin: an interpreter that ends would wait for a lock that this thread holds.
    pipe = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    try:
        while True:
            asked.put(pickle.load(pipe))
    except EOFError:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    serve()
