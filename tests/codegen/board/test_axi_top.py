"""The block of a Zynq's system: transfers of several frames, and their ends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from boards import find_board
from hwflow.codegen.board.axi_top import AxiTop
from hwflow.codegen.board.board_files import write_board
from hwflow.codegen.board.identity import FramePort
from hwflow.errors import UsageError
from hwflow.toolchain.build import write_top_verilog
from tests.codegen.plus_one import emit, stream

# A core that answers a frame of four bytes by its first one, before it has taken the others.
EARLY = """
module hwflow_top (
  input wire clk, input wire rst,
  input wire [7:0] s_axis_tdata, input wire s_axis_tvalid, output wire s_axis_tready, input wire s_axis_tlast,
  output wire [7:0] m_axis_tdata, output wire m_axis_tvalid, input wire m_axis_tready, output wire m_axis_tlast,
  output wire error
);
  reg [1:0] beat;
  assign m_axis_tdata = s_axis_tdata;
  assign m_axis_tlast = 1'b1;  // one answer per frame: its first byte
  assign m_axis_tvalid = s_axis_tvalid && beat == 2'd0;
  assign s_axis_tready = beat != 2'd0 || m_axis_tready;
  assign error = 1'b0;
  always @(posedge clk) if (rst) beat <= 2'd0; else if (s_axis_tvalid && s_axis_tready) beat <= beat + 2'd1;
endmodule
"""


# A core that adds and subtracts two streams of frames of two bytes: it takes both at once, and gives both at once.
BOTH = """
module hwflow_top (
  input wire clk, input wire rst,
  input wire [7:0] s0_axis_tdata, input wire s0_axis_tvalid, output wire s0_axis_tready, input wire s0_axis_tlast,
  input wire [7:0] s1_axis_tdata, input wire s1_axis_tvalid, output wire s1_axis_tready, input wire s1_axis_tlast,
  output wire [7:0] m0_axis_tdata, output wire m0_axis_tvalid, input wire m0_axis_tready, output wire m0_axis_tlast,
  output wire [7:0] m1_axis_tdata, output wire m1_axis_tvalid, input wire m1_axis_tready, output wire m1_axis_tlast,
  output reg error
);
  wire both = s0_axis_tvalid && s1_axis_tvalid;
  wire go = both && m0_axis_tready && m1_axis_tready;
  assign s0_axis_tready = go, s1_axis_tready = go;
  assign m0_axis_tvalid = both && m1_axis_tready, m1_axis_tvalid = both && m0_axis_tready;
  assign m0_axis_tdata = s0_axis_tdata + s1_axis_tdata, m1_axis_tdata = s0_axis_tdata - s1_axis_tdata;
  assign m0_axis_tlast = s0_axis_tlast, m1_axis_tlast = s1_axis_tlast;
  reg odd;
  always @(posedge clk) if (rst) {odd, error} <= 2'b00; else if (go) begin
    odd <= !odd;
    if (s0_axis_tlast != odd || s1_axis_tlast != odd) error <= 1'b1;
  end
endmodule
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> Path:
    out = emit(tmp_path_factory.mktemp("axi") / "out")
    manifest = json.loads((out / "manifest.json").read_text())
    for side, way in (("s", "inputs"), ("m", "outputs")):
        manifest[way] = [stream(f"{side}{k}", f"{side}{k}_axis", pixels=2, beats=2) for k in (0, 1)]
    (out / "manifest.json").write_text(json.dumps(manifest))
    (out / "both.v").write_text(BOTH)
    write_board(out, find_board("pynq_z2"))
    assert write_top_verilog(out) == out / "board" / "hwflow_axis.v"
    return out


@pytest.mark.parametrize("pauses", [False, True])
def test_several_streams_take_turns(both, pauses):
    """A frame is one of each stream; two frames in a transfer, then one, then two."""
    data = bytes([10, 20, 1, 2, 30, 40, 3, 4, 50, 60, 5, 6, 70, 80, 7, 8, 90, 100, 9, 10])
    got = simulate(both, data, "00000001" "0001" "00000001", pauses, "both.v")
    expected = []
    for n in range(0, 20, 4):
        a, b, c, d = data[n : n + 4]
        expected += [f"{a + c:02x}", f"{b + d:02x}", f"{a - c:02x}", f"{b - d:02x}{' end' if n in (4, 8, 16) else ''}"]
    assert got == expected


@pytest.fixture(scope="module")
def block(tmp_path_factory) -> Path:
    out = emit(tmp_path_factory.mktemp("axi") / "out")
    write_board(out, find_board("pynq_z2"))
    assert write_top_verilog(out) == out / "board" / "hwflow_axis.v"
    (out / "early.v").write_text(EARLY)
    return out


def simulate(out: Path, data: bytes, ends: str, pauses: bool, design: str = "design.v") -> list[str]:
    """What comes out; ``ends``: one digit per byte, 1 for the last of a transfer."""
    subprocess.run(
        [
            "iverilog", "-g2005", "-s", "axis_bench", "-o", "board/bench.vvp", f"-Paxis_bench.COUNT={len(data)}",
            f"-Paxis_bench.BYTES={8 * len(data)}'h{data.hex()}", f"-Paxis_bench.ENDS={len(ends)}'b{ends}",
            f"-Paxis_bench.PAUSES={int(pauses)}", str(Path(__file__).parent / "axis_bench.v"), "board/hwflow_axis.v",
            design,
        ],
        cwd=out, check=True,
    )
    result = subprocess.run(["vvp", "-n", "board/bench.vvp"], cwd=out, check=True, capture_output=True, text=True)
    return [line.rstrip() for line in result.stdout.splitlines() if "$finish" not in line and "$readmemh" not in line]


@pytest.mark.parametrize("pauses", [False, True])
def test_the_answer_to_a_transfer_ends_with_it(block, pauses):
    """Three frames in a transfer, then one, then two."""
    data = bytes(range(24))
    got = simulate(block, data, "000000000001" "0001" "00000001", pauses)
    assert got == [f"{value + 1:02x}{' end' if value in (11, 15, 23) else ''}" for value in data]


@pytest.mark.parametrize("pauses", [False, True])
def test_a_core_that_answers_early_waits_for_the_end(block, pauses):
    """Whether an answer is the last of its transfer is known when its frame is in."""
    got = simulate(block, bytes(range(32)), "00000001" "0001" "0001" "0000000000000001", pauses, "early.v")
    assert got == ["00", "04 end", "08 end", "0c end", "10", "14", "18", "1c end"]


def test_a_transfer_that_ends_within_a_frame_is_an_error(block):
    got = simulate(block, bytes(range(7)), "0000" "001", False)
    assert got[:4] == ["01", "02", "03", "04"] and got[-1] == "error" and not any("end" in line for line in got)


def test_beats_get_a_power_of_two_of_bytes():
    top = AxiTop([FramePort(3, 7), FramePort(1, 4)], [FramePort(9, 2)])
    assert (top.input_bytes, top.output_bytes) == (4, 16)
    assert [(len(top.s_tdata), len(top.m_tdata), len(top.m_tkeep))] == [(32, 128, 16)]


def test_beats_too_wide_for_a_dma_are_refused(tmp_path):
    out = emit(tmp_path / "out")
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["inputs"][0] |= {"lanes": 129, "channels": 129}
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UsageError) as error:
        write_board(out, find_board("pynq_z1"))
    assert str(error.value) == (
        "error: the design's input: a beat must have at most 128 bytes for an AXI DMA, not 129 [dma-width]\n"
        "  remedy: ask for fewer frames per second (--fps), or stop at --until verilog on another board"
    )
