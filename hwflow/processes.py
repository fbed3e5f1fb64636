"""A second process, and how to share with it what is long and comes in pieces; what suits short processes."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, ParamSpec, TypeVar

from hwflow.sim.programs import core_count, started

P = ParamSpec("P")
Key = TypeVar("Key", bound=Hashable)
Job = TypeVar("Job")
Result = TypeVar("Result")


@contextmanager
def second_process(modules: Sequence[str] = ()) -> Iterator[Executor | None]:
    """Start a one-process executor that imports ``modules`` while the caller goes on; None on a machine with a
    single core, or that has no room for another process. The process ends with the body, whatever it is about then."""
    if core_count() < 2:
        yield None
        return
    ours, theirs = Pipe()
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve({theirs.fileno()})"
    with ours, ExitStack() as running:
        try:
            with theirs:
                running.enter_context(started([sys.executable, "-P", "-c", code], pass_fds=[theirs.fileno()]))
        except OSError:
            yield None
            return
        executor = _SecondProcess(ours)
        for module in modules:
            executor.submit(_import, module)
        try:
            yield executor
        finally:
            running.close()
            executor.shutdown()


class NotSent(BrokenExecutor):
    """A call has changed while it was pickled, here in a thread: jobs share objects, and whoever does one of them
    completes these (cached properties)."""


class _SecondProcess(Executor):
    """Gives jobs to the process at the other end of a connection, one after the other. The standard library's pool of
    processes waits at its end for what nobody wants any more."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._calls: SimpleQueue[tuple[Future[Any], Any] | None] = SimpleQueue()
        self._ended = False
        self._thread = Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[P, Result], /, *args: P.args, **kwargs: P.kwargs) -> Future[Result]:
        if self._ended:
            raise RuntimeError("the second process has ended")
        future: Future[Result] = Future()
        self._calls.put((future, (fn, args, kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut down as an executor whose process has ended: what is left does not end well."""
        self._ended = True
        self._calls.put(None)
        self._thread.join()

    def _pass_on(self) -> None:
        for future, call in iter(self._calls.get, None):
            if not future.set_running_or_notify_cancel():
                continue
            try:
                self._connection.send(call)
                good, result = self._connection.recv()
            except (OSError, EOFError):
                future.set_exception(BrokenExecutor("the second process has ended"))
            except RuntimeError as error:
                future.set_exception(NotSent(f"a call cannot be pickled now: {error}"))
            except Exception as error:  # what cannot be pickled
                future.set_exception(error)
            else:
                future.set_result(result) if good else future.set_exception(result)


def serve(descriptor: int) -> None:
    """Run the second process: do what comes in at a connection until nobody is at its other end."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # as of the command line: cores that a refused design leaves unfinished
    gc.set_threshold(*_RARELY)
    connection = Connection(descriptor)
    with suppress(EOFError, OSError):
        while True:
            function, arguments, named = connection.recv()
            try:
                answer = True, function(*arguments, **named)
            except Exception as error:
                answer = False, error
            connection.send(answer)


def shared(
    function: Callable[[Job], Result], jobs: Sequence[Job], executor: Executor | None, weight: Callable[[Job], int]
) -> list[Result]:
    """Return ``function`` of each job, in order, as :class:`Work` does them."""
    numbered = dict(enumerate(jobs))
    work: Work[int, Job, Result] = Work(function, executor, weight)
    return list(work.results(numbered).values())


class Work(Generic[Key, Job, Result]):
    """``function`` of jobs, computed one at a time by ``executor`` and, when results are asked for, here as well:
    whoever is free takes the next. The heaviest (by ``weight``) come first there and last here, so that both end at
    about the same time.

    Function, jobs and results must be picklable. A job that the executor's process does not get, or dies with, is done
    here.
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
        """Return the results of these jobs alone, in their order: those that were begun (with the same key), and
        others."""
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
    """Run the body with Python's cyclic garbage collector at work a thousandth as often: most of what a command makes
    stays until its end, modules, graphs and netlists, and looking through it again and again took a sixth of the time.
    A large design's netlists must still be freed in between: an object has some hundred bytes."""
    before = gc.get_threshold()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def forget_refused() -> None:
    """Free what a form of a design leaves that was refused, before another one is tried: its graphs refer to
    themselves, and the few objects of a large network have gigabytes of arrays, so that no count of objects tells."""
    gc.collect()


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable Python's cyclic garbage collector: a netlist has very many live objects, and scanning them repeatedly
    takes as long as creating them; a tenth of the time of checking a large model."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_RARELY = (1_000_000, 20, 20)  # objects made until the youngest are looked at, and so on (see Python's gc)


def _import(module: str) -> None:
    import_module(module)
