"""Shares of a simulation's frames that several programs simulate side by side, and their verdicts as one.

Each share is a run of its own, from a reset: what a frame leaves behind reaches the frames of its share alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from .result import Handshakes, RunResult


def shares(frames: int, count: int) -> list[range]:
    """Divide ``frames`` into at most ``count`` ranges whose lengths differ by at most one, none shorter than 2: an
    interval needs two frames."""
    count = max(1, min(count, frames // 2))
    ends = [frames * k // count for k in range(count + 1)]
    return [range(start, stop) for start, stop in pairwise(ends)]


def merged(results: Sequence[RunResult]) -> RunResult:
    """Return the verdict on the frames of all ``results``, one share after the other.

    The first mismatch, violation, hang and error are those of the first share with any, at the frame among all frames,
    but the cycle of the share's own run. Interval and latency are the first share's, or of the first share that
    measured others. The cycles of ``streams`` count on from share to share; ``cycles`` is their sum.
    """
    first, *rest = results
    whole = first
    for later in rest:
        whole = _followed(whole, later)
    intervals = [r.initiation_interval for r in rest if r.initiation_interval != first.initiation_interval]
    latencies = [r.latency for r in rest if r.latency != first.latency]
    return replace(
        whole,
        initiation_interval=intervals[0] if intervals else first.initiation_interval,
        latency=latencies[0] if latencies else first.latency,
    )


def _followed(before: RunResult, later: RunResult) -> RunResult:
    """Return two verdicts as one."""
    frames, mismatch, violation, hang = before.frames, later.first_mismatch, later.first_violation, later.hang
    if mismatch is not None:
        mismatch = replace(mismatch, frame=frames + mismatch.frame)
    if violation is not None:
        violation = replace(violation, frame=frames + violation.frame)
    if hang is not None:
        hang = replace(hang, waiting=tuple(replace(w, frame=frames + w.frame) for w in hang.waiting))
    return replace(
        before,
        frames=frames + later.frames,
        mismatches=before.mismatches + later.mismatches,
        mismatching_frames=before.mismatching_frames + later.mismatching_frames,
        first_mismatch=before.first_mismatch or mismatch,
        violations=before.violations + later.violations,
        first_violation=before.first_violation or violation,
        hang=before.hang or hang,
        error=before.error or later.error,
        error_cycle=later.error_cycle if before.error_cycle is None else before.error_cycle,
        cycles=before.cycles + later.cycles,
        streams={port: _joined(one, later.streams[port], before.cycles) for port, one in before.streams.items()},
    )


def _joined(before: Handshakes, later: Handshakes, cycles: int) -> Handshakes:
    first, last = (tuple(cycle + cycles for cycle in each) for each in (later.first, later.last))
    return Handshakes(before.beats + later.beats, before.first + first, before.last + last)
