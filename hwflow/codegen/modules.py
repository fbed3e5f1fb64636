"""Cores as modules of their own: each is converted to RTLIL apart from the others, its instances know its ports alone."""

from __future__ import annotations

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Fragment, Instance, ResetSignal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import Component, Out


class CoreInstance(Elaboratable):  # type: ignore[misc]  # Amaranth carries no annotations
    """An instance of module ``name``, which :func:`core_rtlil` makes of ``component``, on the component's own signals.

    In domain "sync", the only one that a core has.
    """

    def __init__(self, component: Component, name: str) -> None:
        self._component = component
        self._name = name

    def elaborate(self, platform: object) -> Instance:
        signals = {f"{'o' if out else 'i'}_{port}": value for port, (value, out) in _ports(self._component).items()}
        return Instance(self._name, i_clk=ClockSignal(), i_rst=ResetSignal(), **signals)


def core_rtlil(component: Component, name: str) -> str:
    """Module ``name`` and the modules below it, ``name.submodule``. Ports: clk, rst, those of the component's signature,
    parts of names joined by two underscores."""
    domain = ClockDomain("sync")
    fragment = Fragment.get(component, None)
    fragment.add_domains(domain)
    ports = {"clk": (domain.clk, PortDirection.Input), "rst": (domain.rst, PortDirection.Input)}
    for port, (value, out) in _ports(component).items():
        ports[port] = (value, PortDirection.Output if out else PortDirection.Input)
    text, _ = rtlil.convert_fragment(fragment, ports, name, emit_src=False)
    return text


def _ports(component: Component) -> dict[str, tuple[Value, bool]]:
    """Of each port of a component its value and whether it is an output."""
    return {
        "__".join(str(part) for part in path): (Value.cast(value), member.flow == Out)
        for path, member, value in component.signature.flatten(component)
    }
