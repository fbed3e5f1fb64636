"""CumProd against ONNX's reference evaluator and its node tests, in hardware."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.api.checking import check
from hwflow.loaded_model import Model
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.suite import NodeTest, narrowed, node_tests, run
from tests.reference_agreement import agree_with_reference


def products(b: Builder, x: str, axis: int = 2, **attributes: Any) -> str:
    return b.node("CumProd", x, b.constant(axis, "int64"), **attributes)


HONOURED = [("CumProd", products, {name: 1}) for name in ("exclusive", "reverse")]
NODES = [("CumProd", lambda size, rank: [(-1, "int64")], lambda rank: {})]
# Most of its node tests have floats of 64 bits.
TESTS = [*narrowed("CumProd"), *(test for test in node_tests() if test.operators == "CumProd")]
FLAGS = {"exclusive": st.integers(0, 1), "reverse": st.integers(0, 1)}


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_node_tests_in_rtl(test: NodeTest) -> None:
    outcome = run(test)
    assert outcome.kind == "RTL", outcome.reason


def load_in_memory(b: Builder) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        return b.load(Path(folder))


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3), axis=st.integers(-3, 3), zero=st.integers(-8, 7),
    along=st.sampled_from([None, 1, -1]), **FLAGS,
)
def test_of_reals(
    shape: list[int], axis: int, zero: int, along: int | None, exclusive: int, reverse: int
) -> None:
    """Scales and zero points of the tensor, or along an axis, which may be the one of the products. Floats have them
    exactly: at most five numbers of four bits."""
    rank = len(shape) + 1
    axis = (axis - 1) % (rank - 1) + 1 if axis >= 0 else max(axis, 1 - rank)
    b = Builder(26, 14)
    scale: Any = 0.5
    zeros: Any = zero
    if along is not None:
        size = shape[along - 1 if along > 0 else along]
        scale, zeros = 2.0 ** -(np.arange(size) % 2), (np.arange(size) * 3 + zero) % 16 - 8
    x = b.requantize(b.input("x", ["N", *shape]), scale, zeros, "int4", **({"axis": along} if along else {}))
    b.output(b.requantize(products(b, x, axis, exclusive=exclusive, reverse=reverse), 0.375, -7, "int16"))
    agree_with_reference(b, reach=40)


@settings(max_examples=20, deadline=None)
@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=3), axis=st.integers(0, 9),
    kind=st.sampled_from(["int32", "uint32"]), seed=st.integers(0, 9), **FLAGS,
)
def test_of_integers_that_wrap(shape: list[int], axis: int, kind: str, seed: int, exclusive: int, reverse: int) -> None:
    axis %= len(shape)
    b = Builder(26, 14)
    b.output(products(b, b.input("x", ["N", *shape], kind), axis + 1, exclusive=exclusive, reverse=reverse))
    model = load_in_memory(b)
    limits = np.iinfo(kind)
    x = np.random.default_rng(seed).integers(limits.min, limits.max, (3, *shape), dtype=kind, endpoint=True)
    (found,) = golden.evaluate(model.quantized, {"x": x.astype(np.int64)}).values()
    turned = np.flip(x, axis + 1) if reverse else x
    expected = np.cumprod(turned, axis=axis + 1, dtype=kind)
    if exclusive:
        ones = np.ones_like(expected.take([0], axis=axis + 1))
        expected = np.concatenate([ones, expected.take(range(shape[axis] - 1), axis=axis + 1)], axis=axis + 1)
    np.testing.assert_array_equal(found, np.flip(expected, axis + 1) if reverse else expected)
    assert compare(model, frames=5).ok


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_with_calibrated_scales(axis: int) -> None:
    """Products of 7 bits and more, which floats round; compared within the bound of their error."""
    for zero in (0, 5):
        b = Builder(26, 14)
        x = b.requantize(b.input("x", ["N", 4, 3, 5]), 0.0173, zero, "int8")
        b.output(b.requantize(products(b, x, axis, reverse=1), 0.031, 3, "int8"))
        result = compare(load_in_memory(b), frames=20)
        assert result.ok, list(result.lines())


@pytest.mark.parametrize(("size", "exclusive", "bits"), [(8, 0, None), (9, 0, 65), (9, 1, None), (10, 1, 65)])
def test_products_that_are_too_long(size: int, exclusive: int, bits: int | None, tmp_path: Path) -> None:
    """Of magnitudes up to 128."""
    b = Builder(26, 14)
    x = b.requantize(b.input("x", ["N", size]), 0.5, 0, "int8")
    b.output(b.requantize(products(b, x, 1, exclusive=exclusive), 0.5, 0, "int8"))
    found = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert [f.rule for f in found] == ([] if bits is None else ["product-bits"])
    if bits is not None:
        assert f"at most 62 bits, not {bits} (of 9 elements)" in found[0].message


@pytest.mark.parametrize("axis", [0, -2])
def test_along_the_frames(axis: int, tmp_path: Path) -> None:
    b = Builder(26, 14)
    x = b.requantize(b.input("x", ["N", 4]), 0.5, 3, "int8")
    b.output(b.requantize(products(b, x, axis), 0.5, 0, "int8"))
    assert [f.rule for f in check(b.save(tmp_path)) if f.severity != "warning"] == ["frame-axis"]
