"""Products with constants as networks of adders."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from hdl_lib.adder_network import AdderNetwork
from hwflow.ops.costs.family import FAMILIES
from hwflow.ops.costs.memory import queue
from hwflow.ops.operator import Resources

_SHARE = 0.52  # adders to signed digits: 0.38 to 0.52 for the layers of shared benchmark networks, 8 bits to ternary


def constant_matrix(
    family: str, carries: Sequence[int], network: AdderNetwork, vectors: int, depth: int
) -> Resources:
    """``carries``: bits of each adder's carry chain."""
    carry = FAMILIES[family].carry_bits
    inputs = sum((high if low >= 0 else max(high, ~low)).bit_length() + (low < 0) for low, high in network.inputs)
    outputs = sum(network.output_shape(index).width for index in range(len(network.outputs)))
    each = Resources(lut=sum(2 * ceil(bits / 2) if carry == 2 else bits for bits in carries))
    each += Resources(ff=network.flip_flops + inputs)
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
