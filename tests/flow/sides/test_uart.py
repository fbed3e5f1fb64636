"""The board's top of a whole network, in simulation, through its serial pins: bytes in, bytes out."""

from __future__ import annotations

import json

import numpy as np

import hwflow
from hwflow import load
from hwflow.host.boundary_models import port_inputs
from hwflow.toolchain.icarus import ICARUS
from hwflow.verify import golden
from hwflow.verify.inputs import choose_inputs
from sim.manifest import load_design
from sim.uart_run import run_uart
from sim.vectors import pack, to_stream
from tests.flow.conftest import DIGITS, ROOT
from tests.flow.test_many_outputs import two_and_two


def test_frames_pass_through_the_boards_pins(tmp_path):
    digits = tmp_path / "out"
    hwflow.compile(DIGITS, "ulx3s_85f", fps=5000).write(digits)  # small: the line is slow, and so is Icarus
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


def test_streams_take_turns_at_the_boards_pins(tmp_path):
    """Two inputs, two outputs: a frame of each, in the order of the ports. The sum needs both inputs at once."""
    out = tmp_path / "out"
    design = hwflow.compile(two_and_two().save(tmp_path), "ulx3s_85f")
    design.write(out)
    graph, frames = design.model.quantized, 2
    rng = np.random.default_rng(4)
    inputs = {port.name: rng.integers(0, 256, (frames, *port.shape)) for port in graph.inputs}
    outputs = golden.evaluate(graph, inputs)
    streams = load_design(out)

    def line(values, ports):
        """The ports' bytes, frame by frame."""
        parts = [pack(port, to_stream(port, values[port.name])).reshape(frames, -1) for port in ports]
        return np.concatenate(parts, axis=1)

    send, expect = line(inputs, streams.inputs), line(outputs, streams.outputs)
    board = json.loads((out / "board" / "board.json").read_text())
    assert (board["host"]["input_bytes"], board["host"]["output_bytes"]) == (send.shape[1], expect.shape[1])
    assert board["host"]["frames_in_flight"] >= 2
    result = run_uart(
        [out / board["simulation"]["source"], out / "board" / "top.v", out / "design.v", ROOT / "sim/verilog/ecp5.v"],
        board["simulation"]["top"], rx="uart_rx", tx="uart_tx", clock="clk", clock_ps=10_000,
        divisor=board["uart"]["divisor"], startup_cycles=board["simulation"]["startup_cycles"],
        send=send.tobytes(), expect=expect.tobytes(), work_folder=tmp_path / "work", run_folder=out,
        command=ICARUS.find().command, timeout_bits=2000,
    )
    assert result.complaints() == []
    assert len(result.received) == 2 * expect.shape[1]
