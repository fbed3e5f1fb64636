"""Reals of any scales by their ranks: places among all the values that some operands may take, in rising order.

Ranks have the order of the reals, and few bits, where scales have no common divisor worth the name (those that a
calibration found, say). What a rank means is a step function, so that a quantizer behind it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hwflow.frontend.context import Lowering
from hwflow.frontend.views import Functions, Integers, Reals, fractions, uniform, varying_axes
from hwflow.ir.graph import Fractions, IntArray
from hwflow.numerics.functions.chains import Ranked
from hwflow.numerics.requantizers.stages import StepStage
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.alignment import SHORT, aligned, in_common
from hwflow.operators.elementwise.lattice import MAX_POINTS, table_of

MOST_VALUES = 1 << 19
"""That are listed, of all channels."""


def alike(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """``view``, without functions, by integers that mean the same in all of its elements: itself, multiples of one
    number or ranks."""
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
    """The operands' ranks, those of each channel apart or of all ``together``; None where an operand's integers are too
    many, or parameters vary along several axes."""
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
    """Each operand's; what one means (an array of functions that broadcasts over a frame), and how many there are.
    ``first``: an operand."""

    operands: list[integers.Operand]
    functions: Functions
    count: int
    first: Reals

    def reals(self, node: OnnxNode, result: Integers) -> Reals:
        """What ``result``, ranks too, means as a result of ``node``.

        The host has no ranks: it would begin with the node itself, which needs all that it reads.
        """
        first = self.first
        return Reals(
            result.value, result.shape, fractions(1), fractions(0), first.anchor, (self.functions,),
            after=(*first.after, node.name), low=0, high=self.count - 1,
        )


def _along(rank: int, axis: int) -> tuple[int, ...]:
    return tuple(-1 if place == axis else 1 for place in range(rank))


def _of_rank(values: Fractions | Functions, rank: int) -> Fractions | Functions:
    """With as many axes as a frame (further ones in front have length 1)."""
    if values.ndim > rank:
        return values.reshape(values.shape[values.ndim - rank :])
    return values.reshape((1,) * (rank - values.ndim) + values.shape)


def _whole(state: Lowering, node: OnnxNode, view: Reals, shape: tuple[int, ...]) -> Reals:
    """The view as long as the result, so that each channel may have ranks of its own, and a quantizer theirs."""
    rank = len(shape)
    stream = integers.expanded(state, node, Integers(view.value, view.shape, 0, 0), shape)
    scale, zero_point, *functions = (_of_rank(v, rank) for v in (view.scale, view.zero_point, *view.functions))
    return replace(
        view, value=stream.value, shape=shape, scale=scale, zero_point=zero_point, functions=tuple(functions)
    )


def _values(node: OnnxNode, operand: Reals | Fractions, rank: int, axis: int, index: int) -> list[Fraction]:
    """All reals that channel ``index`` of an operand may be, its integers in rising order."""
    if isinstance(operand, Reals):
        return table_of(node, operand, index)
    column = _of_rank(operand, rank)
    return [Fraction(column.reshape(-1)[index if column.shape[axis] > 1 else 0])]


def _ranks(state: Lowering, node: OnnxNode, view: Reals, axis: int, columns: list[list[int]]) -> Integers:
    assert view.low is not None, "known, or they would not be listed"
    made = {tuple(c): StepStage(StepFunction.of_table(view.low, c)) for c in columns}
    attributes = {"axis": axis, "stages": tuple((made[tuple(c)],) for c in columns)}
    value = state.add("requantize", node, [view.value], attributes, view.nodes, origin="")
    return Integers(value, view.shape, 0, 0)


def _constant(ranks: list[int], rank: int, axis: int) -> int | IntArray:
    return ranks[0] if len(set(ranks)) == 1 else np.array(ranks, dtype=np.int64).reshape(_along(rank, axis))
