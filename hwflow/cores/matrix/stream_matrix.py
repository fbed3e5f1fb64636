"""Products of vectors with matrices that come as a stream.

Folding: input_lanes = SIMD, output_lanes = PE, neither more than there are columns and rows. The beats of the matrices
have as many lanes as one of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from hdl_lib.arithmetic.multiplier import PART, ProductForm
from hdl_lib.arithmetic.packed_product import WIDEST_INPUT, Packing
from hdl_lib.matrices.dot_product import ProductSum
from hdl_lib.matrices.stream_matrix import Along, FoldedRounds, MatrixRounds
from hdl_lib.matrices.stream_matrix import StreamMatrix as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources, exact_product
from hwflow.cores.timing import Cyclic, Process, Timing, Wait, every, spaced
from hwflow.ir.graph import Attributes, IntArray, Node, Stage, Value
from hwflow.types import Interval, IntType, TensorType


@dataclass(frozen=True, eq=False)
class StreamMatrixAttributes(Attributes):
    """``rounds``: what a round has, of which a frame has several; ``offsets``: what is subtracted from the elements of
    vectors, and of matrices."""

    op = "stream_matrix"
    rounds: MatrixRounds
    offsets: tuple[int, ...]


class StreamMatrix(HardwareOperator[StreamMatrixAttributes]):
    """Inputs: the vectors, the matrices."""

    attributes: ClassVar[type[Attributes]] = StreamMatrixAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: StreamMatrixAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        rounds, (x, w) = attributes.rounds, inputs
        vectors = prod(x.shape) // rounds.inner
        inner = _places(x, rounds.inner, attributes.offsets[0])
        beat = rounds.inner if rounds.along == Along.INNER else rounds.outer
        of_beat = _places(w, beat, attributes.offsets[1])
        rows = [of_beat] * rounds.outer
        if rounds.along == Along.OUTER:
            rows = [[each] * rounds.inner for each in of_beat]
        return (TensorType.of((vectors, rounds.outer), sums_of(inner, rows), 1),)

    def evaluate(self, attributes: StreamMatrixAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        rounds, frames = attributes.rounds, len(inputs[0])
        x, w = (each - offset for each, offset in zip(inputs, attributes.offsets, strict=True))
        groups = rounds.vectors // (rounds.sets * rounds.repeat)
        x = x.reshape(frames, -1, groups, rounds.sets, rounds.repeat, rounds.inner)
        shape, axes = _matrix_axes(rounds)
        w = w.reshape(frames, -1, *shape).transpose(0, 1, *(axis + 2 for axis in axes))
        result = exact_product(x, w[:, :, np.newaxis])
        return (result.reshape(frames, -1, rounds.outer),)

    def macs(self, node: Node[StreamMatrixAttributes]) -> int:
        return prod(node.outputs[0].typed.shape) * node.attributes.rounds.inner

    def foldings(self, node: Node[StreamMatrixAttributes], device: Device) -> Sequence[Folding]:
        x, w = _factors(node)
        rounds = node.attributes.rounds
        found = []
        kinds = costs.product_kinds(device.family, x, w)
        packed = costs.FAMILIES[device.family].dsp_packed
        if len(kinds) > 1 and Packing.of(*factor_ranges(node), 1, packed) is not None:
            kinds.append((ProductForm.DSP2, packed[0] - 1))
        for kind, part in kinds:
            together = 1 + (kind == ProductForm.DSP2)
            foldings = [
                Folding(simd, pe, pe * simd, kind, part)
                for pe in self.result_lanes(node) for simd in costs.useful_lanes(rounds.inner)
                if pe >= together
            ]
            cost = {
                folding: (self.cycles(node, folding), -(-folding.output_lanes // together) * folding.input_lanes)
                for folding in foldings
            }
            if not cost:
                continue
            best = min(cost.values())  # cycles and multipliers that nothing undercuts
            for folding in sorted(foldings, key=cost.__getitem__):
                if cost[folding][1] < best[1] or cost[folding] == best:
                    found.append(folding)
                    best = cost[folding]
        return sorted(found, key=lambda folding: (folding.multipliers, folding.output_lanes))

    def result_lanes(self, node: Node[StreamMatrixAttributes]) -> Sequence[int]:
        """Return the lanes that results may have."""
        return costs.useful_lanes(node.attributes.rounds.outer)

    def input_view(
        self, node: Node[StreamMatrixAttributes], shape: tuple[int, ...], lanes: int, *, whole_vector: bool = False,
        index: int = 0,
    ) -> tuple[int, int]:
        rounds = node.attributes.rounds
        channels = rounds.outer if index and rounds.along == Along.OUTER else rounds.inner
        return prod(shape) // channels, channels

    def lanes_of(self, node: Node[StreamMatrixAttributes], index: int, folding: Folding) -> int:
        return _folded(node, folding).lanes if index else folding.input_lanes

    def cycles(self, node: Node[StreamMatrixAttributes], folding: Folding) -> int:
        folded = _folded(node, folding)
        return max(_rounds(node) * max(folded.steps, folded.beats), _circuit(node, folding))

    def timing(self, node: Node[StreamMatrixAttributes], decision: Decision) -> Timing:
        folded, rounds = _folded(node, decision.folding), _rounds(node)
        row = _row(node, decision.folding)
        synapse, neuron = folded.synapse_fold, folded.neuron_fold
        vectors, of_vector = rounds * folded.rounds.vectors, synapse * neuron
        takes = Cyclic(every(synapse), of_vector, vectors)
        makes = Cyclic(synapse * every(neuron) + synapse - 1, of_vector, vectors)
        ends = every(rounds) - 1
        writer = Process(
            rounds * folded.beats, {1: spaced(rounds * folded.beats)}, {},
            (Wait(1, ends * folded.steps - 1, Core.release_lag(row, folded), folded.beats),),
        )
        reader = Process(
            rounds * folded.steps, {0: takes}, {0: makes},
            (Wait(0, (ends + 2) * folded.beats - 1, Core.WRITE_LAG, folded.steps),),
        )
        latency = Core.latency_of(row, folded, packed=decision.folding.multiplier == ProductForm.DSP2)
        return Timing((writer, reader), (latency,), _circuit(node, decision.folding))

    def resources(self, node: Node[StreamMatrixAttributes], decision: Decision, device: Device) -> Resources:
        folding, folded = decision.folding, _folded(node, decision.folding)
        unit = costs.Matrix(
            device.family, *_factors(node), node.outputs[0].typed.element, folding.multiplier, folding.part,
            folded.simd, folded.synapse_fold, ranges=factor_ranges(node), packing=_packing(node, folding),
        )
        x, w = (value.typed.element for value in node.inputs)
        row = _row(node, folding)
        return costs.stream_matrix(unit, row, folded, (x, w), node.attributes.offsets, decision.depth)

    def build(self, node: Node[StreamMatrixAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        x, w = (shape_of(value.typed.element) for value in node.inputs)
        a, b = (shape_of(factor) for factor in _factors(node))
        core = Core(
            (x, w), (a, b), shape_of(node.outputs[0].typed.element), _folded(node, folding),
            offsets=node.attributes.offsets, multiplier=folding.multiplier, depth=decision.depth,
            part=folding.part or PART, ranges=factor_ranges(node), packing=_packing(node, folding),
        )
        return Built(core, [core.i, core.w], [core.o])


def sums_of(inner: Sequence[Interval], rows: Sequence[Sequence[Interval]]) -> tuple[Interval, ...]:
    """Return the interval of each row's sum of products with ``inner`` factors: both ends are attained."""
    known: dict[tuple[Interval, ...], Interval] = {}
    for row in {tuple(row): None for row in rows}:
        products = [a.times(b) for a, b in zip(inner, row, strict=True)]
        known[row] = Interval(sum(p.lo for p in products), sum(p.hi for p in products))
    return tuple([known[tuple(row)] for row in rows])


