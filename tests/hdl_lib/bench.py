"""Drive an Amaranth core with its inputs and one output stream in Amaranth's simulator, with the protocol watched.

The monitor checks the stream rules of every core at every cycle: a producer that shows ``valid`` holds it and its
payload until ``ready``; nothing is valid in the cycle after reset.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.hdl_lib.cycles import Cycles

STALLS = [(0.0, 0.0), (0.4, 0.0), (0.0, 0.4), (0.5, 0.5)]  # (gap, stall) probabilities every core is run with


@dataclass
class Trace:
    """What went through, with the clock cycle of each handshake (cycle 0 is the first after reset)."""

    beats: list[int] = field(default_factory=list)
    in_cycles: list[int] = field(default_factory=list)
    out_cycles: list[int] = field(default_factory=list)


def drive(
    dut,
    beats: Sequence[int],
    expected: int,
    *,
    gap: float = 0.0,
    stall: float = 0.0,
    seed: int = 0,
    i=None,
    o=None,
    more: Sequence[tuple[Any, Sequence[int]]] = (),
    timeout: int = 200_000,
) -> Trace:
    """Offer ``beats`` (payloads as unsigned bit patterns) and collect ``expected`` output beats.

    ``gap``: probability that the source pauses before a beat; ``stall``: probability that the sink is not ready in a
    cycle. With both 0 source and sink are always willing: the full-rate run. ``i``/``o`` default to ``dut.i``/
    ``dut.o``. ``more``: further inputs with their beats, driven alike. Runs 20 cycles longer than needed and fails if
    surplus output appears.
    """
    i = dut.i if i is None else i
    o = dut.o if o is None else o
    run = Run([beats, *(others for _, others in more)], expected, gap, stall, seed)
    return drive_in_turn(dut, [run], [i, *(other for other, _ in more)], o, timeout)[0]


@dataclass
class Run:
    """What is offered at every input, how many beats come out then, and how (as for :func:`drive`). ``before``: cycles
    in which nothing is offered or taken, and which do not count. ``ahead``: further beats may show, and are not taken.
    """

    offered: Sequence[Sequence[int]]
    expected: int
    gap: float = 0.0
    stall: float = 0.0
    seed: int = 0
    before: int = 0
    ahead: bool = False


def drive_in_turn(
    dut, runs: Sequence[Run], inputs: Sequence[Any], o: Any, timeout: int = 200_000, willing: Sequence[Any] = ()
) -> list[Trace]:
    """Of every run what went through, one after the other without a reset: each begins when the one before has ended.
    ``inputs``, ``o``: streams; ``willing``: further outputs, whose beats are taken at once. Only the cycles of the
    first run are counted from the reset on. ``dut`` may be compiled, as :class:`Cycles`."""
    traces = [Trace() for _ in runs]
    cycle = 0
    turn = 0

    def source(number):
        """Yield each cycle's beat, None for none; receive whether it was taken."""
        for index, run in enumerate(runs):
            rng_in = random.Random(run.seed + (number + 1 if number else 0))
            cycles = traces[index].in_cycles if number == 0 else []
            while turn < index:
                yield None
            for _ in range(run.before):
                yield None
            for beat in run.offered[number]:
                while run.gap and rng_in.random() < run.gap:
                    yield None
                while not (yield beat):
                    pass
                cycles.append(cycle)
        while True:
            yield None

    def sink():
        """Yield each cycle's ``ready``; receive ``valid`` and the payload."""
        nonlocal cycle, turn
        for run, trace in zip(runs, traces, strict=True):
            rng_out = random.Random(run.seed + 1)
            held = None
            extra = 0
            for _ in range(run.before):
                yield False
            end = cycle + timeout
            while extra <= 20:
                ready = not (run.stall and rng_out.random() < run.stall)
                if run.ahead and len(trace.beats) == run.expected:
                    ready = False
                valid, payload = yield ready
                if held is not None:
                    assert valid, f"cycle {cycle}: valid was withdrawn before ready"
                    assert payload == held, (
                        f"cycle {cycle}: payload changed from {held:#x} to {payload:#x} before ready"
                    )
                held = payload if valid and not ready else None
                if valid and ready:
                    trace.beats.append(payload)
                    trace.out_cycles.append(cycle)
                cycle += 1
                assert cycle < end, f"no {run.expected} beats within {timeout} cycles, only {len(trace.beats)}"
                if len(trace.beats) >= run.expected:
                    extra += 1
            assert len(trace.beats) == run.expected, f"{len(trace.beats)} beats came out, not {run.expected}"
            turn += 1

    core = Cycles.of(dut)
    for other in willing:
        core.setter(other.ready)(1)
    valid, payload = core.reader(o.valid), core.reader(o.payload)
    taken = [core.reader(i.ready) for i in inputs]
    set_valid = [core.setter(i.valid) for i in inputs]
    set_payload = [core.setter(i.payload) for i in inputs]
    set_ready = core.setter(o.ready)

    def offer(number, beat):
        set_valid[number](beat is not None)
        if beat is not None:
            set_payload[number](beat)

    sources, ready = [source(number) for number in range(len(inputs))], sink()
    for number, beats in enumerate(sources):
        offer(number, next(beats))
    set_ready(next(ready))
    core.settle()
    while turn < len(runs):
        seen, went = (valid(), payload()), [bool(read()) for read in taken]
        core.edge()
        # A source reads `cycle` and `turn` before the sink advances them.
        for number, beats in enumerate(sources):
            offer(number, beats.send(went[number]))
        with suppress(StopIteration):  # after the last run
            set_ready(ready.send(seen))
        core.settle()
    return traces


def pack(values: Sequence[int], width: int) -> int:
    """Lanes to a payload: lane 0 in the least significant bits, two's complement of ``width`` bits."""
    word = 0
    for lane, value in enumerate(values):
        word |= (value & ((1 << width) - 1)) << (lane * width)
    return word


def unpack(word: int, width: int, lanes: int, *, signed: bool) -> list[int]:
    """A payload to its lanes."""
    out = []
    for lane in range(lanes):
        value = (word >> (lane * width)) & ((1 << width) - 1)
        out.append(value - (1 << width) if signed and value >> (width - 1) else value)
    return out
