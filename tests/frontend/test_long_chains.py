"""Long chains of nodes that read the node before them twice: as a tree they would have 2**200 parts and more."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import pytest

from hwflow.api.checking import check
from hwflow.frontend import lower
from hwflow.loaded_model import Model, load
from hwflow.numerics.functions.piecewise import Relu
from hwflow.numerics.functions.smooth import Tanh
from hwflow.numerics.rounding import Quantizer
from hwflow.verify import golden
from tests.models import Builder

NODES = 200
MOST_NODES = 1000
Link = Callable[[Builder, str, str], str]  # from the value before it and a constant


def real_chain(link: Link, length: int, scale: float = 0.25) -> Builder:
    """A quantizer, the chain, a quantizer."""
    b = Builder(21, 10)
    h = b.requantize(b.input("x", ["N", 4]), 0.25, 3, "int8")
    half = b.constant(0.5)
    for _ in range(length):
        h = link(b, h, half)
    b.output(b.requantize(h, scale, -5, "int8"))
    return b


def swapped(b: Builder, h: str) -> str:
    """The same elements in other places: not the same integers."""
    return b.node("Gather", h, b.constant([1, 2, 3, 0], "int64"), axis=1)


REAL: dict[str, Link] = {
    "add": lambda b, h, c: b.node("Add", h, h),
    "subtract": lambda b, h, c: b.node("Sub", h, h),
    "square": lambda b, h, c: b.node("Mul", h, h),
    "halve and add": lambda b, h, c: b.node("Add", b.node("Mul", h, c), b.node("Mul", h, c)),
    "add a relu": lambda b, h, c: b.node("Add", h, b.node("Relu", h)),
    "subtract a relu": lambda b, h, c: b.node("Sub", h, b.node("Relu", h)),
    "times a relu": lambda b, h, c: b.node("Mul", h, b.node("Relu", h)),
    "swish": lambda b, h, c: b.node("Mul", h, b.node("Sigmoid", h)),
    "diamond": lambda b, h, c: b.node("Add", b.node("Sigmoid", h), b.node("Tanh", h)),
    "greatest": lambda b, h, c: b.node("Max", h, h),
    "choice": lambda b, h, c: b.node("Where", b.node("Greater", h, c), h, h),
    "quantized sums": lambda b, h, c: b.requantize(b.node("Add", h, b.node("Relu", h)), 0.5, 1, "int8"),
}


def findings(b: Builder, folder: Path) -> list[str]:
    return [f"{f.rule}: {f.message}" for f in check(b.save(folder)) if f.severity != "warning"]


@pytest.mark.parametrize("kind", REAL)
def test_chain_of_reals(kind: str, tmp_path: Path) -> None:
    nodes = MOST_NODES if kind in ("add", "swish") else NODES
    assert findings(real_chain(REAL[kind], nodes), tmp_path) == []


@pytest.mark.parametrize(
    ("op", "kind"), [("Add", "int32"), ("Mul", "int8"), ("Max", "int32"), ("And", "bool"), ("BitwiseXor", "uint8")]
)
def test_chain_of_integers(op: str, kind: str, tmp_path: Path) -> None:
    b = Builder(21, 10)
    h = b.input("x", ["N", 4], kind)
    for _ in range(NODES):
        h = b.node(op, h, h)
    b.output(h)
    assert findings(b, tmp_path) == []


def test_streams_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements, sums and scales that double with every node are refused as soon as they are too large."""
    monkeypatch.setattr(lower, "_OVERSIZED_SECONDS", 0.5)  # for what else may be found beside too large a frame
    concat = real_chain(lambda b, h, c: b.node("Concat", h, h, axis=1), 40)
    assert findings(concat, tmp_path)[0].startswith("frame-size: a frame of ")
    sums = real_chain(lambda b, h, c: b.node("Add", h, swapped(b, h)), 80)
    (found,) = findings(sums, tmp_path)
    assert found.startswith("accumulator-range: its sums must lie within 62 bits")
    products = real_chain(lambda b, h, c: b.node("Mul", h, swapped(b, h)), 80)
    (found,) = findings(products, tmp_path)
    assert found.startswith("scale-bits: scale and zero point of the result must be numbers of at most 65536 bits")


