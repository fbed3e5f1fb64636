"""Cores as modules of their own, each converted to RTLIL apart from the others, so that several can be at a time.

The parts of which a core has several that are alike (:mod:`hdl_lib.shared`) are modules of their own as well, each
converted once. Those that other cores may have as well are left to :mod:`hwflow.codegen.common`: a module only names
them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Fragment, Instance, Module, ResetSignal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import Component, Out

from hdl_lib.shared import CommonComponent, SharedComponent
from hwflow.codegen.rtlil_text import legal, readable
from hwflow.cores.operator import Built, MemoryFile
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Node

TOP = "hwflow_top"
"""The module of the top level."""

Job = tuple[Node, str, str]
"""A node, the name of its instance and the one of its module."""


@dataclass(frozen=True)
class Common:
    """A component that cores of the design may share: its class and its key."""

    kind: type[CommonComponent]
    key: tuple[tuple[str, int | str | None], ...]

    def with_depth(self, depth: int) -> Common:
        """With this depth, if it has none yet."""
        key = tuple((name, depth if name == "depth" and value is None else value) for name, value in self.key)
        return Common(self.kind, key)

    def build(self) -> CommonComponent:
        """One of them."""
        made: Callable[..., CommonComponent] = self.kind
        return made(**dict(self.key))


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
    ``inputs`` and ``outputs``: what the names of the ports of its streams begin with, in the node's order. ``common``:
    what is instantiated but not in ``rtlil``, by the name used there; a core that is one of those as a whole has no
    ``rtlil``, and itself by its ``name``.
    """

    name: str
    rtlil: str
    ports: tuple[ModulePort, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    files: list[MemoryFile]
    common: dict[str, Common]


def build(node: Node, instance: str) -> Built:
    """The core of a node of a scheduled graph."""
    attributes = node.attributes
    return hardware(node.op).build(node, attributes["folding"], attributes["depths"], instance)


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
    text, common = _rtlil(built.component, name)
    return CoreModule(name, text, described, inputs, outputs, built.files, common)


def common_module(common: Common, name: str) -> tuple[str, dict[str, Common]]:
    """Its module as RTLIL, and what that names, as in :class:`CoreModule`."""
    component = common.build()
    return _rtlil(component, name, component)


class _Parts:
    """The platform of a core, which makes one module, ``core.name``, of all shared components that are alike; but not
    of ``itself``, whose module the core's is."""

    def __init__(self, core: str, itself: SharedComponent | None = None) -> None:
        self._core = core
        self._itself = itself
        self._modules: dict[object, tuple[SharedComponent, str]] = {}

    @property
    def modules(self) -> list[tuple[SharedComponent, str]]:
        """A component of each kind that there was so far, with the name of the module that is to be made of it."""
        return list(self._modules.values())

    @property
    def common(self) -> dict[str, Common]:
        """Those of them that other cores may have as well."""
        return {
            legal(name): Common(type(part), part.key)
            for part, name in self._modules.values() if isinstance(part, CommonComponent)
        }

    def share(self, component: SharedComponent) -> Instance | Module:
        """An instance on its ports."""
        if component is self._itself:
            return component.build()
        kind = type(component), component.key
        if kind not in self._modules:
            others = sum(other.name == component.name for other, _ in self._modules.values())
            name = f"{self._core}.{component.name}" + (f"_{others + 1}" if others else "")
            self._modules[kind] = component, name
        _, module = self._modules[kind]
        ports = {f"{'o' if out else 'i'}_{port}": value for port, (value, out) in _ports(component).items()}
        return Instance(module, i_clk=ClockSignal(), i_rst=ResetSignal(), **ports)


def _rtlil(component: Component, name: str, itself: SharedComponent | None = None) -> tuple[str, dict[str, Common]]:
    """Module ``name``, its submodules and its parts, but for those that other cores may have as well, and these. One of
    those has nothing else, unless it is meant ``itself``."""
    parts = _Parts(name, itself)
    with uncollected():
        if isinstance(component, CommonComponent) and component is not itself:
            Fragment.get(component, parts)
            return "", {legal(name): common for common in parts.common.values()}
        texts = [_converted(component, component, name, parts)]
        made = 0
        while made < len(parts.modules):  # parts may have parts
            part, module = parts.modules[made]
            if not isinstance(part, CommonComponent):
                texts.append(_converted(part, part.build(), module, parts))
            made += 1
    return readable("".join(texts)), parts.common


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


def weight(job: Job) -> int:
    """Grows with the time that the conversion of a core takes."""
    folding = job[0].attributes["folding"]
    return 4 * int(folding.multipliers) + int(folding.input_lanes) + int(folding.output_lanes)
