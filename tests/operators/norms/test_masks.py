"""Masked elements in front of a Softmax or a quantizer: minus infinity, or numbers far below, by constants and streams.

A masked element's share is exactly 0; of a row that a large number masks altogether, shares are those without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from hwflow.api.checking import check
from hwflow.api.compiler import compile
from hwflow.loaded_model import Model, load
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.operators.norms.judged import SCALE, ZERO, judge, model_of, telling
from tests.simulated_model import check_simulated

LENGTH = 4
PAST = np.tril(np.ones((LENGTH, LENGTH), bool))


def causal(x: list[Any]) -> list[Any]:
    shares = []
    for row in range(LENGTH):
        powers = [v.exp() if PAST[row, k] else arb(0) for k, v in enumerate(x[row * LENGTH : (row + 1) * LENGTH])]
        shares += [power / sum(powers, arb(0)) for power in powers]
    return shares


def masked(b: Builder, x: str, form: str) -> str:
    if form.startswith("where"):
        return b.node("Where", b.constant(PAST, "bool"), x, b.constant(float(form.removeprefix("where"))))
    if form.startswith("inverted"):
        return b.node("Where", b.constant(~PAST, "bool"), b.constant(float(form.removeprefix("inverted"))), x)
    return b.node("Add", b.constant(np.where(PAST, 0, float(form))), x)


FORMS = ("where-inf", "where-1e9", "inverted-inf", "-inf", "-10000", "-3.4e38")


@pytest.mark.parametrize("form", FORMS)
def test_causal(form: str, tmp_path: Path) -> None:
    model = model_of([4, 4], lambda b, x: b.node("Softmax", masked(b, x, form), axis=-1), 1 / 256, -128, tmp_path)
    judge(model, telling([4, 4], count=3), causal, 1 / 256, -128)


@pytest.mark.parametrize("scale", [None, 0.5])
def test_decomposed(scale: float | None, tmp_path: Path) -> None:
    """As exporters write it, scores scaled before or behind the mask, and moved."""
    def make(b: Builder, x: str) -> str:
        x = masked(b, x, "-inf")
        if scale:
            x = b.node("Mul", x, b.constant(scale))
        x = b.node("Transpose", b.node("Unsqueeze", x, b.constant([1], "int64")), perm=[0, 2, 1, 3])
        powers = b.node("Exp", b.node("Sub", x, b.node("ReduceMax", x, b.constant([-1], "int64"))))
        shares = b.node("Div", powers, b.node("ReduceSum", powers, b.constant([-1], "int64")))
        return b.node("Squeeze", shares, b.constant([2], "int64"))

    model = model_of([4, 4], make, 1 / 256, -128, tmp_path)
    factor = fmpq(1, 2) if scale else fmpq(1)
    judge(model, telling([4, 4], count=3), lambda x: causal([v * factor for v in x]), 1 / 256, -128)


def by_stream(form: str) -> Builder:
    """Of a bool input: keys to attend to."""
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 2, 4, 4]), 0.1, 3, "int8")
    keys = b.input("keys", ["N", 1, 1, 4], "bool")
    if form.startswith("where"):
        y = b.node("Where", keys, x, b.constant(float(form.removeprefix("where"))))
    elif form.startswith("added"):
        y = b.node("Add", x, b.node("Where", keys, b.constant(0.0), b.constant(float(form.removeprefix("added")))))
    elif form == "causal too":
        mask = b.node("Where", b.node("Not", keys), b.constant(-np.inf), b.constant(0.0))
        y = b.node("Add", b.node("Add", mask, x), b.constant(np.where(PAST, 0, -np.inf)))
    else:
        inverted = b.node("Sub", b.constant(1.0), b.node("Cast", keys, to=1))
        y = b.node("Add", x, b.node("Mul", inverted, b.constant(float(form))))
    y = b.requantize(b.node("Softmax", y, axis=-1), 1 / 256, -128, "int8")
    b.output(b.requantize(b.node("Mul", y, b.constant(1.5)), 1 / 100, 0, "int8"))
    return b


STREAMS = ("where-inf", "where-1e9", "added-inf", "added-1e9", "causal too", "-10000", "-3.4e38")


@pytest.mark.parametrize("form", STREAMS)
def test_streams(form: str, tmp_path: Path) -> None:
    """Against exact shares of the same integers, on rows with at least one key."""
    model = load(by_stream(form).save(tmp_path))
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 2, (20, 1, 1, 4))
    keys[..., 0] = 1
    ports = {port.name: port for port in model.quantized.inputs}
    (x,) = (name for name in ports if name != "keys")
    feeds = {"keys": keys, x: rng.integers(-128, 128, (20, 2, 4, 4))}
    found = golden.evaluate(model.quantized, feeds)
    (levels,) = found.values()
    scores = (feeds[x] - 3) * float(np.float32(0.1))
    kept = np.broadcast_to((keys != 0) & (PAST if form == "causal too" else True), scores.shape)
    powers = np.where(kept, np.exp(scores - scores.max(axis=-1, keepdims=True)), 0)
    shares = np.clip(np.rint(powers / powers.sum(axis=-1, keepdims=True) * 256) - 128, -128, 127)
    expected = np.clip(np.rint((shares + 128) / 256 * 1.5 * 100), -128, 127)
    assert (np.abs(levels - expected) > 0).mean() < 0.01  # ties of two float roundings
    assert (levels[~kept] == 0).all()


@pytest.mark.parametrize("form", ["where-1e9", "-10000", "-3.4e38"])
def test_rows_masked_by_numbers_are_explained(form: str, tmp_path: Path) -> None:
    assert all(row.unexplained == 0 for row in compare(by_stream(form).save(tmp_path), frames=30).rows)


def test_in_simulated_hardware(tmp_path: Path) -> None:
    check_simulated(compile(by_stream("causal too").save(tmp_path), "ulx3s_85f", fps=1e5), stalls=(0.3,))


def quantized(form: str, folder: Path) -> Model:
    return model_of([4, 4], lambda b, x: masked(b, x, form), 0.05, -20, folder)


@pytest.mark.parametrize("form", ["where-inf", "-inf", "-3.4e38"])
def test_a_quantizer_gives_them_the_least_level(form: str, tmp_path: Path) -> None:
    model = quantized(form, tmp_path)
    frames = telling([4, 4], count=3)
    (port,) = model.quantized.inputs
    (found,) = golden.evaluate(model.quantized, {port.name: frames}).values()
    ratio = float(SCALE) / float(np.float32(0.05))
    expected = np.where(PAST, np.clip(np.rint((frames - ZERO) * ratio) - 20, -128, 127), -128)
    assert (found.reshape(expected.shape) == expected).all()


def finding(b: Builder, y: str, folder: Path) -> tuple[str, str]:
    y = b.requantize(y, 1 / 100, 0, "int8")
    b.output(b.node("MatMul", y, b.weights(np.ones((4, 2), int))))
    (found,) = [f for f in check(b.save(folder)) if f.severity != "warning"]
    return found.rule, found.where


def test_a_row_needs_an_element(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 4, 4]), 0.1, 3, "int8")
    mask = np.where(np.arange(16).reshape(4, 4) < 4, -np.inf, 0)
    y = b.node("Softmax", b.node("Add", x, b.constant(mask), name="mask"), axis=-1)
    assert finding(b, y, tmp_path) == ("masked-row", "node 'mask' (Add)")


def test_only_a_softmax_or_a_quantizer_takes_them(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 4, 4]), 0.1, 3, "int8")
    y = b.node("Sigmoid", b.node("Add", x, b.constant(np.where(PAST, 0, -np.inf))), name="it")
    assert finding(b, y, tmp_path) == ("quantized-operand", "node 'it' (Sigmoid)")


@pytest.mark.parametrize("padded", [False, True])
def test_a_masked_bias(padded: bool, tmp_path: Path) -> None:
    """It varies, too; padded, its last column and row are minus infinity."""
    def make(b: Builder, x: str) -> str:
        bias = b.node("Mul", b.node("Sigmoid", x), b.constant(2.0))
        bias = b.node("DequantizeLinear", b.node("QuantizeLinear", bias, b.constant(2.0**-6), b.constant(0, "int8")),
                      b.constant(2.0**-6), b.constant(0, "int8"))
        if padded:
            bias = b.node("Slice", bias, b.constant([0], "int64"), b.constant([3], "int64"), b.constant([2], "int64"))
            bias = b.node("Pad", bias, b.constant([0, 0, 0, 0, 0, 1], "int64"), b.constant(-np.inf))
        return b.node("Softmax", b.node("Add", x, masked(b, bias, "-inf")), axis=-1)

    model = model_of([4, 4], make, 1 / 256, -128, tmp_path)

    def meaning(x: list[Any]) -> list[Any]:
        biases = [min((v.exp() / (1 + v.exp()) * 128 + fmpq(1, 2)).floor(), arb(127)) / 64 for v in x]
        total = [v + bias for v, bias in zip(x, biases, strict=True)]
        if not padded:
            return causal(total)
        return [*causal(total)[:12], *causal([*total[:12], *total[12:15], arb(-1000)])[12:]]

    judge(model, telling([4, 4], count=3), meaning, 1 / 256, -128)


@pytest.mark.parametrize("scale", [0.01, (0.011, 0.0137, 0.00917)])
@pytest.mark.parametrize("far", [-100.0, -1e9])
def test_a_bias_far_below_the_others_is_no_mask(scale: Any, far: float, tmp_path: Path) -> None:
    """Its channel has the least level; those of the others are as without it."""

    def levels(bias: float) -> Any:
        b = Builder()
        x = b.requantize(b.input("x", ["N", 4]), 0.05, 128)
        weights = b.weights(np.random.default_rng(0).integers(-99, 100, (4, 3)), scale, axis=1)
        y = b.node("Add", b.node("MatMul", x, weights), b.constant([0.7, bias, -0.3]))
        b.output(b.requantize(y, 0.3, 100))
        graph = b.load(tmp_path).quantized
        assert [node.op for node in graph.nodes] == ["dense", "requantize"]
        x = np.random.default_rng(1).integers(0, 256, (30, 4))
        (values,) = golden.evaluate(graph, {graph.inputs[0].name: x}).values()
        return values

    far_below, near = levels(far), levels(0.1)
    assert (far_below[:, 1] == 0).all() and (near[:, 1] > 0).all()
    np.testing.assert_array_equal(far_below[:, [0, 2]], near[:, [0, 2]])
