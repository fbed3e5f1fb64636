"""Where onnxruntime gives something else than the operators' definitions: each difference in the list, shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hwflow.operators.onnx_operators import RECORDS
from hwflow.operators.record import ML
from tests.onnxspec.dialect_operators.run import evaluate
from tests.onnxspec.dialect_operators.test_microsoft import KINDS, MS, f
from tests.onnxspec.dialect_operators.test_microsoft import runtime as microsoft_runtime
from tests.onnxspec.reference.test_evaluator_defects import around, quantized_model, runtime

ZERO, THREE = np.array(0, np.uint8), np.array(3, np.uint8)


def test_every_difference_is_shown_here() -> None:
    """Those of ai.onnx.ml are in test_classical_differences.py."""
    names = ["runtime-float32", "runtime-resize", "runtime-rounding", "runtime-saturation", "runtime-softmax"]
    assert sorted({d.name for record in RECORDS for d in record.differences if ML[0] not in record.domains}) == names


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_sums_and_products_round_after_the_zero_point(op: str) -> None:
    """q / 2 + 3 is 3.5, 4.5, 5.5, 6.5, which onnxruntime rounds to even; q / 2 rounds to 0, 2, 2, 4."""
    q = np.array([[1, 3, 5, 7]], np.uint8)
    other = np.full((1, 4), op == "QLinearMul", np.uint8)
    inputs = [q, f(1), ZERO, other, f(1), ZERO, f(2), THREE]
    assert microsoft_runtime(op, inputs, KINDS[np.uint8]).tolist() == [[4, 4, 6, 6]]
    assert evaluate(MS, op, inputs).tolist() == [[3, 5, 5, 7]]


def test_means_of_integers_are_cut_off() -> None:
    """Between 1 and 2 lie 1.25 and 1.75, of which the latter is 2 when it is rounded."""
    x = np.array([[[1, 2, 4]]], np.uint8)
    inputs: list[Any] = [x, None, np.array([1, 1, 2], np.float32)]
    proto = quantized_model("Resize", inputs, KINDS[np.uint8], mode="linear")
    assert runtime(proto, {"i0": x}).tolist() == [[[1, 1, 1, 2, 3, 4]]]
    found, _ = around(proto, {"i0": x})
    assert found.tolist() == [[[1, 1, 2, 2, 4, 4]]]


def test_pools_round_after_the_zero_point() -> None:
    """Means of pairs 0.5, 1.5, 2.5, ... in a row long enough for the vector kernel."""
    x = np.zeros((1, 1, 4, 32), np.uint8)
    x[..., ::2] = np.arange(1, 33, 2, dtype=np.uint8)
    inputs: list[Any] = [x, f(1), ZERO, f(1), THREE]
    attributes = {"kernel_shape": [1, 2], "strides": [1, 2]}
    halves = np.arange(16) + 0.5
    found = microsoft_runtime("QLinearAveragePool", inputs, KINDS[np.uint8], **attributes)
    after, before = np.rint(halves + 3), np.rint(halves) + 3
    assert all((row == after).all() or (row == before).all() for row in found.reshape(-1, 16))
    assert (found.reshape(-1, 16) == after).all(axis=1).any()
    assert (evaluate(MS, "QLinearAveragePool", inputs, **attributes).reshape(-1, 16) == before).all()


def test_softmax_is_off_by_one_far_from_ties() -> None:
    rng = np.random.default_rng(0)
    q = rng.integers(-128, 128, (200, 10)).astype(np.int8)
    scale, out, low = np.float32(0.05), np.float32(0.0041), np.array(-100, np.int8)
    inputs: list[Any] = [q, f(scale), np.array(0, np.int8), f(out), low]
    real = np.exp(float(scale) * q.astype(np.float64))
    quotient = real / real.sum(axis=1, keepdims=True) / float(out)
    expected = np.minimum(np.rint(quotient) - 100, 127)
    found = microsoft_runtime("QLinearSoftmax", inputs, KINDS[np.int8], opset=13, axis=1)
    differs = found != expected
    assert np.abs(found - expected).max() <= 1
    assert (np.abs(quotient - np.floor(quotient) - 0.5)[differs] > 0.1).any()
    assert (evaluate(MS, "QLinearSoftmax", inputs, opset=13, axis=1) == expected).all()


def test_products_may_saturate() -> None:
    """255 * 127 * 2 = 64770: what a processor without VNNI makes 32767 of."""
    inputs: list[Any] = [
        np.full((1, 2), 255, np.uint8), f(1), ZERO, np.full((2, 1), 127, np.int8), f(1), np.array(0, np.int8),
        f(512), ZERO,
    ]
    found = runtime(quantized_model("QLinearMatMul", inputs, KINDS[np.uint8]), {"i0": inputs[0]})
    assert found.item() in (127, 64)  # 64770 / 512 = 126.5 (+ 0.004), 32767 / 512 = 63.998


def test_quotients_are_float32() -> None:
    """127 s / 2 s is a tie, 63.5; float32 makes less of it, see tests/verify/test_comparison.py."""
    s = np.float32(8454721 * 2.0**-23)
    inputs: list[Any] = [np.array([[127]], np.uint8), f(s), ZERO, f(2 * s), ZERO]
    exact = evaluate(MS, "QLinearConcat", [inputs[3], ZERO, *inputs[:3]], axis=1)
    found = microsoft_runtime("QLinearConcat", [inputs[3], ZERO, *inputs[:3]], KINDS[np.uint8], axis=1)
    assert exact.tolist() == [[64]] and found.tolist() in ([[63]], [[64]])
