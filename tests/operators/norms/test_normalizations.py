"""Normalizations in the middle of a model: exactly, but for a stated epsilon; and in simulated hardware."""

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
from hwflow.loaded_model import load
from hwflow.verify.comparison import compare
from hwflow.verify.simulation import simulate
from tests.models import Builder
from tests.operators.norms.judged import every, judge, model_of, telling
from tests.reference_agreement import agree_with_reference
from tests.simulated_model import check_simulated

EPSILON = fmpq(*Fraction(float(np.float32(1e-5))).as_integer_ratio())
GAMMA, BETA = np.float32([1.25, -0.7, 0.3, 1.1, 0.9, 2.0]), np.float32([0.5, -0.1, 0.0, 1.5, -2.0, 0.3])


def larger(op: str, *parameters: Any) -> Callable[..., str]:
    """Fifty times the result, of parameters."""

    def make(b: Builder, x: str, **attributes: Any) -> str:
        y = b.declare(b.node(op, x, *(b.constant(p) for p in parameters), **attributes), ["N", 2, 3, 4])
        return b.node("Mul", y, b.constant(50.0))

    return make


MORE = {"epsilon": 0.75, "stash_type": 1}
HONOURED = [
    ("InstanceNormalization", larger("InstanceNormalization", GAMMA[:2], BETA[:2]), {"epsilon": 0.75}),
    ("LayerNormalization", larger("LayerNormalization", np.resize(GAMMA, (3, 4)), BETA[:4]), {"axis": 2, **MORE}),
    ("RMSNormalization", larger("RMSNormalization", np.resize(GAMMA, (3, 4))), {"axis": 2, **MORE}),
]

NODES = [
    ("InstanceNormalization", lambda size, rank: [(np.ones(4), "float")] * 2, lambda rank: {}),
    ("LayerNormalization", lambda size, rank: [(np.ones(size), "float")] * 2, lambda rank: {}),
    ("RMSNormalization", lambda size, rank: [(np.ones(size), "float")], lambda rank: {}),
]


def exact(values: Any) -> list[Any]:
    return [arb(fmpq(*Fraction(float(v)).as_integer_ratio())) for v in values]


def normalized(x: list[Any], *, centred: bool = True) -> list[Any]:
    """By the definition, of one row."""
    mean = sum(x, arb(0)) / len(x) if centred else arb(0)
    root = (sum(((v - mean) ** 2 for v in x), arb(0)) / len(x) + EPSILON).sqrt()
    return [(v - mean) / root for v in x]


def layer(x: list[Any], *, centred: bool = True, bias: bool = True) -> list[Any]:
    """Of rows of six."""
    scale, shift = exact(GAMMA), exact(BETA) if bias else [arb(0)] * 6
    rows = [normalized(x[k : k + 6], centred=centred) for k in range(0, len(x), 6)]
    return [y * g + b for row in rows for y, g, b in zip(row, scale, shift, strict=True)]


def layer_normalization(b: Builder, x: str) -> str:
    return b.node("LayerNormalization", x, b.constant(GAMMA), b.constant(BETA), axis=-1, name="it")


def mean(b: Builder, x: str) -> str:
    return b.node("ReduceMean", x, b.constant([-1], "int64"))


def affine(b: Builder, y: str) -> str:
    return b.node("Add", b.node("Mul", y, b.constant(GAMMA)), b.constant(BETA))


def as_exported(b: Builder, x: str) -> str:
    """Differences, powers, a root and a quotient."""
    d = b.node("Sub", x, mean(b, x))
    variance = b.node("Add", mean(b, b.node("Pow", d, b.constant(2.0))), b.constant(1e-5))
    return affine(b, b.node("Div", d, b.node("Sqrt", variance)))


def by_reciprocals(b: Builder, x: str) -> str:
    d = b.node("Sub", x, mean(b, x))
    variance = b.node("Add", mean(b, b.node("Mul", d, d)), b.constant(1e-5))
    return affine(b, b.node("Mul", b.node("Reciprocal", b.node("Sqrt", variance)), d))


def by_powers(b: Builder, x: str) -> str:
    d = b.node("Sub", x, mean(b, x))
    variance = b.node("Add", mean(b, b.node("Mul", d, d)), b.constant(1e-5))
    return affine(b, b.node("Mul", d, b.node("Pow", variance, b.constant(-0.5))))


def by_moments(b: Builder, x: str) -> str:
    """The variance as the mean of squares less the square of the mean."""
    m = mean(b, x)
    variance = b.node("Sub", mean(b, b.node("Mul", x, x)), b.node("Mul", m, m))
    root = b.node("Sqrt", b.node("Add", variance, b.constant(1e-5)))
    return affine(b, b.node("Div", b.node("Sub", x, m), root))


