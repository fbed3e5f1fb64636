"""What a waveform viewer opens beside a waveform: the streams in groups, a group for each layer.

``F.gtkw`` is for GTKWave (``gtkwave F.gtkw``), ``F.sucl`` for Surfer (``surfer F.vcd -c F.sucl``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwflow.codegen.emitted.comments import in_comment
from hwflow.display import show
from hwflow.sim.manifest import Design

_MODULE = re.compile(r"(?ms)^module (\w+)\((.*?)^endmodule")
_INSTANCE = re.compile(r"(?m)^  (\w+) (?:#\(.*\) )?(\w+) \($")
_PORT = re.compile(r"(?m)^  (?:input|output) (?:\[(\d+):0\] )?(\w+);")
_PINS = ("valid", "ready", "payload")
_AXIS = ("tvalid", "tready", "tlast", "tdata")


@dataclass(frozen=True)
class Shown:
    """A signal: its name with all scopes, its bits, and whether it is one signed number."""

    path: str
    bits: int
    signed: bool = False


@dataclass(frozen=True)
class Group:
    """Signals under a title."""

    title: str
    signals: tuple[Shown, ...]


def write_views(wave: Path, out: Path, design: Design, top: str, simulator: str) -> list[Path]:
    """Write the views of the waveform of a run of ``design`` in ``out``, whose top module was ``top``, beside it, and
    return their paths."""
    root = f"TOP.{top}" if simulator == "verilator" else top
    table = json.loads((out / "manifest.json").read_text())
    text = "".join(source.read_text() for source in design.sources)
    groups = list(_groups(root, table, text, design))
    gtkwave, surfer = wave.with_suffix(".gtkw"), wave.with_suffix(".sucl")
    gtkwave.write_text("\n".join(_gtkwave(wave, groups)) + "\n")
    surfer.write_text("\n".join(_surfer(groups)) + "\n")
    return [gtkwave, surfer]


def _groups(root: str, table: dict[str, Any], text: str, design: Design) -> Iterator[Group]:
    modules = {name: body for name, body in _MODULE.findall(text)}
    yield Group("clock", tuple(Shown(f"{root}.{name}", 1) for name in (design.clock, design.reset)))
    for stream in design.inputs:
        yield _axis(root, stream.port, 8 * stream.tdata_bytes, f"input {show(stream.name)}")
    instances = {instance: module for module, instance in _INSTANCE.findall(modules.get(design.top, ""))}
    seen = set()
    for tap in table["streams"]:
        instance = tap["instance"]
        if instance in seen or instance not in instances:
            continue
        seen.add(instance)
        nodes = ", ".join(show(node) for node in tap["nodes"])
        title = f"{instance}: {tap['op']}{f' of {nodes}' if nodes else ''}"
        signed = tap["element"]["signed"] and tap["lanes"] == 1
        yield Group(in_comment(title), tuple(_streams(f"{root}.{instance}", modules[instances[instance]], signed)))
    for stream in design.outputs:
        yield _axis(root, stream.port, 8 * stream.tdata_bytes, f"output {show(stream.name)}")
    if design.error is not None:
        yield Group("error", (Shown(f"{root}.{design.error}", 1),))


def _axis(root: str, port: str, bits: int, title: str) -> Group:
    signals = tuple(Shown(f"{root}.{port}_{pin}", bits if pin == "tdata" else 1) for pin in _AXIS)
    return Group(in_comment(f"{port}: {title}"), signals)


def _streams(scope: str, module: str, signed: bool) -> Iterator[Shown]:
    """Yield the streams of a core's module, inputs first; ``signed``: its outputs' elements are, and alone."""
    widths = {name: int(high or 0) + 1 for high, name in _PORT.findall(module)}
    streams = dict.fromkeys(name.rpartition("__")[0] for name in widths if name.rpartition("__")[2] in _PINS)
    for stream in sorted(streams, key=lambda name: (not name.startswith("i"), name)):
        for pin in _PINS:
            if (name := f"{stream}__{pin}") in widths:
                number = signed and pin == "payload" and stream.startswith("o")
                yield Shown(f"{scope}.{name}", widths[name], number)


def _gtkwave(wave: Path, groups: Sequence[Group]) -> Iterator[str]:
    yield "[*] Made by hwflow."
    yield f'[dumpfile] "{wave.absolute()}"'
    yield "[timestart] 0"
    for group in groups:
        yield "@800200"  # begins a group
        yield f"-{group.title}"
        for signal in group.signals:
            yield "@420" if signal.signed else "@28" if signal.bits == 1 else "@22"  # signed, binary, hexadecimal
            yield signal.path if signal.bits == 1 else f"{signal.path}[{signal.bits - 1}:0]"
        yield "@1000200"  # ends it
        yield f"-{group.title}"


def _surfer(groups: Sequence[Group]) -> Iterator[str]:
    for group in groups:
        yield f"divider_add {group.title}"
        for signal in group.signals:
            yield f"variable_add {signal.path}"
    yield "zoom_fit"
