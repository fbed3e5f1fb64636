"""Matrix-vector units with weights from a table, ``pe`` outputs and ``simd`` inputs per cycle.

Folding: input_lanes = SIMD, output_lanes = PE. Neither needs to divide its channel count: surplus lanes carry zero
weights or, if binary, a weight of 1 that an input forced to 0 never equals. SIMD up to a pixel's channels is a part of
a pixel. Above, or in foldings of ``whole_vector``, it is a part of a vector, taken as one pixel: SIMD 7 then takes a
vector of 9 pixels of 64 channels in 83 beats, not 9 * 10.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.multiplier import BLOCK, PART, ProductForm
from hdl_lib.arithmetic.packed_product import WIDEST_INPUT, Packing, borrowed
from hdl_lib.matrices.mvu import Mvu as Core
from hdl_lib.windows.clipped_taps import clipped_taps
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.matrix.dot_products import MvuAttributes, sets_of, weight_range, weight_type
from hwflow.cores.memory_words import bit_table, pack_words
from hwflow.cores.operator import Built, Decision, Folding, Implementation, MemoryFile, Resources
from hwflow.cores.timing import Process, Timing
from hwflow.cores.windows.sliding_window import core_geometry
from hwflow.ir.graph import IntArray, Node, Scratch


class _Operands:
    """The data of a node that all foldings share. ``ranges``: the least and the greatest input and weight, including
    the zeros of surplus lanes; ``units``: costs that foldings with the same input lanes share; ``taps``: of each
    window, if they come ``clipped``."""

    def __init__(self, node: Node[MvuAttributes]) -> None:
        self.sets, self.binary = sets_of(node.attributes.weights), node.attributes.binary
        self.rounds = int(node.attributes.rounds)
        self.vector, self.channels = int(node.attributes.pixels_per_vector), node.inputs[0].typed.shape[1]
        self.vectors, self.outputs = node.outputs[0].typed.shape
        self.x, self.weight, self.sum = node.inputs[0].typed.element, weight_type(node), node.outputs[0].typed.element
        interval = node.inputs[0].typed.interval
        self.ranges = (interval.lo, interval.hi), weight_range(node)
        self.cheap = not self.binary and costs.product_is_cheap_in_luts(self.x, self.weight)
        windows = node.attributes.clipped
        self.clipped = None if windows is None else core_geometry(windows)
        self.taps = None if self.clipped is None else np.array(clipped_taps(self.clipped))
        self.units: dict[tuple[str, int, ProductForm, int, bool], costs.Matrix] = Scratch()


class FoldedMvu(Implementation[MvuAttributes]):
    """Implements :class:`hdl_lib.matrices.mvu.Mvu`. ``together``: outputs that share a multiplier; ``synapse``: steps
    over a vector; ``neuron``: passes over the outputs."""

    kind: ClassVar[ProductForm]
    together: ClassVar[int] = 1

    def __init__(self, node: Node[MvuAttributes], folding: Folding) -> None:
        super().__init__(node, folding)
        self.operands = node.once(_Operands)
        self.simd, self.pe = folding.input_lanes, folding.output_lanes
        vector, channels = self.operands.vector, self.operands.channels
        if folding.whole_vector or self.simd > channels:
            vector, channels = 1, vector * channels
        self.pixels, self.channels = vector, channels
        self.synapse = vector * -(-channels // self.simd)
        self.neuron = -(-self.operands.outputs // self.pe)

    @classmethod
    def foldings(cls, node: Node[MvuAttributes], family: costs.Family) -> list[Folding]:
        """Return the useful foldings; none if this kind is not offered. Of clipped windows no beat mixes taps, and each
        has the two beats that the core needs."""
        operands = node.once(_Operands)
        if not cls._offered(operands, family):
            return []
        pairs = _lane_pairs(operands.channels, operands.outputs, operands.vector * operands.channels, cls.together)
        if node.attributes.held is not None:  # a table of one word is a constant
            elements, outputs = operands.vector * operands.channels, operands.outputs
            pairs = [(pe, simd, whole) for pe, simd, whole in pairs if pe < outputs or simd < elements]
        part = cls._part(operands, family)
        if operands.taps is not None:
            least, channels = int(operands.taps.min()), operands.channels
            pairs = [
                (pe, simd, whole) for pe, simd, whole in pairs
                if simd <= channels and not whole and least * -(-channels // simd) > 1
            ]
        return [Folding(simd, pe, pe * simd, cls.kind, part, whole) for pe, simd, whole in pairs if pe >= cls.together]

    @classmethod
    @abstractmethod
    def _offered(cls, operands: _Operands, family: costs.Family) -> bool:
        """Tell whether the kind suits the operands."""

    @classmethod
    def _part(cls, operands: _Operands, family: costs.Family) -> int:
        """Return the magnitude bits of a multiplier block's operand if operands are split, else 0."""
        return 0

    @property
    def packing(self) -> Packing | None:
        """Return how two weights share a multiplier block, if they do."""
        return None

    @property
    def digits(self) -> Digits | None:
        """Return the digits of weights that the table holds, if it does."""
        return None

    def cycles(self) -> int:
        taps = self.operands.taps
        if taps is not None:
            return int(taps.sum()) * (self.synapse // self.pixels) * self.neuron
        return int(self.operands.vectors * self.synapse * self.neuron)

    def _beats(self) -> IntArray:
        """Return the beats of each vector."""
        if self.operands.taps is None:
            return np.full(self.operands.vectors, self.synapse)
        return self.operands.taps * (self.synapse // self.pixels)

    def timing(self) -> Timing:
        synapse, neuron, beats = self.synapse, self.neuron, self._beats()
        # not all steps: of a slow folding there are many more than beats
        before = np.cumsum(beats) - beats
        takes = np.arange(beats.sum()) + np.repeat(before * (neuron - 1), beats)
        makes = np.cumsum(np.repeat(beats, neuron)) - 1
        latency = Core.latency_of(
            input_shape=shape_of(self.operands.x), weight_shape=shape_of(self.operands.weight), simd=self.simd,
            synapse_fold=synapse, neuron_fold=neuron, multiplier=self.kind, part=self.folding.part or PART,
            ranges=self.operands.ranges, digits=self.digits,
        )
        return Timing((Process(int(beats.sum()) * neuron, {0: takes}, {0: makes}),), (latency,))

    def resources(self, decision: Decision, family: str) -> Resources:
        known, held = self._few_words(decision), self._held
        looked_at = known is None and not decision.provisional and not held
        changing = costs.changing_numbers(*self._stored()) if looked_at else None
        unit = self._unit(family).resources(self.pe, self.neuron, decision.depth, known, changing, held=held)
        vectors = self.operands.vectors // (len(self.operands.sets) // self.operands.rounds)
        words = len(self.operands.sets) // self.operands.rounds * self.synapse * self.neuron
        unit += costs.taking_turns(words, (self.operands.rounds, vectors))
        of_node = self.node.attributes.held
        if of_node is not None and of_node.loadable:
            unit += costs.table_writer(words * self.operands.rounds, self.pe * self.simd * self.operands.weight.bits)
        clipped = self.operands.clipped
        return unit if clipped is None else unit + costs.clipped_walk(family, clipped, self.synapse, self.neuron)

    def build(self, depth: int, name: str) -> Built:
        operands, (words, bits) = self.operands, self._stored()
        held = self.node.attributes.held
        file = MemoryFile(
            f"{name}_weights", pack_words(words, bits), sum(bits), self._held, held is not None and held.loadable
        )
        core = Core(
            shape_of(operands.x), shape_of(operands.weight), shape_of(operands.sum), pe=self.pe, simd=self.simd,
            synapse_fold=self.synapse, neuron_fold=self.neuron,
            weights=file.table,
            multiplier=self.kind, depth=depth, group=self.synapse // self.pixels, surplus=self._surplus,
            part=self.folding.part or PART, ranges=operands.ranges, packing=self.packing, digits=self.digits,
            clipped=operands.clipped, turns=(operands.rounds, operands.vectors),
        )
        return Built(core, [core.i], [core.o], [file])

    def weight_words(self) -> IntArray:
        """Return the weights as [words, lanes]: word nf * SF + sf of each set holds lane p * SIMD + s; surplus lanes
        hold zero, or one if binary (inputs there are taken as 0)."""
        sets, outputs, blocks = self.operands.sets, self.operands.outputs, -(-self.channels // self.simd)
        shape = len(sets), self.neuron * self.pe, self.pixels, blocks * self.simd
        padded = np.full(shape, int(self.operands.binary), dtype=np.int64)
        own = np.stack(sets).reshape(len(sets), outputs, self.pixels, self.channels)
        padded[:, :outputs, :, : self.channels] = own
        lanes = padded.reshape(len(sets), self.neuron, self.pe, self.pixels, blocks, self.simd)
        return lanes.transpose(0, 1, 3, 4, 2, 5).reshape(-1, self.pe * self.simd)

    @property
    def _held(self) -> bool:
        """Return whether the table lies in block RAM in any case."""
        return self.folding.in_block or self.node.attributes.held is not None

    @property
    def _surplus(self) -> int:
        """Return the lanes of the last beat of a pixel (or of a vector taken as one) that carry no channel but would
        count: only equal bits do, products are zero."""
        return -self.channels % self.simd if self.operands.binary else 0

    def _unit(self, family: str) -> costs.Matrix:
        operands, units = self.operands, self.operands.units
        key = family, self.simd, self.kind, self.folding.part, self.folding.whole_vector
        if key not in units:
            units[key] = costs.Matrix(
                family, operands.x, operands.weight, operands.sum, self.kind, self.folding.part, self.simd,
                self.synapse, ranges=operands.ranges, packing=self.packing, digits=self.digits,
                sets=len(operands.sets),
            )
        return units[key]

    def _stored(self) -> tuple[IntArray, list[int]]:
        """Return the contents of the core's table, [words, lanes], and the bits of each lane."""
        words = self.weight_words()
        return words, [self.operands.weight.bits] * words.shape[1]

    def _few_words(self, decision: Decision) -> costs.FewWords | None:
        """Return the table if it is so small that the values matter; of a chosen folding, up to a larger size."""
        numbers = len(self.operands.sets) * self.synapse * self.neuron * self.simd * self.pe
        most = costs.MOST_KNOWN_BITS if decision.provisional else costs.MOST_CHOSEN_BITS
        if numbers * self.operands.weight.bits > most or self._held:
            return None
        return costs.FewWords(bit_table(*self._stored()), self._products(self.weight_words()))

    def _products(self, words: IntArray) -> IntArray:
        """Return the weights as [words, multipliers, weights of a multiplier]."""
        return words[:, :, None]


class BlockMvu(FoldedMvu):
    """A multiplier block for each product, or several where operands are wide."""

    kind = ProductForm.DSP

    @classmethod
    def _offered(cls, operands: _Operands, family: costs.Family) -> bool:
        return not operands.binary and not operands.cheap

    @classmethod
    def _part(cls, operands: _Operands, family: costs.Family) -> int:
        return family.dsp_width - 1 if max(operands.x.bits, operands.weight.bits) > BLOCK else 0


class PackedMvu(FoldedMvu):
    """Two outputs share a multiplier block, if the ranges of inputs and weights leave room for both products."""

    kind = ProductForm.DSP2
    together = 2

    @classmethod
    def _offered(cls, operands: _Operands, family: costs.Family) -> bool:
        fits = not operands.binary and not operands.cheap
        return fits and Packing.of(*operands.ranges, 1, family.dsp_packed) is not None

    @classmethod
    def _part(cls, operands: _Operands, family: costs.Family) -> int:
        return family.dsp_packed[0] - 1

    @cached_property
    def packing(self) -> Packing:
        widest = self.folding.part + 1
        packing = Packing.of(*self.operands.ranges, self.simd, (widest, min(widest, WIDEST_INPUT)))
        assert packing is not None, "offered where two products fit a block"
        return packing

    def _stored(self) -> tuple[IntArray, list[int]]:
        """Return pairs of rows, the second one less what the first one borrows."""
        words, pe = self.weight_words(), self.pe
        lanes = words.reshape(len(words), pe, self.simd)
        low, high = lanes[:, 0 : pe - 1 : 2], lanes[:, 1::2]
        pairs = np.stack([low, borrowed(high, low)], axis=-1)
        last = lanes[:, pe - pe % 2 :].reshape(len(words), -1)
        widths = self.packing.low_shape.width, self.packing.high_shape.width
        bits = [*widths] * (pe // 2 * self.simd) + [widths[0]] * last.shape[1]
        return np.concatenate([pairs.reshape(len(words), -1), last], axis=1), bits

    def _products(self, words: IntArray) -> IntArray:
        pe, rows = self.pe, words.reshape(len(words), self.pe, self.simd)
        paired = np.stack([rows[:, 0 : pe - 1 : 2], rows[:, 1::2]], axis=-1).reshape(len(words), -1, 2)
        single = rows[:, pe - pe % 2 :].reshape(len(words), -1, 1)
        return np.concatenate([paired, np.concatenate([single, np.zeros_like(single)], axis=-1)], axis=1)


class LookupTableMvu(FoldedMvu):
    """Products in look-up tables. The table holds the digits of weights, unless an operand has one bit or both have
    two."""

    kind = ProductForm.LUT

    @classmethod
    def _offered(cls, operands: _Operands, family: costs.Family) -> bool:
        return not operands.binary

    @cached_property
    def digits(self) -> Digits | None:
        x, weights = self.operands.x.bits, self.operands.weight.bits
        return None if min(x, weights) == 1 or x == weights == 2 else Digits.of(self.operands.ranges[1])

    def _stored(self) -> tuple[IntArray, list[int]]:
        words = self.weight_words()
        if self.digits is None:
            return super()._stored()
        return self.digits.stored(words), [self.digits.bits] * words.shape[1]


class XnorMvu(FoldedMvu):
    """Compares and counts bits."""

    kind = ProductForm.XNOR

    @classmethod
    def _offered(cls, operands: _Operands, family: costs.Family) -> bool:
        return operands.binary


def _lane_pairs(channels: int, outputs: int, elements: int, together: int) -> list[tuple[int, int, bool]]:
    """Return the useful (PE, SIMD, whole vector) for vectors of ``elements``; ``together``: outputs that share a
    multiplier.

    In this order: lanes that fit a pixel, as producers offer them; lanes of a vector without and then with surplus;
    lanes that would fit a pixel with a surplus, taken of a vector. Each kind keeps only pairs that no other of the same
    or an earlier kind dominates in steps and multipliers.
    """
    simds = [(0, simd, elements // channels * -(-channels // simd)) for simd in costs.useful_lanes(channels)]
    for simd in costs.useful_lanes(elements):
        if simd > channels:
            simds.append((1 if elements % simd == 0 else 2, simd, -(-elements // simd)))
        else:  # kept where a pixel's last beat would have surplus lanes, a vector's fewer
            simds.append((3, simd, -(-elements // simd)))
    pes = [(pe, -(-outputs // pe)) for pe in costs.useful_lanes(outputs)]
    kept: list[tuple[int, int, bool]] = []
    front: set[tuple[int, int]] = set()  # (steps per vector, multipliers) that nothing undercuts
    for kind in range(4):
        mine = [(simd, synapse) for k, simd, synapse in simds if k == kind]
        rows = [
            (synapse * neuron, -(-pe // together) * simd, pe, simd) for simd, synapse in mine for pe, neuron in pes
        ]
        best, least = set(), elements * outputs + 1
        for steps, multipliers in sorted(front | {row[:2] for row in rows}):
            if multipliers < least:
                best.add((steps, multipliers))
                least = multipliers
        wanted = best - front if kind == 3 else best
        front = best
        kept += [(pe, simd, kind == 3) for steps, multipliers, pe, simd in rows if (steps, multipliers) in wanted]
    return kept
