"""The board's top of a whole network, in simulation, through its serial pins: bytes in, bytes out."""

from __future__ import annotations

import json

import numpy as np

from hwflow import golden, load
from hwflow.host import port_inputs
from hwflow.inputs import choose_inputs
from hwflow.toolchain.icarus import ICARUS
from sim.uart_run import run_uart
from tests.flow.conftest import DIGITS, ROOT


def test_frames_pass_through_the_boards_pins(digits, tmp_path):
    model = load(DIGITS)
    images = port_inputs(model, choose_inputs(model, DIGITS, None, 2, np.random.default_rng(0)).arrays)["image"]
    logits = golden.evaluate(model.quantized, {"image": images})["dense_quantized"]
    board = json.loads((digits / "board" / "board.json").read_text())
    assert (board["host"]["input_bytes"], board["host"]["output_bytes"]) == (64, 10)
    result = run_uart(
        [
            digits / board["simulation"]["source"],
            digits / "board" / "top.v",
            digits / "design.v",
            ROOT / "sim/verilog/ecp5.v",
        ],
        board["simulation"]["top"],
        rx="uart_rx",
        tx="uart_tx",
        clock="clk",
        clock_ps=10_000,  # the model of the PLL passes its input on: this is the design's clock
        divisor=board["uart"]["divisor"],
        startup_cycles=board["simulation"]["startup_cycles"],
        send=images.astype(np.uint8).tobytes(),  # one channel: row by row
        expect=logits.astype(np.uint8).tobytes(),
        work_folder=tmp_path / "work",
        run_folder=digits,
        command=ICARUS.find().command,
        timeout_bits=2000,
    )
    assert result.complaints() == []
    assert len(result.received) == 20
