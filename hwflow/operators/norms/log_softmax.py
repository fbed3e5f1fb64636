"""LogSoftmax: distances to the greatest element, less the logarithm of the sum of their exponentials; and Log."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hwflow.frontend.context import Lowering, behind, reals
from hwflow.frontend.frames import axes
from hwflow.frontend.views import Integers, Reals, View, as_array
from hwflow.numerics.functions.piecewise import Affine
from hwflow.numerics.functions.smooth import Log
from hwflow.onnxspec.reference import evaluator_defects, framewise
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.arithmetic import lies_far_apart, sum_of
from hwflow.operators.float_errors import function_errors
from hwflow.operators.moves.moves import broadcast
from hwflow.operators.norms.approximations import operand, tabulated
from hwflow.operators.norms.logarithms import logarithm
from hwflow.operators.norms.rows import Rows, same_sign
from hwflow.operators.norms.softmax import powers_of_rows, softmax_axes
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases

MOST_DIGITS = 40
"""Of the denominators of scales, powers of two, that need no rounding before a sum with approximations."""


def log_softmax(state: Lowering, node: OnnxNode) -> View:
    """Lower LogSoftmax likewise: an element less the greatest, less the logarithm of the sum."""
    view = reals(state, node, 0)
    rows = Rows(state, node, view.shape, softmax_axes(state, node, node.version))
    distances, powers = powers_of_rows(rows, view)
    sums = rows.total(powers)
    state.facts.note_rows(state.facts.totals, sums, powers, rows.axes)
    logs = rows.spread(logarithm(state, node, sums))
    result = sum_of(state, node, _short(state, node, distances), logs, subtract=True)
    return replace(result, anchor=view.anchor, after=(*view.after, node.name))


def log(state: Lowering, node: OnnxNode) -> View:
    """Lower Log: a function before the next quantizer; of a quotient, as of Softmax, the difference of logarithms."""
    view = reals(state, node, 0)
    if node.name in state.at_end:
        return behind(view, node, as_array(Log()))
    apart = None if state.facts.least(view) else state.facts.powers_in(view)
    if apart is not None and lies_far_apart(state, apart[0]):
        return replace(_of_powers(state, node, *apart), anchor=view.anchor, after=(*view.after, node.name))
    found = state.facts.quotient_of(view)
    if found is None:
        return behind(view, node, as_array(Log()))
    parts = []
    for part in found:
        logs = state.facts.exponent_of(part)
        logs = logarithm(state, node, part) if logs is None else _short(state, node, operand(state, node, logs))
        parts.append(broadcast(state, node, logs, (1, *logs.shape), (1, *view.shape)))
    result = sum_of(state, node, *parts, subtract=True)
    return replace(result, anchor=view.anchor, after=(*view.after, node.name))


def _of_powers(state: Lowering, node: OnnxNode, exponents: Reals, places: tuple[int, ...]) -> Reals:
    """Return the logarithm of the sum of powers of e of each row: the greatest exponent, and that of what is left."""
    exponents = operand(state, node, exponents)
    rows = Rows(state, node, exponents.shape, places)
    exponents = rows.prepared(exponents)
    _, powers = powers_of_rows(rows, exponents)
    sums = rows.total(powers)
    state.facts.note_rows(state.facts.totals, sums, powers, rows.axes)
    ends = rows.extreme(exponents, least=same_sign(node, exponents) < 0)
    return sum_of(state, node, _short(state, node, ends), logarithm(state, node, sums))


def _short(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return reals in units that have short sums with numbers in units of some ``2**-40``: as they are, or rounded
    where they are few."""
    units = {Fraction(scale).denominator for scale in view.scale.reshape(-1)}
    if all(unit.bit_count() == 1 and unit.bit_length() <= MOST_DIGITS for unit in units):
        return view
    found = tabulated(state, node, replace(view, functions=(as_array(Affine(Fraction(1), Fraction(0))),)))
    return view if found is None else found


RECORDS = (
    Operator(
        "Log", lower=log, limits=f"{phrases.FUNCTION}, of positive numbers", becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=function_errors.log,
    ),
    Operator(
        "LogSoftmax", lower=log_softmax, honours=attributes("axis"),
        limits="of reals of known ranges, before a quantizer",
        becomes=("elementwise", "max_pool2d", "product", "quotient", "requantize", "scaled_add", "sum_pool2d"),
        needs=(Integers, Reals), approximates=True, whole=True, frames=axes.along(-1, before=(13, 1)),
        error=function_errors.log_softmax, tame=True, framewise=framewise.inner_axis,
        mended=evaluator_defects.LOG_SOFTMAX,
    ),
)