def _places(typed: TensorType, length: int, offset: int) -> list[Interval]:
    """Return the interval of the differences at each place of groups of ``length`` elements."""
    if not typed.channels:
        return [typed.interval.plus(-offset)] * length
    ranges = typed.channel_intervals(1)
    together = np.arange(np.lcm(length, len(ranges)))
    pairs = np.unique(np.stack([together % length, together % len(ranges)]), axis=1)
    found: list[Interval | None] = [None] * length
    for place, channel in pairs.T.tolist():
        before = found[place]
        found[place] = ranges[channel] if before is None else before.hull(ranges[channel])
    return [each.plus(-offset) for each in found if each is not None]


def _matrix_axes(rounds: MatrixRounds) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of a round's matrices as they come, and the order of axes that makes [sets, inner, outer] of
    it."""
    inner = rounds.along == Along.INNER
    line, beat = (rounds.outer, rounds.inner) if inner else (rounds.inner, rounds.outer)
    shape = (line, rounds.sets, beat) if rounds.interleaved else (rounds.sets, line, beat)
    order = (1, 0, 2) if rounds.interleaved else (0, 1, 2)
    return shape, (order[0], order[2], order[1]) if inner else order


def _rounds(node: Node[StreamMatrixAttributes]) -> int:
    """Return the rounds of a frame."""
    return int(node.outputs[0].typed.shape[0]) // node.attributes.rounds.vectors


def _folded(node: Node[StreamMatrixAttributes], folding: Folding) -> FoldedRounds:
    return FoldedRounds(node.attributes.rounds, folding.output_lanes, folding.input_lanes)


def _circuit(node: Node[StreamMatrixAttributes], folding: Folding) -> int:
    """Return the cycles per frame of writing and using a half of the memory, one after the other: each half has every
    other round."""
    folded = _folded(node, folding)
    lag = Core.WRITE_LAG + Core.release_lag(_row(node, folding), folded)
    return -(-_rounds(node) * (folded.beats + folded.steps - 2 + lag) // 2)


def factor_ranges(node: Node[StreamMatrixAttributes]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the least and the greatest factor of each input, with 0 for lanes without an element."""
    x, w = (
        value.typed.interval.plus(-offset).hull(Interval(0, 0))
        for value, offset in zip(node.inputs, node.attributes.offsets, strict=True)
    )
    return (x.lo, x.hi), (w.lo, w.hi)


def _factors(node: Node[StreamMatrixAttributes]) -> tuple[IntType, IntType]:
    """Return the types of elements, offsets subtracted."""
    return factor_types(*node.inputs, offsets=node.attributes.offsets)


def factor_types(*values: Value, offsets: Sequence[int]) -> tuple[IntType, IntType]:
    """Return the types of the elements of two values, ``offsets`` subtracted, and 0."""
    x, w = (
        IntType.holding(value.typed.interval.plus(-offset).hull(Interval(0, 0)))
        for value, offset in zip(values, offsets, strict=True)
    )
    return x, w


def _row(node: Node[StreamMatrixAttributes], folding: Folding) -> ProductSum:
    x, w = (shape_of(factor) for factor in _factors(node))
    return Core.row_of(
        (x, w), _folded(node, folding), ProductForm(folding.multiplier), folding.part or PART, factor_ranges(node)
    )


def _packing(node: Node[StreamMatrixAttributes], folding: Folding) -> Packing | None:
    """Return how the factors of two rows share a multiplier block, if they do."""
    if folding.multiplier != ProductForm.DSP2:
        return None
    widest = folding.part + 1
    return Packing.of(*factor_ranges(node), folding.input_lanes, (widest, min(widest, WIDEST_INPUT)))
