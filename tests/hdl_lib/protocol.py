"""Two more benches for every core: reset in mid-frame, and no combinational path from one side to the other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, ResetInserter, Signal, Value
from amaranth.sim import Simulator


def after_reset(
    dut,
    beats: Sequence[int],
    expected: int,
    *,
    seed: int,
    i=None,
    o=None,
    more: Sequence[tuple[Any, Sequence[int]]] = (),
) -> list[int]:
    """Feed some of ``beats`` with a sink that stalls, reset at a random cycle, then feed them all: what comes out then.

    ``more``: further inputs with their beats. Whatever was inside must be gone: nothing is valid in the cycle after
    reset.
    """
    i = dut.i if i is None else i
    o = dut.o if o is None else o
    rng = random.Random(seed)
    reset = Signal()
    top = Module()
    top.submodules.dut = ResetInserter(reset)(dut)
    o_payload = Value.cast(o.payload).as_unsigned()
    sources = [(i, beats), *more]
    received: list[int] = []

    async def bench(ctx):
        shown = {}

        def show(what, signal, value):  # each setting of a signal takes as long as a cycle of the core
            if shown.get(what) != value:
                shown[what] = value
                ctx.set(signal, value)

        async def run(wanted, cycles):
            positions = [0] * len(sources)
            for _ in range(cycles):
                done = all(p == len(offered) for p, (_, offered) in zip(positions, sources, strict=True))
                if len(received) == wanted and done:
                    break
                for n, (position, (source, offered)) in enumerate(zip(positions, sources, strict=True)):
                    show((n, "payload"), payloads[n], offered[position] if position < len(offered) else 0)
                    show((n, "valid"), source.valid, int(position < len(offered)))
                show("ready", o.ready, int(rng.random() < 0.7))
                _, _, transferred, payload, *taken = await anext(ticks)
                positions = [p + int(t) for p, t in zip(positions, taken, strict=True)]
                if transferred:
                    received.append(payload)

        payloads = [Value.cast(source.payload) for source, _ in sources]
        seen = ctx.tick().sample(
            o.valid & o.ready, o_payload, *(source.valid & source.ready for source, _ in sources)
        )
        ticks = aiter(seen)
        await run(-1, rng.randrange(1, 2 * len(beats)))
        received.clear()
        ctx.set(reset, 1)
        await anext(ticks)
        ctx.set(reset, 0)
        for n, (source, _) in enumerate(sources):
            show((n, "valid"), source.valid, 0)
        assert not ctx.get(o.valid), "a beat is valid after reset"
        await run(expected, 100 * (len(beats) + expected))

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return received


def check_no_paths(dut, *, inputs=None, outputs=None, cycles: int = 60, seed: int = 0) -> None:
    """In random traffic, what a core shows in a cycle never changes with what it is offered in that cycle."""
    inputs = [dut.i] if inputs is None else inputs
    outputs = [dut.o] if outputs is None else outputs
    rng = random.Random(seed)

    async def bench(ctx):
        def show():
            return [ctx.get(i.ready) for i in inputs] + [
                (ctx.get(o.valid), ctx.get(Value.cast(o.payload)) if ctx.get(o.valid) else None) for o in outputs
            ]

        for _ in range(cycles):
            seen = []
            for _ in range(4):
                for i in inputs:
                    ctx.set(i.valid, rng.getrandbits(1))
                    ctx.set(Value.cast(i.payload), rng.getrandbits(len(Value.cast(i.payload))))
                for o in outputs:
                    ctx.set(o.ready, rng.getrandbits(1))
                await ctx.delay(1e-9)
                seen.append(show())
            assert all(s == seen[0] for s in seen), f"a combinational path: {seen}"
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
