"""Batches on all cores: a worker with one thread for each core."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

import torch

Job = TypeVar("Job")
Result = TypeVar("Result")


def spread(work: Callable[[Job], Result], jobs: Sequence[Job], device: torch.device) -> Iterator[tuple[Job, Result]]:
    """Each job with its result, in the order in which they end.

    Products of one decoding step are too small for two threads to share: two workers with a thread each are faster than
    one with two. PyTorch lets go of Python's lock while it computes, so that workers can be threads, which share the
    model. A job's result does not depend on who does it. One core, one job or a GPU: one after the other.
    """
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads == 1 or len(jobs) < 2:
        yield from ((job, work(job)) for job in jobs)
        return
    with ThreadPoolExecutor(min(threads, len(jobs)), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            futures = {pool.submit(work, job): job for job in jobs}
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)  # whoever stops listening waits for what is being done, not for the rest
            # What a worker says of itself, threads that are made later would take over.
            torch.set_num_threads(threads)
