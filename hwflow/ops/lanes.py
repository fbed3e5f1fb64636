"""What hardware the functions of :mod:`hwflow.ir.integer_functions` are, and what a lane of it costs."""

from __future__ import annotations

from collections.abc import Sequence

from hdl_lib.divider import Divider
from hdl_lib.lane_functions import Absolute, Expression, Extremum, LaneFunction, Shift
from hwflow.ir.integer_functions import Division, Extreme, Function, Magnitude, Shifted, Simple
from hwflow.ops import costs
from hwflow.ops.operator import Resources
from hwflow.ops.shapes import shape_of
from hwflow.types import IntType

_COMPARISONS = frozenset({"greater", "greater_or_equal", "less", "less_or_equal"})


def lane_function(function: Function, inputs: Sequence[IntType], output: IntType) -> LaneFunction:
    """The hardware of one lane."""
    shapes, result = tuple(map(shape_of, inputs)), shape_of(output)
    match function:
        case Simple(name):
            return Expression(shapes, result, name)
        case Extreme(greatest):
            return Extremum(shapes, result, greatest)
        case Magnitude():
            return Absolute(shapes, result)
        case Shifted(left, bits):
            return Shift(shapes, result, left, bits)
        case Division(form):
            return Divider(shapes, result, form)
    raise AssertionError(f"{function} has no hardware")


def lane_resources(family: str, function: Function, inputs: costs.Operands, output: IntType) -> Resources:
    """What one lane takes; an operand that is a constant is None."""
    match function:
        case Simple("add" | "sub"):
            return costs.adders(output.bits, 1)
        case Simple("equal" | "not_equal"):
            return Resources(lut=costs.equality(inputs), ff=1)
        case Simple(name) if name in _COMPARISONS:
            return costs.comparison(inputs) + Resources(ff=1)
        case Simple(name):
            return Resources(lut=0 if name == "wrap" else output.bits, ff=output.bits)
        case Extreme():
            kept = sum(element.bits for element in inputs if element is not None)
            return costs.comparison(inputs) + Resources(lut=output.bits, ff=1 + kept + output.bits)
        case Magnitude():
            return costs.negation(output.bits) + Resources(ff=output.bits)
        case Shifted(left, bits):
            return costs.shift(inputs, output, left, bits)
        case Division(form):
            return costs.divider(inputs, output, form)
    raise AssertionError(f"{function} has no hardware")
