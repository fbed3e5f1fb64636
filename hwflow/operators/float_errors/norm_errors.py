"""Error bounds of normalizations (x - mean) / sqrt(variance + epsilon) * scale + bias, of rows of n elements, with u, E
and gamma as in ``hwflow.operators.float_errors.analysis``.

The mean errs by the mean of E(x), and gamma(n + 1) of the mean of |x|; a difference d by E(x), that, and u|d|; the mean
of squares by the mean of 2|d|E(d) + E(d)**2, and gamma(n + 3) of itself. An error e of v = variance + epsilon moves
1 / sqrt(v) by at most e / 2 / (v - e)**1.5; the roundings of root, reciprocal and products are some u of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hwflow.operators.float_errors.step_errors import ErrorRule, Errors, NoBound, Step, gamma

Rows = Callable[[Step], tuple[tuple[int, ...], tuple[int, ...]]]
"""Returns a shape of input 0, and the axes of it that rows are along."""


def from_axis(step: Step) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the rows from the attribute ``axis`` on."""
    shape = step.value(0).shape
    return shape, tuple(range(int(step.attributes.get("axis", -1)) % len(shape), len(shape)))


def images(step: Step) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the channels' images."""
    shape = step.value(0).shape
    return shape, tuple(range(2, len(shape)))


def normalization(rows: Rows, *, centred: bool = True) -> ErrorRule:
    """Return the rule of a normalization with constant scale and bias; further outputs are the means, if it is
    ``centred``, and the inverse deviations."""

    def rule(step: Step) -> list[Errors]:
        if any(step.has(index) and step.error(index).any() for index in (1, 2)):
            raise NoBound
        shape, axes = rows(step)
        u, epsilon = step.unit, step.attribute("epsilon", 1e-5)
        x = step.value(0).astype(np.float64).reshape(shape)
        error = np.broadcast_to(step.error(0), step.value(0).shape).reshape(shape)

        def mean(values: Errors) -> Errors:
            return np.asarray(values.mean(axis=axes, keepdims=True))

        count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
        g = gamma(count + 4, u)
        centre = mean(x) if centred else np.zeros(())
        off = mean(error) + g * mean(np.abs(x)) if centred else np.zeros(())
        d = np.abs(x - centre)
        e = error + off + u * d * (1 + u) if centred else error
        moved = mean(2 * d * e + e**2) + g * mean((d + e) ** 2)
        v = mean(d**2) + epsilon
        moved = moved + 3 * u * (v + moved) + step.tiny
        with np.errstate(all="ignore"):
            inverse = np.where(v > moved, moved / 2 / np.maximum(v - moved, 0) ** 1.5, np.inf)
        inverse = inverse + 4 * u * v**-0.5
        more = [np.broadcast_to(each, v.shape) for each in ((off, inverse) if centred else (inverse,))]
        result = d * inverse + e * (v**-0.5 + inverse) + 3 * u * d * v**-0.5
        result = result.reshape(step.value(0).shape)
        scale = _spread(step, 1)
        own = 4 * u * np.abs(d * v**-0.5).reshape(result.shape) * scale
        return [np.asarray(result * scale * (1 + 4 * u) + own + step.rounded(2)), *more[: len(step.outputs) - 1]]

    return rule


def mean_variance(rows: Rows) -> ErrorRule:
    """Return the rule of (x - mean) / (sqrt(mean of squares - square of the mean) + 1e-9), whose difference cancels: an
    error of it moves the root by that over twice the least root."""

    def rule(step: Step) -> Errors:
        shape, axes = rows(step)
        u = step.unit
        x = step.value(0).astype(np.float64).reshape(shape)
        error = np.broadcast_to(step.error(0), shape)

        def mean(values: Errors) -> Errors:
            return np.asarray(values.mean(axis=axes, keepdims=True))

        g = gamma(int(np.prod([shape[axis] for axis in axes], dtype=np.int64)) + 4, u)
        centre, off = mean(x), mean(error) + g * mean(np.abs(x))
        d = np.abs(x - centre)
        e = error + off + u * d * (1 + u)
        v = mean(d**2)
        moved = mean(2 * np.abs(x) * error + error**2) + g * mean((np.abs(x) + error) ** 2)
        moved = moved + 2 * np.abs(centre) * off + off**2 + 3 * u * (np.abs(centre) + off) ** 2 + 2 * u * v + step.tiny
        with np.errstate(all="ignore"):
            least = np.sqrt(np.where(v > moved, v - moved, 0))
            turned = moved / (2 * least) + 4 * u * np.sqrt(v + moved)
            result = (e + d * turned / np.sqrt(v)) / np.maximum(least - turned, 0) + 4 * u * d / least
        return np.asarray(np.nan_to_num(result, nan=np.inf, posinf=np.inf))

    return rule


def skipped(*, centred: bool = True) -> ErrorRule:
    """Return the rule of a normalization of the sum of inputs 0, 1 and the bias; the outputs behind the first are the
    mean, the inverse deviation and the sum."""

    def rule(step: Step) -> Sequence[Errors]:
        places = [place for place in (0, 1, 4 if centred else 3) if step.has(place)]
        total = sum(step.value(place).astype(np.float64) for place in places)
        error = np.asarray(sum(np.broadcast_to(step.error(place), step.output.shape) for place in places))
        size = sum(np.abs(step.value(place).astype(np.float64)) for place in places)
        error = error + 2 * step.unit * size
        inputs = [np.asarray(total).astype(step.output.dtype), *(step.inputs[2:4] if centred else step.inputs[2:3])]
        errors = [error, *(step.errors[2:4] if centred else step.errors[2:3])]
        attributes = {"epsilon": 1e-12, **step.attributes, "axis": -1}
        inner = replace(step, inputs=inputs, errors=errors, attributes=attributes)
        own, *more = normalization(from_axis, centred=centred)(inner)
        if not centred:  # whose mean means nothing
            more = [np.full_like(inverse, np.inf) for inverse in more[:1]] + more
        return [own, *more[:2], error][: len(step.outputs)]

    return rule


def _spread(step: Step, index: int) -> Errors:
    """Return the magnitude of scale, to broadcast over the result; of one per channel or group by its greatest."""
    if not step.has(index):
        return np.ones(())
    values = np.abs(step.value(index).astype(np.float64))
    try:
        if np.broadcast_shapes(values.shape, step.output.shape) == step.output.shape and values.ndim != 1:
            return values
    except ValueError:
        pass
    return np.asarray(values.max())
