"""Reals of any scales represented by ranks: positions among all possible values of some operands, in rising order.

Ranks have the order of the reals, and few bits, where scales (from calibration, say) have no useful common divisor. The
value of a rank is a step function of it, so a quantizer after it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hwflow.frontend.context import Lowering
from hwflow.frontend.views import Functions, Integers, Reals, fractions, uniform, varying_axes
from hwflow.ir.graph import Fractions, IntArray
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.functions.piecewise import Ranked
from hwflow.numerics.requantizers.stages import StepStage
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.alignment import SHORT, aligned, in_common
from hwflow.operators.elementwise.lattice import MAX_POINTS, table_of

MOST_VALUES = 1 << 19
"""The greatest number of values listed, over all channels."""


def alike(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return ``view``, without functions, by integers of one meaning for all elements: itself, multiples of a common
    divisor, or ranks."""
    if uniform(view.scale) is not None and uniform(view.zero_point) is not None:
        return view
    found = ranked(state, node, [view], together=True) if in_common([view])[1] >= SHORT else None
    if found is not None:
        (operand,) = found.operands
        assert isinstance(operand, Integers), "a stream"
        return found.reals(node, operand)
    (operand,), unit = aligned(state, node, [view])
    assert isinstance(operand, Integers), "a stream"
    return replace(view, value=operand.value, scale=unit, zero_point=fractions(0), nodes=(), low=None, high=None)


def ranked(
    state: Lowering, node: OnnxNode, operands: Sequence[Reals | Fractions], *, together: bool = False
) -> Ranks | None:
    """Return the operands' ranks, per channel or of all channels ``together``; None where an operand has too many
    integers, or parameters vary along several axes."""
    streams = [v for v in operands if isinstance(v, Reals)]
    points = sum(v.high - v.low + 1 if v.low is not None and v.high is not None else MAX_POINTS for v in streams)
    if points >= MAX_POINTS:
        return None
    shape = np.broadcast_shapes(*((1, *v.shape) for v in streams))[1:]
    rank = len(shape)
    spread = [_of_rank(v, rank) for view in streams for v in (view.scale, view.zero_point, *view.functions)]
    spread += [_of_rank(v, rank) for v in operands if not isinstance(v, Reals)]
    axes = varying_axes(*spread)
    if len(axes) > 1:
        return None
    axis = axes.pop() if axes else 0
    count = shape[axis] if any(v.shape[axis] > 1 for v in spread) else 1
    if points * count > MOST_VALUES:
        return None
    whole = [_whole(state, node, v, shape) if isinstance(v, Reals) else v for v in operands]
    values = [[_values(node, v, rank, axis, index) for v in whole] for index in range(count)]
    kinds = [[column for channel in values for column in channel]] * count if together else values
    levels = [tuple(sorted({x for column in channel for x in column})) for channel in kinds]
    places = [{x: place for place, x in enumerate(channel)} for channel in levels]
    result: list[integers.Operand] = []
    for number, operand in enumerate(whole):
        columns = [[places[index][x] for x in values[index][number]] for index in range(count)]
        if isinstance(operand, Reals):
            result.append(_ranks(state, node, operand, axis, columns))
        else:
            result.append(_constant([column[0] for column in columns], rank, axis))
    functions = np.empty(count, dtype=object)
    functions[:] = [Ranked(channel) for channel in levels]
    meaning = functions[:1].reshape(()) if together else functions.reshape(_along(rank, axis))
    return Ranks(result, meaning, max(map(len, levels)), streams[0])


@dataclass(frozen=True)
class Ranks:
    """The ranks of each operand, their meaning (an array of functions that broadcasts over a frame), and their number.
    ``first``: an operand."""

    operands: list[integers.Operand]
    functions: Functions
    count: int
    first: Reals

    def reals(self, node: OnnxNode, result: Integers) -> Reals:
        """Return the reals of ``result``, also ranks, as a result of ``node``.

        The host has no ranks: it would continue with the node itself, which needs all of its inputs.
        """
        first = self.first
        return Reals(
            result.value, result.shape, fractions(1), fractions(0), first.anchor, (self.functions,),
            after=(*first.after, node.name), low=0, high=self.count - 1,
        )


def _along(rank: int, axis: int) -> tuple[int, ...]:
    return tuple(-1 if place == axis else 1 for place in range(rank))


def _of_rank(values: Fractions | Functions, rank: int) -> Fractions | Functions:
    """Return values with as many axes as a frame (excess leading ones have length 1)."""
    if values.ndim > rank:
        return values.reshape(values.shape[values.ndim - rank :])
    return values.reshape((1,) * (rank - values.ndim) + values.shape)


def _whole(state: Lowering, node: OnnxNode, view: Reals, shape: tuple[int, ...]) -> Reals:
    """Broadcast the view to the result, so that each channel may have its own ranks, and a quantizer per channel."""
    rank = len(shape)
    stream = integers.expanded(state, node, Integers(view.value, view.shape, 0, 0), shape)
    scale, zero_point, *functions = (_of_rank(v, rank) for v in (view.scale, view.zero_point, *view.functions))
    return replace(
        view, value=stream.value, shape=shape, scale=scale, zero_point=zero_point, functions=tuple(functions)
    )


def _values(node: OnnxNode, operand: Reals | Fractions, rank: int, axis: int, index: int) -> list[Fraction]:
    """Return all possible reals of channel ``index`` of an operand, its integers in rising order."""
    if isinstance(operand, Reals):
        return table_of(node, operand, index)
    column = _of_rank(operand, rank)
    return [Fraction(column.reshape(-1)[index if column.shape[axis] > 1 else 0])]


def _ranks(state: Lowering, node: OnnxNode, view: Reals, axis: int, columns: list[list[int]]) -> Integers:
    assert view.low is not None, "ranks are of known intervals"
    made = {tuple(c): StepStage(StepFunction.of_table(view.low, c)) for c in columns}
    attributes = RequantizeAttributes(axis, tuple((made[tuple(c)],) for c in columns))
    value = state.add(node, [view.value], attributes, view.nodes, origin="")
    return Integers(value, view.shape, 0, 0)


def _constant(ranks: list[int], rank: int, axis: int) -> int | IntArray:
    return ranks[0] if len(set(ranks)) == 1 else np.array(ranks, dtype=np.int64).reshape(_along(rank, axis))
