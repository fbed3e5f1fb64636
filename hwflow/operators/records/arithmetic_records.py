"""Arithmetic, comparisons and logic, element by element."""

from __future__ import annotations

from hwflow.frontend.context import Handler
from hwflow.frontend.frames import axes
from hwflow.frontend.views import Integers, Reals
from hwflow.ir.integer_functions import MAXIMUM, MINIMUM, Division, Magnitude, Simple
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.operators.elementwise import arithmetic, integers, islands, ordering
from hwflow.operators.float_errors import linear_errors, move_errors
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases

_BROADCAST = (0, 1)  # of operator sets before 7: without an axis the shapes are aligned at their ends, as ever since


def _comparison(function: Simple) -> Handler:
    return integers.or_real(integers.always(function), ordering.comparison(function))


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
        followed=True, integer_operands=True, accumulates=True, affine=True
    ),
    Operator(
        "And", lower=integers.or_real(integers.always(Simple("and"))), honours=attributes(broadcast=_BROADCAST),
        limits=phrases.LOGICAL, becomes=("elementwise",), needs=(Integers,), frames=axes.ELEMENTWISE
    ),
    Operator(
        "BitShift", lower=integers.or_real(integers.bit_shift), honours=attributes(direction=("LEFT", "RIGHT")),
        limits=phrases.BITS, becomes=("elementwise",), needs=(Integers,), frames=axes.ELEMENTWISE
    ),
    Operator(
        "BitwiseAnd", lower=integers.or_real(integers.always(Simple("and"))), limits=phrases.BITS,
        becomes=("elementwise",), needs=(Integers,), frames=axes.ELEMENTWISE
    ),
    Operator(
        "BitwiseNot", lower=integers.or_real(integers.always(Simple("not"))), limits=phrases.INTEGER,
        becomes=("elementwise",), needs=(Integers,), frames=axes.ELEMENTWISE
    ),
    Operator(
        "BitwiseOr", lower=integers.or_real(integers.always(Simple("or"))), limits=phrases.BITS,
        becomes=("elementwise",), needs=(Integers,), frames=axes.ELEMENTWISE
    ),
    Operator(
        "BitwiseXor", lower=integers.or_real(integers.always(Simple("xor"))), limits=phrases.BITS,
        becomes=("elementwise",), needs=(Integers,), frames=axes.ELEMENTWISE
    ),
    Operator(
        "Div", lower=integers.or_real(integers.always(Division("quotient")), arithmetic.div),
        honours=attributes(broadcast=_BROADCAST),
        limits=f"of reals by a constant other than 0, or of a constant by reals; {phrases.INTEGER}",
        becomes=("elementwise", "requantize"), real_only=True, frames=axes.ELEMENTWISE, error=linear_errors.div,
        affine=True
    ),
    Operator(
        "Equal", lower=_comparison(Simple("equal")),
        honours=attributes(broadcast=_BROADCAST), limits=phrases.COMPARED, becomes=("elementwise",),
        needs=(Integers, Reals), frames=axes.ELEMENTWISE, error=move_errors.compared
    ),
    Operator(
        "Greater", lower=_comparison(Simple("greater")),
        honours=attributes(broadcast=_BROADCAST), limits=phrases.COMPARED, becomes=("elementwise",),
        needs=(Integers, Reals), frames=axes.ELEMENTWISE, error=move_errors.compared
    ),
    Operator(
        "GreaterOrEqual", lower=_comparison(Simple("greater_or_equal")),
        limits=phrases.COMPARED, becomes=("elementwise",), needs=(Integers, Reals), frames=axes.ELEMENTWISE,
        error=move_errors.compared
    ),
    Operator(
        "Less", lower=_comparison(Simple("less")),
        honours=attributes(broadcast=_BROADCAST), limits=phrases.COMPARED, becomes=("elementwise",),
        needs=(Integers, Reals), frames=axes.ELEMENTWISE, error=move_errors.compared
    ),
    Operator(
        "LessOrEqual", lower=_comparison(Simple("less_or_equal")),
        limits=phrases.COMPARED, becomes=("elementwise",), needs=(Integers, Reals), frames=axes.ELEMENTWISE,
        error=move_errors.compared
    ),
    Operator(
        "Max", lower=integers.or_real(integers.always(MAXIMUM), ordering.extreme(MAXIMUM)),
        limits=f"any number: {phrases.COMPARED}", becomes=("elementwise",), needs=(Integers, Reals),
        frames=axes.ELEMENTWISE, error=linear_errors.extremum
    ),
    Operator(
        "Mean", lower=ordering.mean, limits=f"any number of {phrases.ALIGNED}",
        becomes=("elementwise",), needs=(Integers, Reals), frames=axes.ELEMENTWISE, error=linear_errors.mean
    ),
    Operator(
        "Min", lower=integers.or_real(integers.always(MINIMUM), ordering.extreme(MINIMUM)),
        limits=f"any number: {phrases.COMPARED}", becomes=("elementwise",), needs=(Integers, Reals),
        frames=axes.ELEMENTWISE, error=linear_errors.extremum
    ),
    Operator(
        "Mod", lower=integers.or_real(integers.mod), honours=attributes("fmod"), limits=f"{phrases.INTEGER}, fmod too",
        becomes=("elementwise",), needs=(Integers,), frames=axes.ELEMENTWISE
    ),
    Operator(
        names.MUL, lower=integers.or_real(integers.always(integers.Product()), arithmetic.mul),
        honours=attributes(broadcast=_BROADCAST),
        limits=f"streams of shapes that broadcast and one zero point each, or constants; {phrases.INTEGER}",
        becomes=("product",), real_only=True, frames=axes.ELEMENTWISE, error=linear_errors.mul, by_type=True,
        followed=True, integer_operands=True, accumulates=True, affine=True
    ),
    Operator(
        "Neg", lower=arithmetic.neg, limits=f"of reals and {phrases.INTEGER}", becomes=("elementwise", "requantize"),
        frames=axes.ELEMENTWISE, error=move_errors.absolute
    ),
    Operator(
        "Not", lower=integers.or_real(integers.always(Simple("not"))), limits="bool tensors", becomes=("elementwise",),
        needs=(Integers,), frames=axes.ELEMENTWISE
    ),
    Operator(
        "Or", lower=integers.or_real(integers.always(Simple("or"))), honours=attributes(broadcast=_BROADCAST),
        limits=phrases.LOGICAL, becomes=("elementwise",), needs=(Integers,), frames=axes.ELEMENTWISE
    ),
    Operator(
        "Sub", lower=integers.or_real(integers.always(Simple("sub")), arithmetic.sub),
        honours=attributes(broadcast=_BROADCAST),
        limits=f"streams of shapes that broadcast, or constants; {phrases.INTEGER}",
        becomes=("elementwise", "scaled_add"), frames=axes.ELEMENTWISE, error=linear_errors.add, followed=True,
        integer_operands=True, accumulates=True, affine=True
    ),
    Operator(
        "Sum", lower=integers.or_real(integers.always(Simple("add")), ordering.total),
        limits=f"any number of {phrases.ALIGNED}", becomes=("elementwise",), needs=(Integers, Reals),
        frames=axes.ELEMENTWISE, error=linear_errors.total
    ),
    Operator(
        "Where", lower=integers.or_real(integers.always(Simple("where")), ordering.where),
        limits=f"a bool tensor in hardware, or constant; branches: {phrases.COMPARED}", becomes=("elementwise",),
        needs=(Integers, Reals), frames=axes.ELEMENTWISE, error=move_errors.chosen
    ),
    Operator(
        "Xor", lower=integers.or_real(integers.always(Simple("xor"))), honours=attributes(broadcast=_BROADCAST),
        limits=phrases.LOGICAL, becomes=("elementwise",), needs=(Integers,), frames=axes.ELEMENTWISE
    ),
)
