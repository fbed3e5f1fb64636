"""Matrix-vector units that take whole vectors, with constant weights.

Folding: input_lanes = vectors * K, output_lanes = vectors * M, where vectors divides the vectors of a frame.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np

from hdl_lib.arithmetic.adder_network import Adder, AdderNetwork
from hdl_lib.arithmetic.multiplier import BLOCK, ProductForm
from hdl_lib.matrices.constant_matrix import ConstantMatrix
from hdl_lib.matrices.constant_products import ConstantProducts
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.matrix.dot_products import MvuAttributes, weight_range
from hwflow.cores.operator import Built, Decision, Device, Folding, Implementation, Resources
from hwflow.cores.timing import Timing, beat_by_beat
from hwflow.ir.graph import Node, Scratch
from hwflow.numerics.shift_add import Network, depth_of, levels_of, shift_add_network, width_of

MOST_BLOCKS = 1_000  # multiplier blocks of all vectors per beat
MOST_DIGITS = 400_000  # of all vectors per beat: some million look-up tables, as many as the largest devices have


class _Matrix:
    """The data of a node that all foldings share."""

    def __init__(self, node: Node[MvuAttributes]) -> None:
        self.weights = node.attributes.weights
        self.rows, self.columns = map(int, self.weights.shape)
        self.vectors = int(node.outputs[0].typed.shape[0])
        self.x, self.sum = node.inputs[0].typed.element, node.outputs[0].typed.element
        self.weight_bits = width_of(*weight_range(node))
        intervals = node.inputs[0].typed.channel_intervals(1) * node.attributes.pixels_per_vector
        self.ranges = [(interval.lo, interval.hi) for interval in intervals]
        sums = node.outputs[0].typed.channel_intervals(1)
        self.output_bits = sum(width_of(interval.lo, interval.hi) for interval in sums)
        self.products: dict[str, costs.ConstantProducts] = Scratch()
        """By the family."""
        self._networks: dict[int, Network] = Scratch()

    def network(self, span: int) -> Network:
        """Return the shift-add network for ``span`` levels between registers, as deep as its last stage has room for.
        Finding it takes as long as a thousand other estimates of a search."""
        extra = -self.depth % span
        if extra not in self._networks:
            self._networks[extra] = shift_add_network(self.weights, self.ranges, extra)
        return self._networks[extra]

    @cached_property
    def depth(self) -> int:
        """Return the levels of adders."""
        return depth_of(self.weights)

    @cached_property
    def digits(self) -> int:
        """Return the nonzero canonical signed digits of all weights: the bits in which n and 3 n differ."""
        weights = np.abs(self.weights)
        return int(np.bitwise_count(weights ^ (3 * weights)).sum())

    @cached_property
    def blocks(self) -> int:
        """Return the weights that need a multiplier block for a vector: neither 0 nor plus or minus a power of two."""
        weights = np.abs(self.weights)
        return int(np.count_nonzero(weights & (weights - 1)))


class _ConstantMvu(Implementation[MvuAttributes]):
    """A core that takes ``vectors`` per beat."""

    kind: ClassVar[ProductForm]
    steady = registered_ends = True

    def __init__(self, node: Node[MvuAttributes], folding: Folding) -> None:
        super().__init__(node, folding)
        self.matrix = node.once(_Matrix)
        self.vectors = folding.output_lanes // self.matrix.rows
        self.shapes = shape_of(self.matrix.x), shape_of(self.matrix.sum)

    @classmethod
    def foldings(cls, node: Node[MvuAttributes], device: Device) -> list[Folding]:
        """Return the useful foldings, cheapest first."""
        matrix = node.once(_Matrix)
        counts = [p for p in range(1, matrix.vectors + 1) if matrix.vectors % p == 0]
        rows, columns = matrix.rows, matrix.columns
        return [
            Folding(p * columns, p * rows, p * columns * rows, cls.kind, levels=cls._levels(device))
            for p in counts if cls._offered(matrix, p)
        ]

    @classmethod
    def _levels(cls, device: Device) -> int:
        """Return the folding's ``levels``."""
        return 1

    @classmethod
    @abstractmethod
    def _offered(cls, matrix: _Matrix, vectors: int) -> bool:
        """Tell whether ``vectors`` per beat are useful."""

    @abstractmethod
    def latency(self) -> int:
        """Return the cycles from a beat to its result."""

    def cycles(self) -> int:
        return self.matrix.vectors // self.vectors

    def timing(self) -> Timing:
        return beat_by_beat(self.cycles(), self.latency())


class ConstantNetworkMvu(_ConstantMvu):
    """Sums of shifted inputs (:mod:`hwflow.numerics.shift_add`), without multiplier blocks: see
    :class:`hdl_lib.matrices.constant_matrix.ConstantMatrix`."""

    kind = ProductForm.SHIFT_ADD

    @classmethod
    def _offered(cls, matrix: _Matrix, vectors: int) -> bool:
        return vectors * matrix.digits <= MOST_DIGITS

    @classmethod
    def _levels(cls, device: Device) -> int:
        return costs.FAMILIES[device.family].adder_levels(device.clock_mhz)

    def latency(self) -> int:
        return ConstantMatrix.latency_of(-(-self.matrix.depth // self.folding.levels))

    def resources(self, decision: Decision, family: str) -> Resources:
        """Return the resources, from exact adders once the folding is chosen; before, an estimate that is rather too
        high."""
        matrix = self.matrix
        if decision.provisional:
            return costs.estimated_adder_network(
                family, matrix.digits, [width_of(*ends) for ends in matrix.ranges], matrix.depth,
                self.vectors, matrix.output_bits, decision.depth,
            )
        network = matrix.network(self.folding.levels)
        carries = [network.carry_bits(adder) for adder in network.adders]
        return costs.constant_matrix(family, carries, self._pipeline(), self.vectors, decision.depth)

    def build(self, depth: int, name: str) -> Built:
        core = ConstantMatrix(*self.shapes, self._pipeline(), vectors=self.vectors, depth=depth)
        return Built(core, [core.i], [core.o])

    def _pipeline(self) -> AdderNetwork:
        """Return the network with registers."""
        span = self.folding.levels
        network = self.matrix.network(span)
        adders = [Adder(*adder, level) for adder, level in zip(network.adders, levels_of(network, span), strict=True)]
        return AdderNetwork(network.inputs, tuple(adders), tuple((o.term, o.shift) for o in network.outputs), span)


class ConstantBlockMvu(_ConstantMvu):
    """A multiplier block for each weight, for several vectors per beat: see
    :class:`hdl_lib.matrices.constant_products.ConstantProducts`."""

    kind = ProductForm.DSP

    @classmethod
    def _offered(cls, matrix: _Matrix, vectors: int) -> bool:
        fits = max(matrix.x.bits, matrix.weight_bits) <= BLOCK
        return vectors > 1 and fits and 0 < vectors * matrix.blocks <= MOST_BLOCKS

    def latency(self) -> int:
        return ConstantProducts.latency_of(int(np.count_nonzero(self.matrix.weights, axis=1).max()))

    def resources(self, decision: Decision, family: str) -> Resources:
        matrix = self.matrix
        if family not in matrix.products:
            matrix.products[family] = costs.ConstantProducts(family, matrix.x, matrix.sum, matrix.weights)
        return matrix.products[family].resources(self.vectors, decision.depth)

    def build(self, depth: int, name: str) -> Built:
        core = ConstantProducts(*self.shapes, self.matrix.weights.tolist(), vectors=self.vectors, depth=depth)
        return Built(core, [core.i], [core.o])
