"""Causal masks, of minus infinity and of large numbers, added or selected: what is left of the scores' accuracy."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import hwflow
from tests.quantization.networks import Network

FUTURE = np.triu(np.ones((6, 6), bool), 1)


def network(form: str) -> tuple[Network, str]:
    rng = np.random.default_rng(0)
    model = Network(["N", 6, 4], opset=20, ir_version=9)
    query, key = (model.node("MatMul", "x", model.constant(rng.normal(size=(4, 4)))) for _ in range(2))
    scores = model.node("MatMul", query, model.node("Transpose", key, perm=[0, 2, 1]))
    if form == "selected":
        past = model.constant(~FUTURE, np.bool_)
        scores = model.node("Where", past, scores, model.constant(-np.inf), result="masked")
    elif form == "of sizes":  # as torch's exporter writes a causal mask of frames of any number
        sizes = model.node("Slice", model.node("Shape", scores), *(model.constant([n], np.int64) for n in (-2, 3)))
        ones = model.node("Trilu", model.node("Expand", model.constant(1.0), sizes), upper=0)
        future = model.node("Equal", ones, model.constant(0.0))
        mask = model.node("Where", future, model.constant(-3e38), model.constant(0.0))
        scores = model.node("Add", scores, mask, result="masked")
    else:
        scores = model.node("Add", scores, model.constant(np.where(FUTURE, float(form), 0)), result="masked")
    return model, model.node("MatMul", model.node("Softmax", scores, axis=-1, result="shares"), "x")


@pytest.mark.parametrize("form", ["-inf", "-10000", "-3e38", "selected", "of sizes"])
def test_causal_attention(tmp_path, form):
    model, y = network(form)
    model.save(tmp_path / "m.onnx", y, ["N", 6, 4])
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(1).normal(size=(16, 6, 4)))
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx", activations="int16")
    assert "masked" in done.quantized
    assert not {"Shape", "Trilu", "Equal"} & {node.op_type for node in onnx.load(tmp_path / "q.onnx").graph.node}
    # With 16 bits, what remains is 8 bits of weights, whose scores are off by a few percent, and shares of e^-8.
    assert done.qualities[0].snr_db is not None and done.qualities[0].snr_db > 30
    found = {i.name: numpy_helper.to_array(i) for i in onnx.load(tmp_path / "q.onnx").graph.initializer}
    assert 8 < found["masked_scale"] * 65535 < 200  # scores of some units, and no mask
    assert all(np.isfinite(v).all() and v.min() > -1000 for v in found.values() if v.dtype == np.float32)


def test_bounds_of_functions_are_no_masks(tmp_path):
    """Relu6 with an open lower bound, a factor of -10,000."""
    model = Network(["N", 4], opset=20, ir_version=9)
    x = model.node("MatMul", "x", model.constant(np.eye(4)))
    x = model.node("Clip", x, model.constant(-3e38), model.constant(6.0))
    y = model.node("Mul", x, model.constant([-10000.0, 1, 1, 1]))
    model.save(tmp_path / "m.onnx", y, ["N", 4])
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(1).normal(size=(16, 4)))
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    assert done.qualities[0].snr_db is not None and done.qualities[0].snr_db > 35
