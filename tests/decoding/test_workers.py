"""Jobs on all cores: every one once, whoever does it; failures come through, and threads are as they were."""

import threading
import time

import pytest
import torch

from ablab.transformer.decoding.translator import spread

CPU = torch.device("cpu")


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    torch.set_num_threads(request.param)
    return request.param


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_every_job_has_its_result_once(threads, count):
    found = list(spread(lambda job: job * job, range(count), CPU))
    assert sorted(found) == [(job, job * job) for job in range(count)]
    assert torch.get_num_threads() == threads


def test_a_worker_has_one_thread_and_there_is_one_for_each(threads):
    seen, together = set(), threading.Barrier(threads, timeout=60)

    def work(_):
        together.wait()  # nobody goes on until all are at work
        seen.add((threading.get_ident(), torch.get_num_threads()))

    list(spread(work, range(threads), CPU))
    assert len(seen) == threads
    assert {count for _, count in seen} == {1}


def test_a_failure_comes_through_and_what_waits_is_left(threads):
    done = []

    def work(job):
        if job == 0:
            raise ValueError("job 0")
        time.sleep(0.01)
        done.append(job)

    with pytest.raises(ValueError, match="job 0"):
        list(spread(work, range(500), CPU))
    assert len(done) < 499
    assert torch.get_num_threads() == threads


def test_products_do_not_depend_on_who_computes_them(threads):
    x = torch.randn(300, 300)
    (one,) = (result for _, result in spread(lambda y: y @ y, [x], CPU))
    many = [result for _, result in spread(lambda y: y @ y, [x] * 4, CPU)]
    for product in many[1:]:
        assert torch.equal(product, many[0])
    torch.testing.assert_close(many[0], one)
