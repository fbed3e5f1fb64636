"""The top module of an exported core: AXI4-Streams as ARM specifies them (IHI 0051) around the design's own top."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hwflow.codegen.emitted.comments import in_comment
from hwflow.codegen.emitted.packaging import PREFIX
from hwflow.display import show
from hwflow.exports.exported_core import ExportedCore
from hwflow.sim.manifest import Stream

REGISTER = Path(__file__).with_name("axis_register.v")

_HEADER = """\
// {name}: a quantized neural network made by hwflow from the ONNX model {model}. Verilog-2005.
// A frame every {interval} cycles; {latency} cycles from a frame's first beat to its result's first one.
// Every output but error comes from a flip-flop. {clock}: rising edge.
// {reset}: {reset_text}, for one cycle or more.
"""
_RESET_TEXT = {"rst": "synchronous reset, active high", "aresetn": "synchronous reset, active low"}


@dataclass(frozen=True)
class Port:
    """A port of the top module. ``bits``: None: a single one, without a range; ``what``: for a comment."""

    name: str
    bits: int | None
    out: bool
    what: str


def ports(core: ExportedCore) -> list[Port]:
    """Return the top module's ports, in order."""
    result = [
        Port(core.clock, None, False, "clock"),
        Port(core.reset, None, False, _RESET_TEXT[core.reset]),
    ]
    for stream in core.streams:
        out = stream.is_output
        result += [
            Port(f"{stream.port}_tdata", 8 * stream.tdata_bytes, out, "elements, the first in the lowest bytes"),
            Port(f"{stream.port}_tkeep", stream.tdata_bytes, out, "bytes that carry an element"),
            Port(f"{stream.port}_tlast", None, out, "the last beat of a frame"),
            Port(f"{stream.port}_tvalid", None, out, "there is a beat"),
            Port(f"{stream.port}_tready", None, not out, "the beat is taken"),
        ]
    what = "a frame of wrong length, or a beat that lacks a byte, since the last reset"
    return [*result, Port("error", None, True, what)]


def describe(stream: Stream) -> str:
    """Return what a stream carries, for people, in ASCII on one line."""
    signed = "int" if stream.signed else "uint"
    return in_comment(
        f"{'output' if stream.is_output else 'input'} {show(stream.name)}: {stream.beats} beats a frame, "
        f"{stream.lanes} x {signed}{stream.width} in {stream.element_bytes} bytes each; "
        f"{stream.pixels} pixels of {stream.channels} channels, channels fastest"
    )


def top_text(core: ExportedCore) -> str:
    """Return the Verilog of the module ``core.name`` and of the register stage that it instantiates."""
    latency = str(core.latency) if core.exact else f"at most {core.latency}"
    head = _HEADER.format(
        name=core.name, model=in_comment(show(core.model)), interval=core.interval, latency=latency, clock=core.clock,
        reset=core.reset, reset_text=_RESET_TEXT[core.reset],
    )
    if core.weights:
        head += '// WEIGHTS_DIR: the folder of the weights\' files, absolute or from where tools run.\n'
    parameters = ' #(\n    parameter WEIGHTS_DIR = "weights"\n)' if core.weights else ""
    lines = [*_port_lines(core)]
    registers = REGISTER.read_text().replace(PREFIX, core.name)
    return (
        f"{head}module {core.name}{parameters} (\n" + "\n".join(lines) + "\n);\n"
        + "\n".join(_body(core)) + f"\nendmodule\n\n{registers}"
    )


def _port_lines(core: ExportedCore) -> Iterator[str]:
    titles = {f"{stream.port}_tdata": describe(stream) for stream in core.streams}
    listed = ports(core)
    for port in listed:
        if port.name in titles:
            yield f"    // {titles[port.name]}"
        wide = "" if port.bits is None else f"[{port.bits - 1}:0] "
        comma = "" if port is listed[-1] else ","
        yield f"    {'output' if port.out else 'input '} wire {wide}{port.name}{comma}  // {port.what}"


