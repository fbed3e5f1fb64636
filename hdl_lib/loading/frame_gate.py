"""A gate in front of a core's inputs, which lets whole frames in, and knows when all of them have left."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

COUNT = 16
"""Bits of the counts of frames: more are never inside."""


class FrameGate(wiring.Component):
    """Says whether a beat may enter each input, and counts frames in and out.

    While ``hold`` is high no frame begins that has not begun at another input: all inputs get the same number of
    frames.

    Parameters: ``inputs``, ``outputs``: streams of the core, at least one each.

    Members: for each input ``k`` ``open{k}`` (out): a beat may enter; ``enters{k}``, ``last{k}`` (in): one does (only
    where ``open{k}``), and is the last of its frame; for each output ``leaves{k}`` (in): the last beat of a frame does;
    ``hold`` (in): see above; ``empty`` (out): no frame has begun that has not left every output. Low for a cycle after
    the last change.

    Timing: ``open{k}`` follows ``hold`` in the same cycle, everything else a cycle later.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        if inputs < 1 or outputs < 1:
            raise ValueError(f"inputs and outputs must be at least 1, not {inputs} and {outputs}")
        self.inputs, self.outputs = inputs, outputs
        super().__init__(
            {
                **{f"open{k}": Out(1) for k in range(inputs)},
                **{f"{name}{k}": In(1) for k in range(inputs) for name in ("enters", "last")},
                **{f"leaves{k}": In(1) for k in range(outputs)},
                "hold": In(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        furthest, moved = Signal(COUNT), Signal()
        done: list[Signal] = []
        changed: list[Signal] = []
        for k in range(self.inputs):
            enters, between = getattr(self, f"enters{k}"), Signal(init=1, name=f"between{k}")
            begins, behind = Signal(name=f"begins{k}"), Signal(name=f"behind{k}")
            begun = furthest
            if self.inputs > 1:
                begun = Signal(COUNT, name=f"begun{k}")
                with m.If(begins):
                    m.d.sync += begun.eq(begun + 1)
            m.d.comb += [
                begins.eq(enters & between),
                behind.eq(begun != furthest),
                getattr(self, f"open{k}").eq(~self.hold | ~between | behind),
            ]
            with m.If(enters):
                m.d.sync += between.eq(getattr(self, f"last{k}"))
            with m.If(begins & ~behind):
                m.d.comb += moved.eq(1)
            done.append(between & ~behind)
            changed.append(enters)
        with m.If(moved):
            m.d.sync += furthest.eq(furthest + 1)
        for k in range(self.outputs):
            leaves, left = getattr(self, f"leaves{k}"), Signal(COUNT, name=f"left{k}")
            with m.If(leaves):
                m.d.sync += left.eq(left + 1)
            done.append(left == furthest)
            changed.append(leaves)
        m.d.sync += self.empty.eq(Cat(done).all() & ~Cat(changed).any())
        return m
