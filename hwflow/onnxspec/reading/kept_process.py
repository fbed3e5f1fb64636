"""Guarded calls in a forked process that is kept for the next ones.

A fork, and the copies of its pages, cost as much as the process is large: 20 ms at 300 MiB. A process that reads many
models makes many, so its calls share one.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection, Pipe
from threading import Lock
from typing import Any, NoReturn, TypeVar

from hwflow.onnxspec.reading.guard import LEAST, MEMORY, TimeBudget, fork, guarded, interrupts_blocked, limit, too_long

T = TypeVar("T")

_FEW = 8  # calls of this process that get one of their own: beside a kept one, pages that change are copied


def guarded_call(function: Callable[..., T], arguments: tuple[Any, ...], budget: TimeBudget) -> T:
    """Call as :func:`hwflow.onnxspec.reading.guard.guarded` of ``function(*arguments)``; both and the result must
    pickle.

    What ends the kept process, other than by its time, is called again in one of its own: no model suffers from what
    another one did.
    """
    with _state.lock:
        _state.calls += 1
        if _state.calls > _FEW and budget.left >= LEAST and sys.platform != "win32":
            with suppress(_Ended, OSError):  # OSError: no process left for it; guarded says so
                _state.kept = _state.kept or _Kept()
                return _state.kept.call(function, arguments, budget)
    return guarded(partial(function, *arguments), budget)


class _Ended(Exception):
    """The kept process is no more."""


class _Kept:
    """A process that waits for calls."""

    def __init__(self) -> None:
        self.connection, theirs = Pipe()
        with theirs, interrupts_blocked():
            self._process = fork(partial(_serve, theirs))

    def call(self, function: Callable[..., T], arguments: tuple[Any, ...], budget: TimeBudget) -> T:
        """Call a function; raise GaveUp after more time than the budget has, :class:`_Ended` after any other end."""
        result: T
        try:
            self.connection.send((function, arguments, budget.left))
            result, used = self.connection.recv()
        except (EOFError, OSError):
            if self.end() != signal.SIGPROF:
                raise _Ended from None
            budget.left = 0.0
            raise too_long(budget) from None
        except BaseException:  # interrupted: the answer would be taken for the next one
            self.end()
            raise
        budget.left -= used
        return result

    def end(self) -> int:
        """End the process; return the signal that it ended by, 0 if by none."""
        _state.kept = None
        self.connection.close()
        status = 0
        with suppress(OSError):
            os.kill(self._process, signal.SIGKILL)
            _, status = os.waitpid(self._process, 0)
        return os.WTERMSIG(status)


def _serve(connection: Connection) -> NoReturn:
    """Run the child: answer calls until nobody is at the other end. What a call raises ends it."""
    try:
        _let_go(connection.fileno())
        limit(0, MEMORY)
        while True:
            function, arguments, seconds = connection.recv()
            before = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, seconds)
            result = function(*arguments)
            signal.setitimer(signal.ITIMER_PROF, 0)
            connection.send((result, time.process_time() - before))
    finally:
        os._exit(0)


def _let_go(needed: int) -> None:
    """Close all else that was open in the parent: who reads a pipe to its end must not wait for this process."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in {0, 1, 2} - {needed}:
        os.dup2(nothing, standard)
    for before, after in pairwise(sorted({2, needed, os.sysconf("SC_OPEN_MAX")})):
        os.closerange(before + 1, after)


class _State:
    """Of this process."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.calls = 0
        self.kept: _Kept | None = None


_state = _State()


def _forget() -> None:
    """Forget the process in a fork: the kept process is the parent's, which must be the only one at its other end."""
    global _state
    if _state.kept is not None:
        _state.kept.connection.close()
    _state = _State()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)
