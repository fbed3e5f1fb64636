"""Errors around a simulation. A wrong *design* raises none: it gives a :class:`~.result.RunResult`."""

from __future__ import annotations

from pathlib import Path


class SimError(Exception):
    """Base class; the message says "X must be Y, not Z"."""


class ManifestError(SimError):
    """The emitted directory is incomplete or its manifest is invalid."""


class VectorError(SimError):
    """Vectors do not fit the streams of the manifest (shape, range, missing stream)."""


class SimulatorFailed(SimError):
    """A simulator did not build, crashed, or left no result.

    ``step``: what was being done; ``log``: the file with all output.
    """

    def __init__(self, step: str, log: Path, tail: str) -> None:
        self.step = step
        self.log = log
        self.tail = tail
        super().__init__(f"{step}: failed (log: {log})\n{tail}")


def tail_of(text: str, lines: int = 12) -> str:
    """Return the last ``lines`` lines of a log, indented for a message."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines()[-lines:])
