"""A second process for what is long and can be cut in pieces."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context


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
        yield executor if started else None
        executor.shutdown(wait=False, cancel_futures=True)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller gets them as well, and ends this process


def _import() -> None:
    import hwflow.codegen.modules  # noqa: F401
