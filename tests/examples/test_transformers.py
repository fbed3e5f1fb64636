"""The committed transformers that torch's exporter wrote: their form and their quantizers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# the operators that a network is named for
EXPECTED = {
    "conformer": {"Conv": 3, "Sigmoid": 4, "Softmax": 1, "LayerNormalization": 5, "Split": 1},
    "decoder": {"Gather": 1, "Softmax": 1, "LayerNormalization": 3, "Gelu": 1},
    "spoken_digits": {"Softmax": 2, "LayerNormalization": 4, "Gelu": 2},
}
WIDE = {"conformer": 0, "decoder": 3, "spoken_digits": 0}
"""Activations of 16 bits (of the decoder the embedding is a fourth tensor of 16 bits, a constant)."""


@pytest.mark.parametrize("name", EXPECTED)
def test_form(name: str) -> None:
    model = onnx.load(EXAMPLES / name / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    counts = Counter(node.op_type for node in model.graph.node)
    assert {operator: counts[operator] for operator in EXPECTED[name]} == EXPECTED[name]
    kinds = {i.name: i.data_type for i in model.graph.initializer}
    quantizers = Counter(kinds[node.input[2]] for node in model.graph.node if node.op_type == "QuantizeLinear")
    assert quantizers[TensorProto.UINT16] == WIDE[name]
    assert set(quantizers) <= {TensorProto.UINT8, TensorProto.UINT16}


@pytest.mark.parametrize("name", ["conformer", "spoken_digits"])
def test_spoken_frames(name: str) -> None:
    with np.load(EXAMPLES / name / "inputs.npz") as arrays:
        assert arrays["features"].shape == (480, 32, 16) and arrays["label"].shape == (480,)


def test_causal_mask() -> None:
    """Above the diagonal a number below all scores; elsewhere 0."""
    model = onnx.load(EXAMPLES / "decoder" / "model.onnx")
    masks = [
        onnx.numpy_helper.to_array(i) for i in model.graph.initializer if list(i.dims) == [24, 24]
    ]
    (mask,) = masks
    above = np.triu(np.ones((24, 24), bool), 1)
    assert (mask[~above] == 0).all() and (mask[above] < -10).all()
