"""The core that is exported: what an output folder says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwflow.codegen.emitted.packaging import PREFIX
from hwflow.display import printable, show_path
from hwflow.errors import UsageError
from hwflow.sim.manifest import Stream, load_design
from hwflow.sim.sim_errors import ManifestError

RST, ARESETN = RESETS = ("rst", "aresetn")
SLICE_CYCLES = 2
"""Cycles that the registers at both ends add to the design's latency."""


@dataclass(frozen=True)
class ExportedCore:
    """A design in the output folder ``out``, to be the module ``name`` around the design's own ``top``.

    ``reset``: the name of its reset, of :data:`RESETS`; ``sources`` and ``weights``: files of ``out``, with the Verilog
    and the tables; ``inputs`` and ``outputs``: its streams; ``interval`` and ``latency``: cycles between frames, and
    from a frame's first beat to its result's first one, with the registers at both ends; ``exact``: the latency is no
    bound. ``mhz``: the clock that it was made for. ``load``: the ports that load its tables, which are not
    exported.
    """

    out: Path
    name: str
    top: str
    reset: str
    model: str
    sources: tuple[Path, ...]
    weights: tuple[Path, ...]
    inputs: tuple[Stream, ...]
    outputs: tuple[Stream, ...]
    interval: int
    latency: int
    exact: bool
    mhz: float
    versions: Mapping[str, Any]
    load: tuple[str, str] | None = None

    @property
    def clock(self) -> str:
        """The name of its clock."""
        return "aclk" if self.reset == ARESETN else "clk"

    @property
    def resets(self) -> str:
        """An expression that is true while it is in reset."""
        return "!aresetn" if self.reset == ARESETN else "rst"

    @property
    def streams(self) -> tuple[Stream, ...]:
        return self.inputs + self.outputs

    @property
    def rtl(self) -> list[str]:
        """The Verilog files of an export, the top module's first, relative to its folder."""
        return [f"rtl/{self.name}.v", *(f"rtl/{source.name}" for source in self.sources)]

    @property
    def tables(self) -> list[str]:
        """The files of weights of an export, relative to its folder."""
        return [f"weights/{file.name}" for file in self.weights]

    @property
    def frames_per_second(self) -> float:
        return self.mhz * 1e6 / self.interval


def core_in(out: Path, reset: str) -> ExportedCore:
    """Return the core of an output folder. Raises :class:`UsageError` where it is none, or is not whole."""
    try:
        design = load_design(out)
        table = json.loads((out / "manifest.json").read_text())
        report = json.loads((out / "report.json").read_text())
        mhz, timing = float(report["clock"]["target_mhz"]), table["timing"]
        interval, latency = int(timing["initiation_interval"]), int(timing["latency"])
    except (ManifestError, OSError, ValueError, KeyError, TypeError) as error:
        raise _not_whole(out, str(error)) from None
    if "memory" in table:
        raise UsageError.of(
            "export-memory", f"folder {show_path(out)}",
            "must be of a design without a memory beside it",
            "make it with 'hwflow synth --memory none'; or instantiate the module in design.v, with the ports to "
            "its memory (docs/reference/ports.md)",
        )
    missing = next((file for file in (*design.sources, *design.weights) if not file.is_file()), None)
    if missing is not None:
        raise _not_whole(out, f"{missing.name} is missing")
    return ExportedCore(
        out, design.top.removesuffix("_top") or PREFIX, design.top, reset, design.model, design.sources, design.weights,
        design.inputs, design.outputs, interval, latency + SLICE_CYCLES, bool(timing.get("exact", True)), mhz,
        table.get("versions") or {}, None if design.load is None else (design.load.input, design.load.output),
    )


def _not_whole(out: Path, why: str) -> UsageError:
    return UsageError.of(
        "output-folder", f"folder {show_path(out)}", f"must be an output folder of hwflow synth: {printable(why)}",
        "make it with 'hwflow synth MODEL --board BOARD --until verilog'",
    )