def test_exact_values_grow(tmp_path: Path) -> None:
    """1 + 2**-100, squared again and again, is too near to 1 for floats and soon has very many bits."""
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 4]), 1.0, 0, "int8")
    tiny = b.constant(2.0**-100)
    h = b.node("Add", b.node("Relu", d), tiny)
    for _ in range(60):
        h = b.node("Mul", h, b.node("Abs", h))
    one = b.node("Clip", h, b.constant(0.0), b.constant(2.0))
    b.output(b.requantize(b.node("Sub", one, b.constant(0.5)), 1.0, 0, "int8"))
    (found,) = findings(b, tmp_path)
    assert "the function must keep its exact values within 65536 bits, but one has" in found


def golden_levels(b: Builder, folder: Path, integers: range) -> list[int]:
    model: Model = load(b.save(folder))
    (port,) = model.quantized.inputs
    frames = np.array(integers, dtype=np.int64).repeat(4).reshape(-1, 4)
    (value,) = golden.evaluate(model.quantized, {port.name: frames}).values()
    return [int(v) for v in value[:, 0]]


def test_levels_of_a_chain(tmp_path: Path) -> None:
    """``h + relu(h)`` twenty times over is ``2**20 * h`` above 0 and h below."""
    b = real_chain(REAL["add a relu"], 20)
    found = golden_levels(b, tmp_path, range(-128, 128))
    reals = [Fraction(q - 3, 4) for q in range(-128, 128)]
    quantizer = Quantizer(Fraction(1, 4), -5, -128, 127)
    expected = [quantizer(x * (1 << 20) if x > 0 else x) for x in reals]
    assert found == expected


def test_each_part_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is counted: of twice as many nodes twice as much, though every node reads two before it."""
    counts: list[int] = []
    original = Relu.floats

    def counting(self: Relu, x: object) -> object:
        counts[-1] += 1
        return original(self, x)  # type: ignore[arg-type]  # handed on as it comes

    monkeypatch.setattr(Relu, "floats", counting)
    for length in (20, 40):
        b = Builder(21, 10)
        before = h = b.requantize(b.input("x", ["N", 4]), 0.25, 3, "int8")
        for _ in range(length):
            before, h = h, b.node("Add", b.node("Relu", h), before)
        b.output(b.requantize(h, 0.25, -5, "int8"))
        counts.append(0)
        model = load(b.save(tmp_path))
        assert model.quantized.nodes
    assert 0 < counts[1] <= 2 * counts[0] + 2


@pytest.mark.parametrize("function", [Relu, Tanh])
def test_quantizers_along_a_chain(function: type[Relu | Tanh], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They see each function of it once, whether it is rational or not: of twice as many nodes with twice as many
    quantizers, twice the work."""
    counts: list[int] = []

    def counted(name: str) -> None:
        original = getattr(function, name)

        def counting(self: object, x: object) -> object:
            counts[-1] += 1
            return original(self, x)

        monkeypatch.setattr(function, name, counting)

    for name in ("floats", "pull"):
        if hasattr(function, name):
            counted(name)
    for length in (100, 200):
        b = Builder(21, 10)
        h = b.requantize(b.input("x", ["N", 4]), 0.25, 3, "int8")
        for index in range(length):
            h = b.node(function.__name__, b.node("Mul", h, b.constant(1.0 + length / 4096)))
            if index % 5 == 4:
                b.output(b.quantize(h, 0.125, -5, "int8"))
        counts.append(0)
        assert load(b.save(tmp_path)).quantized.nodes
    assert 0 < counts[1] <= 2 * counts[0] + 100


def test_functions_that_call_each_other(tmp_path: Path) -> None:
    """A chain of functions, each of which adds its argument to itself."""
    double = onnx.helper.make_function(
        "local", "Double", ["a"], ["b"], [onnx.helper.make_node("Add", ["a", "a"], ["b"])],
        [onnx.helper.make_opsetid("", 21)],
    )
    b = real_chain(lambda b, h, c: b.node("Double", h, domain="local"), 300)
    b.declare(b.outputs[0], ["N", 4])
    model = b.build()
    model.functions.append(double)
    onnx.save(model, tmp_path / "model.onnx")
    assert [f for f in check(tmp_path / "model.onnx") if f.severity != "warning"] == []
