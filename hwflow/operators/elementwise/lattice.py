"""Unquantized reals as operands: the functions before an operator are tabulated.

Integers of a known, small range have finitely many images under any function. Where these are integer multiples of a
common divisor (Relu, Clip, Abs, Sign, a Round of reals, ...), the function is exactly a step function on the integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import islice
from math import gcd
from typing import Any

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.views import Reals, as_array, compact, fraction_gcd, fractions, uniform
from hwflow.ir.integer_functions import Simple
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.functions.combination import Combination
from hwflow.numerics.functions.function import Elementwise, enclose
from hwflow.numerics.functions.nearest_float import nearest_float
from hwflow.numerics.functions.sum_keys import SumKeys
from hwflow.numerics.interval import Interval, NoSteps
from hwflow.numerics.requantizers.stages import StepStage
from hwflow.numerics.requantizers.staircase import LIMIT
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.clamped import applied, broadcast_constant, clamped
from hwflow.operators.moves.channels import Channels

MAX_POINTS = 1 << 16
"""The largest range that is tabulated, in integers."""

MAX_BITS = 16
"""The largest width of the resulting integers."""

FIRST_POINTS = 256
"""Integers of a range that are tabulated before the first look at whether the results are levels at all."""

ENCLOSURE_BITS = 64


def plain(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return ``view`` without functions: as it is, or through a requantizer that applies them exactly."""
    if not view.functions:
        return view
    kinds, remedy = _kinds(view), _remedy(node)
    where = f"the inputs of {node.op_type}"
    if view.low is None or view.high is None or view.high - view.low >= MAX_POINTS:
        limited = clamped(state, node, view)
        if limited is not None:
            return limited
        raise refuse(
            node, "quantized-operand", f"{where} must be quantized after {kinds}, not left in float", remedy
        )
    channels = Channels(view.shape, view.scale, view.zero_point, *view.functions)
    columns = zip(*(channels.column(v) for v in (view.scale, view.zero_point, *view.functions)), strict=True)
    known: dict[tuple[Any, ...], list[Fraction]] = {}  # channels repeat where an image was reshaped to a row
    tables = []
    step = least = most = Fraction(0)
    for key in columns:
        if key not in known:
            table: list[Fraction] = []
            known[key] = table
            values = _values(node, view, key, kinds, remedy)
            # More values only make the divisor smaller and the range wider: what too few allow, all do not.
            while part := list(islice(values, max(FIRST_POINTS, len(table)))):
                table += part
                step = reduce(fraction_gcd, part, step)
                least, most = min(least, *part), max(most, *part)
                if step and int(max(most / step, -least / step - 1)).bit_length() + (least < 0) > MAX_BITS:
                    times = 1 << MAX_BITS - (least < 0)
                    raise refuse(
                        node, "exact-levels",
                        f"{where} must be multiples, up to {times} times, of a common divisor, not results of {kinds} "
                        f"(greatest common divisor: at most {nearest_float(step):.3g})",
                        remedy,
                    )
        tables.append(known[key])
    step = step or Fraction(1)
    made = {id(table): StepStage(StepFunction.of_table(view.low, [int(v / step) for v in table])) for table in tables}
    stages = tuple((made[id(table)],) for table in tables)
    value = channels.add(
        state, node, [view.value], lambda axis: RequantizeAttributes(axis, stages), view.nodes, origin=""
    )
    low = min(stage.function.low for (stage,) in stages)
    high = max(stage.function.high for (stage,) in stages)
    return replace(
        view, value=value, scale=fractions(step), zero_point=fractions(0), functions=(), nodes=(), low=low, high=high
    )


def _kinds(view: Reals) -> str:
    """Return the names of the functions, for messages."""
    functions = {f for step in view.functions for f in step.reshape(-1) if f is not None}
    if any(isinstance(f, SumKeys) for f in functions):
        return "a sum of different scales"
    if any(isinstance(f, Combination) for f in functions):
        return "functions of the same number"
    return ", ".join(sorted({type(f).__name__ for f in functions}))


def _remedy(node: OnnxNode) -> str:
    return f"insert QuantizeLinear and DequantizeLinear before {show(node.name)}"


