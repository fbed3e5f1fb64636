"""Arithmetic, comparisons and logic, element by element."""

from __future__ import annotations

from hwflow.frontend.frames import axes
from hwflow.frontend.views import Integers, Reals
from hwflow.ir.integer_functions import MAXIMUM, MINIMUM, Magnitude, Quotient, Simple
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.operators.elementwise import arithmetic, integers, islands, ordering
from hwflow.operators.float_errors import linear_errors, move_errors
from hwflow.operators.float_errors.step_errors import ErrorRule
from hwflow.operators.record import Attributes, Operator, attributes
from hwflow.operators.records import phrases

_BROADCAST = (0, 1)  # of operator sets before 7: without an axis the shapes are aligned at their ends, as ever since


def _comparison(name: str, function: Simple, honours: Attributes | None = None) -> Operator:
    return Operator(
        name, lower=integers.or_real(integers.always(function), ordering.comparison(function)), honours=honours or {},
        limits=phrases.COMPARED, becomes=("elementwise",), needs=(Integers, Reals), frames=axes.ELEMENTWISE,
        error=move_errors.compared
    )


def _of_integers(
    name: str, make: integers.Make, limits: str, honours: Attributes | None = None, error: ErrorRule | None = None,
) -> Operator:
    """Return the record of an operator on integer or bool tensors alone."""
    return Operator(
        name, lower=integers.or_real(make), honours=honours or {}, limits=limits, becomes=("elementwise",),
        needs=(Integers,), frames=axes.ELEMENTWISE, error=error
    )


def _of_truths(name: str, simple: str, honours: Attributes | None = None, limits: str = phrases.LOGICAL) -> Operator:
    """Return the record of an operator on bool tensors alone."""
    return _of_integers(name, integers.always(Simple(simple)), limits, honours, move_errors.decided)


RECORDS: tuple[Operator, ...] = (
    Operator(
        "Abs", lower=integers.or_real(integers.always(Magnitude()), islands.absolute),
        limits=f"{phrases.FUNCTION}; {phrases.INTEGER}", becomes=("elementwise", "requantize"), frames=axes.ELEMENTWISE,
        error=move_errors.absolute
    ),
    Operator(
        names.ADD, lower=integers.or_real(integers.always(Simple("add")), arithmetic.add),
        honours=attributes(broadcast=_BROADCAST),
        limits=f"streams of shapes that broadcast, or constants; {phrases.INTEGER}",
        becomes=("elementwise", "scaled_add"), frames=axes.ELEMENTWISE, error=linear_errors.add, by_type=True,
        followed=True, integer_operands=True, accumulates=True, affine=True, adds=True
    ),
    _of_truths(names.AND, "and", attributes(broadcast=_BROADCAST)),
    _of_integers("BitShift", integers.bit_shift, phrases.BITS, attributes(direction=("LEFT", "RIGHT"))),
    _of_integers("BitwiseAnd", integers.always(Simple("and")), phrases.BITS),
    _of_integers("BitwiseNot", integers.always(Simple("not")), phrases.INTEGER),
    _of_integers("BitwiseOr", integers.always(Simple("or")), phrases.BITS),
    _of_integers("BitwiseXor", integers.always(Simple("xor")), phrases.BITS),
    Operator(
        "Div", divisors=(1,), lower=integers.or_real(integers.always(Quotient()), arithmetic.div),
        honours=attributes(broadcast=_BROADCAST),
        limits=f"of reals, by what is never 0; by a stream before a quantizer only; {phrases.INTEGER}",
        becomes=("elementwise", "quotient", "requantize"), real_only=True, frames=axes.ELEMENTWISE,
        error=linear_errors.div, affine=True, integer_operands=True, accumulates=True
    ),
    _comparison(names.EQUAL, Simple("equal"), attributes(broadcast=_BROADCAST)),
    _comparison("Greater", Simple("greater"), attributes(broadcast=_BROADCAST)),
    _comparison("GreaterOrEqual", Simple("greater_or_equal")),
    _comparison(names.LESS, Simple("less"), attributes(broadcast=_BROADCAST)),
    _comparison("LessOrEqual", Simple("less_or_equal")),
    Operator(
        names.MAX, lower=integers.or_real(integers.always(MAXIMUM), ordering.extreme(MAXIMUM)),
        limits=f"any number: {phrases.COMPARED}", becomes=("elementwise",), needs=(Integers, Reals),
        frames=axes.ELEMENTWISE, error=linear_errors.extremum, integer_operands=True, accumulates=True
    ),
    Operator(
        "Mean", lower=ordering.mean, limits=f"any number of {phrases.ALIGNED}",
        becomes=("elementwise",), needs=(Integers, Reals), frames=axes.ELEMENTWISE, error=linear_errors.mean,
        integer_operands=True, accumulates=True
    ),
    Operator(
        "Min", lower=integers.or_real(integers.always(MINIMUM), ordering.extreme(MINIMUM)),
        limits=f"any number: {phrases.COMPARED}", becomes=("elementwise",), needs=(Integers, Reals),
        frames=axes.ELEMENTWISE, error=linear_errors.extremum, integer_operands=True, accumulates=True
    ),
    _of_integers("Mod", integers.mod, f"{phrases.INTEGER}, fmod too", attributes("fmod")),
    Operator(
        names.MUL, lower=integers.or_real(integers.always(integers.Product()), arithmetic.mul),
        honours=attributes(broadcast=_BROADCAST),
        limits=f"streams of shapes that broadcast and one zero point each, or constants; {phrases.INTEGER}",
        becomes=("product",), real_only=True, frames=axes.ELEMENTWISE, error=linear_errors.mul, by_type=True,
        followed=True, integer_operands=True, accumulates=True, affine=True, multiplies=True
    ),
    Operator(
        "Neg", lower=arithmetic.neg, limits=f"of reals and {phrases.INTEGER}", becomes=("elementwise", "requantize"),
        frames=axes.ELEMENTWISE, error=move_errors.absolute
    ),
    _of_truths("Not", "not", limits="bool tensors"),
    _of_truths("Or", "or", attributes(broadcast=_BROADCAST)),
    Operator(
        names.SUB, lower=integers.or_real(integers.always(Simple("sub")), arithmetic.sub),
        honours=attributes(broadcast=_BROADCAST),
        limits=f"streams of shapes that broadcast, or constants; {phrases.INTEGER}",
        becomes=("elementwise", "scaled_add"), frames=axes.ELEMENTWISE, error=linear_errors.add, followed=True,
        integer_operands=True, accumulates=True, affine=True, subtracts=True
    ),
    Operator(
        "Sum", lower=integers.or_real(integers.always(Simple("add")), ordering.total),
        limits=f"any number of {phrases.ALIGNED}", becomes=("elementwise",), needs=(Integers, Reals),
        frames=axes.ELEMENTWISE, error=linear_errors.total, integer_operands=True, accumulates=True
    ),
    Operator(
        names.WHERE, lower=integers.or_real(integers.always(Simple("where")), ordering.where),
        limits=f"a bool tensor in hardware, or constant; branches: {phrases.COMPARED}", becomes=("elementwise",),
        needs=(Integers, Reals), frames=axes.ELEMENTWISE, error=move_errors.chosen,
        integer_operands=True, accumulates=True
    ),
    _of_truths("Xor", "xor", attributes(broadcast=_BROADCAST)),
)
