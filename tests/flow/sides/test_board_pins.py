"""The board's top of a whole network, in simulation, through its serial pins: packets in, packets out."""

from __future__ import annotations

import json

import numpy as np

import hwflow
from hwflow import load
from hwflow.host.boundary_models import port_inputs
from hwflow.host.inputs import choose_inputs
from hwflow.sim.digests import digest
from hwflow.verify import golden
from sim.manifest import load_design
from sim.vectors import pack, to_stream
from tests.board_line import exchange
from tests.flow.conftest import DIGITS
from tests.flow.test_many_outputs import two_and_two


def test_frames_pass_through_the_boards_pins(tmp_path):
    digits = tmp_path / "out"
    # Few cycles per bit, as Icarus is slow, and few per frame: the bench waits for 300 bits.
    design = hwflow.compile(DIGITS, "ulx3s_85f", fps=20_000, clock_mhz=50)
    design.write(digits)
    model = load(DIGITS)
    images = port_inputs(model, choose_inputs(model, DIGITS, None, 1, np.random.default_rng(0)).arrays)["image"]
    logits = golden.evaluate(model.quantized, {"image": images})["dense_quantized"]
    received = exchange(digits, images.astype(np.uint8).tobytes())  # one channel: row by row
    assert received == logits.astype(np.uint8).tobytes() and len(received) == 10
    link = json.loads((digits / "board" / "board.json").read_text())["link"]
    assert (link["input_bytes"], link["output_bytes"]) == (64, 10)
    identity = bytes.fromhex(link["identity"])  # by the tables of protocol.md
    assert identity[0] == 1 and identity[1:33].hex() == digest(DIGITS)
    assert int.from_bytes(identity[36:40], "little") == design.schedule.initiation_interval
    assert int.from_bytes(identity[40:44], "little") == 50_000
    assert identity[54:] == bytes([1, 1]) + bytes([1, 0, 64, 0, 0, 0]) + bytes([1, 0, 10, 0, 0, 0])


def test_streams_take_turns_at_the_boards_pins(tmp_path):
    """Two inputs, two outputs: a frame of each, in the order of the ports. The sum needs both inputs at once."""
    out = tmp_path / "out"
    design = hwflow.compile(two_and_two().save(tmp_path), "ulx3s_85f", baud=3_000_000, clock_mhz=50)
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
    link = json.loads((out / "board" / "board.json").read_text())["link"]
    assert (link["input_bytes"], link["output_bytes"], link["baud"]) == (send.shape[1], expect.shape[1], 3_000_000)
    assert exchange(out, send.tobytes()) == expect.tobytes()
