"""What the compiler leaves of a part for the board's shell covers what synthesis needs for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boards import find_board
from hwflow.api.budget import FILL
from hwflow.api.compiler import compile as compile_model
from hwflow.codegen.board.board_files import write_board
from hwflow.codegen.board.board_top import expected_link, surroundings
from hwflow.codegen.board.carriers import carrier_name
from hwflow.errors import ModelRefused
from hwflow.schedule.search.folding_search import Budget
from hwflow.toolchain.build import build
from hwflow.toolchain.build_result import BuildResult
from tests.codegen.plus_one import emit, stream
from tests.flow.networks import dense_network

PASS = """
module hwflow_top (
    input clk, input rst, output error,
    input [{top}:0] s_axis_tdata, input s_axis_tvalid, output s_axis_tready, input s_axis_tlast,
    output [{top}:0] m_axis_tdata, output m_axis_tvalid, input m_axis_tready, output m_axis_tlast
);
    assign m_axis_tdata = s_axis_tdata;
    assign m_axis_tvalid = s_axis_tvalid;
    assign m_axis_tlast = s_axis_tlast;
    assign s_axis_tready = m_axis_tready;
    assign error = rst;
endmodule
"""


def shell(folder: Path, board: str, lanes: int, beats: int, mhz: float | None = None) -> BuildResult:
    """Synthesize what is around a design of wires with ``lanes`` bytes per beat; ``mhz``: its clock."""
    out = emit(folder / "out")
    (out / "design.v").write_text(PASS.format(top=8 * lanes - 1))
    shape = {"pixels": beats, "beats": beats, "channels": lanes, "lanes": lanes}
    manifest = json.loads((out / "manifest.json").read_text())
    manifest |= {"inputs": [stream("x", "s_axis", **shape)], "outputs": [stream("y", "m_axis", **shape)]}
    (out / "manifest.json").write_text(json.dumps(manifest))
    write_board(out, find_board(board), mhz)
    return build(out, until="netlist")


@pytest.mark.parametrize(
    ("board", "lanes", "beats", "blocks"),
    # by hand: 2 x 1024 + 512 bytes in blocks of 512, 2 x 8192 + 512 in blocks of 2048, identity, counters; behind USB a
    # buffer from the host, two to it, and a queue between the clocks each way
    [("icebreaker", 1, 1500, 7), ("ulx3s_85f", 8, 3000, 11), ("tinyfpga_bx", 8, 12, 12)],
)
def test_the_shell_needs_no_more(tmp_path, board, lanes, beats, blocks):
    known = find_board(board)
    if known.usb is not None and known.usb.default:
        pytest.importorskip("luna")
    allowed = surroundings(known, (), carrier_name(known))
    built = shell(tmp_path, board, lanes, beats)
    assert built.netlist is not None and built.netlist.exists()
    assert (built.bitstream, built.fmax_mhz, built.timing_met, built.clocks) == (None, None, None, ())
    assert list(built.seconds) == ["synthesis", "registers"]
    needed = built.link_resources
    assert allowed["bram"] == needed["bram"] == blocks
    assert allowed["dsp"] == needed["dsp"] == 0
    expected = expected_link(known.part, allowed, lanes, lanes)
    for name in ("lut", "ff"):
        assert needed[name] <= allowed[name] <= 1.3 * needed[name]
        assert expected[name] == pytest.approx(needed[name], rel=0.05 if carrier_name(known) == "serial" else 0.1)
    if known.part.family == "ecp5":  # a block RAM without its output register is slow, and limits the clock
        modules = json.loads(built.netlist.with_name("packed.json").read_text())["modules"]
        rams = [c for m in modules.values() for c in m.get("cells", {}).values() if c["type"] == "DP16KD"]
        assert len(rams) == blocks
        assert all("OUTREG" in (ram["parameters"]["REGMODE_A"], ram["parameters"]["REGMODE_B"]) for ram in rams)


def test_the_queues_to_a_clock_of_its_own(tmp_path):
    """They are counted where the link's resources are predicted."""
    built = shell(tmp_path, "ulx3s_85f", 4, 3000, 200)
    expected = json.loads((tmp_path / "out" / "board" / "board.json").read_text())["link"]["resources"]
    for name in ("lut", "ff"):
        assert expected[name] == pytest.approx(built.link_resources[name], rel=0.05)