def table_of(node: OnnxNode, view: Reals, index: int) -> list[Fraction]:
    """Return the exact reals of the integers ``low`` to ``high`` of channel ``index``; refuse the node where one is
    irrational."""
    column = tuple(
        values.reshape(-1)[0 if values.size == 1 else index]
        for values in (view.scale, view.zero_point, *view.functions)
    )
    return list(_values(node, view, column, _kinds(view), _remedy(node)))


def _values(node: OnnxNode, view: Reals, column: tuple[Any, ...], kinds: str, remedy: str) -> Iterator[Fraction]:
    """Yield a channel's reals, one for each integer; ``column``: its scale, zero point and functions."""
    assert view.low is not None and view.high is not None
    scale, zero_point, *functions = column
    chain: list[Elementwise] = [f for f in functions if f is not None]
    for q in range(view.low, view.high + 1):
        x = scale * (q - zero_point)
        try:
            value = enclose(chain, Interval.point(x), ENCLOSURE_BITS).exact
        except NoSteps:  # undefined there
            value = None
        if value is None:
            raise refuse(
                node, "exact-levels",
                f"the inputs of {node.op_type} must be rational numbers, not the result of {kinds} for "
                f"{nearest_float(x):.9g}",
                remedy,
            )
        yield value


def whole_zero_point(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return ``view`` (without functions) with an integer zero point, multiplying the integers where it is a
    fraction."""
    denominators = {z.denominator for z in view.zero_point.reshape(-1)}
    if denominators == {1}:
        return view
    factor = reduce(lambda a, b: a * b // gcd(a, b), denominators)
    if view.low is None or view.high is None or (view.high - view.low) * factor >= MAX_POINTS:
        raise refuse(
            node, "zero-point-fraction",
            f"the zero point of the input of {node.op_type} must be an integer, not {view.zero_point.reshape(-1)[0]}",
            f"insert QuantizeLinear and DequantizeLinear before {show(node.name)}",
        )
    zero = uniform(view.zero_point)
    offset = int(factor * zero) if zero is not None else 0
    table = [factor * q - offset for q in range(view.low, view.high + 1)]
    stage = StepStage(StepFunction.of_table(view.low, table))
    value = state.add(node, [view.value], RequantizeAttributes(0, ((stage,),)), view.nodes, origin="")
    return replace(
        view, value=value, scale=as_array(view.scale / factor),
        zero_point=compact(as_array(factor * view.zero_point - offset)), nodes=(), low=table[0], high=table[-1],
    )


def from_zero(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return ``view`` (without functions, with integer zero points) with a zero point of 0, by a subtraction if
    needed."""
    zero = uniform(view.zero_point)
    if zero == 0:
        return view
    if view.low is None or view.high is None or view.high - view.low >= MAX_POINTS:
        offsets = np.array([int(z) for z in view.zero_point.reshape(-1)], dtype=object).reshape(view.zero_point.shape)
        if max(abs(z) for z in offsets.reshape(-1)) > LIMIT:
            raise refuse(
                node, "zero-point-range",
                f"the zero point of the input of {node.op_type} must have at most 62 bits after a sum",
                f"insert QuantizeLinear and DequantizeLinear before {show(node.name)}",
            )
        constants = (None, broadcast_constant(offsets.astype(np.int64), view.shape))
        value = applied(state, node, view.value, Simple("sub"), constants, view.nodes)
        return replace(view, value=value, zero_point=fractions(0), nodes=(), low=None, high=None)
    channels = Channels(view.shape, view.zero_point)
    zeros = [int(z) for z in channels.column(view.zero_point)]
    levels = range(view.low, view.high + 1)
    moved = {z: (StepStage(StepFunction.of_table(view.low, [q - z for q in levels])),) for z in zeros}
    stages = tuple(moved[z] for z in zeros)
    value = channels.add(
        state, node, [view.value], lambda axis: RequantizeAttributes(axis, stages), view.nodes, origin=""
    )
    return replace(
        view, value=value, zero_point=fractions(0), nodes=(), low=view.low - max(zeros), high=view.high - min(zeros)
    )
