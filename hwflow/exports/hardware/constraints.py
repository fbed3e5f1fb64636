"""Timing constraints of an exported core that is a project's top module: its clock, in the languages of the tools."""

from __future__ import annotations

from hwflow.exports.exported_core import ExportedCore


def constraints(core: ExportedCore) -> dict[str, str]:
    """Return the text for each file, by its ending."""
    period = f"{1000 / core.mhz:.3f}"
    about = f"the clock that the design was made for; where {core.name} is inside a design, its clock comes from there"
    clock = f"create_clock -name {core.clock} -period {period} [get_ports {core.clock}]\n"
    return {
        "sdc": f"# {core.name}: {about}\n{clock}",
        "xdc": f"# {core.name}: {about}\n{clock}",
        "lpf": f"# {core.name}: {about}\nFREQUENCY PORT \"{core.clock}\" {core.mhz:.3f} MHZ;\n",
    }
