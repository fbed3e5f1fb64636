"""A second process, and how to share with it what is long and comes in pieces."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


@contextmanager
def second_process() -> Iterator[Executor | None]:
    """An executor with one process, which imports what it will need while the caller goes on; None on a machine with a
    single core, or that has no room for another process.

    The process is started afresh, not forked: the caller may have threads. As for everything in Python that does so, a
    script that calls this must do it below ``if __name__ == "__main__":``.
    """
    if (os.cpu_count() or 1) < 2:
        yield None
        return
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=_ignore_interrupts) as executor:
        try:
            executor.submit(_import)
        except OSError:
            started = False
        else:
            started = True
        try:
            yield executor if started else None
        finally:  # what nobody waits for any more is not begun
            executor.shutdown(wait=False, cancel_futures=True)


def shared(
    function: Callable[[Job], Result], jobs: Sequence[Job], executor: Executor | None, weight: Callable[[Job], int]
) -> list[Result]:
    """``function`` of each job, in order, computed here and, one at a time, by ``executor``: whoever is free takes the
    next. The heaviest come first there and last here, so that both end at about the same time.

    Function, jobs and results must be picklable. If the executor's process dies, its jobs are done here.
    """
    if executor is None:
        return [function(job) for job in jobs]
    order = sorted(range(len(jobs)), key=lambda number: -weight(jobs[number]))
    done: dict[int, Result] = {}
    try:
        given = {number: executor.submit(function, jobs[number]) for number in order}
    except BrokenExecutor:
        return [function(job) for job in jobs]
    for number in reversed(order):
        if given[number].cancel():
            done[number] = function(jobs[number])
    for number in order:
        if number not in done:
            try:
                done[number] = given[number].result()
            except BrokenExecutor:
                done[number] = function(jobs[number])
    return [done[number] for number in range(len(jobs))]


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller gets them as well, and ends this process


def _import() -> None:
    import hwflow.codegen.modules
    import hwflow.schedule.exploration  # noqa: F401
