"""What can go wrong around a simulation. A wrong *design* is no exception: it is a :class:`~.result.RunResult`."""

from __future__ import annotations

from pathlib import Path


class SimError(Exception):
    """Base class; the message says "X must be Y, not Z"."""


class ManifestError(SimError):
    """The emitted directory is incomplete or its manifest does not say what it must."""


class VectorError(SimError):
    """Vectors do not fit the streams of the manifest (shape, range, missing stream)."""


class SimulatorFailed(SimError):
    """A simulator did not build, crashed, or left no result.

    ``step`` says what was being done, ``log`` is the file with everything it printed.
    """

    def __init__(self, step: str, log: Path, tail: str) -> None:
        self.step = step
        self.log = log
        self.tail = tail
        super().__init__(f"{step}: failed (log: {log})\n{tail}")


def tail_of(text: str, lines: int = 12) -> str:
    """The last ``lines`` lines of a log, indented for a message."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines()[-lines:])
