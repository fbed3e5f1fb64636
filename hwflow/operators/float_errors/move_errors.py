"""Error bounds of operators that only move, select or copy elements: the bounds move likewise."""

from __future__ import annotations

import numpy as np

from hwflow.operators.float_errors.step_errors import INFLATION, Errors, NoBound, Step, gamma, is_integer, magnitude


def identity(step: Step) -> Errors:
    return step.error(0)


def moved(step: Step) -> Errors:
    """Apply the node to the bound of input 0; the other inputs (shapes, indices) are exact."""
    step.exact(*range(1, len(step.inputs)))
    return step.again([step.error(0), *step.inputs[1:]])


def padded(step: Step) -> Errors:
    """Bound Pad: 0 in the padding, whose constant is exact."""
    step.exact(*range(1, len(step.inputs)))
    rest = [*step.inputs[1:]]
    if len(rest) > 1 and rest[1] is not None:
        rest[1] = np.zeros(rest[1].shape)
    return step.again([step.error(0), *rest])


def joined(step: Step) -> Errors:
    """Bound Concat: the bounds of all inputs."""
    return step.again([*step.errors])


def chosen(step: Step) -> Errors:
    """Bound Where: the bound of the chosen input; where the condition may be the other truth, how far either input can
    be from the result."""
    chosen = step.again([step.inputs[0], step.error(1), step.error(2)])
    unsure = step.error(0)
    if not unsure.any():
        return chosen
    result = step.output.astype(np.float64)
    sides = [np.abs(step.value(index).astype(np.float64) - result) + step.error(index) for index in (1, 2)]
    return np.where(np.broadcast_to(unsure > 0, result.shape), np.maximum(*sides), chosen)


def greatest(step: Step) -> Errors:
    """Bound ReduceMax: the greatest error of the compared elements."""
    return _extreme(step, 1.0)


def least(step: Step) -> Errors:
    """Bound ReduceMin, likewise."""
    return _extreme(step, -1.0)


def _extreme(step: Step, sign: float) -> Errors:
    step.exact(*range(1, len(step.inputs)))
    return sign * step.again([sign * step.error(0), *step.inputs[1:]])


def dropout(step: Step) -> Errors:
    """Bound Dropout: the identity at inference."""
    if not np.array_equal(step.output, step.value(0)):
        raise NoBound
    return step.error(0)


def cast(step: Step) -> Errors:
    """Bound Cast: to a float type, one rounding; to an integer type, the greatest change of the truncated value;
    between integer types exact, with no bound if it may wrap."""
    x, y = step.value(0), step.output
    if is_integer(y):
        if is_integer(x):
            if not np.array_equal(x.astype(np.int64), y.astype(np.int64)):
                raise NoBound
            return step.error(0)
        middle, reach = x.astype(np.float64), step.error(0)
        if not np.array_equal(np.trunc(middle), y.astype(np.float64)):
            raise NoBound
        whole = np.trunc(middle)
        moved: Errors = np.maximum(np.trunc(middle + reach) - whole, whole - np.trunc(middle - reach))
        return moved
    if x.dtype.kind not in "biuf" and not is_integer(x):
        raise NoBound
    return step.error(0) + step.rounded()


def greatest_position(step: Step) -> Errors:
    """Bound ArgMax: the distance to the farthest element that may be the greatest, that is, whose upper bound reaches
    the greatest lower bound."""
    return _position(step, step.value(0).astype(np.float64))


def least_position(step: Step) -> Errors:
    """Bound ArgMin, likewise."""
    return _position(step, -step.value(0).astype(np.float64))


def _position(step: Step, x: Errors) -> Errors:
    axis = int(step.attributes.get("axis", 0))
    error = step.error(0)
    possible = x + error >= (x - error).max(axis=axis, keepdims=True)
    shape = [1] * x.ndim
    shape[axis] = -1
    places = np.arange(x.shape[axis]).reshape(shape)
    found = step.output.astype(np.int64)
    if not step.attributes.get("keepdims", 1):
        found = np.expand_dims(found, axis)
    far = np.where(possible, np.abs(places - found), 0).max(axis=axis, keepdims=True)
    result: Errors = far.reshape(step.output.shape).astype(np.float64)
    return result


