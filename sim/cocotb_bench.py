"""The cocotb test of a whole emitted design: drive vectors, check every element and the protocol, measure.

Runs inside the simulator. What to do comes as JSON in the file named by the environment variable HWFLOW_BENCH: "out"
(emitted directory), "vectors" (.npz), "stall", "gap", "seed", "watchdog", "clock_ns", "result" (JSON to write).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from .cocotb_axis import AxisMonitor, AxisSink, AxisSource, Pins, Unknown, step
from .manifest import Stream, load_design
from .result import RunResult, Violation
from .vectors import Array, element, load_vectors, pack

RESET_CYCLES = 4
TAIL_CYCLES = 64  # run on after the last beat: nothing more may come


def words_of(stream: Stream, beats: Array) -> list[bytes]:
    """Return all ``tdata`` words of a stream, frame after frame."""
    raw, size = pack(stream, beats).tobytes(), stream.tdata_bytes
    return [raw[i : i + size] for i in range(0, len(raw), size)]


class Checker:
    """Compares the beats of one output with the expected ones, in lanes that carry an element."""

    def __init__(self, stream: Stream, expected: Array, monitor: AxisMonitor) -> None:
        self.stream = stream
        self.words = words_of(stream, expected)
        self.monitor = monitor
        self.at = 0
        self.wrong = 0
        self.wrong_frames: set[int] = set()
        self.first: dict[str, Any] | None = None

    @property
    def done(self) -> bool:
        return self.at >= len(self.words)

    @property
    def missing(self) -> int:
        return sum(self.stream.real_lanes(i % self.stream.beats) for i in range(self.at, len(self.words)))

    @property
    def bad_frames(self) -> set[int]:
        total = len(self.words) // self.stream.beats
        return self.wrong_frames | set(range(self.at // self.stream.beats, total))

    def take(self, bits: str, _last: bool, cycle: int) -> None:
        if self.done:
            return  # the monitor reports it
        stream = self.stream
        frame, beat = divmod(self.at, stream.beats)
        real = stream.real_lanes(beat)
        kept = bits[len(bits) - 8 * stream.element_bytes * real :]
        if not set(kept) <= {"0", "1"}:
            lane = next(n for n in range(real) if not set(self._lane_bits(bits, n)) <= {"0", "1"})
            shown = self._lane_bits(bits, lane).upper()
            self.monitor.passed -= 1  # this beat, which the monitor has just counted
            self.monitor.violation("unknown", cycle, f"lane {lane} of tdata must be of 0 and 1, not {shown}")
            raise Unknown
        got = int(kept, 2).to_bytes(stream.element_bytes * real, "little")
        want = self.words[self.at]
        self.at += 1
        for lane in range(real):
            have, due = element(stream, got, lane), element(stream, want, lane)
            if have == due:
                continue
            self.wrong += 1
            self.wrong_frames.add(frame)
            if self.first is None:
                self.first = {
                    "port": stream.port,
                    "frame": frame,
                    "beat": beat,
                    "lane": lane,
                    "expected": due,
                    "got": have,
                }

    def _lane_bits(self, bits: str, lane: int) -> str:
        size = 8 * self.stream.element_bytes
        end = len(bits) - lane * size
        return bits[end - size : end]


class Watch:
    """Decides when the run is over: all beats passed and the tail quiet, or no handshake for too long."""

    def __init__(
        self, sources: list[AxisSource], sinks: list[AxisSink], checkers: list[Checker], watchdog: int
    ) -> None:
        self.agents: list[AxisSource | AxisSink] = [*sources, *sinks]
        self.sources, self.checkers = sources, checkers
        self.watchdog = watchdog
        self.hang_cycle: int | None = None
        self._seen = 0
        self._idle = 0
        self._tail = 0

    def going(self, cycle: int) -> bool:
        seen = sum(len(agent.cycles) for agent in self.agents)
        self._idle = self._idle + 1 if seen == self._seen else 0
        self._seen = seen
        if all(s.done for s in self.sources) and all(c.done for c in self.checkers):
            self._tail += 1
            return self._tail < TAIL_CYCLES
        if self._idle >= self.watchdog:
            self.hang_cycle = cycle
            return False
        return True


class ErrorPin:
    """Notes the first cycle in which the error output is not 0; an unknown one is a violation."""

    def __init__(self, handle: Any, name: str, violations: list[Violation]) -> None:
        self.handle, self.name, self.violations = handle, name, violations
        self.cycle: int | None = None

    def drive(self) -> None:
        pass

    def sample(self, cycle: int) -> None:
        level = str(self.handle.value)
        if level == "1" and self.cycle is None:
            self.cycle = cycle
        elif level not in "01":
            self.violations.append(Violation("unknown", self.name, 0, 0, cycle, f"must be 0 or 1, not {level.upper()}"))
            raise Unknown


def _beats(words: list[bytes], beats: int) -> Iterator[tuple[int, bool]]:
    for i, word in enumerate(words):
        yield int.from_bytes(word, "little"), i % beats == beats - 1


@cocotb.test
async def vectors_pass(dut: Any) -> None:
    """Check that every output element equals the golden one, the stream protocol holds, nothing hangs."""
    job = json.loads(Path(os.environ["HWFLOW_BENCH"]).read_text())
    design = load_design(job["out"])
    vectors = load_vectors(Path(job["vectors"]))
    vectors.check(design)
    violations: list[Violation] = []

    sources: list[AxisSource] = []
    sinks: list[AxisSink] = []
    monitors: list[AxisMonitor] = []
    checkers: list[Checker] = []
    for s in design.streams:
        pins = Pins(dut, s.port)
        if pins.bits != 8 * s.tdata_bytes:
            raise AssertionError(f"{s.port}_tdata must be {8 * s.tdata_bytes} bits wide, not {pins.bits}")
        total = vectors.frames * s.beats
        quiet = s.is_output and not design.before
        monitor = AxisMonitor(pins, s.beats, violations.append, total=total, quiet_start=quiet, ahead=design.before > 0)
        monitors.append(monitor)
        if s.is_output:
            checkers.append(Checker(s, vectors[s.port], monitor))
            sinks.append(AxisSink(pins, checkers[-1].take, job["stall"], job["seed"]))
        else:
            words = words_of(s, vectors[s.port])
            sources.append(AxisSource(pins, _beats(words, s.beats), job["gap"], job["seed"]))
    error = [ErrorPin(getattr(dut, design.error), design.error, violations)] if design.error else []

    clock, reset = getattr(dut, design.clock), getattr(dut, design.reset)
    reset.value = 1
    clock.value = 0
    if design.load is not None:  # nothing is loaded here
        for name in (*(f"{design.load.input}_{pin}" for pin in ("tdata", "tvalid", "tlast")),
                     f"{design.load.output}_tready"):
            getattr(dut, name).value = 0
    Clock(clock, job["clock_ns"], unit="ns").start(start_high=True)
    for _ in range(RESET_CYCLES):
        await FallingEdge(clock)
    reset.value = 0
    for _ in range(design.before):
        await FallingEdge(clock)
    watch = Watch(sources, sinks, checkers, job["watchdog"])
    with contextlib.suppress(Unknown):
        await step(clock, [*error, *monitors, *sources, *sinks], watch.going)

    bad: set[int] = set().union(*(c.bad_frames for c in checkers))
    firsts = [c.first for c in checkers if c.first is not None]
    agents: list[AxisSource | AxisSink] = [*sources, *sinks]
    passed = {s.port: agent.cycles for s, agent in zip(design.streams, agents, strict=True)}
    table = {
        "frames": vectors.frames,
        "mismatches": sum(c.wrong + c.missing for c in checkers),
        "mismatching_frames": len(bad),
        "first_mismatch": min(firsts, key=lambda m: m["frame"], default=None),
        "violations": len(violations),
        "first_violation": asdict(violations[0]) if violations else None,
        "hang": None,
        "error_cycle": error[0].cycle if error else None,
        **_timing(vectors.frames, sources, sinks, checkers),
        "streams": {
            s.port: {
                "beats": len(passed[s.port]),
                "first": passed[s.port][: vectors.frames * s.beats : s.beats],
                "last": passed[s.port][s.beats - 1 : vectors.frames * s.beats : s.beats],
            }
            for s in design.streams
        },
    }
    if watch.hang_cycle is not None:
        waiting = [
            dict(zip(("port", "frame", "beat"), (s.port, *divmod(len(passed[s.port]), s.beats)), strict=True))
            for s in (*design.outputs, *design.inputs)
            if len(passed[s.port]) < vectors.frames * s.beats
        ]
        table["hang"] = {"cycle": watch.hang_cycle, "idle": job["watchdog"], "waiting": waiting}
    path = Path(job["result"])
    path.write_text(json.dumps(table))
    result = RunResult.load(path, design)
    assert result.ok, "\n".join(result.complaints())


def _timing(
    frames: int, sources: list[AxisSource], sinks: list[AxisSink], checkers: list[Checker]
) -> dict[str, int | None]:
    """Return cycles, latency and initiation interval as the manifest defines them (see :class:`RunResult`)."""
    taken = [(sink.cycles[: len(c.words)], c.stream.beats) for sink, c in zip(sinks, checkers, strict=True)]
    last = [cycles[beats - 1 :: beats] for cycles, beats in taken]
    starts = [source.cycles[0] for source in sources if source.cycles]
    ends = [cycles[0] for cycles, _ in taken if cycles]
    interval = None
    if frames > 1 and all(len(frame_ends) == frames for frame_ends in last):
        interval = max(e[-1] for e in last) - max(e[-2] for e in last)
    return {
        "cycles": max((e[-1] + 1 for e in last if e), default=0),
        "initiation_interval": interval,
        "latency": min(ends) - min(starts) if starts and ends else None,
    }
