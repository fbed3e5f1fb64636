"""Products with constants as networks of adders."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from hdl_lib.adder_network import AdderNetwork
from hdl_lib.adder_tree import shape_of
from hdl_lib.requantize_constant import ConstantRequantizer
from hwflow.ops.costs.family import FAMILIES
from hwflow.ops.costs.memory import queue
from hwflow.ops.operator import Resources

_SHARE = 0.52  # adders to signed digits: 0.38 to 0.52 for the layers of shared benchmark networks, 8 bits to ternary


def constant_matrix(
    family: str, carries: Sequence[int], network: AdderNetwork, vectors: int, depth: int
) -> Resources:
    """``carries``: bits of each adder's carry chain."""
    inputs = sum(_bits(*ends) for ends in network.inputs)
    outputs = sum(network.output_shape(index).width for index in range(len(network.outputs)))
    each = Resources(lut=sum(_chain(family, bits) for bits in carries), ff=network.flip_flops + inputs)
    return each.times(vectors) + Resources(lut=4, ff=network.stages + 1) + queue(family, vectors * outputs, depth)


def estimated_adder_network(
    family: str, digits: int, inputs: Sequence[int], levels: int, vectors: int, outputs: int, depth: int
) -> Resources:
    """Before the network is known, from the nonzero digits of its matrix: rather too much than too little.
    ``inputs``: bits of each input; ``outputs``: of all outputs."""
    adders = ceil(_SHARE * digits)
    width = sum(inputs) / len(inputs) + levels / 2
    each = Resources(lut=ceil(adders * (width + 1)), ff=ceil(adders * (width + 2)) + sum(inputs))
    return each.times(vectors) + Resources(lut=4, ff=levels) + queue(family, vectors * outputs, depth)


def constant_requantizer(family: str, core: ConstantRequantizer, carries: Sequence[int]) -> Resources:
    """Products by shifts and sums, a sum with a constant, ties, limits. ``carries``: bits of the products' adders."""
    products = core.products
    inputs = sum(_bits(*ends) for ends in products.inputs)
    total = Resources(lut=sum(_chain(family, bits) for bits in carries), ff=products.flip_flops + inputs)
    for lane in range(len(core.addends)):
        width = _bits(*core.sum_interval(lane))
        total += Resources(lut=_chain(family, core.carry_bits(lane)), ff=width + core.output_shape.width)
        luts = core.output_shape.width
        if core.rounding != "floor":
            luts += ceil(core.shift / 4)
        for limit in core.limits(lane):
            if limit is not None:
                near = limit if limit >= 0 else ~limit
                above = width - core.shift - near.bit_length()
                luts += ceil((above - 1) / 3) if near & (near + 1) == 0 else _chain(family, width - core.shift + 1)
        total += Resources(lut=luts)
    width = len(core.addends) * core.output_shape.width
    return total + Resources(lut=4, ff=core.latency) + queue(family, width, core.depth)


def _chain(family: str, bits: int) -> int:
    """Look-up tables of a carry chain."""
    return 2 * ceil(bits / 2) if FAMILIES[family].carry_bits == 2 else bits


def _bits(low: int, high: int) -> int:
    return int(shape_of(low, high).width)
