"""Run onnx's C++ code and its reference evaluator safely on a hostile model.

onnx allocates what a model declares, takes exponential time on some models, and crashes on a few (a negative batch_dims
of GatherND, onnx 1.23.2); the evaluator's cost cannot be predicted from a node. Such work therefore runs with limits in
a forked process. Without fork (Windows) it runs in this process, without limits. (`kept_process.py` shares a process.)
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import NoReturn, TypeVar

T = TypeVar("T")

MEMORY = 512 << 20  # bytes beyond those of this process
LEAST = 0.01  # seconds of budget below which work is not started
_STATM = "/proc/self/statm"  # Linux: sizes in pages, the first is the virtual size


class GaveUp(Exception):
    """The work did not finish; the text says why ("it takes more than 1 s", ...). The caller catches this."""


class TimeBudget:
    """Processor time, in seconds, shared by all work under it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.left = seconds


def guarded(work: Callable[[], T], budget: TimeBudget, memory: int = MEMORY) -> T:
    """Run ``work()`` in a separate process within the rest of ``budget``; its result must pickle.

    Raises GaveUp if it takes more time, more than ``memory`` (in bytes, beyond this process's), or crashes; the budget
    is used up then.
    """
    if sys.platform == "win32":  # uncovered: another system
        return work()
    left, budget.left = budget.left, 0.0
    if left < LEAST:
        raise too_long(budget)
    read, write = os.pipe()
    child = 0
    with open(read, "rb") as pipe:
        try:
            with interrupts_blocked():
                try:
                    child = fork(partial(_run, work, read, write, left, memory))
                except OSError:  # no memory or no processes left
                    raise GaveUp("the system has no process left for it") from None
                finally:
                    os.close(write)
            data = pipe.read()
            _, status, usage = os.wait4(child, 0)
        except BaseException:  # interrupted: nothing waits for the child any more
            if child:
                with suppress(OSError):
                    os.kill(child, signal.SIGKILL)
                    os.wait4(child, 0)
            raise
    if os.WIFSIGNALED(status):
        stopped = os.WTERMSIG(status)
        if stopped == signal.SIGPROF:
            raise too_long(budget)
        if stopped == signal.SIGKILL:
            raise GaveUp("the system has stopped it")
        raise GaveUp(f"it crashes ({signal.Signals(stopped).name})")
    if os.WEXITSTATUS(status) != 0 or not data:
        raise GaveUp(f"it takes more than {memory >> 20} MiB of memory")
    budget.left = left - usage.ru_utime - usage.ru_stime
    result: T = pickle.loads(data)  # written by our own fork
    return result


def too_long(budget: TimeBudget) -> GaveUp:
    """Return what to raise where the budget is used up."""
    return GaveUp(f"it takes more than {budget.seconds:.1f} s")


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Keep SIGINT waiting; what is forked never gets it."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def fork(work: Callable[[], NoReturn]) -> int:
    """Return the id of a new process that does ``work()``. Raises OSError if there is no memory or process left."""
    with warnings.catch_warnings():
        # Python 3.12 warns where numpy has started threads; the child calls nothing that waits for one of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        work()
    return child


def limit(seconds: float, memory: int) -> None:
    """End this process, silently, after so much processor time from now on (0: any); limit the memory that it gets."""
    import resource

    faulthandler.disable()  # a crash here becomes a finding in the parent, not a report
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with open(_STATM, encoding="ascii") as statm:
            size = int(statm.read().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = size + memory if hard == resource.RLIM_INFINITY else min(size + memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (OSError, ValueError):  # uncovered: not Linux
        pass


def _run(work: Callable[[], object], read: int, write: int, seconds: float, memory: int) -> NoReturn:
    """Run the child: work, write the result, and exit without the parent's exit handlers and buffers."""
    code = 1
    try:
        os.close(read)
        limit(seconds, memory)
        data = pickle.dumps(work())
        with open(write, "wb") as pipe:
            pipe.write(data)
        code = 0
    except BaseException:  # MemoryError above all; the parent reports it
        code = 1
    finally:
        os._exit(code)
