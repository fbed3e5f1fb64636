"""The hardware of the functions of :mod:`hwflow.ir.integer_functions`, and the cost of its lanes."""

from __future__ import annotations

from collections.abc import Sequence

from hdl_lib.arithmetic.divider import Divider, DivisionForm
from hdl_lib.arithmetic.lane_functions import Absolute, Expression, Extremum, LaneFunction, Multiple, Product, Shift
from hdl_lib.arithmetic.multiplier import ProductForm
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Resources
from hwflow.ir.integer_functions import (
    Division,
    Extreme,
    Function,
    Magnitude,
    Modulus,
    Multiplied,
    Quotient,
    Remainder,
    Shifted,
    Simple,
    Times,
)
from hwflow.types import IntType

_DIVISIONS: dict[type[Function], DivisionForm] = {
    Quotient: DivisionForm.QUOTIENT, Remainder: DivisionForm.REMAINDER, Modulus: DivisionForm.MODULUS
}
_COMPARISONS = frozenset({"greater", "greater_or_equal", "less", "less_or_equal"})


def lane_function(
    function: Function, inputs: Sequence[IntType], output: IntType, form: ProductForm
) -> LaneFunction:
    """Return the hardware of a lane; ``form``: the kind of multiplier."""
    shapes, result = tuple(map(shape_of, inputs)), shape_of(output)
    match function:
        case Simple(name):
            return Expression(shapes, result, name)
        case Extreme(greatest):
            return Extremum(shapes, result, greatest)
        case Magnitude():
            return Absolute(shapes, result)
        case Multiplied():
            return Product(shapes, result, form)
        case Times(factor):
            return Multiple(shapes, result, factor)
        case Shifted(left, bits):
            return Shift(shapes, result, left, bits)
        case Division():
            return Divider(shapes, result, _DIVISIONS[type(function)])
    raise AssertionError(f"{function} has no hardware")


def lane_resources(
    family: str, function: Function, inputs: costs.Operands, output: IntType, lanes: int, form: ProductForm,
    tabled: int | None = None,
) -> Resources:
    """Estimate the resources of ``lanes`` lanes; ``tabled``: distinct bits of the second operand's words, if known."""
    if isinstance(function, Multiplied):
        x, w = (operand.element for operand in inputs)
        chosen = costs.operands(family, x, w, lanes, form, output.bits)
        waiting = chosen.ff and not (form == ProductForm.DSP and costs.FAMILIES[family].dsp_registers)
        different = lanes * w.bits if tabled is None else tabled
        held = Resources(ff=different) if waiting else Resources()
        return costs.products(family, x, w, lanes, form, output.bits) + chosen + held
    return _lane_resources(family, function, inputs, output).times(lanes)


def _lane_resources(family: str, function: Function, inputs: costs.Operands, output: IntType) -> Resources:
    match function:
        case Simple("add" | "sub"):
            # Where a carry cell has no look-up table of its own, what is subtracted is inverted before it.
            inverted = function == Simple("sub") and costs.FAMILIES[family].carry_bits == 1 and not inputs[1].constant
            return Resources(lut=costs.chain(family, output.bits) + inverted * output.bits, ff=output.bits)
        case Simple("equal" | "not_equal"):
            return Resources(lut=costs.equality(inputs), ff=1)
        case Simple(name) if name in _COMPARISONS:
            return costs.comparison(family, inputs) + Resources(ff=1)
        case Simple("where"):
            # A choice of a constant clears or sets a register, without look-up tables, and so does one of the zeros
            # above a number without a sign.
            chosen = min([output.bits, *(o.element.bits for o in inputs[1:] if not o.element.signed)])
            free = any(operand.constant for operand in inputs[1:])
            return Resources(lut=0 if free else chosen, ff=output.bits)
        case Simple(name):
            return Resources(lut=0 if name == "wrap" else output.bits, ff=output.bits)
        case Extreme():
            streams = [operand.element.bits for operand in inputs if not operand.constant]
            chosen = output.bits if len(streams) == 2 else 0
            return costs.comparison(family, inputs) + Resources(lut=chosen, ff=1 + sum(streams) + output.bits)
        case Magnitude():
            return costs.negation(family, output.bits) + Resources(ff=output.bits)
        case Times(factor):
            registers = Multiple((shape_of(inputs[0].element),), shape_of(output), factor).registers()
            adders = sum(costs.chain(family, register.added) for register in registers)
            return Resources(lut=adders, ff=sum(register.width for register in registers))
        case Shifted(left, bits):
            return costs.shift(inputs, output, left, bits)
        case Division():
            return costs.divider(family, inputs, output, _DIVISIONS[type(function)])
    raise AssertionError(f"{function} has no hardware")
