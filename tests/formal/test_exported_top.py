"""Proofs at the top of an exported core, for any core inside: what AXI4-Stream (ARM IHI 0051) asks of both sides.

The core is a module whose outputs have any value in every cycle. So nothing depends on how it behaves, and reset comes
at any time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hwflow.exports.exported_core import ExportedCore
from hwflow.exports.hardware.axis_top import REGISTER, ports, top_text
from sim.manifest import Stream
from tests.formal.prover import check, yosys

NETLIST = "prep -flatten -top top; memory_map; opt -full; async2sync; chformal -lower; dffunmap; opt_clean"


def stream(port: str, lanes: int, channels: int) -> Stream:
    beats = -(-channels // lanes)
    order = tuple(range(channels))
    return Stream("x", port, port.startswith("m"), 1, channels, lanes, beats, 2, False, 1, (channels,), order)


def exported(reset: str) -> ExportedCore:
    """Beats of two bytes, the last of three of a pixel with one element."""
    return ExportedCore(
        Path(), "dut", "dut_top", reset, "model", (), (), (stream("s_axis", 2, 5),), (stream("m_axis", 2, 5),), 9, 9,
        True, 100.0, {},
    )


ANY_CORE = """
module dut_top(
    input clk, input rst, input [15:0] s_axis_tdata, input s_axis_tlast, input s_axis_tvalid, output s_axis_tready,
    output [15:0] m_axis_tdata, output m_axis_tlast, output m_axis_tvalid, input m_axis_tready, output error
);
    (* anyseq *) reg [19:0] any;
    assign {s_axis_tready, m_axis_tdata, m_axis_tlast, m_axis_tvalid, error} = any;
endmodule
"""

WIRE_CORE = """
module dut_top(
    input clk, input rst, input [15:0] s_axis_tdata, input s_axis_tlast, input s_axis_tvalid, output s_axis_tready,
    output [15:0] m_axis_tdata, output m_axis_tlast, output m_axis_tvalid, input m_axis_tready, output error
);
    assign {m_axis_tdata, m_axis_tlast, m_axis_tvalid} = {s_axis_tdata, s_axis_tlast, s_axis_tvalid};
    assign s_axis_tready = m_axis_tready;
    assign error = 1'b0;
endmodule
"""

RULES = """
    reg past = 1'b0, reset_before, waiting_before;
    reg [18:0] shown_before;
    wire [18:0] shown = {m_axis_tkeep, m_axis_tlast, m_axis_tdata};
    always @(posedge clock) begin
        past <= 1'b1;
        reset_before <= in_reset;
        waiting_before <= m_axis_tvalid && !m_axis_tready;
        shown_before <= shown;
    end
    always @* if (!past) assert (!m_axis_tvalid);
    always @* if (past && reset_before) assert (!m_axis_tvalid && !s_axis_tready);
    always @* if (past && !reset_before && waiting_before) begin
        assert (m_axis_tvalid);
        assert (shown == shown_before);
    end
    always @* cover (past && !reset_before && waiting_before);
"""

ORDER = """
    // The beat that `pick` chooses leaves as it came, after as many others, if the core is wires.
    (* anyconst *) reg [2:0] pick;
    reg [2:0] entered = 0, left = 0;
    reg known = 1'b0;
    reg [16:0] picked;
    always @* assume (!in_reset);
    always @(posedge clock) begin
        if (s_axis_tvalid && s_axis_tready) begin
            entered <= entered + 1;
            if (entered == pick) begin known <= 1'b1; picked <= {s_axis_tlast, s_axis_tdata}; end
        end
        if (m_axis_tvalid && m_axis_tready) left <= left + 1;
        assume (entered != 7);
    end
    always @* if (m_axis_tvalid && left == pick) assert (known && {m_axis_tlast, m_axis_tdata} == picked);
    always @* cover (left == 4);
"""


def build(folder: Path, reset: str, rules: str, core: str, *changes: tuple[str, str]) -> None:
    """Write ``folder``/top.smt2; ``changes``: of the top's text, each of which must be there."""
    exporting = exported(reset)
    text = top_text(exporting)
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    listed = ports(exporting)
    declared = "".join(
        f"    {'output' if port.out else 'input'} wire [{(port.bits or 1) - 1}:0] {port.name}"
        f"{'' if port is listed[-1] else ','}\n" for port in listed
    )
    connected = ", ".join(f".{port.name}({port.name})" for port in listed)
    top = (
        f"module top(\n{declared});\n    wire clock = {exporting.clock}, in_reset = {exporting.resets};\n"
        f"    dut dut({connected});\n{rules}\nendmodule\n"
    )
    (folder / "dut.sv").write_text(f"{text}\n{core}\n{top}")
    yosys(folder, f"read_verilog -formal -sv dut.sv; {NETLIST}; write_smt2 -wires top.smt2")


@pytest.mark.parametrize("reset", ["rst", "aresetn"])
def test_a_beat_waits_unchanged_and_none_comes_in_reset(reset, tmp_path):
    build(tmp_path, reset, RULES, ANY_CORE)
    for arguments in ((4,), (3, "-i")):
        passed, log = check(tmp_path, *arguments)
        assert passed, log
    passed, log = check(tmp_path, 8, "-c")
    assert passed and "Reached cover" in log, log


@pytest.mark.parametrize(
    "change",
    [
        ("if (leaves) o_data <=", "o_data <="),  # the payload changes while it waits
        ("if (leaves) o_valid <= waiting || enters;", "o_valid <= waiting || enters;"),  # tvalid drops
        ("            o_valid <= 1'b0;\n            waiting", "            waiting"),  # tvalid stays in reset
        ("            i_ready <= 1'b0;\n            o_valid", "            o_valid"),  # beats are taken in reset
        (".o_data({m_axis_tkeep, m_axis_tlast, m_axis_tdata})", ".o_data({m_axis_tlast, m_axis_tdata})"),
    ],
)  # fmt: skip
def test_broken_twins_are_refuted(change, tmp_path):
    changes = [change]
    if "m_axis_tkeep" in change[0]:  # tkeep past the register, of the beat that the core shows
        changes.append(("    wire reset = ", "    assign m_axis_tkeep = m_axis_carried;\n    wire reset = "))
    build(tmp_path, "rst", RULES, ANY_CORE, *changes)
    passed, log = check(tmp_path, 10)
    assert not passed and "Assert failed" in log, log


def test_beats_keep_their_order_and_none_is_lost(tmp_path):
    build(tmp_path, "rst", ORDER, WIRE_CORE)
    passed, log = check(tmp_path, 12)
    assert passed, log
    passed, log = check(tmp_path, 12, "-c")
    assert passed and "Reached cover" in log, log


@pytest.mark.parametrize(
    "change",
    [
        ("i_ready <= leaves || !(waiting || enters);", "i_ready <= 1'b1;"),  # it takes what it has no room for
        ("waiting <= !leaves && (waiting || enters);", "waiting <= !leaves && enters;"),  # it forgets what waits
        ("o_data <= waiting ? waiting_data : i_data;", "o_data <= i_data;"),
    ],
)
def test_a_register_that_loses_a_beat_is_refuted(change, tmp_path):
    assert REGISTER.read_text().count(change[0]) == 1
    build(tmp_path, "rst", ORDER, WIRE_CORE, change)
    passed, log = check(tmp_path, 12)
    assert not passed and "Assert failed" in log, log
