"""Pow of integers against ONNX's reference evaluator and its node tests, in hardware."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from hwflow.api.checking import check
from hwflow.loaded_model import Model
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.suite import NodeTest, narrowed, node_tests, run

TESTS = [*narrowed("Pow"), *(test for test in node_tests() if test.operators == "Pow")]
FRACTIONS = {"test_pow"}
"""Of random floats, between quantizers of which some are negative: they have no powers by fractions."""


@pytest.mark.parametrize("test", [t for t in TESTS if t.name not in FRACTIONS], ids=lambda test: test.name)
def test_node_tests_in_rtl(test: NodeTest) -> None:
    outcome = run(test)
    assert outcome.kind == "RTL", outcome.reason


def load_in_memory(b: Builder) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        return b.load(Path(folder))


def modular(base: Any, exponent: Any) -> np.ndarray:
    """Python's own powers, modulo 2**32."""
    exact = np.frompyfunc(lambda b, e: (pow(int(b), int(e), 1 << 32) + (1 << 31)) % (1 << 32) - (1 << 31), 2, 1)
    return np.asarray(exact(base, exponent), dtype=np.int64)


EXPONENTS = [0, 1, 2, 3, 5, 8, 31, 100, [0, 1, 2], [3, 0, 7], [[1], [4]], [[2, 2, 2], [3, 4, 5]], [[[6]]]]


@settings(max_examples=40, deadline=None)
@given(
    exponent=st.sampled_from(EXPONENTS), seed=st.integers(0, 99),
    kind=st.sampled_from(["int8", "uint8", "int16", "int32", "int64", "uint32", "uint64", "float"]),
)
def test_by_constants(exponent: Any, kind: str, seed: int) -> None:
    """One, one per element, of shapes that broadcast; any type of exponents."""
    b = Builder(21, 10)
    b.output(b.node("Pow", b.input("x", ["N", 2, 3], "int32"), b.constant(exponent, kind)))
    model = load_in_memory(b)
    x = np.random.default_rng(seed).integers(-(2**31), 2**31, (3, 2, 3))
    x[0] = np.arange(-3, 3).reshape(2, 3)
    (found,) = golden.evaluate(model.quantized, {"x": x}).values()
    np.testing.assert_array_equal(found, modular(x, np.asarray(exponent)))
    result = compare(model, frames=5)
    assert result.ok, list(result.lines())


@pytest.mark.parametrize("kind", ["uint8", "uint4", "bool"])
@pytest.mark.parametrize("base", [None, 3, [-2, 5, 1]])
def test_by_streams(kind: str, base: Any) -> None:
    """Of another stream, of one number, of constants."""
    b = Builder(21, 10)
    e = b.input("e", ["N", 2, 3], kind)
    e = b.node("Cast", e, to=TensorProto.INT32) if kind in ("bool", "uint4") else e
    x = b.input("x", ["N", 1, 3], "int32") if base is None else b.constant(base, "int32")
    b.output(b.node("Pow", x, e))
    model = load_in_memory(b)
    rng = np.random.default_rng(3)
    bits = {"uint8": 8, "uint4": 4, "bool": 1}[kind]
    frames = {"e": rng.integers(0, 1 << bits, (4, 2, 3)), "x": rng.integers(-9, 10, (4, 1, 3))}
    (found,) = golden.evaluate(model.quantized, {p.name: frames[p.name] for p in model.quantized.inputs}).values()
    np.testing.assert_array_equal(found, modular(frames["x"] if base is None else base, frames["e"]))
    result = compare(model, frames=5)
    assert result.ok, list(result.lines())


@pytest.mark.parametrize(
    ("exponent", "kind", "message"),
    [
        (-1, "int32", "exponents 'e' of integers must be at least 0, not down to -1"),
        ([2.0, 0.5], "float", "exponents 'e' of integers must be whole numbers, not 0.5"),
        (np.inf, "float", "exponents 'e' of integers must be whole numbers, not inf"),
    ],
)
def test_exponents_that_are_refused(exponent: Any, kind: str, message: str, tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.node("Neg", b.input("x", ["N", 2], "int32"))
    y = b.node("Pow", x, b.constant(exponent, kind, name="e"), name="it")
    b.output(b.requantize(b.node("Cast", y, to=TensorProto.FLOAT), 0.5))
    found = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert [(f.where, f.message) for f in found] == [("node 'it' (Pow)", message)]


def test_signed_streams_as_exponents(tmp_path: Path) -> None:
    b = Builder(21, 10)
    y = b.node("Pow", b.input("x", ["N", 2], "int32"), b.input("e", ["N", 2], "int8"), name="it")
    b.output(b.requantize(b.node("Cast", y, to=TensorProto.FLOAT), 0.5))
    found = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert [f.rule for f in found] == ["integer-exponent"]
