"""Drive an Amaranth core with its inputs and one output stream in Amaranth's simulator, with the protocol watched.

The monitor checks the stream rules of every core at every cycle: a producer that shows ``valid`` holds it and its
payload until ``ready``; nothing is valid in the cycle after reset.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Value
from amaranth.sim import Simulator

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
    trace = Trace()
    rng_out = random.Random(seed + 1)
    o_payload = Value.cast(o.payload).as_unsigned()
    cycle = 0

    def source_of(i, beats, rng_in, cycles):
        payload = Value.cast(i.payload)

        async def source(ctx):
            for beat in beats:
                while gap and rng_in.random() < gap:
                    ctx.set(i.valid, 0)
                    await ctx.tick()
                ctx.set(i.valid, 1)
                ctx.set(payload, beat)
                while True:
                    _, _, ready = await ctx.tick().sample(i.ready)
                    if ready:
                        cycles.append(cycle)
                        break
            ctx.set(i.valid, 0)

        return source

    async def sink(ctx):
        nonlocal cycle
        held = None
        extra = 0
        while True:
            ready = not (stall and rng_out.random() < stall)
            ctx.set(o.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(o.valid, o_payload)
            if held is not None:
                assert valid, f"cycle {cycle}: valid was withdrawn before ready"
                assert payload == held, f"cycle {cycle}: payload changed from {held:#x} to {payload:#x} before ready"
            held = payload if valid and not ready else None
            if valid and ready:
                trace.beats.append(payload)
                trace.out_cycles.append(cycle)
            cycle += 1
            assert cycle < timeout, f"no {expected} beats within {timeout} cycles, only {len(trace.beats)}"
            if len(trace.beats) >= expected:
                extra += 1
                if extra > 20:
                    break
        assert len(trace.beats) == expected, f"{len(trace.beats)} beats came out, not {expected}"

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    # A source reads `cycle` before the sink advances it: both wake at the same tick, sources are added first.
    simulator.add_testbench(source_of(i, beats, random.Random(seed), trace.in_cycles), background=True)
    for index, (other, its_beats) in enumerate(more, 2):
        source = source_of(other, its_beats, random.Random(seed + index), [])
        simulator.add_testbench(source, background=True)
    simulator.add_testbench(sink)
    simulator.run()
    return trace


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
