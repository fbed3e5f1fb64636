"""The cores of a top level, inline or as instances of separately converted modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import ClockSignal, Elaboratable, Instance, Module, ResetSignal, Signal, Value

from hwflow.codegen.converted.conversion import Conversion
from hwflow.codegen.converted.modules import CoreModule, component_ports
from hwflow.cores.loadable_tables import with_writers
from hwflow.cores.operator import Built, MemoryFile
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Node
from hwflow.schedule.plan import Plan


@dataclass(frozen=True)
class Stream:
    """The signals of a core's stream; ``payload`` as plain bits."""

    payload: Value
    valid: Value
    ready: Value


@dataclass(frozen=True)
class Core:
    """A placed core. ``inputs`` and ``outputs`` in the node's order; ``error``: the signal of a malformed frame, if
    any; ``rtlil``: its separate module, if any, with the shared modules that it is the first to instantiate. ``pins``:
    what leads out of the design, by name, and whether it is an output. ``load``: the members of
    :class:`hdl_lib.loading.table_writer.LoadableCore`, by name; empty if it has none that are loaded. ``memory``: the
    members that join a queue's ends to the memory that it lies in (:mod:`hdl_lib.external.queue_ends`), by name."""

    body: Elaboratable
    inputs: list[Stream]
    outputs: list[Stream]
    error: Value | None
    files: list[MemoryFile]
    rtlil: str = ""
    pins: Mapping[str, tuple[Value, bool]] = field(default_factory=dict)
    load: Mapping[str, Value] = field(default_factory=dict)
    memory: Mapping[str, Value] = field(default_factory=dict)


Placed = Callable[[Plan, Mapping[Node, str]], list[Core]]
"""From a plan and the names of its nodes' instances to their cores."""


def inline(plan: Plan, names: Mapping[Node, str]) -> list[Core]:
    """Place the components themselves, for Amaranth's simulator."""
    return [_component(with_writers(hardware(node.op).build(node, plan[node], name))) for node, name in names.items()]


def separate(conversion: Conversion | None = None) -> Placed:
    """Place instances of separate modules, converted by ``conversion``."""

    def placed(plan: Plan, names: Mapping[Node, str]) -> list[Core]:
        modules = (conversion or Conversion()).modules(plan, names)
        return [_instance(instance, module) for instance, module in zip(names.values(), modules, strict=True)]

    return placed


def connect(m: Module, source: Stream, sink: Stream) -> None:
    """Connect a core's output to another's input."""
    assert len(source.payload) == len(sink.payload), "plumbing makes both ends alike"
    m.d.comb += [sink.payload.eq(source.payload), sink.valid.eq(source.valid), source.ready.eq(sink.ready)]


def member_stream(members: Mapping[str, Value], name: str) -> Stream:
    """Return the stream ``name`` of a core's members."""
    return Stream(*(members[f"{name}__{part}"] for part in ("payload", "valid", "ready")))


def stream_of(interface: Any) -> Stream:
    """Return the stream of a component's member."""
    return Stream(Value.cast(interface.payload), interface.valid, interface.ready)


def _component(built: Built) -> Core:
    error = getattr(built.component, "error", None)
    inputs, outputs = ([stream_of(member) for member in members] for members in (built.inputs, built.outputs))
    pins = {
        name.removeprefix(_PINS): port
        for name, port in component_ports(built.component).items() if name.startswith(_PINS)
    }
    load, memory = (
        {name: port for name, (port, _) in component_ports(built.component).items() if name.startswith(prefix)}
        for prefix in (_LOAD, _MEMORY)
    )
    return Core(built.component, inputs, outputs, error, built.files, pins=pins, load=load, memory=memory)


def _instance(instance: str, module: CoreModule) -> Core:
    signals = {port.name: Signal(port.width, name=f"{instance}__{port.name}") for port in module.ports}
    wires = {f"{'o' if port.out else 'i'}_{port.name}": signals[port.name] for port in module.ports}
    body = Instance(module.name, i_clk=ClockSignal(), i_rst=ResetSignal(), **wires)
    inputs, outputs = (
        [Stream(*(signals[f"{name}__{part}"] for part in ("payload", "valid", "ready"))) for name in names]
        for names in (module.inputs, module.outputs)
    )
    pins = {
        port.name.removeprefix(_PINS): (signals[port.name], port.out)
        for port in module.ports if port.name.startswith(_PINS)
    }
    load, memory = (
        {port.name: signals[port.name] for port in module.ports if port.name.startswith(prefix)}
        for prefix in (_LOAD, _MEMORY)
    )
    return Core(body, inputs, outputs, signals.get("error"), module.files, module.rtlil, pins, load, memory)


_PINS = "pins__"  # of a core's member with that name
_LOAD = "load_"  # what the members of a loadable core begin with
_MEMORY = "memory_"  # and those of a queue's ends, and of the memory's
