"""Normalizations of any kind in the middle of a model, judged by their definitions in 200 digits; in hardware."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from hwflow.api.checking import check
from hwflow.api.compiler import compile
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import passes_in_rtl
from tests.operators.norms.judged import every, judge, model_of, telling
from tests.simulated_model import check_simulated

SHAPE = [2, 6]
GAMMA, BETA = np.float32([1.25, -0.7, 0.3, 1.1, 0.9, 2.0]), np.float32([0.5, -0.1, 0.0, 1.5, -2.0, 0.3])
TINY, SMALL = (fmpq(*Fraction(float(np.float32(v))).as_integer_ratio()) for v in (1e-9, 1e-5))
MICROSOFT = "com.microsoft"

SHIFT = np.float32([0, 1, 2, -4, -2, 8]) * np.float32(0.07)
"""Multiples of the scale of the inputs, so that sums with it are short."""


def larger(op: str, factor: float, *parameters: Any) -> Callable[..., str]:
    """A multiple of the result, of parameters."""

    def make(b: Builder, x: str, **attributes: Any) -> str:
        y = b.declare(b.node(op, x, *(b.constant(p) for p in parameters), **attributes), ["N", 2, 3, 4])
        return b.node("Mul", y, b.constant(factor))

    return make


def simplified(b: Builder, x: str, **attributes: Any) -> str:
    y = b.node("SimplifiedLayerNormalization", x, b.constant(np.resize(GAMMA, (3, 4))), domain=MICROSOFT, **attributes)
    return b.node("Mul", b.declare(y, ["N", 2, 3, 4]), b.constant(50.0))


def skipping(op: str) -> Callable[..., str]:
    def make(b: Builder, x: str, **attributes: Any) -> str:
        y = b.node(op, x, x, b.constant(GAMMA[:4]), domain=MICROSOFT, **attributes)
        return b.node("Mul", b.declare(y, ["N", 2, 3, 4]), b.constant(50.0))

    return make


HONOURED = [
    ("MeanVarianceNormalization", larger("MeanVarianceNormalization", 50.0), {"axes": [1]}),
    ("LpNormalization", larger("LpNormalization", 100.0), {"axis": 1, "p": 1}),
    ("GlobalLpPool", lambda b, x, **attributes: b.node("GlobalLpPool", x, **attributes), {"p": 1}),
    ("LRN", larger("LRN", 20.0), {"alpha": 0.5, "beta": 0.25, "bias": 2.5, "size": 2}),
    ("SimplifiedLayerNormalization", simplified, {"axis": 2, "epsilon": 0.75, "stash_type": 1}),
    ("SkipLayerNormalization", skipping("SkipLayerNormalization"), {"epsilon": 0.75}),
    ("SkipSimplifiedLayerNormalization", skipping("SkipSimplifiedLayerNormalization"), {"epsilon": 0.75}),
]


def ones(size: int, rank: int) -> list[tuple[Any, str]]:
    return [(np.ones(size), "float")]


def of_size(rank: int) -> dict[str, Any]:
    return {"size": 3}


NODES = [
    ("MeanVarianceNormalization", lambda size, rank: [], lambda rank: {"axes": [rank - 1]}),
    ("LRN", lambda size, rank: [], of_size),
    ("SimplifiedLayerNormalization", ones, lambda rank: {}),
    ("SkipLayerNormalization", lambda size, rank: [*ones(size, rank), *ones(size, rank)], lambda rank: {}),
    ("SkipSimplifiedLayerNormalization", lambda size, rank: [*ones(size, rank), *ones(size, rank)], lambda rank: {}),
]


def exact(values: Any) -> list[Any]:
    return [arb(fmpq(*Fraction(float(v)).as_integer_ratio())) for v in values]


def rows(x: list[Any], length: int = 6) -> list[list[Any]]:
    return [x[k : k + length] for k in range(0, len(x), length)]


def total(x: Any) -> Any:
    return sum(x, arb(0))


def squares(x: list[Any]) -> Any:
    return total(v * v for v in x)


def alike(x: list[Any]) -> bool:
    return all(v == x[0] for v in x)


def standardized(x: list[Any]) -> list[Any]:
    """By the definition, with 0 over 1e-9 where all are equal."""
    mean = total(x) / len(x)
    deviation = arb(0) if alike(x) else (total((v - mean) ** 2 for v in x) / len(x)).sqrt()
    return [arb(0) if alike(x) else (v - mean) / (deviation + TINY) for v in x]


def unit(x: list[Any], power: int) -> list[Any]:
    if all(v == 0 for v in x):
        return x
    norm = total(abs(v) for v in x) if power == 1 else squares(x).sqrt()
    return [v / norm for v in x]


@pytest.mark.parametrize(("scale", "zero"), [(1 / 32, 3), (0.017, -20)])
def test_mean_variance_normalization(scale: float, zero: int, tmp_path: Path) -> None:
    model = model_of(SHAPE, lambda b, x: b.node("MeanVarianceNormalization", x, axes=[-1]), scale, zero, tmp_path)
    judge(model, telling(SHAPE, count=6), lambda x: [y for row in rows(x) for y in standardized(row)], scale, zero)


def test_mean_variance_of_all_axes_but_the_channels(tmp_path: Path) -> None:
    """The default, where the model has one frame: its first axis is none of frames."""
    b = Builder(21, 10)
    x = b.requantize(b.input("x", [1, 2, 2, 3]), 0.07, 3, "int8")
    b.output(b.requantize(b.node("MeanVarianceNormalization", x, axes=[0, 2, 3]), 1 / 32, 3, "int8"))
    assert all(row.unexplained == 0 for row in compare(b.save(tmp_path), frames=20).rows)


def test_its_definition_by_meaning(tmp_path: Path) -> None:
    """The mean of squares less the square of the mean, and 1e-9 behind the root."""

    def make(b: Builder, x: str) -> str:
        axes, two = b.constant([-1], "int64"), b.constant(2.0)
        mean = b.node("ReduceMean", x, axes)
        squares = b.node("ReduceMean", b.node("Pow", x, two), axes)
        deviation = b.node("Sqrt", b.node("Sub", squares, b.node("Pow", mean, two)))
        return b.node("Div", b.node("Sub", x, mean), b.node("Add", deviation, b.constant(1e-9)))

    judge(model_of([6], make, 1 / 32, 3, tmp_path), telling([6], count=6), standardized, 1 / 32, 3)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize(("scale", "zero"), [(1 / 128, 0), (0.0073, 11)])
def test_lp_normalization(power: int, scale: float, zero: int, tmp_path: Path) -> None:
    """A row of zeros gives zeros."""
    model = model_of(SHAPE, lambda b, x: b.node("LpNormalization", x, axis=2, p=power), scale, zero, tmp_path)
    judge(model, telling(SHAPE, count=6), lambda x: [y for row in rows(x) for y in unit(row, power)], scale, zero)


def test_all_inputs_of_a_small_case(tmp_path: Path) -> None:
    model = model_of([3], lambda b, x: b.node("LpNormalization", x), 1 / 128, 0, tmp_path)
    judge(model, every([-128, -60, 3, 4, 5, 6, 70, 127], 3), lambda x: unit(x, 2), 1 / 128, 0)


def clipped(b: Builder, norm: str) -> str:
    return b.node("Clip", norm, b.constant(1e-12))


def greatest(b: Builder, norm: str) -> str:
    return b.node("Max", b.constant(1e-12), norm)


def expanded(b: Builder, norm: str) -> str:
    return b.node("Expand", clipped(b, norm), b.constant([1, 2, 6], "int64"))


@pytest.mark.parametrize("limited", [clipped, greatest, expanded])
@pytest.mark.parametrize("power", [1, 2])
def test_norms_as_exported(limited: Callable[[Builder, str], str], power: int, tmp_path: Path) -> None:
    """With a limit of the norm, by which zeros give zeros."""

    def make(b: Builder, x: str) -> str:
        return b.node("Div", x, limited(b, b.node(f"ReduceL{power}", x, b.constant([-1], "int64"))))

    model = model_of(SHAPE, make, 1 / 128, 0, tmp_path)
    judge(model, telling(SHAPE, count=6), lambda x: [y for row in rows(x) for y in unit(row, power)], 1 / 128, 0)


def test_a_norm_and_an_epsilon(tmp_path: Path) -> None:
    small = arb(fmpq(*Fraction(float(np.float32(1e-6))).as_integer_ratio()))

    def make(b: Builder, x: str) -> str:
        norm = b.node("ReduceL2", x, b.constant([-1], "int64"))
        return b.node("Div", x, b.node("Add", norm, b.constant(1e-6)))

    def meaning(x: list[Any]) -> list[Any]:
        return [v / ((arb(0) if all(w == 0 for w in x) else squares(x).sqrt()) + small) for v in x]

    judge(model_of([6], make, 1 / 128, 0, tmp_path), telling([6]), meaning, 1 / 128, 0)


@pytest.mark.parametrize("beta", [0.25, 0.5, 0.75, 1.0])
def test_lrn(beta: float, tmp_path: Path) -> None:
    """Five channels of two pixels, three or four neighbours."""
    for size in (3, 4):
        model = model_of(
            [5, 1, 2], lambda b, x, n=size: b.node("LRN", x, size=n, alpha=0.5, beta=beta, bias=1.5), 0.02, 3, tmp_path
        )

        def meaning(x: list[Any], size: int = size) -> list[Any]:
            pixels = [x[k::2] for k in range(2)]
            found = [arb(0)] * 10
            for place, pixel in enumerate(pixels):
                for c, value in enumerate(pixel):
                    near = pixel[max(0, c - (size - 1) // 2) : c + -(-(size - 1) // 2) + 1]
                    divisor = arb(fmpq(3, 2)) + arb(fmpq(1, 2)) / size * squares(near)
                    found[2 * c + place] = value / divisor ** arb(fmpq(int(beta * 4), 4))
            return found

        judge(model, telling([5, 1, 2], count=4), meaning, 0.02, 3)


@pytest.mark.parametrize("power", [1, 2])
def test_global_lp_pool(power: int, tmp_path: Path) -> None:
    """Sums are exact, so that the comparison explains what floats lose."""
    b = Builder(22, 10)
    x = b.requantize(b.input("x", ["N", 2, 3, 4]), 0.5, 3, "int8")
    b.output(b.requantize(b.node("GlobalLpPool", x, p=power), 4.0 if power == 1 else 1.5, 0, "uint8"))
    assert all(row.unexplained == 0 for row in compare(b.save(tmp_path), frames=40).rows)


def skip(x: list[Any], *, centred: bool) -> list[Any]:
    """Twice each row and a bias, normalized."""
    bias, scale, shift = exact(SHIFT), exact(GAMMA), exact(BETA[::-1])
    found = []
    for row in rows(x):
        sums = [2 * v + c for v, c in zip(row, bias, strict=True)]
        mean = total(sums) / 6 if centred else arb(0)
        root = (squares([v - mean for v in sums]) / 6 + SMALL).sqrt()
        found += [
            (v - mean) / root * g + (s if centred else 0) for v, g, s in zip(sums, scale, shift, strict=True)
        ]
    return found


@pytest.mark.parametrize("centred", [True, False])
def test_the_sum_with_what_skips_a_block(centred: bool, tmp_path: Path) -> None:
    def make(b: Builder, x: str) -> str:
        shift = [b.constant(BETA[::-1])] if centred else []
        op = "SkipLayerNormalization" if centred else "SkipSimplifiedLayerNormalization"
        y = b.node(op, x, x, b.constant(GAMMA), *shift, b.constant(SHIFT), domain=MICROSOFT, epsilon=1e-5)
        return b.declare(y, ["N", *SHAPE])

    model = model_of(SHAPE, make, 1 / 32, 0, tmp_path)
    judge(model, telling(SHAPE, count=6), lambda x: skip(x, centred=centred), 1 / 32, 0)


@pytest.mark.parametrize("domain", ["", MICROSOFT])
def test_without_a_mean_in_either_domain(domain: str, tmp_path: Path) -> None:
    """onnxruntime writes it into the default domain."""

    def make(b: Builder, x: str) -> str:
        y = b.node("SimplifiedLayerNormalization", x, b.constant(GAMMA), domain=domain, axis=-1)
        return b.declare(y, ["N", *SHAPE])

    def meaning(x: list[Any]) -> list[Any]:
        roots = [(squares(row) / 6 + SMALL).sqrt() for row in rows(x)]
        return [v / root * g for row, root in zip(rows(x), roots, strict=True) for v, g in zip(
            row, exact(GAMMA), strict=True)]

    b = Builder(21, 10)
    x = b.dequantize(b.input("x", ["N", *SHAPE], "int8"), 0.07, 5, "int8")
    y = b.declare(b.quantize(make(b, x), 1 / 50, 0, "int8"), ["N", *SHAPE], "int8")
    b.output(y)
    judge(b.load(tmp_path), telling(SHAPE, count=6), meaning, 1 / 50, 0)
    warnings = [f.rule for f in check(tmp_path / "model.onnx")]
    assert warnings == ([] if domain else ["old-dialect"])


def block(b: Builder, op: str) -> None:
    """Two layers, with the sum that the second one's output is added to: both results go on."""
    rng = np.random.default_rng(0)
    x = b.requantize(b.input("x", ["N", 3, 4]), 0.05, 3, "int8")
    h = b.requantize(b.node("MatMul", x, b.weights(rng.integers(-20, 20, (4, 6)))), 0.11, 3, "int8")
    g = b.requantize(b.node("MatMul", x, b.weights(rng.integers(-20, 20, (4, 6)))), 0.11, -3, "int8")
    y = b.node(op, h, g, b.constant(GAMMA), outputs=["", "", "sum"], domain=MICROSOFT)
    b.declare(y, ["N", 3, 6])
    b.declare("sum", ["N", 3, 6])
    n = b.declare(b.quantize(y, 0.03, 5, "int8"), ["N", 3, 6], "int8")
    s = b.declare(b.quantize("sum", 0.25, 0, "int8"), ["N", 3, 6], "int8")
    b.output(n, s)


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_the_sum_is_an_output(op: str, tmp_path: Path) -> None:
    b = Builder(21, 10)
    block(b, op)
    path = b.save(tmp_path)
    assert all(row.unexplained == 0 for row in compare(path, frames=40).rows)
    check_simulated(compile(path, "ulx3s_85f", fps=1e6))


