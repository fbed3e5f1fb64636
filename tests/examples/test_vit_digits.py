"""The committed vision transformer: its form, quantizers, accuracy; `hwflow quantize` makes it of the float model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import hwflow

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "vit_digits"


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return onnx.load(FOLDER / "model.onnx")


def test_operators(model: onnx.ModelProto) -> None:
    onnx.checker.check_model(model, full_check=True)
    counts = Counter(node.op_type for node in model.graph.node)
    pairs = counts.pop("QuantizeLinear")
    # Two blocks: query, key, value, mix, expand, contract of each, products and values; the last layer.
    assert counts.pop("DequantizeLinear") == pairs + 15  # weights of 13 layers, the convolution's, and its bias
    assert counts == {
        "Conv": 1, "MatMul": 17, "Add": 18, "Mul": 2, "Softmax": 2, "Gelu": 2, "LayerNormalization": 5, "ReduceMean": 1,
        "Reshape": 9, "Transpose": 9,
    }


def test_quantizers(model: onnx.ModelProto) -> None:
    """8 bits everywhere, and nothing rounded twice."""
    kinds = {i.name: i.data_type for i in model.graph.initializer}
    quantizers = [node for node in model.graph.node if node.op_type == "QuantizeLinear"]
    assert {kinds[node.input[2]] for node in quantizers} == {TensorProto.UINT8}
    behind = {name: node.op_type for node in model.graph.node for name in node.output}
    assert not {behind.get(node.input[0]) for node in quantizers} & {"Reshape", "Transpose", "DequantizeLinear"}


def test_accuracy(tmp_path: Path) -> None:
    done = hwflow.quantize(
        FOLDER / "float.onnx", FOLDER / "calibration.npz", tmp_path / "model.onnx", inputs=FOLDER / "inputs.npz",
        activations="auto",
    )
    (quality,) = done.qualities
    assert quality.float_accuracy == pytest.approx(356 / 360) and quality.accuracy == pytest.approx(356 / 360)
    assert quality.snr_db is not None and quality.snr_db > 30 and done.wide == ()
    made, kept = (onnx.load(path) for path in (tmp_path / "model.onnx", FOLDER / "model.onnx"))
    assert sorted(node.name for node in made.graph.node) == sorted(node.name for node in kept.graph.node)


def test_frames() -> None:
    with np.load(FOLDER / "inputs.npz") as arrays:
        assert arrays["image"].shape == (360, 1, 8, 8) and arrays["label"].shape == (360,)
