"""Attention by its definition: operands and results quantized, nothing between; exactly, but for a stated epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from flint import arb, fmpq
from onnx.reference import ReferenceEvaluator

from hwflow.api.compiler import compile
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.ir.node_attributes import MatrixProductAttributes, RequantizeAttributes
from hwflow.loaded_model import load
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import passes_in_rtl, quantized_node
from tests.operators.norms.judged import EPSILON, rounded
from tests.simulated_model import check_simulated

HEADS, QUERIES, KEYS, SIZE = 2, 3, 5, 4
QUERY, KEY, VALUE, RESULT = (np.float32(s) for s in (0.031, 0.043, 0.027, 0.021))
"""Scales."""


def attention(kind: str = "int8", **attributes: Any) -> Builder:
    b = Builder(23, 11)
    q, k, v = (
        b.dequantize(b.input(name, ["N", HEADS, length, SIZE], kind), float(scale), 3, kind)
        for name, length, scale in (("q", QUERIES, QUERY), ("k", KEYS, KEY), ("v", KEYS, VALUE))
    )
    b.output(b.quantize(b.node("Attention", q, k, v, **attributes), float(RESULT), -4, "int8"))
    return b


def exact(q: Any, k: Any, v: Any, scale: fmpq, causal: bool, cap: fmpq | None) -> list[Any]:
    """One head of integers, by the specification's definition, in steps of the result."""
    found = []
    for i, query in enumerate(q):
        scores = []
        for key in k:
            total = sum(int(x - 3) * int(y - 3) for x, y in zip(query, key, strict=True))
            score = arb(fmpq(total) * scale)
            scores.append(score if cap is None else (score / cap).tanh() * cap)
        powers = [score.exp() if not causal or j <= i else arb(0) for j, score in enumerate(scores)]
        ratio = fmpq(*float(VALUE).as_integer_ratio()) / fmpq(*float(RESULT).as_integer_ratio())
        for column in zip(*v, strict=True):
            shared = sum((p * int(x - 3) for p, x in zip(powers, column, strict=True)), arb(0))
            found.append(shared / sum(powers, arb(0)) * ratio)
    return found


@pytest.mark.parametrize(
    ("causal", "cap", "scale"), [(False, None, None), (True, None, 1.5), (False, 0.75, 3.0)]
)
def test_it_is_rounded_once(causal: bool, cap: float | None, scale: float | None, tmp_path: Path) -> None:
    attributes = {"is_causal": int(causal), "softcap": cap or 0.0} | ({"scale": scale} if scale else {})
    model = load(attention(**attributes).save(tmp_path)).quantized
    (result,) = model.outputs
    last = model.producers()[result.value].attributes
    assert isinstance(last, RequantizeAttributes)
    assert 0 < last.epsilon <= EPSILON
    rng = np.random.default_rng(5)
    feeds = {
        port.name: np.concatenate([
            rng.integers(-128, 128, (4, *port.shape)), rng.integers(0, 7, (2, *port.shape)),
            np.full((1, *port.shape), 127),
        ]) for port in model.inputs
    }
    found = golden.evaluate(model, feeds)[result.name]
    # ONNX multiplies both operands by the float32 root of the scale.
    root = np.float32(np.sqrt(np.float32(scale if scale else 1 / np.sqrt(SIZE))))
    factor = fmpq(*float(root).as_integer_ratio()) ** 2
    for each in (QUERY, KEY):
        factor *= fmpq(*float(each).as_integer_ratio())
    for frame in range(len(found)):
        for head in range(HEADS):
            q, k, v = (feeds[name][frame, head].tolist() for name in "qkv")
            reals = exact(q, k, v, factor, causal, None if cap is None else fmpq(*cap.as_integer_ratio()))
            for level, real in zip(found[frame, head].reshape(-1).tolist(), reals, strict=True):
                assert level in rounded(real, -4, last.epsilon)


def test_parts_of_the_shares_fit_multiplier_blocks(tmp_path: Path) -> None:
    """Shares of more than 32 bits meet the values in two products, of the lowest 17 bits and of the others."""
    products = [
        n for n in load(attention().save(tmp_path)).quantized.nodes if isinstance(n.attributes, MatrixProductAttributes)
    ]
    assert [product.inputs[0].typed.element.bits > 16 for product in products] == [False, True, True]
    assert all(product.inputs[0].typed.element.bits <= 32 for product in products)


@pytest.mark.parametrize("attributes", [{}, {"is_causal": 1}, {"softcap": 0.5}])
def test_nothing_is_unexplained(attributes: dict[str, Any], tmp_path: Path) -> None:
    assert all(row.unexplained == 0 for row in compare(attention(**attributes).save(tmp_path), frames=20).rows)


def test_in_simulated_hardware(tmp_path: Path) -> None:
    check_simulated(compile(attention(is_causal=1).save(tmp_path), "ulx3s_85f", fps=1e4), frames=2, stalls=(0.3,))


@pytest.mark.parametrize("name", ["test_attention_23_boolmask_fullymasked_row_nan_robustness"])
def test_of_onnx_in_rtl(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path, bits=8)


OF_ONNX = (
    "test_attention_3d_gqa_causal",
    "test_attention_3d_with_past_and_present_qk_matmul_softmax",
    "test_attention_4d_attn_mask_bool_4d",
    "test_attention_4d_diff_heads_mask4d_padded_kv",
    "test_attention_4d_gqa_softcap",
    "test_attention_local_window_ext_cache_rank2_mask",
    "test_attention_local_window_rank1_boolean_mask",
    "test_attention_local_window_with_past",
)


@pytest.mark.parametrize("name", OF_ONNX)
def test_of_onnx(name: str, tmp_path: Path) -> None:
    """The golden model equals the reference evaluator."""
    path, inputs, *_ = quantized_node(name, tmp_path, None, 8)
    model = load(path)
    arrays = {n: a.reshape(-1, *model.resolved.values[n].shape[1:]) for n, a in inputs.items()}
    found = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays)
    wanted = ReferenceEvaluator(onnx.load(path)).run(None, inputs)
    for result, each in zip(found.values(), (each for each in wanted if each is not None), strict=True):
        np.testing.assert_array_equal(result.reshape(each.shape), each)
