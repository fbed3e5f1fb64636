"""The recipe of the bulk harness of an emitted design: our C++ and what it must know of the design's ports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .manifest import Design, Stream
from .taps import Tap
from .verilator_build import Recipe

_PREFIX = "Vdut"


def harness_recipe(design: Design, taps: Sequence[Tap] = ()) -> Recipe:
    """Return the recipe of ``design``'s harness; ``taps``: streams of the design to record."""
    folder = Path(__file__).resolve().parent / "verilator"
    headers = {"hwflow_pins.h": pins_header(design, taps)}
    own, common = (folder / "verilated_design.cpp",), (folder / "harness.cpp",)
    return Recipe("harness", _PREFIX, design.top, tuple(design.sources), own, headers, common)


def pins_header(design: Design, taps: Sequence[Tap] = ()) -> str:
    """Return the C++ header with the names and widths of the model's ports."""
    lines = [f'#include "{_PREFIX}.h"', f"typedef {_PREFIX} Model;", "static void connect(Design& d, Model& m) {"]
    for s in design.streams:
        words = (s.tdata_bytes + 3) // 4
        size = 4 * words if words != 2 else 8
        size = {1: 1, 2: 2}.get(s.tdata_bytes, size)
        message = f"{s.port}_tdata must be {8 * s.tdata_bytes} bits wide"
        lines.append(f'    static_assert(sizeof(m.{s.port}_tdata) == {size}, "{message}");')
    lines += [
        f"    d.clock = &m.{design.clock};",
        f"    d.reset = &m.{design.reset};",
        f"    d.error = {f'&m.{design.error}' if design.error else 'nullptr'};",
    ]
    lines += [f"    d.pins.push_back({_pins(s)});" for s in design.streams]
    for port, way in () if design.load is None else ((design.load.input, "false"), (design.load.output, "true")):
        pins = _flags(port, ("tdata", "tvalid", "tready", "tlast"))
        lines.append(f'    d.load.push_back({{"{port}", {way}, 1, {pins}}});')
    lines += [f"    d.taps.push_back({_tap(tap)});" for tap in taps]
    return "\n".join([*lines, "}", ""])


def _tap(tap: Tap) -> str:
    payload, valid, ready = (
        "&m." + f"{tap.port}__{pin}".replace("__", "___05F") for pin in ("payload", "valid", "ready")
    )  # as Verilator spells two underscores
    return f'{{"{tap.port}", {tap.bytes}, {payload}, {valid}, {ready}}}'


def _pins(s: Stream) -> str:
    flags = _flags(s.port, ("tvalid", "tready", "tlast"))
    return f'{{"{s.port}", {str(s.is_output).lower()}, {s.tdata_bytes}, &m.{s.port}_tdata, {flags}}}'


def _flags(port: str, pins: Sequence[str]) -> str:
    return ", ".join(f"&m.{port}_{pin}" for pin in pins)
