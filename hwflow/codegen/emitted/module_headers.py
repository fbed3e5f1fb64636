"""Comments in the emitted Verilog: what each module is, and what its ports carry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from inspect import signature

from hdl_lib.shared import CommonComponent
from hwflow.codegen.emitted.comments import in_comment
from hwflow.codegen.emitted.packaging import TOP, Packaging
from hwflow.codegen.top import StreamPort, Top
from hwflow.cores.loops.repeated import core_of
from hwflow.cores.registry import hardware
from hwflow.display import show
from hwflow.ir.graph import Node, Value
from hwflow.schedule.plan import Plan

_MODULE = re.compile(r"(?m)^module (\w+)\(.*\n")
_PORT = re.compile(r"(?m)^(  (?:input|output) (?:\[\d+:0\] )?)(\w+);\n(?:  wire (?:\[\d+:0\] )?\2;\n)?")
_COMMON = {"clk": "clock, rising edge", "rst": "synchronous reset, active high"}
_STREAM = {"valid": "there is a beat", "ready": "the beat is taken", "payload": "a beat"}
_AXIS = {
    "tdata": "elements in whole bytes, the first in the lowest", "tvalid": "there is a beat",
    "tready": "the beat is taken", "tlast": "the last beat of a frame",
}
_ERROR = "a frame of wrong length since reset"
_MOST_NAMES = 8  # of ONNX nodes in a header


def with_headers(verilog: str, top: Top, packaging: Packaging) -> str:
    """Return the modules with comments. ``verilog``: as yosys writes it, with the names of ``packaging``."""
    nodes = {top.names[node.name]: node for node in top.graph.nodes}
    prefix = f"{packaging.module(TOP)}__"
    kinds = {kind.module_name: kind for kind in _subclasses(CommonComponent)}
    parts: list[str] = []
    at = 0
    found = list(_MODULE.finditer(verilog))
    for number, module in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(verilog)
        path = module[1].removeprefix(prefix).split("__")
        node = nodes.get(path[0]) if module[1].startswith(prefix) else None
        if module[1] == packaging.module(TOP):
            lines = list(_of_top(top))
        elif node is not None:
            lines = list(_of_node(node, path, top.plan))
        else:
            lines = _of_common(path, kinds)
        beats = _beats(node, top.plan) if node is not None and len(path) == 1 else {}
        parts.append(verilog[at : module.start()])
        parts += [f"// {in_comment(line)}\n" for line in lines]
        parts.append(_PORT.sub(partial(_port, beats), verilog[module.start() : end]))
        at = end
    return "".join((*parts, verilog[at:]))


def _subclasses(kind: type[CommonComponent]) -> Iterator[type[CommonComponent]]:
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)


def _of_top(top: Top) -> Iterator[str]:
    yield "The core: one instance for each node of the dataflow graph, AXI4-Streams at its ends."
    for stream in (*top.inputs, *top.outputs):
        yield f"{stream.prefix}: {show(stream.port.name)}, {_axis(stream)}"


def _axis(stream: StreamPort) -> str:
    pixels, channels = stream.view
    return (
        f"{_many(stream.beats, 'beat')} a frame, {stream.lanes} x {stream.type.element} in "
        f"{_many(stream.element_bytes, 'byte')} each; {_many(pixels, 'pixel')} of {_many(channels, 'channel')}"
    )


def _of_node(node: Node, path: list[str], plan: Plan) -> Iterator[str]:
    core, decision = core_of(node), plan[node]
    whose = _sources(node)
    if len(path) > 1:
        yield f"Part of {path[0]} ({core.op}{whose}): {' '.join(path[1:])}."
        return
    yield f"{path[0]}: {core.op}{whose}."
    folding, timing = decision.folding, hardware(node.op).timing(node, decision)
    ins = ", ".join(_carried(value, folding.input_lanes) for value in node.inputs)
    outs = ", ".join(_carried(value, folding.output_lanes) for value in node.outputs)
    yield f"In: {ins}. Out: {outs}."
    many = _many(folding.multipliers, "multiplier")
    multipliers = f"{many} ({folding.multiplier}). " if folding.multipliers else ""
    frame, latency = _many(timing.cycles, "cycle"), _many(max(timing.latency, default=0), "cycle")
    yield f"{multipliers}A frame takes {frame}; latency {latency}."


def _sources(node: Node) -> str:
    names = [show(name) for name in node.sources[:_MOST_NAMES]]
    if not names:
        return ""
    more = f" and {len(node.sources) - len(names)} more" if len(node.sources) > len(names) else ""
    return f" of the ONNX node{'s' if len(node.sources) > 1 else ''} {', '.join(names)}{more}"


def _carried(value: Value, lanes: int) -> str:
    pixels, channels = value.typed.shape
    of_pixels, of_channels = _many(pixels, "pixel"), _many(channels, "channel")
    return f"{of_pixels} x {of_channels} of {value.typed.element}, {lanes} a beat"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _of_common(path: list[str], kinds: Mapping[str, type[CommonComponent]]) -> list[str]:
    """Describe a module that cores share, or what the top has for a stream."""
    kind = kinds.get(path[0])
    if kind is None or len(path) < 2:
        return [f"Part of the top: {' '.join(path)}."]
    what = " ".join((kind.__doc__ or path[0]).strip().split("\n\n")[0].split()).replace("`", "")
    names = ", ".join(name for name in signature(kind.__init__).parameters if name != "self")
    part = f" Part of it: {' '.join(path[2:])}." if len(path) > 2 else ""
    return [f"{path[0]} {path[1]} ({names}), shared by equal ones.{part} {what}"]


def _beats(node: Node, plan: Plan) -> dict[str, str]:
    """Return what the streams of a core's module carry, by the name that they have if there is one of the kind."""
    folding = plan.folding(node)
    result = {}
    for name, values, lanes in (("i", node.inputs, folding.input_lanes), ("o", node.outputs, folding.output_lanes)):
        if len({value.typed.element for value in values}) == 1:
            result[name] = f"{lanes} x {values[0].typed.element}"
    return result


def _port(beats: Mapping[str, str], port: re.Match[str]) -> str:
    name = port[2]
    stream, _, pin = name.rpartition("__")
    what = _COMMON.get(name) or (_ERROR if name == "error" else None)
    if what is None and stream:
        what = _STREAM.get(pin)
        if pin == "payload" and stream.split("__")[0] in beats:
            what = f"a beat: {beats[stream.split('__')[0]]}"
    if what is None and "_axis_" in name:
        what = _AXIS.get(name.rpartition("_")[2])
    declared = f"{port[1]}{name};"
    return f"{declared}  // {what}\n" if what else f"{declared}\n"
