"""The top level: cores connected along the graph's edges, with AXI4-Stream ports."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Signal
from amaranth.lib.data import ArrayLayout

from hdl_lib.loading.frame_gate import FrameGate
from hdl_lib.loading.table_loader import TableLoader
from hdl_lib.loading.table_writer import FIELDS
from hdl_lib.memories.rom import readmemh_text
from hdl_lib.streams.frame_mark import FrameMark
from hwflow.codegen.cores import Placed, Stream, connect, inline, member_stream, stream_of
from hwflow.codegen.emitted.packaging import TOP
from hwflow.codegen.tapped_streams import taps
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.external.memory_queue import MemoryQueueAttributes
from hwflow.cores.external.weight_memory import WeightMemoryAttributes
from hwflow.cores.loadable_tables import loadable, rows_of
from hwflow.cores.operator import MemoryFile, beats_of_view
from hwflow.cores.registry import hardware
from hwflow.cores.verilog_names import identifiers
from hwflow.ir.graph import Port, Value
from hwflow.schedule.plan import Plan
from hwflow.types import TensorType

PIN_PREFIX = "mem__"
"""Of the names of ports that lead to memory outside; no instance has its name."""

LOAD_INPUT, LOAD_OUTPUT = "s_load_axis", "m_load_axis"
"""The ports of a design whose tables are loaded: packets, and their answers; a byte a beat."""


@dataclass(frozen=True)
class StreamPort:
    """An AXI4-Stream port of the top level: ``prefix`` of its signal names, ``lanes`` elements of ``element_bytes``
    bytes per beat. Only the last beat of each pixel of ``view``, (pixels, channels), may have surplus lanes."""

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
        return beats_of_view(self.view, self.lanes)

    @property
    def bytes(self) -> int:
        """Return the bytes of a beat."""
        return self.lanes * self.element_bytes


_AXIS = ("tdata", "tvalid", "tready", "tlast")
_LOADING = _LOADER, _GATE = "load", "load_gate"  # instances


class Top(Elaboratable):  # type: ignore[misc]  # Amaranth carries no annotations
    """The Amaranth module of ``hwflow_top``; ``ports`` after construction, ``files``: its memory files. ``placed``: how
    cores are instantiated (:mod:`hwflow.codegen.cores`). ``loaded``: the tables that are loaded while it runs."""

    def __init__(self, plan: Plan, placed: Placed = inline) -> None:
        self.plan, self.graph = plan, plan.graph
        graph = plan.graph
        self.domain = ClockDomain("sync")
        self.error = Signal(name="error")
        consumers, producers = graph.consumers(), graph.producers()
        self.inputs = []
        for index, port in enumerate(graph.inputs):
            prefix = "s_axis" if len(graph.inputs) == 1 else f"s{index}_axis"
            reader = consumers[port.value][0][0]
            lanes = plan.folding(reader).input_lanes
            view = hardware(reader.op).input_view(reader, port.value.typed.shape, lanes)
            self.inputs.append(StreamPort(port, prefix, port.value.typed, lanes, view))
        self.outputs = []
        for index, port in enumerate(graph.outputs):
            prefix = "m_axis" if len(graph.outputs) == 1 else f"m{index}_axis"
            producer = producers[port.value]
            lanes = plan.folding(producer).output_lanes
            view = hardware(producer.op).output_view(producer, port.value.typed.shape, lanes)
            self.outputs.append(StreamPort(port, prefix, port.value.typed, lanes, view))
        self._signals: dict[str, Signal] = {}
        for stream in [*self.inputs, *self.outputs]:
            for name, width in zip(_AXIS, (8 * stream.bytes, 1, 1, 1), strict=True):
                self._signals[f"{stream.prefix}_{name}"] = Signal(width, name=f"{stream.prefix}_{name}")
        marks = [f"{stream.prefix}_mark" for stream in self.outputs]
        self.pins: dict[str, tuple[Signal, bool]] = {}
        load = [f"{prefix}_{name}" for prefix in (LOAD_INPUT, LOAD_OUTPUT) for name in _AXIS]
        reserved = [PIN_PREFIX.rstrip("_"), *marks, *load, *_LOADING]
        self.names = identifiers([n.name for n in graph.nodes], [s.name for s in self.ports] + reserved)
        self.taps = taps(plan, self.names)
        cores = placed(plan, {node: self.names[node.name] for node in graph.nodes})
        self.cores = dict(zip(graph.nodes, cores, strict=True))
        for core in cores:
            for name, (value, out) in core.pins.items():
                self.pins[name] = Signal(len(value), name=f"{PIN_PREFIX}{name}"), out
        self.loaded = loadable(self.files)
        if self.loaded:
            for prefix in (LOAD_INPUT, LOAD_OUTPUT):
                for name, width in zip(_AXIS, (8, 1, 1, 1), strict=True):
                    self._signals[f"{prefix}_{name}"] = Signal(width, name=f"{prefix}_{name}")

    @property
    def files(self) -> list[MemoryFile]:
        """Return the memory files that the cores read."""
        return [file for core in self.cores.values() for file in core.files]

    @property
    def ports(self) -> list[Signal]:
        """Return clk, rst, the streams, error, and what leads to memory outside."""
        pins = [signal for signal, _ in self.pins.values()]
        return [self.domain.clk, self.domain.rst, *self._signals.values(), self.error, *pins]

    @property
    def tap_ports(self) -> list[Signal]:
        """Return payload, valid and ready of each tap, all outputs."""
        return [signal for tap in self.taps for signal in tap.signals]

    def elaborate(self, platform: object) -> Module:
        m = self.in_domain()
        m.domains.sync = self.domain
        return m

    def in_domain(self) -> Module:
        """Return the same without a clock domain of its own: it is in its parent's ``sync``."""
        m = Module()
        sources: dict[Value, Stream] = {}
        for node, core in self.cores.items():
            m.submodules[self.names[node.name]] = core.body
            sources |= zip(node.outputs, core.outputs, strict=True)
            for name, (value, out) in core.pins.items():
                pin, _ = self.pins[name]
                m.d.comb += pin.eq(value) if out else value.eq(pin)
        self._connect_queues(m)
        loader = self._connect_loader(m) if self.loaded else None
        gate = FrameGate(len(self.inputs), len(self.outputs)) if loader is not None else None
        if gate is not None and loader is not None:
            m.submodules[_GATE] = gate
            m.d.comb += [gate.hold.eq(loader.hold), loader.empty.eq(gate.empty)]
        for number, stream in enumerate(self.inputs):
            self._connect_input(m, stream, gate, number)
        inputs = {p.value for p in self.graph.inputs}
        for node, core in self.cores.items():
            for value, sink in zip(node.inputs, core.inputs, strict=True):
                if value not in inputs:
                    connect(m, sources[value], sink)
        for number, stream in enumerate(self.outputs):
            self._connect_output(m, stream, sources[stream.port.value])
            if gate is not None:
                valid, ready, last = (self._signals[f"{stream.prefix}_{name}"] for name in _AXIS[1:])
                m.d.comb += getattr(gate, f"leaves{number}").eq(valid & ready & last)
        for tap in self.taps:
            source = sources[tap.value]
            m.d.comb += [tap.payload.eq(source.payload), tap.valid.eq(source.valid), tap.ready.eq(source.ready)]
        errors = [core.error for core in self.cores.values() if core.error is not None]
        if loader is not None:
            errors.append(loader.refuses)
        m.d.comb += self.error.eq(Cat(errors).any())
        return m

    def _connect_queues(self, m: Module) -> None:
        """Join the queues that lie in the memory to it."""
        memory = next((node for node in self.cores if isinstance(node.attributes, WeightMemoryAttributes)), None)
        for node, core in self.cores.items():
            if memory is not None and node is not memory and core.memory:
                given, there = node.attributes, self.cores[memory].memory
                index = given.index if isinstance(given, MemoryQueueAttributes) else 0  # an engine's maps come first
                connect(m, member_stream(core.memory, "memory_i"), member_stream(there, f"memory_i{index}"))
                connect(m, member_stream(there, f"memory_o{index}"), member_stream(core.memory, "memory_o"))

    def _connect_loader(self, m: Module) -> TableLoader:
        """Add the loader, with its line through all cores that have tables for it."""
        m.submodules[_LOADER] = loader = TableLoader([rows_of(file) for file in self.loaded])
        into, outof = (
            {name: self._signals[f"{prefix}_{name}"] for name in _AXIS} for prefix in (LOAD_INPUT, LOAD_OUTPUT)
        )
        m.d.comb += [
            loader.i.payload.eq(Cat(into["tdata"], into["tlast"])), loader.i.valid.eq(into["tvalid"]),
            into["tready"].eq(loader.i.ready), Cat(outof["tdata"], outof["tlast"]).eq(loader.o.payload),
            outof["tvalid"].eq(loader.o.valid), loader.o.ready.eq(outof["tready"]),
        ]
        line, first = {name: getattr(loader.line, name) for name in FIELDS}, 0
        for core in self.cores.values():
            if core.load:
                m.d.comb += core.load["load_first"].eq(first)
                m.d.comb += [core.load[f"load_i__{name}"].eq(signal) for name, signal in line.items()]
                line = {name: core.load[f"load_o__{name}"] for name in FIELDS}
                first += len(loadable(core.files))
        return loader

    def _connect_input(self, m: Module, stream: StreamPort, gate: FrameGate | None, number: int) -> None:
        sink = next(core for node, core in self.cores.items() if stream.port.value in node.inputs[:1]).inputs[0]
        bits, step = stream.type.element.bits, 8 * stream.element_bytes
        data = self._signals[f"{stream.prefix}_tdata"]
        lanes = [data[lane * step : lane * step + bits] for lane in range(stream.lanes)]
        valid, ready, last = (self._signals[f"{stream.prefix}_{name}"] for name in _AXIS[1:])
        offered, willing = valid, sink.ready
        if gate is not None:
            open_ = getattr(gate, f"open{number}")
            offered, willing = valid & open_, sink.ready & open_
        m.d.comb += [
            sink.payload.eq(Cat(*lanes, last)),  # as a frame synchroniser has them
            sink.valid.eq(offered), ready.eq(willing),
        ]
        if gate is not None:
            m.d.comb += [getattr(gate, f"enters{number}").eq(valid & ready), getattr(gate, f"last{number}").eq(last)]

    def _connect_output(self, m: Module, stream: StreamPort, source: Stream) -> None:
        shape = shape_of(stream.type.element)
        mark = FrameMark(ArrayLayout(shape, stream.lanes), stream.beats)
        m.submodules[f"{stream.prefix}_mark"] = mark
        connect(m, source, stream_of(mark.i))
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
    """Return the text of its ``$readmemh`` file."""
    return readmemh_text(file.words, file.width)


__all__ = ["TOP", "StreamPort", "Top", "memory_text"]
