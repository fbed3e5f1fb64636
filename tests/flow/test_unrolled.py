"""A network with a frame in every beat: bulk simulation, and the board's serial pins."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hwflow import compile, load, simulate
from hwflow.boards import find_board
from hwflow.codegen.board.clock_plan import plan_clock
from hwflow.host.boundary_models import port_inputs
from hwflow.toolchain.icarus import ICARUS
from hwflow.verify import golden
from hwflow.verify.inputs import choose_inputs
from sim.manifest import load_design
from sim.uart_run import run_uart
from tests.flow.conftest import DIGITS, ROOT
from tests.flow.networks import dense_network


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load(dense_network(tmp_path_factory.mktemp("model") / "dense.onnx"))


@pytest.fixture(scope="module")
def unrolled(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("unrolled") / "out"
    board = find_board("ulx3s_85f")
    design = compile(model, board, fps=float(plan_clock(board).frequency_hz))
    report = design.write(out)
    assert report["timing"]["initiation_interval"] == 1
    assert report["timing"]["frames_per_second"] == design.clock_mhz * 1e6
    return out


def test_a_frame_is_a_beat(unrolled):
    design = load_design(unrolled)
    assert [(s.lanes, s.beats) for s in (*design.inputs, *design.outputs)] == [(12, 1), (4, 1)]


@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_bulk_simulation(unrolled, stall):
    result = simulate(unrolled, frames=200, stall=stall)
    assert result.findings == ()
    assert stall or result.result.initiation_interval == 1


def test_digits_unroll_wholly():
    """All windows of 8 x 8 pixels at once, one frame per cycle, where look-up tables are no limit; its constant
    matrices take no multiplier block."""
    board = find_board("ulx3s_85f")
    rate = float(plan_clock(board).frequency_hz)
    design = compile(DIGITS, board, fps=rate, budget={"lut": 800_000, "ff": 900_000}, what_if=True)
    assert design.schedule.initiation_interval == 1
    assert design.frames_per_second == rate
    (sync,) = (node for node in design.schedule.graph.nodes if node.op == "frame_sync")
    assert design.schedule.plan[sync].folding.output_lanes == 64
    assert design.schedule.resources.dsp == 0


def test_frames_pass_through_the_boards_pins(model, unrolled, tmp_path):
    inputs = port_inputs(model, choose_inputs(model, unrolled / "model.onnx", None, 3, np.random.default_rng(0)).arrays)
    (expected,) = golden.evaluate(model.quantized, inputs).values()
    board = json.loads((unrolled / "board" / "board.json").read_text())
    assert (board["host"]["input_bytes"], board["host"]["output_bytes"]) == (12, 4)
    result = run_uart(
        [
            unrolled / board["simulation"]["source"],
            unrolled / "board" / "top.v",
            unrolled / "design.v",
            ROOT / "sim/verilog/ecp5.v",
        ],
        board["simulation"]["top"],
        rx="uart_rx",
        tx="uart_tx",
        clock="clk",
        clock_ps=10_000,
        divisor=board["uart"]["divisor"],
        startup_cycles=board["simulation"]["startup_cycles"],
        send=inputs["x"].astype(np.uint8).tobytes(),
        expect=expected.astype(np.int8).tobytes(),
        work_folder=tmp_path / "work",
        run_folder=unrolled,
        command=ICARUS.find().command,
        timeout_bits=2000,
    )
    assert result.complaints() == []
    assert len(result.received) == 12
