"""A self-checking test bench in Verilog: golden frames through the exported core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hwflow.exports.exported_core import ExportedCore
from hwflow.sim.manifest import Stream
from hwflow.sim.testbench import VECTORS
from hwflow.sim.vectors import Vectors, load_vectors, pack

_BENCH = """\
`timescale 1ns / 1ps
// Golden frames through {name}: prints PASS, or what differs, and then ends with an error. Run it where vectors/ and
// weights/ are; +stall=P pauses every stream in P of 100 cycles. Icarus Verilog, Verilator --binary, or any other.
module {name}_tb;
    localparam FRAMES = {frames};
    localparam LIMIT = {limit};  // cycles without a pause
    reg clk = 1'b0, reset = 1'b1;
    integer stall = 0, cycle = 0, wrong = 0, begun = -1, latency = -1;
    wire error;
    always #5 clk = !clk;

    initial begin
        if (!$value$plusargs("stall=%d", stall)) stall = 0;
        #42 reset = 1'b0;
    end
{streams}
    {name} dut (
        .{clock}(clk), .{reset_port}({reset_value}), .error(error),
{connections}
    );

    always @(posedge clk) if (!reset) begin
        cycle <= cycle + 1;
        if (wrong != 0 || error || cycle > (stall > 0 ? 1000 : 1) * LIMIT) begin
            $display("FAIL: %0d beats differ, error %b, cycle %0d", wrong, error, cycle);
`ifdef __ICARUS__
            $finish_and_return(1);
`else
            $fatal;
`endif
        end else if ({done}) begin
            $display("PASS: %0d frames, latency %0d cycles", FRAMES, latency);
            $finish;
        end
    end
endmodule
"""

_STREAM = """
    // {port}: rows of tkeep, tlast, tdata
    reg [{row}:0] {port}_rows [0:{last}];
    reg {port}_go = 1'b0;
    integer {port}_at = 0;
    wire [{row}:0] {port}_row = {port}_rows[{port}_at];
    initial $readmemh("vectors/{name}_{port}.mem", {port}_rows);
    always @(negedge clk) {port}_go = ({{$random}} % 100) >= stall;
"""

_SOURCE = """\
    reg {port}_tvalid = 1'b0;
    wire {port}_tready;
    wire {port}_taken = {port}_tvalid && {port}_tready;
    always @(posedge clk) if (!reset) begin
        if ({port}_taken) {port}_at <= {port}_at + 1;
        if ({port}_taken || !{port}_tvalid)
            {port}_tvalid <= {port}_go && {port}_at + ({port}_taken ? 1 : 0) < {rows};
        if ({port}_taken && begun < 0) begun <= cycle;
    end
"""

_SINK = """\
    reg {port}_tready = 1'b0;
    wire {port}_tvalid, {port}_tlast;
    wire [{bytes_high}:0] {port}_tkeep;
    wire [{bits_high}:0] {port}_tdata;
    integer {port}_byte;
    reg {port}_differs;
    always @* begin
        {port}_differs = {port}_at >= {rows} || {port}_tlast !== {port}_row[{bits}]
            || {port}_tkeep !== {port}_row[{row}:{after}];
        for ({port}_byte = 0; {port}_byte < {bytes}; {port}_byte = {port}_byte + 1)
            if ({port}_tkeep[{port}_byte] && {port}_tdata[8 * {port}_byte +: 8] !== {port}_row[8 * {port}_byte +: 8])
                {port}_differs = 1'b1;
    end
    always @(posedge clk) if (!reset) begin
        {port}_tready <= {port}_go;
        if ({port}_tvalid && {port}_tready) begin
            if ({port}_differs) begin
                $display("{port}: beat %0d: %h %b %h", {port}_at, {port}_tdata, {port}_tlast, {port}_tkeep);
                wrong <= wrong + 1;
            end
            {port}_at <= {port}_at + 1;{latency}
        end
    end
"""


def write_bench(core: ExportedCore, folder: Path) -> None:
    """Write ``folder``/sim/NAME_tb.v and ``folder``/vectors/, from the design's golden vectors."""
    vectors = load_vectors(core.out / VECTORS)
    for place in ("sim", "vectors"):
        (folder / place).mkdir(exist_ok=True)
    for stream in core.streams:
        rows = "\n".join(_rows(stream, vectors))
        (folder / vector_file(core, stream)).write_text(rows + "\n")
    (folder / bench_file(core)).write_text(_text(core, vectors.frames))


def bench_file(core: ExportedCore) -> str:
    """Return the test bench's file, relative to the export's folder."""
    return f"sim/{core.name}_tb.v"


def vector_file(core: ExportedCore, stream: Stream) -> str:
    """Return the file of a stream's golden beats, relative to the export's folder."""
    return f"vectors/{core.name}_{stream.port}.mem"


def _rows(stream: Stream, vectors: Vectors) -> Iterator[str]:
    """Yield tkeep, tlast and tdata of each beat, in hexadecimal."""
    size = stream.tdata_bytes
    digits = -(-(9 * size + 1) // 4)
    for frame in pack(stream, vectors[stream.port]):
        for beat, data in enumerate(frame):
            keep = (1 << stream.real_lanes(beat) * stream.element_bytes) - 1
            last = int(beat == stream.beats - 1)
            row = (keep << 1 | last) << 8 * size | int.from_bytes(data.tobytes(), "little")
            yield f"{row:0{digits}x}"


def _text(core: ExportedCore, frames: int) -> str:
    streams, connections = [], []
    for stream in core.streams:
        port, size, rows = stream.port, stream.tdata_bytes, frames * stream.beats
        first = stream is core.outputs[0]
        values = {
            "port": port, "name": core.name, "rows": rows, "last": rows - 1, "row": 9 * size, "bits": 8 * size,
            "after": 8 * size + 1, "bits_high": 8 * size - 1, "bytes": size, "bytes_high": size - 1,
            "latency": f"\n            if ({port}_at == 0) latency <= cycle - begun;" if first else "",
        }
        streams.append((_STREAM + (_SINK if stream.is_output else _SOURCE)).format(**values))
        given = {
            "tdata": f"{port}_row[{8 * size - 1}:0]", "tkeep": f"{port}_row[{9 * size}:{8 * size + 1}]",
            "tlast": f"{port}_row[{8 * size}]",
        }
        if stream.is_output:
            given = {pin: f"{port}_{pin}" for pin in given}
        given |= {pin: f"{port}_{pin}" for pin in ("tvalid", "tready")}
        connections.append("        " + ", ".join(f".{port}_{pin}({wire})" for pin, wire in given.items()))
    done = " && ".join(f"{stream.port}_at == {frames * stream.beats}" for stream in core.outputs)
    return _BENCH.format(
        name=core.name, frames=frames, limit=1000 + 4 * (core.latency + core.interval * frames),
        streams="".join(streams), clock=core.clock, reset_port=core.reset,
        reset_value="!reset" if core.reset == "aresetn" else "reset", connections=",\n".join(connections), done=done,
    )
