"""The golden model of quantized functions of many inputs, judged by interval arithmetic of 200 digits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.loaded_model import Model
from hwflow.verify import golden
from tests.models import Array, Builder

EPSILON = Fraction(1, 1 << 24)
DIGITS = 200

SCALE, ZERO = Fraction(float(np.float32(0.07))), 5
"""Of the inputs."""

Meaning = Callable[[list[Any]], list[Any]]
"""The exact results of a frame's reals, both flat, as balls."""


def model_of(
    shape: list[int], make: Callable[[Builder, str], str], scale: float, zero: int, folder: Path, kind: str = "int8",
    opset: int = 21,
) -> Model:
    """Integers x, dequantized, and the results quantized to int8."""
    b = Builder(opset, 10)
    x = b.dequantize(b.input("x", ["N", *shape], kind), float(SCALE), ZERO, kind)
    b.output(b.quantize(make(b, x), scale, zero, "int8"))
    return b.load(folder)


def judge(model: Model, frames: Array, meaning: Meaning, scale: float, zero: int) -> Fraction:
    """Every level is the exact real number rounded to nearest, ties to even, or that number lies within the stated
    epsilon of the boundary between both. Returns that epsilon."""
    graph = model.quantized
    (port,), (result,) = graph.inputs, graph.outputs
    maker = graph.producers()[result.value]
    assert isinstance(maker.attributes, RequantizeAttributes)
    epsilon = maker.attributes.epsilon
    assert 0 < epsilon <= EPSILON
    found = golden.evaluate(graph, {port.name: frames})[result.name].reshape(len(frames), -1)
    unit = fmpq(*Fraction(float(np.float32(scale))).as_integer_ratio())
    step = fmpq(*SCALE.as_integer_ratio())
    with ctx.workdps(DIGITS):
        for frame, levels in zip(frames.reshape(len(frames), -1).tolist(), found.tolist(), strict=True):
            exact = meaning([arb(step * (q - ZERO)) for q in frame])
            for level, real in zip(levels, exact, strict=True):
                assert level in rounded(real / unit, zero, epsilon), (frame, level, real)
    return epsilon


def rounded(real: Any, zero: int, epsilon: Fraction) -> list[int]:
    """The levels that a number of steps may have."""
    return [_rounded(real + sign * fmpq(*epsilon.as_integer_ratio()), zero) for sign in (-1, 0, 1)]


def _rounded(quotient: Any, zero: int) -> int:
    """The level of a number, of which 200 digits decide it."""
    nearest = (quotient + fmpq(1, 2)).floor().unique_fmpz()
    tie = quotient.overlaps(arb(2 * int(nearest) - 1) / 2) if nearest is not None else True
    if tie:  # an exact number, which is a ball of no radius
        half = round(float(quotient) * 2)
        assert quotient == arb(half) / 2, "200 digits must decide a rounding"
        nearest = round(Fraction(half, 2))
    return max(-128, min(127, int(nearest) + zero))


def every(values: Iterable[int], length: int) -> Array:
    """All vectors of ``length`` of these values."""
    grid = np.meshgrid(*[np.array(list(values), dtype=np.int64)] * length, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, length)


def telling(shape: list[int], kind: str = "int8", count: int = 20) -> Array:
    """Frames of random integers, of equal ones, of one great and one small among equal ones, and small differences."""
    rng = np.random.default_rng(7)
    info = np.iinfo(kind)
    size = int(np.prod(shape))
    frames = [rng.integers(info.min, info.max, size, endpoint=True) for _ in range(count)]
    frames += [np.full(size, v) for v in (info.min, ZERO, info.max)]
    frames += [np.where(np.arange(size) == k, a, b) for k in (0, size - 1) for a, b in (
        (info.max, info.min), (info.min, info.max), (ZERO + 1, ZERO), (ZERO - 1, ZERO))]
    frames += [rng.integers(-2, 3, size) for _ in range(count)]
    return np.stack(frames).astype(np.int64).reshape(-1, *shape)
