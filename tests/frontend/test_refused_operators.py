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
            in_the_middle("Bernoulli"), "Bernoulli: it draws random numbers",
            "export the model for inference, or feed them as an input",
        ),
        (
            in_the_middle("GridSample", np.zeros((1, 4, 4, 2))),
            "GridSample: it reads its input at places that it computes at run time, and a stream passes once",
            "sample with Resize, Slice or Gather at constant places, or on the host",
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
        "operator must be one that hwflow supports, not LSTM: it has gates and states inside that must be quantized, "
        "and as a single node no place for quantizers"
    )


def test_no_operator_is_both_taken_and_refused() -> None:
    assert not {name for _, name in HANDLERS} & set(REASONS)
