"""A design as an Amaranth component."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hwflow.api.compiler import Design
from hwflow.codegen.top import StreamPort, Top
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.tables_inside import write_out


class CoreComponent(wiring.Component):  # type: ignore[misc]  # Amaranth carries no annotations
    """A design's core, weights included, for Amaranth's simulator and for any platform.

    Members: the streams, by the names of their ports in the Verilog: ``s_axis`` (In) and ``m_axis`` (Out), with several
    ``s0_axis``, ... Payload: ``data``, an array of ``lanes`` elements, ``signed(bits)`` or ``unsigned(bits)``, in the
    order that the manifest's `order` says, of a pixel's last beat some without a meaning; ``last``: the frame's last
    beat. ``error`` (Out): an input frame had the wrong length, since reset. ``mem__*``: of a design beside a memory, as
    in the Verilog. ``inputs``, ``outputs``: the streams as
    :class:`hwflow.codegen.top.StreamPort` describes them.

    Timing: the design's; domain ``sync``, whose reset takes one cycle or more. Any beat may wait on either side.
    """

    def __init__(self, design: Design) -> None:
        self._plan = design.schedule.plan
        top = Top(self._plan)
        self.inputs: list[StreamPort] = list(top.inputs)
        self.outputs: list[StreamPort] = list(top.outputs)
        members = {port.prefix: In(stream.Signature(_beat(port))) for port in self.inputs}
        members |= {port.prefix: Out(stream.Signature(_beat(port))) for port in self.outputs}
        members |= {pin.name: (Out if out else In)(len(pin)) for pin, out in top.pins.values()}
        super().__init__({**members, "error": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        top = Top(self._plan)
        for core in top.cores.values():
            write_out(core.body, core.files)
        m.submodules.top = top.in_domain()
        pins = {signal.name: signal for signal in top.ports}
        m.d.comb += self.error.eq(top.error)
        for pin, out in top.pins.values():
            member = getattr(self, pin.name)
            m.d.comb += member.eq(pin) if out else pin.eq(member)
        for port in (*self.inputs, *self.outputs):
            member, bits = getattr(self, port.prefix), 8 * port.element_bytes
            word, last, valid, ready = (pins[f"{port.prefix}_t{name}"] for name in ("data", "last", "valid", "ready"))
            lanes = [word[bits * lane : bits * (lane + 1)] for lane in range(port.lanes)]
            if port in self.inputs:
                m.d.comb += [lanes[lane].eq(member.payload.data[lane]) for lane in range(port.lanes)]
                m.d.comb += [last.eq(member.payload.last), valid.eq(member.valid), member.ready.eq(ready)]
            else:
                m.d.comb += [member.payload.data[lane].eq(lanes[lane]) for lane in range(port.lanes)]
                m.d.comb += [member.payload.last.eq(last), member.valid.eq(valid), ready.eq(member.ready)]
        return m


def component(design: Design) -> CoreComponent:
    """Return the core of a compiled design as a component of Amaranth, which needs no files."""
    return CoreComponent(design)


def _beat(port: StreamPort) -> data.StructLayout:
    return data.StructLayout({"data": data.ArrayLayout(shape_of(port.type.element), port.lanes), "last": 1})
