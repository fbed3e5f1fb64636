"""Operators that no hardware is made of, in the middle of a model: each with its own reason, and what to do instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwflow.api.checking import check
from hwflow.operators.onnx_operators import HANDLERS, REASONS
from tests.models import Builder

SHAPE = [2, 4, 4]
NORM = (
    "it divides by a norm that it computes of each frame, a root of sums of squares; integers carry no such quotient "
    "exactly"
)


def in_the_middle(op: str, *parameters: Any, **attributes: Any) -> Builder:
    b = Builder(21, 10)
    x = b.requantize(b.node("Neg", b.requantize(b.input("x", ["N", *SHAPE]), 0.5, 3, "int8")), 0.25, 3, "int8")
    y = b.node(op, x, *(b.constant(p) for p in parameters), name="it", **attributes)
    r = b.requantize(b.declare(y, ["N", *SHAPE]), 0.5, 3, "int8")
    b.output(b.requantize(b.node("MaxPool", r, kernel_shape=[2, 2]), 0.25, 1, "int8"))
    return b


@pytest.mark.parametrize(
    ("model", "why", "remedy"),
    [
        (
            in_the_middle("LRN", size=3),
            "LRN: it divides each element by a power of a sum of its neighbours' squares; integers carry no such "
            "quotient exactly",
            "train without it, or with BatchNormalization, whose constants become part of the next quantizer",
        ),
        (
            in_the_middle("LogSoftmax", axis=1),
            "LogSoftmax: it divides exponentials by their sum; integers carry no such quotient exactly",
            "move it to the model's end, where the host runs it (ArgMax needs none), or use Sigmoid or HardSigmoid",
        ),
        (
            in_the_middle("MeanVarianceNormalization", axes=[2, 3]),  # which has a definition of other operators
            f"MeanVarianceNormalization: {NORM}",
            "train with BatchNormalization, whose constants become part of the next quantizer",
        ),
        (
            in_the_middle("LpNormalization"),
            f"LpNormalization: {NORM}",
            "train with BatchNormalization, whose constants become part of the next quantizer",
        ),
    ],
)
def test_the_reason_and_what_to_do(model: Builder, why: str, remedy: str, tmp_path: Path) -> None:
    (finding,) = check(model.save(tmp_path))
    name = why.split(":")[0]
    assert str(finding) == (
        f"unsupported: node 'it' ({name}): operator must be one that hwflow supports, not {why} "
        f"[supported-operator]\n  remedy: {remedy}"
    )


def test_a_recurrent_layer(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.node("Neg", b.requantize(b.input("x", ["N", 3, 4]), 0.5, 3, "int8")), 0.25, 3, "int8")
    weights = [b.constant(np.ones(shape)) for shape in ((1, 8, 4), (1, 8, 2))]
    b.node("LSTM", x, *weights, name="it", outputs=["last"], hidden_size=2, layout=1)
    b.output(b.node("MatMul", b.requantize("last", 0.5, 3, "int8"), b.weights(np.ones((2, 2), int))))
    (finding,) = check(b.save(tmp_path))
    assert finding.message == (
        "operator must be one that hwflow supports, not LSTM: it keeps a state from step to step, for which "
        "there is no hardware"
    )


def test_no_operator_is_both_taken_and_refused() -> None:
    assert not {name for _, name in HANDLERS} & set(REASONS)
