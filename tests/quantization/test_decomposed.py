"""Operators that stand for others, and others that spell them out."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import hwflow
from tests.quantization.networks import Network


def operators(path: str) -> list[str]:
    pair = ("QuantizeLinear", "DequantizeLinear")
    return [n.op_type for n in onnx.load(path).graph.node if n.op_type not in pair]


@pytest.mark.parametrize("attributes", [{}, {"is_causal": 1}, {"kv_num_heads": 1}])
def test_attention(tmp_path, monkeypatch, attributes):
    """The definition's values are quantized: each once, none for what it computes of shapes and never needs."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    heads = {"q_num_heads": 2, "kv_num_heads": 2, **attributes}
    network = Network(["N", 8, 16], opset=23, ir_version=11)
    sizes = 16, 8 * heads["kv_num_heads"], 8 * heads["kv_num_heads"]
    parts = [
        network.node("MatMul", "x", network.constant(rng.normal(size=(16, s)) * 0.3), result=name)
        for name, s in zip("qkv", sizes, strict=True)
    ]
    mixed = network.node("Attention", *parts, **heads)
    network.save(tmp_path / "m.onnx", network.node("MatMul", mixed, network.constant(np.eye(16))), ["N", 8, 16])
    np.savez("x.npz", x=rng.normal(size=(12, 8, 16)))
    done = hwflow.quantize("m.onnx", "x.npz", "q.onnx")
    assert {"x", "q", "k", "v", "y"} < set(done.quantized) and len(done.quantized) == 8  # scores, shares, their product
    assert done.qualities[0].snr_db is not None and done.qualities[0].snr_db > 25
    assert operators("q.onnx").count("MatMul") == 6 and operators("q.onnx").count("Softmax") == 1
    assert not {"Shape", "Where", "Range", "Attention"} & set(operators("q.onnx"))


def test_norm_and_gelu_spelled_out(tmp_path, monkeypatch):
    """As exporters of operator set 13 write them: one node each afterwards, with a quantizer before and behind."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    network = Network(["N", 4, 8])
    x = network.node("MatMul", "x", network.constant(rng.normal(size=(8, 8))), result="sums")
    centred = network.node("Sub", x, network.node("ReduceMean", x, axes=[-1]))
    power = network.node("ReduceMean", network.node("Pow", centred, network.constant(2.0)), axes=[-1])
    root = network.node("Sqrt", network.node("Add", power, network.constant(1e-5)))
    x = network.node("Mul", network.node("Div", centred, root), network.constant(rng.random(8) + 0.5))
    x = network.node("Add", x, network.constant(rng.normal(size=8)), result="norm")
    x = network.node("MatMul", x, network.constant(rng.normal(size=(8, 8))))
    x = network.node("Add", x, network.constant(rng.normal(size=8)), result="hidden")
    erf = network.node("Erf", network.node("Div", x, network.constant(2**0.5)))
    x = network.node("Mul", x, network.node("Add", erf, network.constant(1.0)))
    x = network.node("Mul", x, network.constant(0.5), result="gelu")
    y = network.node("MatMul", x, network.constant(rng.normal(size=(8, 8))))
    network.save(tmp_path / "m.onnx", y, ["N", 4, 8])
    np.savez("x.npz", x=rng.normal(size=(12, 4, 8)))
    done = hwflow.quantize("m.onnx", "x.npz", "q.onnx")
    assert operators("q.onnx") == ["MatMul", "LayerNormalization", "MatMul", "Add", "Gelu", "MatMul"]
    assert done.quantized == ("x", "sums", "norm", "hidden", "gelu", "y")
    assert done.qualities[0].snr_db is not None and done.qualities[0].snr_db > 25
