"""Error bounds of operators that only move, choose or copy elements: they move the bounds likewise."""

from __future__ import annotations

import numpy as np

from hwflow.operators.float_errors.step_errors import INFLATION, Errors, NoBound, Step, gamma, is_integer, magnitude


def identity(step: Step) -> Errors:
    return step.error(0)


def moved(step: Step) -> Errors:
    """What is done to input 0 is done to its bound; the other inputs (shapes, indices) are exact."""
    step.exact(*range(1, len(step.inputs)))
    return step.again([step.error(0), *step.inputs[1:]])


def padded(step: Step) -> Errors:
    """Pad: in the margin the bound of the constant, which is exact: 0."""
    step.exact(*range(1, len(step.inputs)))
    rest = [*step.inputs[1:]]
    if len(rest) > 1 and rest[1] is not None:
        rest[1] = np.zeros(rest[1].shape)
    return step.again([step.error(0), *rest])


def joined(step: Step) -> Errors:
    """Concat: of all inputs."""
    return step.again([*step.errors])


def chosen(step: Step) -> Errors:
    """Where, by an exact condition."""
    step.exact(0)
    return step.again([step.inputs[0], step.error(1), step.error(2)])


def greatest(step: Step) -> Errors:
    """ReduceMax and ReduceMin: the greatest error of those that are compared."""
    step.exact(*range(1, len(step.inputs)))
    sign = -1.0 if step.node.op_type == "ReduceMin" else 1.0
    return sign * step.again([sign * step.error(0), *step.inputs[1:]])


def dropout(step: Step) -> Errors:
    """At inference it is the identity."""
    if not np.array_equal(step.output, step.value(0)):
        raise NoBound
    return step.error(0)


def cast(step: Step) -> Errors:
    """To a float type rounds once. To an integer type cuts the fraction off: how far that can move. An integer type to
    another is exact, unless it wraps, of which nothing is said."""
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
    if x.dtype.kind not in "fiu" and not is_integer(x):
        raise NoBound
    return step.error(0) + step.rounded()


def position(step: Step) -> Errors:
    """ArgMax and ArgMin: how far off is the farthest element that may be the greatest: whose greatest possible value
    reaches the greatest of the least possible values."""
    axis, x = int(step.attributes.get("axis", 0)), step.value(0).astype(np.float64)
    x = -x if step.node.op_type == "ArgMin" else x
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
    """Equal, Greater, Less and the like: 1 where the operands are no farther apart than both errors, else 0."""
    a, b = (step.value(index).astype(np.float64) for index in (0, 1))
    reach = step.error(0) + step.error(1)
    return ((np.abs(a - b) <= reach) & (reach > 0)).astype(np.float64)


def best(step: Step) -> list[Errors]:
    """TopK: a k-th greatest element moves by the greatest error of those that are ranked; its place is as far off as
    the farthest element that may have its rank: fewer than k are surely ahead of it, and as many may be."""
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
    """Split: each output the part of the bound that lies where it lies in the input."""
    axis = int(step.attributes.get("axis", 0))
    sizes = [output.shape[axis] for output in step.outputs]
    return list(np.split(step.error(0), np.cumsum(sizes)[:-1], axis=axis))


def absolute(step: Step) -> Errors:
    """Abs and Neg round nothing and move nothing further apart."""
    return step.error(0)


def monotone(step: Step) -> Errors:
    """Functions that do not round and do not decrease, steps among them (Relu, Clip, Round, Floor, Ceil, Sign): how far
    y can move when x moves by E(x)."""
    step.exact(*range(1, len(step.inputs)))
    x, error = step.value(0).astype(np.float64), step.error(0)
    reach = np.where(error > 0, error * INFLATION + 2.0**-52 * np.abs(x), 0.0)  # the sums below are rounded
    least, middle, most = (step.again([at, *step.inputs[1:]]) for at in (x - reach, x, x + reach))
    result: Errors = np.maximum(most - middle, middle - least)
    return result


def sums(step: Step) -> Errors:
    """ReduceSum, ReduceMean, GlobalAveragePool of n elements each: the same of the errors, and gamma(n + 1) of the same
    of the magnitudes (n - 1 additions, a quotient and a rounding of the result)."""
    step.exact(*range(1, len(step.inputs)))
    error = step.again([step.error(0), *step.inputs[1:]])
    if is_integer(step.output):
        step.exact(0)
        if "Mean" in step.node.op_type:
            raise NoBound
        return np.zeros(step.output.shape)
    terms = step.value(0).size // max(1, step.output.size)
    sizes = step.again([magnitude(step.value(0)), *step.inputs[1:]])
    return error + gamma(terms + 1, step.unit) * sizes + 2 * step.tiny


def average(step: Step) -> Errors:
    """AveragePool, which the evaluator's substitute sums in float64 and rounds once. Window by window the same of the
    errors."""
    return step.again([step.error(0)]) + step.rounded()