def _body(core: ExportedCore) -> Iterator[str]:
    yield f"    wire reset = {core.resets};"
    yield "    wire core_error;"
    for stream in core.streams:
        yield ""
        yield f"    // {describe(stream)}"
        yield from _stream(core, stream)
    yield ""
    given = " #(.WEIGHTS_DIR(WEIGHTS_DIR))" if core.weights else ""
    connections = [f".clk({core.clock})", ".rst(reset)"]
    for stream in core.streams:
        pins = ("tdata", "tlast", "tvalid", "tready")
        connections += [f".{stream.port}_{pin}({stream.port}_core_{pin})" for pin in pins]
    if core.load is not None:  # nothing is loaded
        packets, answers = core.load
        connections += [f".{packets}_tdata(8'd0)", f".{packets}_tlast(1'b0)", f".{packets}_tvalid(1'b0)"]
        connections += [f".{packets}_tready()", f".{answers}_tready(1'b0)"]
        connections += [f".{answers}_{pin}()" for pin in ("tdata", "tlast", "tvalid")]
    connections.append(".error(core_error)")
    yield f"    {core.top}{given} core ("
    yield ",\n".join(f"        {connection}" for connection in connections)
    yield "    );"
    yield ""
    lacking = [f"{stream.port}_lacks" for stream in core.inputs]
    yield "    // A byte that a beat must have, and did not."
    yield "    reg lacked = 1'b0;"
    yield f"    always @(posedge {core.clock})"
    yield "        if (reset) lacked <= 1'b0;"
    yield f"        else if ({' || '.join(lacking)}) lacked <= 1'b1;"
    yield "    assign error = core_error || lacked;"


def _stream(core: ExportedCore, stream: Stream) -> Iterator[str]:
    """Yield a stream's wires at the design's top, the bytes that its present beat carries, and its registers."""
    port, size = stream.port, stream.tdata_bytes
    yield f"    wire [{8 * size - 1}:0] {port}_core_tdata;"
    yield f"    wire {port}_core_tlast, {port}_core_tvalid, {port}_core_tready;"
    yield from _carried(core, stream)
    outer = f"{{{port}_tkeep, {port}_tlast, {port}_tdata}}"
    inner = (
        f"{{{port}_carried, {port}_core_tlast, {port}_core_tdata}}" if stream.is_output
        else f"{{{port}_kept, {port}_core_tlast, {port}_core_tdata}}"
    )
    if not stream.is_output:
        yield f"    wire [{size - 1}:0] {port}_kept;"
    sides = (inner, f"{port}_core", outer, port) if stream.is_output else (outer, port, inner, f"{port}_core")
    yield f"    {core.name}_axis_register #(.WIDTH({9 * size + 1})) {port}_register ("
    yield f"        .clk({core.clock}), .rst(reset),"
    yield f"        .i_data({sides[0]}), .i_valid({sides[1]}_tvalid), .i_ready({sides[1]}_tready),"
    yield f"        .o_data({sides[2]}), .o_valid({sides[3]}_tvalid), .o_ready({sides[3]}_tready)"
    yield "    );"
    if not stream.is_output:
        yield (
            f"    wire {port}_lacks = {port}_core_tvalid && {port}_core_tready "
            f"&& |({port}_carried & ~{port}_kept);"
        )


def _carried(core: ExportedCore, stream: Stream) -> Iterator[str]:
    """Yield the wire of the bytes that the beat at the design's top carries: surplus lanes are null bytes."""
    port, size, beats = stream.port, stream.tdata_bytes, stream.beats_per_pixel
    last = stream.real_lanes(beats - 1) * stream.element_bytes
    every, some = f"{{{size}{{1'b1}}}}", f"{size}'b{'0' * (size - last)}{'1' * last}"
    if last == size or beats == 1:
        yield f"    wire [{size - 1}:0] {port}_carried = {every if last == size else some};"
        return
    bits = (beats - 1).bit_length()
    yield f"    reg [{bits - 1}:0] {port}_beat = {bits}'d0;  // of a pixel, whose last one has surplus bytes"
    yield f"    wire {port}_ends = {port}_beat == {bits}'d{beats - 1};"
    yield f"    wire [{size - 1}:0] {port}_carried = {port}_ends ? {some} : {every};"
    yield f"    always @(posedge {core.clock})"
    yield f"        if (reset) {port}_beat <= {bits}'d0;"
    yield (
        f"        else if ({port}_core_tvalid && {port}_core_tready) "
        f"{port}_beat <= {port}_ends || {port}_core_tlast ? {bits}'d0 : {port}_beat + 1'b1;"
    )
