"""Logarithms of wide integers in fixed point: ``log s = log c + 2 z + 2 (atanh z - z)`` with ``z = (s - c) / (s + c)``,
where c is the middle of one of some hundred cells, of equal ratios, that the positive range of s is divided into.

The cell is found as a quantizer finds its level; its middle and its logarithm are tables, z a quotient, and the last
term, of a few bits, a step function of z. Source of the series: Abramowitz and Stegun, Handbook of Mathematical
Functions, 4.1.28.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import log

from hwflow.frontend.approximation_bits import bits_above
from hwflow.frontend.context import Lowering, refuse, require_behind
from hwflow.frontend.error_bounds import ONE, Bound, added
from hwflow.frontend.views import Reals, compact, fractions, uniform
from hwflow.ir.graph import Value
from hwflow.ir.integer_functions import Simple
from hwflow.ir.node_attributes import ElementwiseAttributes, QuotientAttributes, RequantizeAttributes
from hwflow.numerics.logarithm_cells import Cells, fixed_logarithms, rest_breaks
from hwflow.numerics.requantizers.stages import StepStage
from hwflow.numerics.requantizers.staircase import LIMIT
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.norms.based import MOST_BITS, based
from hwflow.types import Interval


def logarithm(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Take the natural logarithm of a stream without functions whose reals are known to be positive."""
    require_behind(
        state, node, "stream-logarithm", "the logarithm of a sum must be quantized, which says how precise it must be, "
        "not left in float", "quantize it, or leave it to the host",
    )
    least = state.facts.least(view)
    view = based(state, node, view)
    bound, scale = state.bound(view.value), uniform(view.scale)
    assert bound.interval is not None
    if scale is None or scale < 0:
        raise refuse(
            node, "logarithm-scale", "the input of a logarithm must have one positive scale", "quantize it before"
        )
    low = max(bound.interval.lo - bound.error, Fraction(0) if least is None else least / scale)
    if low - bound.error <= 0:
        raise refuse(
            node, "logarithm-sign", "the input of a logarithm must be known to be positive, not down to "
            f"{float(scale * bound.interval.lo):.3g}", "add a positive epsilon to it, or put a Clip before it",
        )
    start = max(1, bound.interval.lo, int(low - bound.error))
    name = state.approximations.fresh(node.name)
    greatest = max(abs(log(start) + log(scale)), abs(log(bound.interval.hi) + log(scale)), 1.0)
    fraction = max(1, min(state.precision.of(name), MOST_BITS) - bits_above(Fraction(greatest)))
    cells = Cells.of(start, bound.interval.hi, fraction)
    errors = dict(bound.times(Fraction(1 << fraction) / (low - bound.error))) if bound.errors else {}
    value, own = _added(state, node, view.value, cells, scale, fraction)
    state.bounds[value] = replace(state.bounds[value], errors=added(errors, {name: own}))
    unit = fractions(Fraction(1, 1 << fraction))
    after = tuple(dict.fromkeys((*view.after, node.name)))
    return Reals(value, view.shape, compact(unit), fractions(0), view.anchor, after=after)


def _added(
    state: Lowering, node: OnnxNode, value: Value, cells: Cells, scale: Fraction, fraction: int
) -> tuple[Value, Fraction]:
    """Add the nodes of the sum; return it, and by how much its own roundings move it, in its units."""
    count = len(cells.middles)
    cell = _stepped(
        state, node, value, StepFunction(-LIMIT, LIMIT, cells.starts, list(range(count))), Interval(0, count - 1)
    )
    middles = Interval(min(cells.middles), max(cells.middles))
    middle = _stepped(state, node, cell, _table(cells.middles), middles)
    logs, wide = fixed_logarithms(cells.middles, scale, fraction)
    coarse = _stepped(state, node, cell, _table(logs), Interval(min(logs), max(logs)))
    interval = state.bound(value).interval
    assert interval is not None
    distance = _pair(state, node, "sub", value, middle, Interval(interval.lo - middles.hi, interval.hi))
    total = _pair(state, node, "add", value, middle, Interval(1, interval.hi + middles.hi))
    bits = max(1, int(cells.most * (1 << fraction)).bit_length())
    end = int(2 * cells.most * (1 << fraction)) + 1
    z = state.add(
        node, [distance, total], QuotientAttributes(fraction, bits), (), origin="", bound=Bound(Interval(-end, end))
    )
    breaks, own = rest_breaks(end, fraction)
    if not breaks:
        return _pair(state, node, "add", coarse, z, _around(logs, end)), ONE + wide + own
    levels = [*range(-len(breaks), len(breaks) + 1)]
    starts = [*(1 - at for at in reversed(breaks)), *breaks]
    fine = _stepped(
        state, node, z, StepFunction(-LIMIT, LIMIT, starts, levels), Interval(levels[0], levels[-1])
    )
    both = _pair(state, node, "add", z, fine, Interval(-end - len(breaks), end + len(breaks)))
    return _pair(state, node, "add", coarse, both, _around(logs, end + len(breaks))), ONE + wide + own


def _around(logs: list[int], reach: int) -> Interval:
    return Interval(min(logs) - reach, max(logs) + reach)


def _table(values: list[int]) -> StepFunction:
    return StepFunction.of_table(0, values)


def _stepped(state: Lowering, node: OnnxNode, value: Value, function: StepFunction, interval: Interval) -> Value:
    attributes = RequantizeAttributes(0, ((StepStage(function),),))
    return state.add(node, [value], attributes, (), origin="", bound=Bound(interval))


def _pair(state: Lowering, node: OnnxNode, operation: str, a: Value, b: Value, interval: Interval) -> Value:
    attributes = ElementwiseAttributes(Simple(operation), (None, None), None)
    return state.add(node, [a, b], attributes, (), origin="", bound=Bound(interval))
