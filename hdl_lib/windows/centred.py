"""A core whose input elements count from their least value on."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Shape, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out


class Centred(wiring.Component):
    """``core`` (with streams ``i`` and ``o`` of elements), with ``2**(bits - 1)`` added to each element that comes in.

    Of signed numbers of ``bits`` these are numbers from 0 on, with the highest bit inverted: no adder.

    Parameters
    ----------
    core: takes the sums. Those of all elements must fit its input's shape.
    shape: of an element; its values are signed numbers of ``bits``.

    Timing
    ------
    That of ``core``.
    """

    def __init__(self, core: Any, shape: Shape, bits: int) -> None:
        self.core, self.shape, self.bits = core, Shape.cast(shape), bits
        if not 1 <= self.shape.width <= bits - (not self.shape.signed):
            raise ValueError(f"shape must have values that are signed numbers of {bits} bits, not be {self.shape}")
        lanes = core.i.payload.shape().length
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(self.shape, lanes))),
                "o": Out(stream.Signature(core.o.payload.shape())),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.core
        wiring.connect(m, wiring.flipped(self.o), core.o)
        m.d.comb += [core.i.valid.eq(self.i.valid), self.i.ready.eq(core.i.ready)]
        for lane in range(core.i.payload.shape().length):
            element = Signal(signed(self.bits), name=f"element_{lane}")
            m.d.comb += [
                element.eq(self.i.payload[lane]),
                core.i.payload[lane].eq(Cat(element[:-1], ~element[-1])),
            ]
        return m