FORMS = [layer_normalization, as_exported, by_reciprocals, by_powers, by_moments]


@pytest.mark.parametrize("make", FORMS)
@pytest.mark.parametrize(("scale", "zero"), [(1 / 32, 3), (0.017, -20)])
def test_layer_normalization(
    make: Callable[[Builder, str], str], scale: float, zero: int, tmp_path: Path
) -> None:
    model = model_of([2, 6], make, scale, zero, tmp_path)
    judge(model, telling([2, 6], count=6), layer, scale, zero)


def test_all_inputs_of_a_small_case(tmp_path: Path) -> None:
    model = model_of(
        [3], lambda b, x: b.node("LayerNormalization", x, b.constant([1.0, 1.0, 1.0])), 1 / 64, 0, tmp_path
    )
    judge(model, every(range(-128, 128, 36), 3), normalized, 1 / 64, 0)


def test_without_the_mean(tmp_path: Path) -> None:
    model = model_of(
        [2, 6], lambda b, x: b.node("RMSNormalization", x, b.constant(GAMMA), axis=-1), 1 / 50, 0, tmp_path, opset=23
    )
    judge(model, telling([2, 6], count=6), lambda x: layer(x, centred=False, bias=False), 1 / 50, 0)


def test_images_of_channels(tmp_path: Path) -> None:
    scale, bias = GAMMA[:2], BETA[:2]
    model = model_of(
        [2, 2, 3], lambda b, x: b.node("InstanceNormalization", x, b.constant(scale), b.constant(bias)), 1 / 50, 0,
        tmp_path,
    )

    def meaning(x: list[Any]) -> list[Any]:
        channels = zip((x[:6], x[6:]), exact(scale), exact(bias), strict=True)
        return [y * g + b for row, g, b in channels for y in normalized(row)]

    judge(model, telling([2, 2, 3], count=6), meaning, 1 / 50, 0)


