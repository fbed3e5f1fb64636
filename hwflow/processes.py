"""A second process, and how to share with it what is long and comes in pieces; what suits short processes."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
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
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=_prepare) as executor:
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
    """``function`` of each job, in order, as :class:`Work` does them."""
    numbered = dict(enumerate(jobs))
    work: Work[int, Job, Result] = Work(function, executor, weight)
    return list(work.results(numbered).values())


class Work(Generic[Key, Job, Result]):
    """``function`` of jobs, computed one at a time by ``executor`` and, when results are asked for, here as well:
    whoever is free takes the next. The heaviest (by ``weight``) come first there and last here, so that both end at
    about the same time.

    Function, jobs and results must be picklable. If the executor's process dies, its jobs are done here.
    """

    def __init__(
        self, function: Callable[[Job], Result], executor: Executor | None, weight: Callable[[Job], int]
    ) -> None:
        self._function = function
        self._executor = executor
        self._weight = weight
        self._given: dict[Key, Future[Result]] = {}

    def begin(self, jobs: Mapping[Key, Job]) -> None:
        """Let the executor begin; what it was given before and is not among the ``jobs`` is not wanted any more."""
        for key in self._given.keys() - jobs.keys():
            self._given.pop(key).cancel()
        if self._executor is None:
            return
        try:
            new = [key for key in jobs if key not in self._given]
            for key in sorted(new, key=lambda key: -self._weight(jobs[key])):
                self._given[key] = self._executor.submit(self._function, jobs[key])
        except (BrokenExecutor, RuntimeError):  # its process died, or it was shut down
            self._executor = None

    def results(self, jobs: Mapping[Key, Job]) -> dict[Key, Result]:
        """Of these jobs alone, in their order: those that were begun (with the same key), and others."""
        self.begin(jobs)
        given = self._given
        done = {key: self._function(jobs[key]) for key in reversed([*given]) if given[key].cancel()}
        for key, job in jobs.items():
            if key not in done:
                try:
                    done[key] = given[key].result() if key in given else self._function(job)
                except BrokenExecutor:
                    done[key] = self._function(job)
        return {key: done[key] for key in jobs}


@contextmanager
def rarely_collected() -> Iterator[None]:
    """With Python's cyclic garbage collector at work a hundredth as often: most of what a command makes stays until its
    end, modules, graphs and netlists, and looking through it again and again took a tenth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


_RARELY = (100_000, 20, 20)  # objects made until the youngest are looked at, and so on (see the standard library's gc)


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller gets them as well, and ends this process
    gc.set_threshold(*_RARELY)


def _import() -> None:
    import hwflow.codegen.modules
    import hwflow.schedule.exploration  # noqa: F401
