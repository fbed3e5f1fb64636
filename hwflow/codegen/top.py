"""The top level: cores wired along the graph's edges, AXI4-Stream outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Signal
from amaranth.hdl import Value as HdlValue
from amaranth.lib import wiring
from amaranth.lib.data import ArrayLayout
from amaranth.lib.wiring import Component

from hdl_lib.frame_mark import FrameMark
from hdl_lib.rom import readmemh_text
from hwflow.codegen.modules import CoreInstance
from hwflow.codegen.names import identifiers
from hwflow.codegen.taps import taps
from hwflow.ir.graph import Graph, Node, Port
from hwflow.ops.operator import Built, MemoryFile, beats
from hwflow.ops.registry import hardware
from hwflow.ops.shapes import shape_of
from hwflow.types import TensorType

TOP = "hwflow_top"


@dataclass(frozen=True)
class StreamPort:
    """One AXI4-Stream of the top level: ``prefix`` of its signal names, ``lanes`` elements of ``element_bytes`` bytes a
    beat, of which only the last one of each of the ``view``'s pixels, (pixels, channels), may have surplus lanes."""

    port: Port
    prefix: str
    type: TensorType
    lanes: int
    view: tuple[int, int]

    @property
    def element_bytes(self) -> int:
        return -(-self.type.element.bits // 8)

    @property
    def beats(self) -> int:
        return beats(self.view, self.lanes)

    @property
    def bytes(self) -> int:
        """Bytes of a beat."""
        return self.lanes * self.element_bytes


class Top(Elaboratable):  # type: ignore[misc]  # Amaranth carries no annotations
    """The Amaranth side of ``hwflow_top``; ``ports`` after construction, ``files`` are its memory files."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.domain = ClockDomain("sync")
        self.error = Signal(name="error")
        consumers, producers = graph.consumers(), graph.producers()
        self.inputs = []
        for index, port in enumerate(graph.inputs):
            prefix = "s_axis" if len(graph.inputs) == 1 else f"s{index}_axis"
            reader = consumers[port.value][0][0]
            lanes = reader.attributes["folding"].input_lanes
            view = hardware(reader.op).input_view(reader, port.value.typed.shape, lanes)
            self.inputs.append(StreamPort(port, prefix, port.value.typed, lanes, view))
        self.outputs = []
        for index, port in enumerate(graph.outputs):
            prefix = "m_axis" if len(graph.outputs) == 1 else f"m{index}_axis"
            producer = producers[port.value]
            lanes = producer.attributes["folding"].output_lanes
            view = hardware(producer.op).output_view(producer, port.value.typed.shape, lanes)
            self.outputs.append(StreamPort(port, prefix, port.value.typed, lanes, view))
        self._signals: dict[str, Signal] = {}
        for stream in [*self.inputs, *self.outputs]:
            for name, width in (("tdata", 8 * stream.bytes), ("tvalid", 1), ("tready", 1), ("tlast", 1)):
                self._signals[f"{stream.prefix}_{name}"] = Signal(width, name=f"{stream.prefix}_{name}")
        marks = [f"{stream.prefix}_mark" for stream in self.outputs]
        self.names = identifiers([n.name for n in graph.nodes], [s.name for s in self.ports] + marks)
        self.taps = taps(graph, self.names)
        self._built = {
            node: hardware(node.op).build(
                node, node.attributes["folding"], node.attributes["depths"], self.names[node.name]
            )
            for node in graph.nodes
        }

    @property
    def files(self) -> list[MemoryFile]:
        """Every memory file the cores read."""
        return [file for built in self._built.values() for file in built.files]

    @property
    def ports(self) -> list[Signal]:
        """clk, rst, the streams, error."""
        return [self.domain.clk, self.domain.rst, *self._signals.values(), self.error]

    @property
    def tap_ports(self) -> list[Signal]:
        """Payload, valid and ready of each of the taps, all outputs."""
        return [signal for tap in self.taps for signal in tap.signals]

    def module_of(self, node: Node) -> str:
        """The name of its core's module."""
        return f"{TOP}.{self.names[node.name]}"

    @property
    def cores(self) -> list[tuple[Component, str]]:
        """The cores with the names of their modules."""
        return [(built.component, self.module_of(node)) for node, built in self._built.items()]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = self.domain
        sources: dict[Any, Any] = {}
        for node, built in self._built.items():
            m.submodules[self.names[node.name]] = CoreInstance(built.component, self.module_of(node))
            for value, stream in zip(node.outputs, built.outputs, strict=True):
                sources[value] = stream
        for stream in self.inputs:
            self._connect_input(m, stream)
        inputs = {p.value for p in self.graph.inputs}
        for node, built in self._built.items():
            for value, sink in zip(node.inputs, built.inputs, strict=True):
                if value not in inputs:
                    wiring.connect(m, sources[value], sink)
        for stream in self.outputs:
            self._connect_output(m, stream, sources[stream.port.value])
        for tap in self.taps:
            stream = sources[tap.value]
            m.d.comb += [
                tap.payload.eq(HdlValue.cast(stream.payload)), tap.valid.eq(stream.valid), tap.ready.eq(stream.ready)
            ]
        errors = [b.component.error for b in self._built.values() if hasattr(b.component, "error")]
        m.d.comb += self.error.eq(Cat(errors).any())
        return m

    def _connect_input(self, m: Module, stream: StreamPort) -> None:
        built = next(b for n, b in self._built.items() if n.inputs[0] is stream.port.value)
        sink = built.inputs[0]
        bits, step = stream.type.element.bits, 8 * stream.element_bytes
        data = self._signals[f"{stream.prefix}_tdata"]
        m.d.comb += [
            HdlValue.cast(sink.payload.data).eq(
                Cat(data[lane * step : lane * step + bits] for lane in range(stream.lanes))
            ),
            sink.payload.last.eq(self._signals[f"{stream.prefix}_tlast"]),
            sink.valid.eq(self._signals[f"{stream.prefix}_tvalid"]),
            self._signals[f"{stream.prefix}_tready"].eq(sink.ready),
        ]

    def _connect_output(self, m: Module, stream: StreamPort, source: Any) -> None:
        shape = shape_of(stream.type.element)
        mark = FrameMark(ArrayLayout(shape, stream.lanes), stream.beats)
        m.submodules[f"{stream.prefix}_mark"] = mark
        wiring.connect(m, source, mark.i)
        step = 8 * stream.element_bytes
        data = self._signals[f"{stream.prefix}_tdata"]
        m.d.comb += [
            data[lane * step : (lane + 1) * step].eq(mark.o.payload.data[lane]) for lane in range(stream.lanes)
        ]
        m.d.comb += [
            self._signals[f"{stream.prefix}_tlast"].eq(mark.o.payload.last),
            self._signals[f"{stream.prefix}_tvalid"].eq(mark.o.valid),
            mark.o.ready.eq(self._signals[f"{stream.prefix}_tready"]),
        ]


def memory_text(file: MemoryFile) -> str:
    """Its ``$readmemh`` file."""
    return readmemh_text(file.words, file.width)


__all__ = ["TOP", "Built", "StreamPort", "Top", "memory_text"]
