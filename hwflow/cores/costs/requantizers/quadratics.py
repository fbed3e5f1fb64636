"""Requantizers by piecewise quadratics."""

from __future__ import annotations

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.requantizers.requantize_quadratic import TO_WORD, Coefficients
from hwflow.cores.costs.basics import chain, difference, trailing_zeros
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.products.product_sums import whole_products
from hwflow.cores.costs.requantizers.multiply_add_shift import CONTROL
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def quadratics(
    family: str, x: IntType, limits: tuple[int, int], coefficients: Coefficients, shift: int, out: IntType, lanes: int,
    kind: ProductForm, part: int, tables: Resources,
) -> Resources:
    """Inputs within ``limits``, the ``tables`` of all lanes, for each lane two products and sums, and what waits for
    them; without the queue."""
    first, last = limits
    span = (last - first).bit_length()
    below, above = x.min < first, x.max > last  # what is possible; the sign of the difference tells of the first one
    each = Resources(ff=x.bits + span + below + above)
    if first:
        each += Resources(lut=chain(family, (x.bits + 1 if below else span) - trailing_zeros(first)))
    if above:
        places = x.bits + 1 - trailing_zeros(last + 1) if last + 1 else 0
        complement = places if FAMILIES[family].carry_bits == 1 and last + 1 else 0  # which a carry cell reads
        each += Resources(lut=complement or difference(family, places))
    each += Resources(lut=span, ff=span)
    place = IntType(coefficients.offset_bits, True)
    each += Resources(ff=(TO_WORD - 3) * place.bits + coefficients.width)
    waited = 0
    total = out.bits + shift
    for multiplier, factor, addend, (result, dropped) in zip(
        coefficients.multipliers(kind, part), (coefficients.curvature, coefficients.moved),
        (coefficients.slope, coefficients.constant), ((int(coefficients.moved.width), 0), (total, shift)), strict=True,
    ):
        taken = multiplier.operand_latency + multiplier.latency
        each += whole_products(family, IntType(factor.width, factor.signed), place, 1, kind)
        waited += taken
        each += Resources(lut=chain(family, result), ff=waited * addend.width + result - dropped)
        waited += 1
    each += Resources(ff=waited_place(coefficients, kind, part) * place.bits)
    latency = TO_WORD + waited + 1
    return tables + each.times(lanes) + CONTROL + Resources(ff=latency - 5)


def waited_place(coefficients: Coefficients, kind: ProductForm, part: int) -> int:
    """Return the registers in which an input's place waits for the second product."""
    first, second = coefficients.multipliers(kind, part)
    return first.operand_latency + first.latency + 1 + second.operand_latency - second.weight_lead
