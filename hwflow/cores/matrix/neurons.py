"""Neurons: a constant matrix and the requantizer behind it as truth tables, for vectors that come whole.

Scheduling puts them in place of the two where that is smaller (:mod:`hwflow.schedule.tables_for_matrices`). A neuron is
a function of the bits of those inputs that have a weight, since the matrix of a sparse network has few (Y. Umuroglu et
al., "LogicNets: Co-Designed Neural Networks and Circuits for Extreme-Throughput Applications", FPL 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.matrices.truth_tables import TableOutput, TruthTables
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.matrix.dot_products import MvuAttributes, row_values
from hwflow.cores.matrix.mvu import Mvu
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources
from hwflow.cores.requantizers.requantize import Requantize
from hwflow.cores.timing import Timing, beat_by_beat
from hwflow.ir.graph import Attributes, IntArray, Node, Scratch, Stage
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.shift_add import digits_of, width_of
from hwflow.numerics.truth_tables import MOST_BITS, BitFunction, LutNetwork, lut_network
from hwflow.types import TensorType

MOST_TABLES = 1 << 15  # of a layer: finding so many takes a minute


@dataclass(frozen=True)
class NeuronTables:
    """The tables of a vector. ``bits``: for each of the network's inputs, element and bit. ``outputs``: the elements of
    the result."""

    network: LutNetwork
    bits: tuple[tuple[int, int], ...]
    outputs: tuple[TableOutput, ...]


@dataclass(frozen=True, eq=False)
class NeuronsAttributes(Attributes):
    """``matrix`` and ``requantizer``, which reads it: the nodes whose work it does."""

    op = "neurons"
    matrix: Node[MvuAttributes]
    requantizer: Node[RequantizeAttributes]
    tables: NeuronTables


_MATRIX, _REQUANTIZER = Mvu(), Requantize()


class Neurons(HardwareOperator[NeuronsAttributes]):
    attributes = NeuronsAttributes
    stages = frozenset({Stage.SCHEDULED})

    def infer(self, attributes: NeuronsAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return (attributes.requantizer.outputs[0].typed,)

    def evaluate(self, attributes: NeuronsAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        sums = _MATRIX.evaluate(attributes.matrix.attributes, inputs)
        return _REQUANTIZER.evaluate(attributes.requantizer.attributes, sums)

    def macs(self, node: Node[NeuronsAttributes]) -> int:
        return _MATRIX.macs(node.attributes.matrix)

    def foldings(self, node: Node[NeuronsAttributes], device: Device) -> Sequence[Folding]:
        return []

    def input_view(
        self, node: Node[NeuronsAttributes], shape: tuple[int, ...], lanes: int, *, whole_vector: bool = False,
        index: int = 0,
    ) -> tuple[int, int]:
        return _MATRIX.input_view(node.attributes.matrix, shape, lanes, whole_vector=whole_vector)

    def cycles(self, node: Node[NeuronsAttributes], folding: Folding) -> int:
        return int(node.outputs[0].typed.shape[0]) // _vectors(node, folding)

    def is_steady(self, node: Node[NeuronsAttributes], folding: Folding) -> bool:
        return True

    def timing(self, node: Node[NeuronsAttributes], decision: Decision) -> Timing:
        stages = node.attributes.tables.network.stages(decision.folding.levels)
        latency = TruthTables.latency_of(stages) - (decision.depths == (0,))
        return beat_by_beat(self.cycles(node, decision.folding), latency)

    def resources(self, node: Node[NeuronsAttributes], decision: Decision, device: Device) -> Resources:
        network = node.attributes.tables.network
        vectors = _vectors(node, decision.folding)
        registers = len(network.read) + network.flip_flops(decision.folding.levels)
        return costs.truth_tables(
            device.family, network.size, registers, len(network.results), vectors, decision.depth
        )

    def build(self, node: Node[NeuronsAttributes], decision: Decision, name: str) -> Built:
        tables = node.attributes.tables
        core = TruthTables(
            shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element),
            elements=int(node.attributes.matrix.attributes.weights.shape[1]), bits=tables.bits,
            tables=tables.network.luts, stages=tables.network.stages(decision.folding.levels), outputs=tables.outputs,
            vectors=_vectors(node, decision.folding), depth=decision.depth,
        )
        return Built(core, [core.i], [core.o])


def _vectors(node: Node[NeuronsAttributes], folding: Folding) -> int:
    """Return the vectors per beat."""
    return folding.output_lanes // int(node.outputs[0].typed.shape[1])


def neurons_folding(folding: Folding, device: Device) -> Folding:
    """Return the folding of neurons in place of a matrix with ``folding``, which takes whole vectors."""
    levels = costs.FAMILIES[device.family].table_levels(device.clock_mhz)
    return replace(folding, multiplier=ProductForm.NEURONS, levels=levels)


def neuron_tables(matrix: Node[MvuAttributes], requantizer: Node[RequantizeAttributes]) -> NeuronTables | None:
    """Return the tables of ``matrix`` and ``requantizer``, its only reader; None if a neuron reads more than
    :data:`hwflow.numerics.truth_tables.MOST_BITS` bits, or if they are certainly too large. Found once."""
    known = matrix.once(_known)
    if "tables" not in known:
        known["tables"] = _tables(matrix, requantizer)
    return known["tables"]


def _known(matrix: Node[MvuAttributes]) -> dict[str, NeuronTables | None]:
    return Scratch()


def _tables(matrix: Node[MvuAttributes], requantizer: Node[RequantizeAttributes]) -> NeuronTables | None:
    weights = matrix.attributes.weights
    if weights.ndim != 2 or matrix.attributes.binary:
        return None
    intervals = matrix.inputs[0].typed.channel_intervals(1) * matrix.attributes.pixels_per_vector
    ends = [(interval.lo, interval.hi) for interval in intervals]
    widths = np.array([width_of(low, high) if low < high else 0 for low, high in ends])
    if any(int(widths[row != 0].sum()) > MOST_BITS for row in weights):  # of most matrices the first one is
        return None
    first = np.cumsum(widths) - widths
    functions, outputs = [], list[TableOutput]()
    made = 0
    for row, steps in zip(weights, requantizer.attributes.steps, strict=True):
        read = np.flatnonzero(row)
        sums = row_values(row[np.newaxis, read], _vectors_of([ends[k] for k in read], widths[read]), binary=False)
        width = width_of(steps.low, steps.high)
        signals = [int(first[k]) + bit for k in read for bit in range(int(widths[k]))]
        functions.append(BitFunction(signals, steps.evaluate(sums[:, 0]) & ((1 << width) - 1), width))
        outputs.append(TableOutput(tuple(range(made, made + width)), steps.low < 0))
        made += width
    # Adders and requantizers take less than this, with their registers.
    digits = sum(int(np.count_nonzero(place)) for place in digits_of(weights))
    most = 2 * digits * matrix.outputs[0].typed.element.bits + 100 * len(weights)
    network = lut_network(int(widths.sum()), functions, min(most, MOST_TABLES))
    if network is None:
        return None
    outputs = [TableOutput(tuple(network.outputs[k] for k in each), signed) for each, signed in outputs]
    bits = tuple((element, bit) for element, width in enumerate(widths.tolist()) for bit in range(width))
    return NeuronTables(network, bits, tuple(outputs))


def _vectors_of(ends: Sequence[tuple[int, int]], widths: IntArray) -> IntArray:
    """Return the inputs that all bits of so many ``widths`` mean, [2 ** bits, inputs], the first input's lowest. Bits
    that are beyond an input's ``ends`` do not occur: they mean the end."""
    place = np.arange(1 << int(widths.sum()))
    vectors = np.zeros((len(place), len(ends)), dtype=np.int64)
    for number, ((low, high), width) in enumerate(zip(ends, widths.tolist(), strict=True)):
        values = place & ((1 << width) - 1)
        place = place >> width
        if low < 0:
            values -= values >> (width - 1) << width
        vectors[:, number] = np.clip(values, low, high)
    return vectors