def test_the_design_gets_the_rest(tmp_path, monkeypatch):
    seen = []

    def schedule(graph, part, budget, *rest):
        seen.append(budget)
        raise ModelRefused([])

    monkeypatch.setattr("hwflow.api.scheduled.schedule", schedule)
    with pytest.raises(ModelRefused):
        compile_model(dense_network(tmp_path / "model.onnx"), "icebreaker")
    # 5280 logic cells, 5280 flip-flops, 8 multipliers, 30 block RAMs; the shell has 1450, 1150, 0, 7,
    # half of its flip-flops in cells of their own
    assert FILL == {"lut": 0.5, "ff": 0.5, "dsp": 1.0, "bram": 0.9}
    # also with weights in its single-port RAM; an engine, most of whose flip-flops share a cell, gets more
    assert set(seen) == {
        Budget(lut=1627, ff=1627, dsp=8, bram=20), Budget(lut=2441, ff=1953, dsp=8, bram=23)
    }


@pytest.mark.parametrize(
    ("board", "expected"),
    [
        # 8640 look-up tables, 6480 flip-flops, 20 multipliers, 26 block RAMs; as many flip-flops as look-up tables
        ("tang_nano_9k", Budget(lut=3420, ff=3420, dsp=20, bram=17)),
        # 53,200, 106,400, 220, 280 and a DMA engine of 5000, 7000, 0, 8; no more than 20,000 tables unasked
        ("pynq_z1", Budget(lut=20_000, ff=49_700, dsp=220, bram=244, leeway=1000)),
    ],
)
def test_the_budget_of_other_parts(tmp_path, monkeypatch, board, expected):
    seen = []

    def schedule(graph, part, budget, *rest):
        seen.append(budget)
        raise ModelRefused([])

    monkeypatch.setattr("hwflow.api.scheduled.schedule", schedule)
    with pytest.raises(ModelRefused):
        compile_model(dense_network(tmp_path / "model.onnx"), board)
    assert seen == [expected]


@pytest.mark.parametrize(
    ("fps", "asked", "expected"),
    [
        # of 81,840 look-up tables, 82,490 flip-flops, 156 multipliers and 197 block RAMs beside the shell
        (None, None, [(20_000, 41_245, 156, 177, 1_000)]),
        (1.0, None, [(40_920, 41_245, 156, 177)]),
        (None, {"dsp": 40}, [(20_000, 41_245, 40, 177, 1_000), (40_920, 41_245, 40, 177), (81_840, 82_490, 40, 197)]),
        (None, {"lut": "80%"}, [(65_472, 41_245, 156, 177), (65_472, 82_490, 156, 197)]),
        (None, {"lut": 30_000, "ff": "100%", "dsp": "0%", "bram": 0}, [(30_000, 82_490, 0, 0)]),
        (1.0, {"bram": "50.5%"}, [(40_920, 41_245, 156, 99), (81_840, 82_490, 156, 99)]),
        # what-if; see hwflow.api.budget.MOST
        (1.0, {"bram": "300%", "dsp": 10**30}, [(40_920, 41_245, 1 << 30, 591), (81_840, 82_490, 1 << 30, 591)]),
    ],
)
def test_the_budget(tmp_path, monkeypatch, fps, asked, expected):
    """Without a wish a design stays small; half of the part is for those who ask for a rate, or for either of look-up
    tables and flip-flops; what is asked for is taken. Where something is asked for and nothing fits, the rest of the
    part is next: half of it, then all."""
    seen = []

    def schedule(graph, part, budget, *rest):
        seen.append(budget)
        raise ModelRefused([])

    monkeypatch.setattr("hwflow.api.scheduled.schedule", schedule)
    with pytest.raises(ModelRefused):
        compile_model(
            dense_network(tmp_path / "model.onnx"), "ulx3s_85f", fps=fps, budget=asked, what_if=True, memory="none"
        )
    assert seen == [Budget(*each) for each in expected]