def test_groups_of_channels(tmp_path: Path) -> None:
    """By the operator's definition."""
    scale, bias = GAMMA[:4], BETA[:4]

    def make(b: Builder, x: str) -> str:
        y = b.node("GroupNormalization", x, b.constant(scale), b.constant(bias), num_groups=2)
        return b.declare(y, ["N", 4, 3])

    def meaning(x: list[Any]) -> list[Any]:
        rows = [y for half in (x[:6], x[6:]) for y in normalized(half)]
        scales, biases = exact(scale), exact(bias)
        return [y * scales[k // 3] + biases[k // 3] for k, y in enumerate(rows)]

    judge(model_of([4, 3], make, 1 / 50, 0, tmp_path), telling([4, 3], count=6), meaning, 1 / 50, 0)


def test_a_function_behind_it_is_one_step_function_with_it(tmp_path: Path) -> None:
    """Gelu by its definition: half of x times 1 + erf(x / sqrt 2)."""
    model = model_of([2, 6], lambda b, x: b.node("Gelu", layer_normalization(b, x)), 1 / 32, -100, tmp_path)

    def meaning(x: list[Any]) -> list[Any]:
        return [y * (1 + (y / arb(2).sqrt()).erf()) / 2 for y in layer(x)]

    judge(model, telling([2, 6], count=6), meaning, 1 / 32, -100)


def test_softmax_as_exported(tmp_path: Path) -> None:
    def make(b: Builder, x: str) -> str:
        axes = b.constant([-1], "int64")
        powers = b.node("Exp", b.node("Sub", x, b.node("ReduceMax", x, axes)))
        return b.node("Div", powers, b.node("ReduceSum", powers, axes))

    def meaning(x: list[Any]) -> list[Any]:
        powers = [v.exp() for v in x]
        return [power / sum(powers, arb(0)) for power in powers]

    judge(model_of([6], make, 1 / 256, -128, tmp_path), telling([6]), meaning, 1 / 256, -128)


def test_a_bound_holds_of_the_same_reals_only(tmp_path: Path) -> None:
    """What is added to the dividend, or to the elements that are compared with the greatest, makes others of them."""
    def quotient(b: Builder, x: str) -> str:
        d = b.node("Sub", x, mean(b, x))
        root = b.node("Sqrt", b.node("Add", mean(b, b.node("Mul", d, d)), b.constant(0.25)))
        return b.node("Div", b.node("Add", d, b.constant(40.0)), root)

    def quotients(x: list[Any]) -> list[Any]:
        middle = sum(x, arb(0)) / len(x)
        root = (sum(((v - middle) ** 2 for v in x), arb(0)) / len(x) + arb(1) / 4).sqrt()
        return [(v - middle + 40) / root for v in x]

    judge(model_of([4], quotient, 0.75, 0, tmp_path), telling([4]), quotients, 0.75, 0)

    def powers(b: Builder, x: str) -> str:
        greatest = b.node("ReduceMax", x, b.constant([-1], "int64"))
        power = b.node("Exp", b.node("Sub", b.node("Add", x, b.constant(3.0)), greatest))
        return b.node("Div", power, b.node("Add", mean(b, x), b.constant(20.0)))

    def meaning(x: list[Any]) -> list[Any]:
        middle = sum(x, arb(0)) / len(x)
        top = max(x, key=float)
        return [(v + 3 - top).exp() / (middle + 20) for v in x]

    judge(model_of([4], powers, 1 / 64, 0, tmp_path), telling([4]), meaning, 1 / 64, 0)


def test_a_part_of_a_variance_bounds_distances_less(tmp_path: Path) -> None:
    """A quarter of it, whose root is half as great: the quotient may be twice the root of n."""
    def make(b: Builder, x: str) -> str:
        middle = mean(b, x)
        variance = b.node("Sub", mean(b, b.node("Mul", x, x)), b.node("Mul", middle, middle))
        root = b.node("Sqrt", b.node("Add", b.node("Mul", variance, b.constant(0.25)), b.constant(0.001)))
        return b.node("Div", b.node("Sub", x, middle), root)

    def meaning(x: list[Any]) -> list[Any]:
        middle = sum(x, arb(0)) / len(x)
        variance = sum((v * v for v in x), arb(0)) / len(x) - middle * middle
        root = (variance / 4 + exact([np.float32(0.001)])[0]).sqrt()
        return [(v - middle) / root for v in x]

    judge(model_of([4], make, 1 / 32, 0, tmp_path), telling([4]), meaning, 1 / 32, 0)


@pytest.mark.parametrize(("kind", "zero_point", "step"), [("uint8", 200, 1 / 64), ("int16", -7, 1 / 2048)])
def test_roots_of_long_squares(kind: str, zero_point: int, step: float) -> None:
    """Squares of up to 255 and of 16 bits are exact: their sum may be 0, where a number is added to its root."""
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 3, 4]), 0.05, zero_point, kind)
    norm = b.node("ReduceL2", x, b.constant([-1], "int64"), keepdims=1)
    b.output(b.requantize(b.node("Div", x, b.node("Add", norm, b.constant(0.5))), step, 0, "int16"))
    agree_with_reference(b)


def between_layers(make: Callable[[Builder, str], str]) -> Builder:
    rng = np.random.default_rng(0)
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 3, 4]), 0.05, 3, "int8")
    h = b.requantize(b.node("MatMul", d, b.weights(rng.integers(-20, 20, (4, 6)))), 0.11, 3, "int8")
    r = b.requantize(make(b, h), 0.03, 5, "int8")
    b.output(b.requantize(b.node("MatMul", r, b.weights(rng.integers(-20, 20, (6, 5)))), 0.13, 3, "int8"))
    return b


@pytest.mark.parametrize("make", [layer_normalization, by_moments])
def test_between_two_layers(make: Callable[[Builder, str], str], tmp_path: Path) -> None:
    path = between_layers(make).save(tmp_path)
    assert all(row.unexplained == 0 for row in compare(path, frames=40).rows)
    design = compile(path, "ulx3s_85f", fps=1e6)
    check_simulated(design, stalls=(0.0, 0.5))
    if make is layer_normalization:  # in Verilog, too
        design.write(tmp_path / "out")
        assert simulate(tmp_path / "out", simulator="icarus", frames=3, stall=0.5, seed=5).findings == ()


def test_at_the_end_the_host_runs_it(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 4]), 0.5, 3, "int8")
    sums = b.node("MatMul", x, b.weights(np.ones((4, 6), int)))
    b.output(layer_normalization(b, sums))
    assert load(b.save(tmp_path)).quantized.suffix[-1] == "it"


def test_a_divisor_that_may_be_0(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 6]), 0.5, 3, "int8")
    y = b.node("Div", x, mean(b, x), name="it")
    b.output(b.node("MatMul", b.requantize(y, 0.5), b.weights(np.ones((6, 2), int))))
    (finding,) = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert (finding.rule, finding.where) == ("divisor-zero", "node 'it' (Div)")
