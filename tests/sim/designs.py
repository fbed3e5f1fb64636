"""Small handwritten designs with hand-computed timing, as `synth` would leave them behind.

`plus`: one byte per beat, 4 beats per frame, y = x + addend mod 256 (addend from weights/addend.mem, 1 as written). A
frame's slots are 7 cycles: 4 beats, then 3 cycles of pause; 3 registers from input to output. So with willing ends
beat b of frame f enters in cycle 7f + b and leaves in 7f + b + 3: latency 3, initiation interval 7, and 7F - 7 + 3 +
3 + 1 = 7F cycles for F frames. weights/defect.mem selects a deliberate defect (0: none); it is read at run time, so
one build serves all.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

PLUS = """
module hwflow_top (
    input clk, input rst,
    input [7:0] s_axis_tdata, input s_axis_tvalid, output s_axis_tready, input s_axis_tlast,
    output [7:0] m_axis_tdata, output m_axis_tvalid, input m_axis_tready, output m_axis_tlast,
    output reg error
);
    reg [7:0] addend [0:0];
    reg [7:0] defect [0:0];
    initial begin
        $readmemh("weights/addend.mem", addend);
        $readmemh("weights/defect.mem", defect);
    end
    wire [7:0] d = defect[0];

    reg [2:0] slot;
    reg v1, v2, v3, l1, l2, l3, blink, primed;
    reg [7:0] x1, x2, x3;
    reg [7:0] frame;
    reg [1:0] beat;
    wire moving = m_axis_tready || !v3;
    wire in_slot = slot < 3'd4;
    reg [15:0] taken;
    assign s_axis_tready = moving && in_slot && !(d == 8'd10 && taken == 16'd9);
    wire accept = s_axis_tready && s_axis_tvalid;

    // place of the beat at the output
    wire f1b2 = frame == 8'd1 && beat == 2'd2;
    wire f2b1 = frame == 8'd2 && beat == 2'd1;
    wire wait_blink = blink && f1b2;
    assign m_axis_tvalid = (d == 8'd2 && wait_blink) ? 1'b0
                         : (d == 8'd5 && f2b1) ? 1'b0
                         : (d == 8'd9 && f1b2) ? 1'bx
                         : (d == 8'd7 && frame == 8'd3 + 8'd1) ? 1'b1
                         : (d == 8'd11 && !primed) ? 1'b1 : v3;
    assign m_axis_tdata = (d == 8'd1 && f2b1) ? x3 ^ 8'h10
                        : (d == 8'd3 && wait_blink) ? ~x3
                        : (d == 8'd8 && f1b2) ? {x3[7:1], 1'bx} : x3;
    assign m_axis_tlast = (d == 8'd4 && f1b2) ? 1'b1 : (d == 8'd12 && wait_blink) ? ~l3 : l3;

    always @(posedge clk) begin
        if (rst) begin
            slot <= 0; v1 <= 0; v2 <= 0; v3 <= 0; frame <= 0; beat <= 0;
            blink <= 0; error <= 0; taken <= 0; primed <= 0;
        end else begin
            primed <= 1;
            if (accept) taken <= taken + 1;
            blink <= m_axis_tvalid && !m_axis_tready;
            if (d == 8'd6 && frame == 8'd1) error <= 1;
            if (moving && !(d == 8'd5 && f2b1)) begin
                if (accept || !in_slot) slot <= slot == 3'd6 ? 3'd0 : slot + 3'd1;
                v1 <= accept; x1 <= s_axis_tdata + addend[0]; l1 <= slot == 3'd3;
                v2 <= v1; x2 <= x1; l2 <= l1;
                v3 <= v2; x3 <= x2; l3 <= l2;
                if (v3) begin
                    beat <= beat + 1;
                    if (beat == 2'd3) frame <= frame + 1;
                end
            end
        end
    end
endmodule
"""

# Two inputs and two outputs, independent of each other. s0 -> m0: 12 lanes of a byte (96 bits), y = x + 1 + lane.
# s1 -> m1: 3 bytes (24 bits) to 5 bytes (40 bits), lanes 3 and 4 constant 7 and 200. One register each: latency 1.
WIDE = """
module hwflow_top (
    input clk, input rst,
    input [95:0] s0_axis_tdata, input s0_axis_tvalid, output s0_axis_tready, input s0_axis_tlast,
    input [23:0] s1_axis_tdata, input s1_axis_tvalid, output s1_axis_tready, input s1_axis_tlast,
    output reg [95:0] m0_axis_tdata, output reg m0_axis_tvalid, input m0_axis_tready, output reg m0_axis_tlast,
    output reg [39:0] m1_axis_tdata, output reg m1_axis_tvalid, input m1_axis_tready, output reg m1_axis_tlast
);
    integer i;
    assign s0_axis_tready = m0_axis_tready || !m0_axis_tvalid;
    assign s1_axis_tready = m1_axis_tready || !m1_axis_tvalid;
    always @(posedge clk) begin
        if (s0_axis_tready) begin
            m0_axis_tvalid <= s0_axis_tvalid;
            m0_axis_tlast <= s0_axis_tlast;
            for (i = 0; i < 12; i = i + 1) m0_axis_tdata[8*i +: 8] <= s0_axis_tdata[8*i +: 8] + 1 + i;
        end
        if (s1_axis_tready) begin
            m1_axis_tvalid <= s1_axis_tvalid;
            m1_axis_tlast <= s1_axis_tlast;
            m1_axis_tdata <= {8'd200, 8'd7, s1_axis_tdata};
        end
        if (rst) begin
            m0_axis_tvalid <= 0;
            m1_axis_tvalid <= 0;
        end
    end
endmodule
"""

# 4 pixels of 3 channels, 2 lanes of signed 5 bits in bytes: 2 beats per pixel, lane 1 of the second is padding.
# y = ~x = -x - 1 (stays within 5 bits). The padding lane of the output is X on purpose.
NARROW = """
module hwflow_top (
    input clk, input rst,
    input [15:0] s_axis_tdata, input s_axis_tvalid, output s_axis_tready, input s_axis_tlast,
    output reg [15:0] m_axis_tdata, output reg m_axis_tvalid, input m_axis_tready, output reg m_axis_tlast,
    output error
);
    reg odd;
    assign error = 0;
    assign s_axis_tready = m_axis_tready || !m_axis_tvalid;
    always @(posedge clk) begin
        if (s_axis_tready) begin
            m_axis_tvalid <= s_axis_tvalid;
            m_axis_tlast <= s_axis_tlast;
            if (s_axis_tvalid) begin
                odd <= !odd;
                m_axis_tdata[7:0] <= ~s_axis_tdata[7:0];
                m_axis_tdata[15:8] <= odd ? 8'hxx : ~s_axis_tdata[15:8];
            end
        end
        if (rst) begin
            m_axis_tvalid <= 0;
            odd <= 0;
        end
    end
endmodule
"""


def stream(
    name, port, *, pixels=1, channels=1, lanes=1, width=8, signed=False, element_bytes=1, shape=None, order=None
):
    return {
        "name": name,
        "port": port,
        "pixels": pixels,
        "channels": channels,
        "lanes": lanes,
        "beats": pixels * -(-channels // lanes),
        "element": {"width": width, "signed": signed},
        "element_bytes": element_bytes,
        "shape": shape or [pixels, channels],
        "order": order or list(range(pixels * channels)),
    }


def emit(out: Path, verilog: str, inputs, outputs, *, weights=(), timing=None, error="error") -> Path:
    """Write an emitted directory; ``weights``: {"x.mem": text}."""
    (out / "weights").mkdir(parents=True)
    (out / "design.v").write_text(verilog)
    for name, text in dict(weights).items():
        (out / "weights" / name).write_text(text)
    manifest = {
        "format": 1,
        "top": "hwflow_top",
        "model": "hand",
        "clock": "clk",
        "reset": "rst",
        "error": error,
        "sources": ["design.v"],
        "weights": [f"weights/{name}" for name in dict(weights)],
        "inputs": inputs,
        "outputs": outputs,
        "timing": timing or {"initiation_interval": 7, "latency": 3, "frames": 4},
        "names": {},
        "board": None,
        "host": {"prefix": [], "suffix": []},
    }
    (out / "manifest.json").write_text(json.dumps(manifest))
    return out


def emit_plus(out: Path) -> Path:
    return emit(
        out,
        PLUS,
        [stream("x", "s_axis", pixels=4)],
        [stream("y", "m_axis", pixels=4)],
        weights={"addend.mem": "01\n", "defect.mem": "00\n"},
    )


def emit_wide(out: Path) -> Path:
    return emit(
        out,
        WIDE,
        [
            stream("a", "s0_axis", pixels=3, channels=12, lanes=12),
            stream("b", "s1_axis", pixels=2, channels=3, lanes=3),
        ],
        [
            stream("c", "m0_axis", pixels=3, channels=12, lanes=12),
            stream("d", "m1_axis", pixels=2, channels=5, lanes=5),
        ],
        error=None,
    )


def emit_narrow(out: Path) -> Path:
    # The logical tensor is channels first (3, 2, 2), the stream pixels first: (pixel, channel) is at channel*4 + pixel.
    order = [channel * 4 + pixel for pixel in range(4) for channel in range(3)]
    facts = dict(pixels=4, channels=3, lanes=2, width=5, signed=True, shape=[3, 2, 2], order=order)
    return emit(out, NARROW, [stream("x", "s_axis", **facts)], [stream("y", "m_axis", **facts)])


def plus_data(frames: int = 4):
    """Logical vectors of `plus`: every kind of byte, the wrap 255 -> 0 included."""
    x = (np.arange(frames * 4).reshape(frames, 4, 1) * 37 + 255) % 256
    return {"x": x}, {"y": (x + 1) % 256}


def wide_data(frames: int = 3):
    """Logical vectors of `wide`. m1's first three lanes repeat s1, the others are constant."""
    rng = np.random.default_rng(5)
    a = rng.integers(0, 256, (frames, 3, 12))
    b = rng.integers(0, 256, (frames, 2, 3))
    d = np.concatenate([b, np.full((frames, 2, 1), 7), np.full((frames, 2, 1), 200)], axis=2)
    return {"a": a, "b": b}, {"c": (a + 1 + np.arange(12)) % 256, "d": d}


def narrow_data(frames: int = 3):
    """Logical vectors of `narrow`: all of -16 .. 15 appear."""
    x = (np.arange(frames * 12).reshape(frames, 3, 2, 2) * 5) % 32 - 16
    return {"x": x}, {"y": -x - 1}
