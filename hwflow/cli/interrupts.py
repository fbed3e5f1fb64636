"""Handle Ctrl-C at any time: a command ends at once, with all it started, and prints one line.

Until :class:`Interrupts` is active Python reports Ctrl-C in its own way, so nothing that takes milliseconds is imported
before.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from types import FrameType
    from typing import Self

CODE = 128 + signal.SIGINT  # exit code, as shells have it
_ONCE_MORE = 0.01  # seconds


class Interrupts:
    """Raises KeyboardInterrupt once, in the main thread, and ends running programs; further Ctrl-C do not disturb the
    cleanup. Does nothing where Ctrl-C is ignored, or not handled by Python.

    ``for_good``: ignore Ctrl-C after the body, too. ``came``: whether there was one, whatever became of the exception.
    """

    def __init__(self, for_good: bool) -> None:
        self.came = False
        self._for_good = for_good

    def __enter__(self) -> Self:
        self._before = signal.getsignal(signal.SIGINT)
        self._unraisable = sys.unraisablehook
        self._active = self._before is signal.default_int_handler
        if self._active:
            try:
                signal.signal(signal.SIGINT, self._raise)
                sys.unraisablehook = self._not_raised
            except ValueError:  # not the main thread: another one looks after it
                self._active = False
        return self

    def __exit__(self, *error: object) -> None:
        if self._active:
            signal.signal(signal.SIGINT, signal.SIG_IGN if self._for_good else self._before)
            sys.unraisablehook = self._unraisable
            self._programs("go_on")

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._programs("stop")
        raise KeyboardInterrupt

    def _not_raised(self, what: sys.UnraisableHookArgs) -> None:
        """Raise it again a little later: it came in a finalizer, which no exception leaves."""
        if what.exc_type is not KeyboardInterrupt:
            self._unraisable(what)
            return
        from threading import Timer

        try:
            signal.signal(signal.SIGINT, self._raise)
            Timer(_ONCE_MORE, os.kill, (os.getpid(), signal.SIGINT)).start()
        except KeyboardInterrupt:  # on a busy machine the time is over before the start is
            self._not_raised(what)

    def _programs(self, function: str) -> None:
        programs = sys.modules.get("hwflow.sim.programs")  # where nobody has imported it there are no programs
        if programs is not None and hasattr(programs, function):
            getattr(programs, function)()
