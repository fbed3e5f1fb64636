"""Print lines, progress, tables and JSON. Nothing else in the command line prints. Control characters and line breaks
in what is printed are escaped."""

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
    """The current step, its time and progress. On stderr, so that stdout stays data: on a terminal a live line, with a
    bar if the total is known; elsewhere one line per step, and another every :data:`EVERY` seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._step, self._begin, self._detail = "", clock(), ""
        self._changed, self._over = threading.Event(), False

    def __enter__(self) -> Self:
        from rich.console import Console  # takes longer to import than many models to check
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )  # fmt: skip

        console = Console(stderr=True, highlight=False)
        self._shown: Progress | None = None
        if console.is_terminal:
            self._plain = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
            self._counting = *self._plain, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
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
        """Begin a step."""
        self._step, self._begin, self._detail = line, self._clock(), ""
        self._changed.set()
        if self._shown is None:
            say(line, error=True)
        else:
            self._shown.columns = self._plain
            self._shown.reset(self._task, description=printable(line), total=None)

    def detail(self, what: object) -> None:
        """Set the progress of the step, in words; callable from any thread."""
        self._detail = str(what)
        if self._shown is not None:
            self._shown.update(self._task, description=printable(f"{self._step}: {self._detail}"))

    def count(self, done: int, total: int) -> None:
        """Set the progress of the step, as a count."""
        self._detail = f"{done:,} of {total:,}"
        if self._shown is not None:
            self._shown.columns = self._counting
            self._shown.update(self._task, completed=done, total=total)

    def state(self) -> str:
        """Return the step, its seconds so far, and its progress."""
        elapsed = f"  {self._step}: {self._clock() - self._begin:.0f} s"
        return f"{elapsed}, {self._detail}" if self._detail else elapsed

    def _say_now_and_then(self) -> None:
        while not self._over:
            if self._changed.wait(EVERY):
                self._changed.clear()
            elif self._step:
                say(self.state(), error=True)


def counted(number: int, noun: str) -> str:
    """Return such as "1 error" or "2 errors"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_findings(findings: Iterable[Finding]) -> None:
    """Print findings on stderr, for people."""
    for finding in merged(findings):
        say(*finding.lines(), error=True)


def print_rows(rows: Iterable[Iterable[str]]) -> None:
    """Print rows on stdout, one per line, tab-separated."""
    print("\n".join("\t".join(map(printable, row)) for row in rows))


def print_script(text: str) -> None:
    """Print a script of hwflow's own on stdout, unescaped."""
    print(text)


def print_json(table: Any) -> None:
    """Print JSON on stdout, on one line."""
    print(json.dumps(table))
