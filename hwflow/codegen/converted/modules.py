"""Convert cores to RTLIL as separate modules, so that conversions can run in parallel.

Repeated parts of a core (:mod:`hdl_lib.shared`) are modules, too, each converted once. Modules that cores share are
only instantiated; :mod:`hwflow.codegen.converted.common` adds them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Fragment, Instance, Module, ResetSignal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import Component, Out

from hdl_lib.shared import CommonComponent, SharedComponent
from hwflow.codegen.converted.equal_cores import NoStructure, structure_of
from hwflow.codegen.converted.initial_contents import without_initial_contents
from hwflow.codegen.converted.rtlil_text import legal, readable
from hwflow.cores.loadable_tables import with_writers
from hwflow.cores.operator import Decision, MemoryFile
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Node
from hwflow.processes import uncollected


class Job(NamedTuple):
    """A node and its decision, with the names of its instance and its module."""

    node: Node
    decision: Decision
    instance: str
    module: str


@dataclass(frozen=True)
class Common:
    """A component that cores may share: its class and its key."""

    kind: type[CommonComponent]
    key: tuple[tuple[str, int | str | None], ...]

    def with_depth(self, depth: int) -> Common:
        """Set the depth, if it is open."""
        key = tuple((name, depth if name == "depth" and value is None else value) for name, value in self.key)
        return Common(self.kind, key)

    def build(self) -> CommonComponent:
        """Build the component."""
        made: Callable[..., CommonComponent] = self.kind
        return made(**dict(self.key))


@dataclass(frozen=True)
class ModulePort:
    """A port of ``width`` bits; ``out``: an output."""

    name: str
    width: int
    out: bool


@dataclass(frozen=True)
class CoreModule:
    """A core's module and those below it (``name.submodule``) as RTLIL, with names legal in Verilog.

    ``ports``: besides clk and rst, those of the component's signature, with the parts of a name joined by two
    underscores. ``inputs`` and ``outputs``: the prefixes of its streams' ports, in the node's order. ``common``: shared
    modules that ``rtlil`` instantiates but does not contain, by the name used there; a core that is itself shared has
    no ``rtlil``, and is in ``common`` by its ``name``.
    """

    name: str
    rtlil: str
    ports: tuple[ModulePort, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    files: list[MemoryFile]
    common: dict[str, Common]


def core_module(job: Job) -> CoreModule:
    """Convert a node's core to a module."""
    node, decision, instance, name = job
    built = with_writers(hardware(node.op).build(node, decision, instance))
    ports = component_ports(built.component)
    at = {id(value): port for port, (value, _) in ports.items()}
    inputs, outputs = (
        tuple(at[id(member.valid)].removesuffix("__valid") for member in members)
        for members in (built.inputs, built.outputs)
    )
    described = tuple(ModulePort(port, len(value), out) for port, (value, out) in ports.items())
    text, common = _core_rtlil(built.component, instance, name)
    files = [file.without_port() for file in built.files]
    return CoreModule(name, text, described, inputs, outputs, files, common)


class _Converted(NamedTuple):
    """What a core became, and the names that it was converted with."""

    instance: str
    module: str
    rtlil: str
    common: dict[str, Common]

    def renamed(self, instance: str, module: str) -> tuple[str, dict[str, Common]]:
        """Return it for another core: names of its modules and of its files begin with those of the core."""
        ours, theirs = legal(self.module), legal(module)
        text = self.rtlil.replace(ours, theirs).replace(f"weights/{self.instance}", f"weights/{instance}")
        return text, {name.replace(ours, theirs): common for name, common in self.common.items()}


_CONVERTED: OrderedDict[Hashable, _Converted] = OrderedDict()  # the latest ones
MOST_CONVERTED, LONGEST = 64, 1 << 20  # of them, and of a text in characters


def _core_rtlil(component: Component, instance: str, module: str) -> tuple[str, dict[str, Common]]:
    """Return :func:`_rtlil` of a core; from an equal core that was converted lately only its names differ."""
    try:
        key = structure_of(component, instance)
    except NoStructure:
        return _rtlil(component, module)
    if key in _CONVERTED:
        _CONVERTED.move_to_end(key)
        return _CONVERTED[key].renamed(instance, module)
    text, common = _rtlil(component, module)
    if len(text) <= LONGEST:
        _CONVERTED[key] = _Converted(instance, module, text, common)
        if len(_CONVERTED) > MOST_CONVERTED:
            _CONVERTED.popitem(last=False)
    return text, common


@lru_cache(maxsize=1024)
def common_module(common: Common, name: str) -> tuple[str, dict[str, Common]]:
    """Return its module as RTLIL, and the shared modules that this instantiates, as in :class:`CoreModule`. Designs
    have many in common."""
    component = common.build()
    return _rtlil(component, name, component)


class _Parts:
    """The platform of a core: creates one module, ``core.name``, for all equal shared components, except ``itself``,
    whose module is the core's."""

    def __init__(self, core: str, itself: SharedComponent | None = None) -> None:
        self._core = core
        self._itself = itself
        self._modules: dict[object, tuple[SharedComponent, str]] = {}

    @property
    def modules(self) -> list[tuple[SharedComponent, str]]:
        """Return a component of each kind so far, with the name of its module."""
        return list(self._modules.values())

    @property
    def common(self) -> dict[str, Common]:
        """Return the components that other cores may share."""
        return {
            legal(name): Common(type(part), part.key)
            for part, name in self._modules.values() if isinstance(part, CommonComponent)
        }

    def share(self, component: SharedComponent) -> Instance | Module:
        """Return an instance connected to the component's ports."""
        if component is self._itself:
            return component.build()
        kind = type(component), component.key
        if kind not in self._modules:
            others = sum(other.name == component.name for other, _ in self._modules.values())
            name = f"{self._core}.{component.name}" + (f"_{others + 1}" if others else "")
            self._modules[kind] = component, name
        _, module = self._modules[kind]
        ports = {f"{'o' if out else 'i'}_{port}": value for port, (value, out) in component_ports(component).items()}
        return Instance(module, i_clk=ClockSignal(), i_rst=ResetSignal(), **ports)


def _rtlil(component: Component, name: str, itself: SharedComponent | None = None) -> tuple[str, dict[str, Common]]:
    """Return module ``name`` with its submodules and parts as RTLIL, and the shared modules that it lacks. For a shared
    component only the latter, unless it is ``itself`` the module."""
    parts = _Parts(name, itself)
    with uncollected(), without_initial_contents():
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
    for port, (value, out) in component_ports(component).items():
        directed[port] = value, PortDirection.Output if out else PortDirection.Input
    fragment = Fragment.get(hardware, platform)
    fragment.add_domains(domain)
    text, _ = rtlil.convert_fragment(fragment, directed, name, emit_src=False)
    return str(text)


def component_ports(component: Component) -> dict[str, tuple[Value, bool]]:
    """Return for each port of a component its value and whether it is an output. The parts of a name are joined by two
    underscores."""
    return {
        "__".join(str(part) for part in path): (Value.cast(value), member.flow == Out)
        for path, member, value in component.signature.flatten(component)
    }


def weight(job: Job) -> int:
    """Estimate the relative time to convert a core."""
    folding = job.decision.folding
    return 4 * folding.multipliers + folding.input_lanes + folding.output_lanes
