"""The verdict of a run, the same for every simulator, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .manifest import Design


@dataclass(frozen=True)
class Mismatch:
    """The first wrong element. ``index``: its place in the frame's logical tensor."""

    port: str
    frame: int
    beat: int
    lane: int
    expected: int
    got: int
    name: str = ""
    index: tuple[int, ...] = ()

    def __str__(self) -> str:
        at = f", element {list(self.index)} of {self.name!r}" if self.name else ""
        place = f"{self.port}: frame {self.frame}, beat {self.beat}, lane {self.lane}{at}"
        return f"{place}: must be {self.expected}, not {self.got}"


@dataclass(frozen=True)
class Violation:
    """The first violation of the stream protocol.

    ``kind``: ``valid-dropped``, ``data-changed``, ``last-changed``, ``wrong-last``, ``surplus``, ``valid-in-reset``
    (valid in the cycle after reset), ``unknown`` (X or Z where a 0 or 1 must be; event-driven simulators only).
    """

    kind: str
    port: str
    frame: int
    beat: int
    cycle: int
    detail: str

    def __str__(self) -> str:
        return f"{self.port}: frame {self.frame}, beat {self.beat}, cycle {self.cycle}: {self.detail} [{self.kind}]"


@dataclass(frozen=True)
class Waiting:
    """An unfinished stream of a run that hung; frame and beat are the next ones due."""

    port: str
    frame: int
    beat: int


@dataclass(frozen=True)
class Hang:
    """No handshake on any stream for ``idle`` cycles. ``waiting``: the unfinished streams, outputs first."""

    cycle: int
    idle: int
    waiting: tuple[Waiting, ...]

    def __str__(self) -> str:
        places = "; ".join(f"{w.port} waits at frame {w.frame}, beat {w.beat}" for w in self.waiting)
        return f"hang: no handshake for {self.idle} cycles (at cycle {self.cycle}): {places}"


@dataclass(frozen=True)
class Handshakes:
    """Cycle of each frame's first and last handshake on one stream (only frames that got that far)."""

    beats: int
    first: tuple[int, ...]
    last: tuple[int, ...]


@dataclass(frozen=True)
class RunResult:
    """What a run found and measured.

    ``mismatches`` counts the elements that differ from what was expected *or never came out*: 0 exactly if every
    element arrived and was right. ``mismatching_frames`` counts the frames they belong to. Cycle 0 is the first after
    reset; ``cycles`` is the cycle of the last output handshake plus one. ``latency``: from the first input handshake
    to the first output handshake; ``initiation_interval``: between the last output handshakes of the last two frames
    (None with one frame). With gaps and stalls these two are what was measured, not what the design can do.
    ``error``: the design's error output was high at some time, first in ``error_cycle``. ``loads``: of each
    load that was answered the cycles of its first byte and of its answer's last. ``seconds``: build and run.
    """

    frames: int
    mismatches: int
    mismatching_frames: int
    first_mismatch: Mismatch | None
    violations: int
    first_violation: Violation | None
    hang: Hang | None
    error: bool
    error_cycle: int | None
    cycles: int
    initiation_interval: int | None
    latency: int | None
    streams: Mapping[str, Handshakes]
    simulator: str = ""
    loads: tuple[tuple[int, int], ...] = ()
    seed: int = 0
    stall: float = 0.0
    build_seconds: float = 0.0
    run_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether every element is right, without protocol violation, hang or error."""
        return not (self.mismatches or self.violations or self.hang or self.error)

    def complaints(self) -> list[str]:
        """Return one sentence for each thing that is wrong; empty if :attr:`ok`."""
        found: list[str] = []
        if self.first_violation:
            found.append(f"{self.first_violation}" + (f" ({self.violations} in all)" if self.violations > 1 else ""))
        if self.first_mismatch:
            many = f"{self.mismatches} elements wrong or missing in {self.mismatching_frames} of {self.frames} frames"
            found.append(f"{self.first_mismatch} ({many})")
        if self.hang:
            found.append(str(self.hang))
        if self.error:
            found.append(f"error output must stay 0, not 1 (since cycle {self.error_cycle})")
        if not found and self.mismatches:
            found.append(f"{self.mismatches} elements never came out")
        return found

    @classmethod
    def load(cls, path: Path, design: Design, **about: Any) -> RunResult:
        """Read the JSON a simulator wrote; ``about``: simulator, seed, stall, seconds. Raises OSError, ValueError."""
        table = json.loads(path.read_text())
        mismatch, violation, hang = table["first_mismatch"], table["first_violation"], table["hang"]
        if mismatch:
            stream = next(s for s in design.outputs if s.port == mismatch["port"])
            mismatch |= {"name": stream.name, "index": stream.index_of(mismatch["beat"], mismatch["lane"])}
        result = cls(
            frames=table["frames"],
            mismatches=table["mismatches"],
            mismatching_frames=table["mismatching_frames"],
            first_mismatch=Mismatch(**mismatch) if mismatch else None,
            violations=table["violations"],
            first_violation=Violation(**violation) if violation else None,
            hang=Hang(hang["cycle"], hang["idle"], tuple(Waiting(**w) for w in hang["waiting"])) if hang else None,
            error=table["error_cycle"] is not None,
            error_cycle=table["error_cycle"],
            cycles=table["cycles"],
            initiation_interval=table["initiation_interval"],
            latency=table["latency"],
            streams={
                port: Handshakes(s["beats"], tuple(s["first"]), tuple(s["last"]))
                for port, s in table["streams"].items()
            },
            loads=tuple((begin, end) for begin, end in table.get("loads", ()) if end is not None),
        )
        return replace(result, **about)
