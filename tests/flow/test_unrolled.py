"""A network with a frame in every beat: bulk simulation, and the board's serial pins."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow import compile, load, simulate
from hwflow.boards import find_board
from hwflow.codegen.board.clock_plan import plan_clock
from hwflow.host.boundary_models import port_inputs
from hwflow.host.inputs import choose_inputs
from hwflow.verify import golden
from sim.manifest import load_design
from tests.board_line import exchange
from tests.flow.conftest import DIGITS
from tests.flow.networks import dense_network


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load(dense_network(tmp_path_factory.mktemp("model") / "dense.onnx"))


@pytest.fixture(scope="module")
def unrolled(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("unrolled") / "out"
    board = find_board("ulx3s_85f")
    # Few cycles per bit, as Icarus is slow.
    design = compile(model, board, fps=50e6, baud=3_000_000, clock_mhz=50)
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


def test_frames_pass_through_the_boards_pins(model, unrolled):
    inputs = port_inputs(model, choose_inputs(model, unrolled / "model.onnx", None, 3, np.random.default_rng(0)).arrays)
    (expected,) = golden.evaluate(model.quantized, inputs).values()
    send, expect = inputs["x"].astype(np.uint8).tobytes(), expected.astype(np.int8).tobytes()
    assert (len(send), len(expect)) == (3 * 12, 3 * 4)
    assert exchange(unrolled, send) == expect
