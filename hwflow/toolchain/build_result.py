"""The result of a build, with open or vendor tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hwflow.toolchain.nextpnr import ClockResult


@dataclass(frozen=True)
class BuildResult:
    """The result of a build.

    ``resources`` (``lut``, ``ff``, ``dsp``, ``bram``) are of the whole board's top: after place and route nextpnr's
    counts (``lut``: ECP5 TRELLIS_COMB, that is look-up tables including carry and distributed RAM; iCE40 logic cells),
    before that those of the netlist (:data:`hwflow.toolchain.yosys.CELLS`). ``design_resources`` are the netlist's for
    the design (``hwflow_top``) alone: LUTs, flip-flops and block RAMs after synthesis, multiplier blocks after packing
    (:mod:`hwflow.toolchain.packing`); ``design_cells`` are the same by the beginnings of the cells' hierarchical names
    in the design, ``link_resources`` the netlist's for all around it (both {} of a vendor's tool).
    ``fmax_mhz`` is the design clock's, ``link_clocks`` are the other ``clocks``, ``available`` is the part's as
    nextpnr counts it. Before place and route they are None, () and {}, and ``timing_met``, of all clocks, is None.
    ``seconds`` has an entry per step: ``synthesis``, ``registers`` (:mod:`hwflow.toolchain.packing`),
    ``place_route``, ``pack``. Paths are absolute. ``reused``: the steps that were up to date
    (:mod:`hwflow.toolchain.up_to_date`), with the seconds of the earlier run.
    """

    design_clock_mhz: float
    clocks: tuple[ClockResult, ...]
    fmax_mhz: float | None
    timing_met: bool | None
    resources: dict[str, int]
    design_resources: dict[str, int]
    available: dict[str, int]
    seconds: dict[str, float]
    netlist: Path | None  # a vendor's tool keeps its own
    bitstream: Path | None
    reused: tuple[str, ...] = ()
    link_resources: Mapping[str, int] = field(default_factory=dict)
    link_clocks: tuple[ClockResult, ...] = ()
    design_cells: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def miss(self) -> str:
        """The clock that is missed, in words: the design's, or else one of the link's."""
        if self.fmax_mhz is not None and self.fmax_mhz < self.design_clock_mhz:
            return f"{self.fmax_mhz:.1f} MHz is below {self.design_clock_mhz:g} MHz"
        for clock in self.link_clocks:
            if not clock.met:
                return f"{clock.achieved_mhz:.1f} MHz of {clock.name} is below {clock.constraint_mhz:g} MHz"
        return ""
