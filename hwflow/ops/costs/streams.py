"""Sums, products and concatenations of streams; what moves beats."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from hdl_lib.stream_add import AddPlan
from hwflow.ops.costs.basics import adders, bits, skid_buffer
from hwflow.ops.costs.memory import queue, rom
from hwflow.ops.costs.products import operands, product_bits, products, split_sums
from hwflow.ops.operator import Folding, Resources
from hwflow.types import IntType


def add_multipliers(family: str, plan: AddPlan) -> int:
    """Multiplier blocks of a core of :mod:`hdl_lib.stream_add`."""
    if plan.form != "dsp":
        return 0
    total = 0
    for index, (shape, product) in enumerate(zip(plan.input_shapes, plan.products, strict=True)):
        x = IntType(shape.width, shape.signed)
        if product is not None:
            w = IntType(product.weight_shape.width, product.weight_shape.signed)
            total += products(family, x, w, plan.lanes, "dsp").dsp
            continue
        for lane in range(plan.lanes):
            factor, _ = plan.constant(index, lane)
            if factor > 1:
                total += products(family, x, IntType(factor.bit_length(), False), 1, "dsp").dsp
    return total


def stream_add(
    family: str, inputs: Sequence[IntType], plan: AddPlan, blocks: int, depth: int, pixels: int = 1
) -> Resources:
    """Skid buffers, products or sums of shifted inputs (see :mod:`hdl_lib.stream_add`), tables of multipliers.
    ``pixels``: as many as a beat holds; ``plan`` is for one of them."""
    lanes = plan.lanes
    total = Resources(dsp=add_multipliers(family, plan))
    for index, x in enumerate(inputs):
        product = plan.products[index]
        if product is None:
            for lane in range(lanes):
                factor, _ = plan.constant(index, lane)
                w = IntType(factor.bit_length(), False)
                held = x.bits * plan.product_latency
                if factor > 1:
                    held = x.bits + product_bits(x, w) * (plan.product_latency - 1)
                total += Resources(lut=split_sums(family, x, w), ff=held)
            continue
        w = IntType(product.weight_shape.width, product.weight_shape.signed)
        total += Resources(lut=lanes * split_sums(family, x, w) if plan.form == "dsp" else 0)
        total += rom(family, blocks, lanes * w.bits) + Resources(ff=2 * lanes * x.bits, lut=3 * bits(blocks))
        total += Resources(ff=bits(blocks) + 1 + lanes * w.bits * product.operand_latency)
        made = products(family, x, w, lanes, plan.form) + operands(x, w, lanes, plan.form)
        total += Resources(made.lut, made.ff)
        late = plan.product_latency - plan.tabled_latency(index)
        total += Resources(ff=lanes * late * product_bits(x, w))
    for lane in range(lanes):
        for register in plan.registers(lane):
            total += Resources(lut=2 * ceil(register.added / 2), ff=register.width)
    total = total.times(pixels) + Resources(lut=4, ff=plan.latency + 1)
    for x in inputs:
        total += skid_buffer(pixels * lanes * x.bits)
    return total + queue(family, pixels * lanes * plan.width, depth)


def stream_product(
    family: str, inputs: Sequence[IntType], offsets: Sequence[int], x: IntType, w: IntType, out: IntType, lanes: int,
    kind: str, depth: int,
) -> Resources:
    """Skid buffers, differences (of types ``x`` and ``w``), products."""
    total = Resources(lut=4, ff=5)
    for element, offset, difference in zip(inputs, offsets, (x, w), strict=True):
        total += skid_buffer(lanes * element.bits)
        total += adders(difference.bits, lanes) if offset else Resources(ff=lanes * difference.bits)
    total += products(family, x, w, lanes, kind) + operands(x, w, lanes, kind)
    if operands(x, w, 1, kind).ff:
        total += Resources(ff=lanes * w.bits)
    return total + queue(family, lanes * out.bits, depth)


def concat(family: str, width: int, inputs: int, longest: int, depth: int) -> Resources:
    """A registered choice among the inputs, whose turn it is, a counter."""
    counter = bits(longest)
    control = Resources(lut=3 * counter + 4 * inputs, ff=counter + inputs + 2)
    return control + Resources(lut=width * (inputs - 1), ff=width) + queue(family, width, depth)


def width_converter(family: str, element: int, folding: Folding, depth: int) -> Resources:
    """A register of the wide side, a counter, a queue."""
    wide = max(folding.input_lanes, folding.output_lanes) * element
    ratio = max(folding.input_lanes, folding.output_lanes) // min(folding.input_lanes, folding.output_lanes)
    counter = bits(ratio) + 1
    return Resources(lut=wide + 3 * counter, ff=wide + counter) + queue(family, folding.output_lanes * element, depth)


def frame_sync(family: str, width: int, count: int) -> Resources:
    """A beat counter and a queue of two."""
    counter = bits(count)
    return Resources(lut=2 * counter + width + 12, ff=counter + 4) + queue(family, width, 2)
