"""Attention, MultiHeadAttention and QAttention of onnxruntime in hardware: quantizers stand around them, none inside.
Biases and scales of columns are no multiples of anything, so projections are rounded far below what counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from flint import arb, ctx, fmpq

from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.loaded_model import Model
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.operators.norms.judged import DIGITS, EPSILON, rounded

Array = npt.NDArray[Any]

LENGTH, SIZE, HEADS = 4, 8, 2
HEAD = SIZE // HEADS
STEP, RESULT = np.float32(0.02), np.float32(0.02)
RNG = np.random.default_rng(0)
WEIGHTS = RNG.integers(-60, 60, (SIZE, 3 * SIZE))
BIAS = RNG.normal(size=3 * SIZE).astype(np.float32)
COLUMNS = RNG.uniform(0.005, 0.02, 3 * SIZE).astype(np.float32)
KEYS = np.arange(LENGTH)


def projected(op: str, scale: Array, mask: tuple[int, ...] | None = None, **attributes: Any) -> Builder:
    """A self attention of ``op`` between quantizers."""
    b = Builder(21, 10)
    x = b.input("x", ["N", LENGTH, SIZE], "int8" if op == "Attention" else "uint8")
    masks = [] if mask is None else [b.input("mask", ["N", *mask], "int32")]
    if op == "Attention":
        operands = [b.dequantize(x, STEP, 3, "int8"), b.weights(WEIGHTS, scale, np.zeros(scale.shape), axis=1)]
        y = b.node(op, *operands, b.constant(BIAS), *masks, domain="com.microsoft", num_heads=HEADS, **attributes)
    else:
        zeros = b.constant(131, "uint8"), b.constant(np.zeros(scale.shape), "int8")
        y = b.node(
            op, x, b.constant(WEIGHTS, "int8"), b.constant(BIAS), b.constant(STEP), b.constant(scale),
            *(masks or [""]), *zeros, domain="com.microsoft", num_heads=HEADS, **attributes,
        )
    b.declare(y, ["N", LENGTH, SIZE])
    b.output(b.quantize(y, RESULT, 0, "int8"))
    return b


def exactly(value: Any) -> fmpq:
    return fmpq(*float(value).as_integer_ratio())


def attended(frame: Array, zero: int, scale: Array, kept: Array) -> list[Any]:
    """The results in steps, row after row, by the documented definition; ``kept``: keys that a query may attend to."""
    columns = []
    for c in range(3 * SIZE):
        unit = exactly(STEP) * exactly(scale.reshape(-1)[c % scale.size])
        sums = (frame.astype(np.int64) - zero) @ WEIGHTS[:, c]
        columns.append([unit * int(total) + exactly(BIAS[c]) for total in sums])
    factor = exactly(np.float32(1) / np.sqrt(np.float32(HEAD)))
    found = np.empty((LENGTH, SIZE), dtype=object)
    for head in range(HEADS):
        own = range(head * HEAD, (head + 1) * HEAD)
        for i in range(LENGTH):
            scores = [
                arb(factor * sum((columns[c][i] * columns[SIZE + c][j] for c in own), fmpq(0))) for j in range(LENGTH)
            ]
            powers = [score.exp() if kept[i, j] else arb(0) for j, score in enumerate(scores)]
            for c in own:
                total = sum((p * columns[2 * SIZE + c][j] for j, p in enumerate(powers)), arb(0))
                found[i, c] = total / sum(powers, arb(0)) / exactly(RESULT)
    return list(found.reshape(-1))


def judge(model: Model, feeds: dict[str, Array], zero: int, scale: Array, kept: Array) -> None:
    """``kept``: by frame, query and key."""
    (result,) = model.quantized.outputs
    last = model.quantized.producers()[result.value].attributes
    assert isinstance(last, RequantizeAttributes)
    assert 0 < last.epsilon <= EPSILON
    found = golden.evaluate(model.quantized, feeds)[result.name]
    with ctx.workdps(DIGITS):
        for frame, (levels, x) in enumerate(zip(found, feeds["x"], strict=True)):
            reals = attended(x, zero, scale, kept[frame])
            for level, real in zip(levels.reshape(-1).tolist(), reals, strict=True):
                assert level in rounded(real, 0, last.epsilon)


@pytest.mark.parametrize("scale", [np.array(0.01, np.float32), COLUMNS], ids=["tensor", "columns"])
@pytest.mark.parametrize("op", ["Attention", "QAttention"])
def test_it_is_rounded_once(op: str, scale: Array, tmp_path: Path) -> None:
    model = projected(op, scale, unidirectional=1).load(tmp_path)
    low, high, zero = (-128, 128, 3) if op == "Attention" else (0, 256, 131)
    x = np.stack([RNG.integers(low, high, (LENGTH, SIZE)), np.full((LENGTH, SIZE), low), RNG.integers(zero, zero + 9,
                 (LENGTH, SIZE))])
    judge(model, {"x": x}, zero, scale, np.stack([KEYS[:, None] >= KEYS] * len(x)))


@pytest.mark.parametrize("shape", [(LENGTH,), (LENGTH, LENGTH), ()], ids=["keys", "pairs", "lengths"])
def test_masks_that_are_streams(shape: tuple[int, ...], tmp_path: Path) -> None:
    model = projected("Attention", COLUMNS, shape).load(tmp_path)
    x = RNG.integers(-128, 128, (3, LENGTH, SIZE))
    mask = RNG.integers(0, 2, (3, *shape))
    if shape:
        mask[..., 1] = 1
        kept = np.broadcast_to(mask.reshape(3, -1, LENGTH) > 0, (3, LENGTH, LENGTH))
    else:
        mask = np.array([1, 3, 4])
        kept = np.broadcast_to(mask[:, None, None] > KEYS, (3, LENGTH, LENGTH))
    judge(model, {"x": x, "mask": mask}, 3, COLUMNS, kept)


def multi_head(past: bool) -> Builder:
    b = Builder(21, 10)
    q, k, v = (
        b.dequantize(b.input(name, ["N", LENGTH, SIZE], "int8"), 0.03, 3, "int8") for name in ("q", "k", "v")
    )
    mask = b.input("mask", ["N", LENGTH + 2 * past], "int32")
    states = [
        b.dequantize(b.input(name, ["N", HEADS, 2, HEAD], "int8"), 0.03, 3, "int8") for name in ("pk", "pv")[: 2 * past]
    ]
    more = ["", *states] if past else []
    y = b.node(
        "MultiHeadAttention", q, k, v, b.constant(BIAS), mask, *more, domain="com.microsoft", num_heads=HEADS,
        outputs=["present_key", "present_value"] if past else [],
    )
    b.declare(y, ["N", LENGTH, SIZE])
    b.output(b.quantize(y, RESULT, 0, "int8"))
    if past:
        b.declare("present_key", ["N", HEADS, LENGTH + 2, HEAD])
        b.output(b.quantize("present_key", 0.03, 0, "int8"))
    return b


@pytest.mark.parametrize("past", [False, True])
def test_multi_head(past: bool, tmp_path: Path) -> None:
    assert all(row.unexplained == 0 for row in compare(multi_head(past).save(tmp_path), frames=10).rows)


def test_masked_rows_are_explained(tmp_path: Path) -> None:
    path = projected("QAttention", np.array(0.01, np.float32), (LENGTH,)).save(tmp_path)
    assert all(row.unexplained == 0 for row in compare(path, frames=20).rows)
