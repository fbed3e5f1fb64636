"""Cores as modules of their own, each converted to RTLIL apart from the others, so that several can be at a time.

The parts of which a core has several that are alike (:mod:`hdl_lib.shared`) are modules of their own as well, each
converted once.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Fragment, Instance, ResetSignal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import Component, Out

from hdl_lib.shared import SharedComponent
from hwflow.codegen.rtlil_text import readable
from hwflow.ir.graph import Node
from hwflow.ops.operator import Built, MemoryFile
from hwflow.ops.registry import hardware
from hwflow.processes import shared

Job = tuple[Node, str, str]
"""A node, the name of its instance and the one of its module."""


@dataclass(frozen=True)
class ModulePort:
    """``width`` bits; ``out``: an output."""

    name: str
    width: int
    out: bool


@dataclass(frozen=True)
class CoreModule:
    """A core's module and those below it (``name.submodule``) as RTLIL, names legal in Verilog.

    ``ports``: beside clk and rst, those of the component's signature, the parts of a name joined by two underscores.
    ``inputs`` and ``outputs``: what the names of the ports of its streams begin with, in the node's order.
    """

    name: str
    rtlil: str
    ports: tuple[ModulePort, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    files: list[MemoryFile]


def build(node: Node, instance: str) -> Built:
    """The core of a node of a scheduled graph."""
    attributes = node.attributes
    return hardware(node.op).build(node, attributes["folding"], attributes["depths"], instance)


def core_modules(jobs: Sequence[Job], executor: Executor | None) -> list[CoreModule]:
    """Every core's module, made here and by ``executor``."""
    return shared(core_module, jobs, executor, _weight)


def core_module(job: Job) -> CoreModule:
    """The module of a node's core."""
    node, instance, name = job
    built = build(node, instance)
    ports = _ports(built.component)
    at = {id(value): port for port, (value, _) in ports.items()}
    inputs, outputs = (
        tuple(at[id(member.valid)].removesuffix("__valid") for member in members)
        for members in (built.inputs, built.outputs)
    )
    described = tuple(ModulePort(port, len(value), out) for port, (value, out) in ports.items())
    return CoreModule(name, readable(_rtlil(built.component, name)), described, inputs, outputs, built.files)


class _Parts:
    """The platform of a core, which makes one module, ``core.name``, of all shared components that are alike."""

    def __init__(self, core: str) -> None:
        self._core = core
        self._modules: dict[object, tuple[SharedComponent, str]] = {}

    @property
    def modules(self) -> list[tuple[SharedComponent, str]]:
        """A component of each kind that there was so far, with the name of the module that is to be made of it."""
        return list(self._modules.values())

    def share(self, component: SharedComponent) -> Instance:
        """An instance on its ports."""
        kind = type(component), component.key
        if kind not in self._modules:
            others = sum(other.name == component.name for other, _ in self._modules.values())
            name = f"{self._core}.{component.name}" + (f"_{others + 1}" if others else "")
            self._modules[kind] = component, name
        _, module = self._modules[kind]
        ports = {f"{'o' if out else 'i'}_{port}": value for port, (value, out) in _ports(component).items()}
        return Instance(module, i_clk=ClockSignal(), i_rst=ResetSignal(), **ports)


def _rtlil(component: Component, name: str) -> str:
    """Module ``name``, its submodules and its parts."""
    parts = _Parts(name)
    with uncollected():
        texts = [_converted(component, component, name, parts)]
        while len(texts) <= len(parts.modules):  # parts may have parts
            part, module = parts.modules[len(texts) - 1]
            texts.append(_converted(part, part.build(), module, parts))
    return "".join(texts)


def _converted(component: Component, hardware: Elaboratable, name: str, platform: _Parts) -> str:
    domain = ClockDomain("sync")  # the only one that a core has
    directed: dict[str, Any] = {"clk": (domain.clk, PortDirection.Input), "rst": (domain.rst, PortDirection.Input)}
    for port, (value, out) in _ports(component).items():
        directed[port] = value, PortDirection.Output if out else PortDirection.Input
    fragment = Fragment.get(hardware, platform)
    fragment.add_domains(domain)
    text, _ = rtlil.convert_fragment(fragment, directed, name, emit_src=False)
    return str(text)


@contextmanager
def uncollected() -> Iterator[None]:
    """Without Python's cyclic garbage collector: a netlist is a great many objects that stay, and looking through them
    again and again takes as long as making them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _ports(component: Component) -> dict[str, tuple[Value, bool]]:
    """Of each port of a component its value and whether it is an output."""
    return {
        "__".join(str(part) for part in path): (Value.cast(value), member.flow == Out)
        for path, member, value in component.signature.flatten(component)
    }


def _weight(job: Job) -> int:
    """Grows with the time that the conversion of a core takes."""
    folding = job[0].attributes["folding"]
    return 4 * int(folding.multipliers) + int(folding.input_lanes) + int(folding.output_lanes)