def compared(step: Step) -> Errors:
    """Bound Equal, Greater, Less and the like: 1 where the operands differ by at most the sum of their errors, else
    0."""
    a, b = (step.value(index).astype(np.float64) for index in (0, 1))
    reach = step.error(0) + step.error(1)
    return ((np.abs(a - b) <= reach) & (reach > 0)).astype(np.float64)


def decided(step: Step) -> Errors:
    """Bound And, Or, Xor and Not: 1 where an operand may be the other truth, else 0."""
    errors = [step.error(index) for index in range(len(step.inputs)) if step.has(index)]
    result: Errors = np.broadcast_to(np.maximum.reduce(np.broadcast_arrays(*errors)), step.output.shape)
    return np.minimum(result, 1.0)


def best(step: Step) -> list[Errors]:
    """Bound TopK: the k-th greatest value changes by at most the greatest error along the axis; its index is as far off
    as the farthest element that may have its rank: fewer than k are certainly greater, and enough may be."""
    step.exact(1)
    axis = int(step.attributes.get("axis", -1))
    x, error = (np.moveaxis(v, axis, -1) for v in (step.value(0).astype(np.float64), step.error(0)))
    x = x if step.attributes.get("largest", 1) else -x
    low, high = x - error, x + error
    ahead = (low[..., None, :] > high[..., :, None]).sum(axis=-1)
    possible = (high[..., None, :] >= low[..., :, None]).sum(axis=-1) - 1
    found = np.moveaxis(step.outputs[1].astype(np.int64), axis, -1)
    ranks, places = np.arange(found.shape[-1]), np.arange(x.shape[-1])
    candidate = (ahead[..., None, :] <= ranks[:, None]) & (possible[..., None, :] >= ranks[:, None])
    far = np.where(candidate, np.abs(places - found[..., None]), 0).max(axis=-1)
    moved = np.broadcast_to(error.max(axis=-1, keepdims=True), found.shape)
    return [np.moveaxis(v.astype(np.float64), -1, axis) for v in (moved, far)]


def parts(step: Step) -> list[Errors]:
    """Bound Split: each output gets its part of the bound."""
    axis = int(step.attributes.get("axis", 0))
    sizes = [output.shape[axis] for output in step.outputs]
    return list(np.split(step.error(0), np.cumsum(sizes)[:-1], axis=axis))


def absolute(step: Step) -> Errors:
    """Bound Abs and Neg: the same bound."""
    return step.error(0)


def monotone(step: Step) -> Errors:
    """Bound non-decreasing functions without rounding error, steps included (Relu, Clip, Round, Floor, Ceil, Sign): the
    greatest change of y when x changes by E(x)."""
    step.exact(*range(1, len(step.inputs)))
    x, error = step.value(0).astype(np.float64), step.error(0)
    reach = np.where(error > 0, error * INFLATION + 2.0**-52 * np.abs(x), 0.0)  # the sums below are rounded
    least, middle, most = (step.again([at, *step.inputs[1:]]) for at in (x - reach, x, x + reach))
    result: Errors = np.maximum(most - middle, middle - least)
    return result


def sums(step: Step) -> Errors:
    """Bound ReduceSum of n elements: the same operator on the errors, and gamma(n + 1) times the same on the magnitudes
    (n - 1 additions, for a mean one quotient, and a rounding of the result)."""
    step.exact(*range(1, len(step.inputs)))
    error = step.again([step.error(0), *step.inputs[1:]])
    if is_integer(step.output):
        step.exact(0)
        return np.zeros(step.output.shape)
    terms = step.value(0).size // max(1, step.output.size)
    sizes = step.again([magnitude(step.value(0)), *step.inputs[1:]])
    return error + gamma(terms + 1, step.unit) * sizes + 2 * step.tiny


def means(step: Step) -> Errors:
    """Bound ReduceMean and GlobalAveragePool: likewise, of reals."""
    if is_integer(step.output):
        raise NoBound
    return sums(step)


def average(step: Step) -> Errors:
    """Bound AveragePool, which the evaluator's substitute sums in float64 and rounds once: the same operator on the
    errors."""
    return step.again([step.error(0)]) + step.rounded()
