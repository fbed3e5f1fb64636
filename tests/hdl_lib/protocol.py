"""Two more benches for every core: reset in mid-frame, and no combinational path from one side to the other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Value

from tests.hdl_lib.cycles import Cycles


def after_reset(
    dut,
    beats: Sequence[int],
    expected: int,
    *,
    seed: int,
    i=None,
    o=None,
    more: Sequence[tuple[Any, Sequence[int]]] = (),
    willing: Sequence[Any] = (),
    slow: int = 1,
) -> list[int]:
    """Feed some of ``beats`` with a sink that stalls, reset at a random cycle, then feed them all: what comes out then.

    ``more``: further inputs with their beats; ``willing``: further outputs, whose beats are taken at once; ``slow``:
    hundreds of cycles that a beat may take. Whatever was inside must be gone: nothing is valid in the cycle after
    reset. ``dut`` may be compiled, as :class:`Cycles`.
    """
    i = dut.i if i is None else i
    o = dut.o if o is None else o
    rng = random.Random(seed)
    core = Cycles.of(dut)
    for other in willing:
        core.setter(other.ready)(1)
    offers = [(i, beats), *more]
    set_valid = [core.setter(source.valid) for source, _ in offers]
    set_payload = [core.setter(source.payload) for source, _ in offers]
    taken = [core.reader(source.ready) for source, _ in offers]
    valid, payload = core.reader(o.valid), core.reader(o.payload)
    set_ready = core.setter(o.ready)

    def run(wanted, cycles):
        received: list[int] = []
        positions = [0] * len(offers)
        for _ in range(cycles):
            offered = [position < len(given) for position, (_, given) in zip(positions, offers, strict=True)]
            if len(received) == wanted and not any(offered):
                break
            for n, (position, (_, given)) in enumerate(zip(positions, offers, strict=True)):
                set_payload[n](given[position] if offered[n] else 0)
                set_valid[n](offered[n])
            ready = rng.random() < 0.7
            set_ready(ready)
            core.settle()
            if ready and valid():
                received.append(payload())
            positions = [p + (show and read()) for p, show, read in zip(positions, offered, taken, strict=True)]
            core.edge()
            core.settle()
        return received

    run(-1, rng.randrange(1, 2 * slow * len(beats)))
    core.set_reset(1)
    core.settle()
    core.edge()
    core.settle()
    for setter in (core.set_reset, *set_valid):
        setter(0)
    core.settle()
    assert not valid(), "a beat is valid after reset"
    return run(expected, 100 * slow * (len(beats) + expected))


def check_no_paths(dut, *, inputs=None, outputs=None, cycles: int = 60, seed: int = 0) -> None:
    """In random traffic, what a core shows in a cycle never changes with what it is offered in that cycle.
    ``dut`` may be compiled, as :class:`Cycles`."""
    inputs = [dut.i] if inputs is None else inputs
    outputs = [dut.o] if outputs is None else outputs
    rng = random.Random(seed)

    core = Cycles.of(dut)
    widths = [len(Value.cast(i.payload)) for i in inputs]
    set_valid, set_payload = [core.setter(i.valid) for i in inputs], [core.setter(i.payload) for i in inputs]
    set_ready = [core.setter(o.ready) for o in outputs]
    ready = [core.reader(i.ready) for i in inputs]
    beats = [(core.reader(o.valid), core.reader(o.payload)) for o in outputs]

    def show():
        return [read() for read in ready], [(valid(), payload() if valid() else None) for valid, payload in beats]

    for _ in range(cycles):
        seen = []
        for _ in range(4):
            for n, width in enumerate(widths):
                set_valid[n](rng.getrandbits(1))
                set_payload[n](rng.getrandbits(width))
            for setter in set_ready:
                setter(rng.getrandbits(1))
            core.settle()
            seen.append(show())
        assert all(s == seen[0] for s in seen), f"a combinational path: {seen}"
        core.edge()
        core.settle()