MAKES: dict[str, Callable[[Builder, str], str]] = {
    "mvn": lambda b, x: b.node("MeanVarianceNormalization", x, axes=[2]),
    "l1": lambda b, x: b.node("LpNormalization", x, p=1),
    "l2": lambda b, x: b.node("LpNormalization", x, axis=1),
    "lrn": lambda b, x: b.node("LRN", x, size=2, alpha=0.5),
    "pool": lambda b, x: b.node("GlobalLpPool", x),
}


@pytest.mark.parametrize("kind", MAKES)
def test_in_hardware(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 3, 4]), 0.05, 3, "int8")
    h = b.requantize(b.node("MatMul", d, b.weights(rng.integers(-20, 20, (4, 6)))), 0.11, 3, "int8")
    b.output(b.requantize(MAKES[kind](b, h), 0.03, 5, "int8"))
    path = b.save(tmp_path)
    assert all(row.unexplained == 0 for row in compare(path, frames=40).rows)
    check_simulated(compile(path, "ulx3s_85f", fps=1e6))


@pytest.mark.parametrize("name", ["test_l2normalization_axis_1", "test_mvn"])
def test_of_onnx(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path)


@pytest.mark.parametrize(("rule", "op", "attributes"), [
    ("norm-power", "LpNormalization", {"p": 3}),
    ("lrn-sum", "LRN", {"size": 3, "bias": 0.0}), ("frame-axis", "MeanVarianceNormalization", {"axes": [0, 2, 3]}),
])
def test_what_is_refused(rule: str, op: str, attributes: dict[str, Any], tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 3, 4, 4]), 0.5, 3, "int8")
    y = b.requantize(b.node(op, x, name="it", **attributes), 0.5)
    b.output(b.node("MatMul", y, b.weights(np.ones((4, 2), int))))
    (finding,) = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert (finding.rule, finding.where) == (rule, f"node 'it' ({op})")
