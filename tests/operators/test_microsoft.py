"""Operators of com.microsoft against exact arithmetic, in hardware."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.dialects.checking import assert_exact
from tests.models import Builder

MICROSOFT = "com.microsoft"
KINDS = ["int8", "uint8"]


def parameters(b: Builder, kind: str, scale: float, zero: int) -> list[str]:
    return [b.constant(scale), b.constant(zero, kind)]


def tensor(b: Builder, name: str, kind: str, shape: list[int], scale: float, zero: int) -> list[str]:
    """A graph input, its scale and its zero point."""
    return [b.input(name, ["N", *shape], kind), *parameters(b, kind, scale, zero)]


def exact(b: Builder, tmp_path: Path) -> None:
    """In hardware alone, and right."""
    model = b.load(tmp_path)
    assert not model.quantized.suffix
    rng = np.random.default_rng(0)
    frames: list[dict[str, Any]] = [{} for _ in range(5)]
    for name in model.resolved.inputs:
        info = model.resolved.values[name]
        low, high = {"int8": (-128, 127), "uint8": (0, 255), "bool": (0, 1)}[info.dtype]
        for frame in frames:
            frame[name] = rng.integers(low, high + 1, info.shape).astype(info.dtype)
    assert_exact(model, frames)


def made(b: Builder, op: str, inputs: list[str], shape: list[int], kind: str, **attributes: Any) -> Builder:
    b.output(b.declare(b.node(op, *inputs, name="y", domain=MICROSOFT, **attributes), ["N", *shape], kind))
    return b


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["stream", "row", "constant"])
def test_where(kind: str, other: str, tmp_path: Path) -> None:
    """By a bool input; the branches have scales of their own, as a calibration finds them."""
    b = Builder(19, 9)
    inputs = [b.input("c", ["N", 3, 4], "bool"), *tensor(b, "x", kind, [3, 4], 0.3, 5)]
    if other == "constant":
        inputs += [b.constant([[3], [100], [0]], kind), *parameters(b, kind, 0.11, 7)]
    else:
        inputs += tensor(b, "z", kind, [3, 4] if other == "stream" else [1, 4], 0.11, 7)
    exact(made(b, "QLinearWhere", [*inputs, *parameters(b, kind, 0.2, 3)], [3, 4], kind), tmp_path)


def test_where_by_a_constant(tmp_path: Path) -> None:
    b = Builder(19, 9)
    inputs = [b.constant([[[True, False, True, False]]], "bool"), *tensor(b, "x", "int8", [3, 4], 0.3, 5)]
    inputs += [b.constant(9, "int8"), *parameters(b, "int8", 0.11, 7), *parameters(b, "int8", 0.2, 3)]
    exact(made(b, "QLinearWhere", inputs, [3, 4], "int8"), tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("axes", "keepdims", "shape"), [([2, 3], 1, [3, 1, 1]), ([1], 0, [4, 5]), ([-1], 1, [3, 4, 1]), ([1, 2], 0, [5])]
)
def test_reduce_mean(kind: str, axes: list[int], keepdims: int, shape: list[int], tmp_path: Path) -> None:
    b = Builder(19, 9)
    inputs = [*tensor(b, "x", kind, [3, 4, 5], 0.3, 5), *parameters(b, kind, 0.1, 3)]
    exact(made(b, "QLinearReduceMean", inputs, shape, kind, axes=axes, keepdims=keepdims), tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count_include_pad", [0, 1])
def test_average_pool_channels_last(kind: str, count_include_pad: int, tmp_path: Path) -> None:
    b = Builder(19, 9)
    inputs = [*tensor(b, "x", kind, [5, 6, 3], 0.3, 5), *parameters(b, kind, 0.1, 3)]
    more = {"kernel_shape": [2, 3], "strides": [1, 2], "pads": [1, 0, 0, 1], "count_include_pad": count_include_pad}
    exact(made(b, "QLinearAveragePool", inputs, [5, 3, 3], kind, channels_last=1, **more), tmp_path)


def test_global_average_pool_channels_last(tmp_path: Path) -> None:
    b = Builder(19, 9)
    inputs = [*tensor(b, "x", "uint8", [5, 6, 3], 0.3, 5), *parameters(b, "uint8", 0.1, 3)]
    exact(made(b, "QLinearGlobalAveragePool", inputs, [1, 1, 3], "uint8", channels_last=1), tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_max_pool_channels_last(kind: str, tmp_path: Path) -> None:
    b = Builder(19, 9)
    more = {"kernel_shape": [2, 2], "strides": [2, 1], "pads": [1, 0, 0, 1], "dilations": [1, 2]}
    exact(made(b, "NhwcMaxPool", [b.input("x", ["N", 5, 6, 3], kind)], [3, 5, 3], kind, **more), tmp_path)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_streams_that_broadcast(op: str, tmp_path: Path) -> None:
    """The gate of a squeeze-and-excite block."""
    b = Builder(19, 9)
    inputs = [*tensor(b, "x", "uint8", [3, 4, 5], 0.3, 5), *tensor(b, "z", "uint8", [3, 1, 1], 0.11, 7)]
    exact(made(b, op, [*inputs, *parameters(b, "uint8", 2.0, 3)], [3, 4, 5], "uint8"), tmp_path)
