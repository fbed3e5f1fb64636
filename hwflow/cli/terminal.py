"""What the command line prints: lines, a line of progress, tables, JSON. Nothing else there prints, and whatever comes
here, nothing leaves that a terminal obeys or that makes two lines of one."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Self

from hwflow.display import printable
from hwflow.errors import Finding, merged

EVERY = 30.0  # seconds


def say(*lines: str, error: bool = False) -> None:
    """Print lines, on stderr if ``error``."""
    print("\n".join(map(printable, lines)), file=sys.stderr if error else sys.stdout, flush=True)


class Steps:
    """What is done now, for how long, and how far it is. On stderr, so that stdout stays data: on a terminal a live
    line, with a bar where it is known how much there is to do; elsewhere a line a step, and one more every
    :data:`EVERY` seconds of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._step, self._begin, self._detail = "", clock(), ""
        self._changed, self._over = threading.Event(), False

    def __enter__(self) -> Self:
        from rich.console import Console  # takes longer to import than many models to check
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        console = Console(stderr=True, highlight=False)
        self._shown: Progress | None = None
        if console.is_terminal:
            self._plain = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
            self._counting = *self._plain, BarColumn(), MofNCompleteColumn()
            self._shown = Progress(*self._plain, console=console, transient=True).__enter__()
            self._task = self._shown.add_task("starting", total=None)
        else:
            threading.Thread(target=self._say_now_and_then, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over = True
        self._changed.set()
        if self._shown is not None:
            self._shown.stop()

    def __call__(self, line: str) -> None:
        """A step begins."""
        self._step, self._begin, self._detail = line, self._clock(), ""
        self._changed.set()
        if self._shown is None:
            say(line, error=True)
        else:
            self._shown.columns = self._plain
            self._shown.reset(self._task, description=printable(line), total=None)

    def detail(self, what: object) -> None:
        """How far the step is, in words; any thread may say it."""
        self._detail = str(what)
        if self._shown is not None:
            self._shown.update(self._task, description=printable(f"{self._step}: {self._detail}"))

    def count(self, done: int, total: int) -> None:
        """So much of the step is done."""
        self._detail = f"{done:,} of {total:,}"
        if self._shown is not None:
            self._shown.columns = self._counting
            self._shown.update(self._task, completed=done, total=total)

    def state(self) -> str:
        """The step, the seconds that it has taken, and how far it is."""
        elapsed = f"  {self._step}: {self._clock() - self._begin:.0f} s"
        return f"{elapsed}, {self._detail}" if self._detail else elapsed

    def _say_now_and_then(self) -> None:
        while not self._over:
            if self._changed.wait(EVERY):
                self._changed.clear()
            elif self._step:
                say(self.state(), error=True)


def counted(number: int, noun: str) -> str:
    """"1 error", "2 errors"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_findings(findings: Iterable[Finding]) -> None:
    """On stderr, as people read them."""
    for finding in merged(findings):
        say(*finding.lines(), error=True)


def print_rows(rows: Iterable[Iterable[str]]) -> None:
    """On stdout, a line each, with a tab between cells."""
    print("\n".join("\t".join(map(printable, row)) for row in rows))


def print_script(text: str) -> None:
    """On stdout, a program of hwflow's own as it is."""
    print(text)


def print_json(table: Any) -> None:
    """On stdout, in a line."""
    print(json.dumps(table))
