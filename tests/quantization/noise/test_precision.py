"""``quantize --activations auto``: which activations get 16 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import hwflow
from hwflow.cli import main
from hwflow.quantization.calibration import of_any_round
from tests.quantization.networks import Network, thirds, thirds_data
from tests.quantization.test_recurrent_networks import classifier


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    thirds(Path("m.onnx"))
    thirds_data(Path("x.npz"))
    return tmp_path


def wide(target: float) -> tuple[str, ...]:
    done = hwflow.quantize("m.onnx", "x.npz", "q.onnx", activations="auto", target_snr=target)
    (quality,) = done.qualities
    assert quality.snr_db is not None and quality.snr_db >= target
    # What the file says.
    graph = onnx.load("q.onnx").graph
    kinds = {i.name: i.data_type for i in graph.initializer}
    quantizers = [node for node in graph.node if node.op_type == "QuantizeLinear"]
    pairs = {n.input[0].removesuffix("_QuantizeLinear_Input"): kinds[n.input[2]] for n in quantizers}
    assert pairs == {n: TensorProto.UINT16 if n in done.wide else TensorProto.UINT8 for n in done.quantized}
    assert done.compiles and hwflow.compare("q.onnx", inputs="x.npz").unexplained == 0
    return done.wide


def test_only_what_the_ratio_needs():
    """The hidden values have one step for rows of very different sizes: noise of (16 * 3.5 / 255)^2 / 12 in the first
    of three elements, some 30 dB. Steps of input and output, of at most 3.5 / 255, give 20 dB less in each of six and
    three elements: more than 40 dB together. The weights are exact."""
    assert wide(25) == ()
    assert wide(36) == ("v1",)
    assert wide(60) == ("x", "v1", "y")


def test_a_loops_value_is_one_choice_for_all_rounds():
    """Of a cell of four steps a sum is the noisiest value; 42 dB would be reached with 16 bits in one of the rounds."""
    classifier(Path(), "RNN", 4)
    done = hwflow.quantize("m.onnx", "x.npz", "q.onnx", activations="auto", target_snr=42)
    assert done.qualities[0].snr_db is not None and done.qualities[0].snr_db >= 42
    chosen = {of_any_round(name) for name in done.wide if "/round_" in name}
    assert chosen and len(done.wide) < len(done.quantized)
    assert all(name in done.wide for name in done.quantized if of_any_round(name) in chosen)
    (line,) = [line for line in done.lines() if line.startswith(f"16 bits for {len(done.wide)} of ")]
    assert line.count("/round_") == len(chosen) and line.count(" (4 rounds)") == len(chosen)


def test_what_16_bits_cannot_keep(capsys):
    rng = np.random.default_rng(0)
    network = Network(["N", 6])
    y = network.node("MatMul", "x", network.constant(rng.normal(size=(6, 6))))
    network.save(Path("w.onnx"), y, ["N", 6])
    arguments = ["quantize", "w.onnx", "--calibration", "x.npz", "-o", "q.onnx", "--bits", "4"]
    assert main([*arguments, "--activations", "auto", "--target-snr", "45"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "q.onnx: 4-bit weights, per-channel scales, auto activations"
    assert lines[3:5] == [
        "16 bits for 2 of 2 activations: 'x', 'y'",
        "note: SNR is below the 45 dB asked for: weights need more bits",
    ]


def test_the_ratio_by_default(capsys):
    assert main(["quantize", "m.onnx", "--calibration", "x.npz", "-o", "q.onnx", "--activations", "auto"]) == 0
    assert capsys.readouterr().out.splitlines()[3].startswith("16 bits for ")
    done = hwflow.quantize("m.onnx", "x.npz", "q.onnx", activations="auto")
    assert done.target_snr == done.table()["target_snr_db"] == 30
    assert done.table()["quantized_to_16_bits"] == list(done.wide)
