"""Requantizers by piecewise quadratics."""

from __future__ import annotations

from amaranth.hdl import Shape

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.requantizers.requantize_quadratic import TO_WORD, Coefficients
from hwflow.cores.costs.basics import chain, difference, trailing_zeros
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.products.product_sums import multiplier_blocks, whole_products
from hwflow.cores.costs.requantizers.multiply_add_shift_cost import CONTROL
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def quadratics(
    family: str, x: IntType, limits: tuple[int, int], coefficients: Coefficients, shift: int, out: IntType, lanes: int,
    kind: ProductForm, part: int, tables: Resources,
) -> Resources:
    """Estimate the places of inputs, with constants beyond ``limits``, the ``tables`` of all lanes, for each lane two
    products and sums, and what waits for them; without the queue."""
    first, last = limits
    size = 1 << coefficients.offset_bits
    span = ((last - first) // size + 2 << coefficients.offset_bits).bit_length()
    begin = first - size
    each = Resources(lut=chain(family, span - trailing_zeros(begin)) if begin else 0, ff=x.bits + span)
    for beyond, possible in ((first, x.min < first), (last + 1, x.max > last)):
        if possible:
            places = x.bits + 1 - trailing_zeros(beyond) if beyond else 0
            complement = places if FAMILIES[family].carry_bits == 1 and beyond > first else 0  # a carry cell reads it
            each += Resources(lut=complement or difference(family, places), ff=1)
    # Bits that are 0 in both constants are reset.
    each += Resources(lut=span - coefficients.offset_bits + 1, ff=span)
    place = IntType(coefficients.offset_bits, True)
    each += Resources(ff=(TO_WORD - 3) * place.bits + coefficients.width)
    waited, parts = 0, list[tuple[IntType, IntType, int]]()
    total = out.bits + shift
    for multiplier, factor, addend, (result, dropped) in zip(
        coefficients.multipliers(kind, part), (coefficients.curvature, coefficients.moved),
        (coefficients.slope, coefficients.constant), ((int(coefficients.moved.width), 0), (total, shift)), strict=True,
    ):
        taken = multiplier.operand_latency + multiplier.latency
        made = whole_products(family, _type(factor), place, 1, kind)
        # Bits below the shift are dropped: from the last register behind a block, unless it has some, from all of rows.
        without = int(not FAMILIES[family].dsp_registers) if kind == ProductForm.DSP else multiplier.latency
        each += Resources(lut=made.lut, ff=made.ff - without * (place.bits - 1))
        if multiplier.wide is not None:
            parts += [(_type(a.shape), _type(b.shape), lanes) for a, b in multiplier.wide.pairs]
        elif kind == ProductForm.DSP:
            parts.append((_type(factor), place, lanes))
        waited += taken
        each += Resources(lut=chain(family, result), ff=waited * addend.width + result - dropped)
        waited += 1
    each += Resources(ff=_waiting_places(coefficients, kind, part) * place.bits)
    latency = TO_WORD + waited + 1
    control = CONTROL + Resources(ff=latency - 5, dsp=multiplier_blocks(family, parts))
    return tables + each.times(lanes) + control


def _type(shape: Shape) -> IntType:
    return IntType(shape.width, shape.signed)


def _waiting_places(coefficients: Coefficients, kind: ProductForm, part: int) -> int:
    """Return the registers in which an input's place waits for the second product."""
    first, second = coefficients.multipliers(kind, part)
    return first.operand_latency + first.latency + 1 + second.operand_latency - second.weight_lead
