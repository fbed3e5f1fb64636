"""Matrix-vector units that take whole vectors: weights are constants of the core.

The kind "shift_add" multiplies by sums of shifted inputs (:mod:`hwflow.numerics.shift_add`), without multiplier blocks;
"dsp", for several vectors a beat, has a multiplier block for each weight. Folding: input_lanes = vectors * K,
output_lanes = vectors * M. The network of a matrix is found once and kept with the node; what it costs is estimated
until this folding is the one chosen, for the search takes as long as a thousand of the other estimates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdl_lib.arithmetic.adder_network import Adder, AdderNetwork
from hdl_lib.arithmetic.multiplier import BLOCK
from hdl_lib.matrices.constant_matrix import ConstantMatrix
from hdl_lib.matrices.constant_products import ConstantProducts
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Device, Folding, Resources
from hwflow.cores.timing import Timing, beat_by_beat
from hwflow.ir.graph import Node
from hwflow.numerics.shift_add import Network, depth_of, levels_of, shift_add_network, width_of

KIND = "shift_add"
SPAN = 1  # levels of adders between registers
MOST_BLOCKS = 1_000  # multiplier blocks of all vectors a beat
MOST_DIGITS = 400_000  # of all vectors a beat: some million look-up tables, as many as the largest devices have


def is_constant(node: Node, folding: Folding) -> bool:
    """Tell whether this module builds the folding of a matrix-vector unit."""
    return folding.multiplier == KIND or folding.input_lanes > int(node.attributes["weights"].shape[-1])


def foldings(node: Node, device: Device) -> list[Folding]:
    """Whole vectors a beat, in numbers that divide those of a frame, cheapest first."""
    rows, columns = node.attributes["weights"].shape
    vectors = node.outputs[0].typed.shape[0]
    counts = [p for p in range(1, vectors + 1) if vectors % p == 0]
    digits, blocks = _digits(node), _blocks(node)
    fits = max(node.inputs[0].typed.element.bits, _weight_bits(node)) <= BLOCK
    kinds = [(p, KIND) for p in counts if p * digits <= MOST_DIGITS]
    kinds += [(p, "dsp") for p in counts if p > 1 and fits and blocks and p * blocks <= MOST_BLOCKS]
    return [Folding(p * columns, p * rows, p * columns * rows, kind) for p, kind in sorted(kinds)]


def cycles(node: Node, folding: Folding) -> int:
    """Beats a frame."""
    return int(node.outputs[0].typed.shape[0]) // _vectors(node, folding)


def timing(node: Node, folding: Folding) -> Timing:
    """A step a beat."""
    if folding.multiplier != KIND:
        terms = int(np.count_nonzero(node.attributes["weights"], axis=1).max())
        return beat_by_beat(cycles(node, folding), ConstantProducts.latency_of(terms))
    return beat_by_beat(cycles(node, folding), ConstantMatrix.latency_of(-(-_depth(node) // SPAN)))


def resources(node: Node, folding: Folding, depths: Sequence[int], device: Device) -> Resources:
    """Exact adders of a folding that is chosen; before, an estimate that is rather too high."""
    vectors = _vectors(node, folding)
    if folding.multiplier != KIND:
        types = node.inputs[0].typed.element, node.outputs[0].typed.element
        known: dict[str, costs.ConstantProducts] = node.attributes.setdefault("constant_products", {})
        if device.family not in known:
            known[device.family] = costs.ConstantProducts(device.family, *types, node.attributes["weights"])
        return known[device.family].resources(vectors, depths[0])
    chosen = node.attributes.get("folding") == folding
    if not chosen and "network" not in node.attributes:
        inputs, outputs = _stream_bits(node)
        return costs.estimated_adder_network(
            device.family, _digits(node), _weight_bits(node), inputs, _depth(node), vectors, outputs, depths[0]
        )
    network = network_of(node)
    carries = [network.carry_bits(adder) for adder in network.adders]
    return costs.constant_matrix(device.family, carries, pipeline_of(node), vectors, depths[0])


def build(node: Node, folding: Folding, depths: Sequence[int], name: str) -> Built:
    """The core."""
    shapes = shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element)
    if folding.multiplier != KIND:
        weights = node.attributes["weights"].tolist()
        products = ConstantProducts(*shapes, weights, vectors=_vectors(node, folding), depth=depths[0])
        return Built(products, [products.i], [products.o])
    core = ConstantMatrix(*shapes, pipeline_of(node), vectors=_vectors(node, folding), depth=depths[0])
    return Built(core, [core.i], [core.o])


def network_of(node: Node) -> Network:
    """The network of a node's weights, found once."""
    if "network" not in node.attributes:
        node.attributes["network"] = shift_add_network(node.attributes["weights"], _ranges(node))
    network: Network = node.attributes["network"]
    return network


def pipeline_of(node: Node) -> AdderNetwork:
    """Return the same with registers."""
    network = network_of(node)
    adders = [Adder(*adder, level) for adder, level in zip(network.adders, levels_of(network, SPAN), strict=True)]
    return AdderNetwork(network.inputs, tuple(adders), tuple((o.term, o.shift) for o in network.outputs), SPAN)


def _vectors(node: Node, folding: Folding) -> int:
    return folding.output_lanes // int(node.attributes["weights"].shape[-2])


def _ranges(node: Node) -> list[tuple[int, int]]:
    intervals = node.inputs[0].typed.channel_intervals(1) * node.attributes["pixels_per_vector"]
    return [(interval.lo, interval.hi) for interval in intervals]


def _stream_bits(node: Node) -> tuple[list[int], int]:
    """Bits of each input of a vector, and of all its outputs."""
    if "stream_bits" not in node.attributes:
        inputs = [width_of(low, high) for low, high in _ranges(node)]
        ranges = node.outputs[0].typed.channel_intervals(1)
        node.attributes["stream_bits"] = inputs, sum(width_of(interval.lo, interval.hi) for interval in ranges)
    bits: tuple[list[int], int] = node.attributes["stream_bits"]
    return bits


def _depth(node: Node) -> int:
    if "network_depth" not in node.attributes:
        node.attributes["network_depth"] = depth_of(node.attributes["weights"])
    depth: int = node.attributes["network_depth"]
    return depth


def _digits(node: Node) -> int:
    """Nonzero canonical signed digits of all weights: the bits in which n and 3 n differ."""
    if "network_digits" not in node.attributes:
        weights = np.abs(node.attributes["weights"])
        node.attributes["network_digits"] = int(np.bitwise_count(weights ^ (3 * weights)).sum())
    digits: int = node.attributes["network_digits"]
    return digits


def _blocks(node: Node) -> int:
    """Weights that need a multiplier block for a vector: neither 0 nor plus or minus a power of two."""
    if "blocks" not in node.attributes:
        weights = np.abs(node.attributes["weights"])
        node.attributes["blocks"] = int(np.count_nonzero(weights & (weights - 1)))
    blocks: int = node.attributes["blocks"]
    return blocks


def _weight_bits(node: Node) -> int:
    return width_of(*node.attributes["weight_range"])
