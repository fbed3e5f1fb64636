"""Matrix-vector unit: weights stationary on chip, ``pe`` outputs and ``simd`` inputs a cycle.

Attributes: ``weights`` int64 [M, K], or [sets, M, K] of which vectors take one after the other in turns,
``pixels_per_vector`` (a vector is that many consecutive pixels of the input
stream), ``binary`` (absent: False; weights and inputs are 0 and 1, and what is summed is 1 where they are equal, else
0). Derived: ``weight_range`` (least and greatest weight, the zeros of surplus lanes among them). Folding: input_lanes =
SIMD, output_lanes = PE. Neither needs to divide its channel count: surplus lanes carry zero weights, or, binary, a
weight of 1 that a bit made 0 never equals. SIMD up to a pixel's channels is a part of a pixel; above it, or in foldings
of ``whole_vector``, a part of a vector, which is then taken as one pixel: SIMD 7 takes a vector of 9 pixels of 64
channels in 83 beats then, not in 9 * 10. In the kind "dsp2" two outputs share a multiplier block: offered where the
ranges of inputs and weights leave room for both products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.multiplier import BLOCK, PART
from hdl_lib.arithmetic.packed_product import WIDEST_INPUT, Packing, borrowed
from hdl_lib.matrices.mvu import MAXIMUM_INPUT, MAXIMUM_WEIGHT
from hdl_lib.matrices.mvu import Mvu as Core
from hdl_lib.memories.rom import Table
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.matrix import constant_mvu
from hwflow.cores.matrix.dot_products import is_binary, row_intervals, row_values
from hwflow.cores.memory_words import bit_table, pack_words
from hwflow.cores.operator import (
    Built,
    Device,
    Folding,
    HardwareOperator,
    LoweringContext,
    MemoryFile,
    Resources,
    grouped,
)
from hwflow.cores.timing import Process, Timing
from hwflow.ir.graph import IntArray, Node, Stage, Value
from hwflow.types import Interval, IntType, TensorType


class Mvu(HardwareOperator):
    name = "mvu"
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def derive(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> Mapping[str, Any]:
        weights = attributes["weights"]  # looked at once: a search asks for the cost of every folding
        return {"weight_range": (min(0, int(weights.min())), max(0, int(weights.max())))}

    def infer(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        weights, vector = attributes["weights"], attributes["pixels_per_vector"]
        pixels, _ = inputs[0].shape
        ranges = inputs[0].channel_intervals(1) * vector
        of_sets = [row_intervals(each, ranges, binary=is_binary(attributes)) for each in sets_of(attributes)]
        channels = tuple(Interval(min(r.lo for r in c), max(r.hi for r in c)) for c in zip(*of_sets, strict=True))
        return (TensorType.of((pixels // vector, weights.shape[-2]), channels, 1),)

    def evaluate(self, attributes: Mapping[str, Any], inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        frames, pixels, channels = inputs[0].shape
        vector = attributes["pixels_per_vector"]
        sets, binary = sets_of(attributes), is_binary(attributes)
        vectors = inputs[0].reshape(frames, pixels // vector // len(sets), len(sets), vector * channels)
        rows = [row_values(each, vectors[:, :, turn], binary=binary) for turn, each in enumerate(sets)]
        return (np.stack(rows, axis=2).reshape(frames, pixels // vector, len(sets[0])),)

    def macs(self, node: Node) -> int:
        return int(sets_of(node.attributes)[0].size) * node.outputs[0].typed.shape[0]

    def foldings(self, node: Node, device: Device) -> Sequence[Folding]:
        family = costs.FAMILIES[device.family]
        kinds: tuple[str, ...] = ("dsp", "lut")
        if is_binary(node.attributes):
            kinds = ("xnor",)
        elif costs.product_is_cheap_in_luts(node.inputs[0].typed.element, weight_type(node)):
            kinds = ("lut",)
        elif Packing.of(*_ranges(node), 1, family.dsp_packed) is not None:
            kinds = ("dsp2", "dsp", "lut")
        widest = max(node.inputs[0].typed.element.bits, weight_type(node).bits)
        parts = {"dsp": family.dsp_width - 1 if widest > BLOCK else 0, "dsp2": family.dsp_packed[0] - 1}
        channels, (outputs, elements) = node.inputs[0].typed.shape[1], node.attributes["weights"].shape[-2:]
        found = [
            Folding(simd, pe, pe * simd, kind, parts.get(kind, 0), whole)
            for kind in kinds
            for pe, simd, whole in _lane_pairs(channels, outputs, elements, 2 if kind == "dsp2" else 1)
            if kind != "dsp2" or pe > 1
        ]
        if not is_binary(node.attributes) and node.attributes["weights"].ndim == 2:
            found += constant_mvu.foldings(node, device)
        return sorted(found, key=lambda folding: (folding.multipliers, folding.output_lanes))

    def input_view(
        self, node: Node, shape: tuple[int, ...], lanes: int, *, whole_vector: bool = False
    ) -> tuple[int, int]:
        """Up to a pixel's channels lanes are of pixels, beyond that, or where it is said, of vectors."""
        pixels, channels = shape
        vector = int(node.attributes["pixels_per_vector"])
        if lanes <= channels and not whole_vector:
            return pixels, channels
        return grouped((pixels // vector, vector * channels), lanes)

    def cycles(self, node: Node, folding: Folding) -> int:
        if constant_mvu.is_constant(node, folding):
            return constant_mvu.cycles(node, folding)
        synapse, neuron = folds(node, folding)
        return int(node.outputs[0].typed.shape[0]) * synapse * neuron

    def timing(self, node: Node, folding: Folding) -> Timing:
        if constant_mvu.is_constant(node, folding):
            return constant_mvu.timing(node, folding)
        pixels = node.outputs[0].typed.shape[0]
        synapse, neuron = folds(node, folding)
        # not all steps: of a slow folding there are many more than beats
        takes = (np.arange(pixels)[:, None] * (neuron * synapse) + np.arange(synapse)).reshape(-1)
        makes = np.arange(pixels * neuron) * synapse + synapse - 1
        process = Process(pixels * neuron * synapse, {0: takes}, {0: makes})
        latency = Core.latency_of(
            input_shape=shape_of(node.inputs[0].typed.element), weight_shape=shape_of(weight_type(node)),
            simd=folding.input_lanes, synapse_fold=synapse, neuron_fold=neuron, multiplier=folding.multiplier,
            part=folding.part or PART, ranges=_ranges(node), digits=_digits(node, folding),
        )
        return Timing((process,), (latency,))

    def resources(self, node: Node, folding: Folding, depths: Sequence[int], device: Device) -> Resources:
        if constant_mvu.is_constant(node, folding):
            return constant_mvu.resources(node, folding, depths, device)
        known = _few_words(node, folding)
        changing = _changing(node, folding) if known is None else None
        _, neuron = folds(node, folding)
        return _unit(node, folding, device.family).resources(
            folding.output_lanes, neuron, depths[0], known, changing
        )

    def build(self, node: Node, folding: Folding, depths: Sequence[int], name: str) -> Built:
        if constant_mvu.is_constant(node, folding):
            return constant_mvu.build(node, folding, depths, name)
        synapse, neuron = folds(node, folding)
        pixels, _ = _vector(node, folding)
        element, packing, digits = weight_type(node), _packing(node, folding), _digits(node, folding)
        words, bits = _stored(node, folding)
        file = MemoryFile(f"{name}_weights", pack_words(words, bits), sum(bits))
        core = Core(
            shape_of(node.inputs[0].typed.element), shape_of(element), shape_of(node.outputs[0].typed.element),
            pe=folding.output_lanes, simd=folding.input_lanes, synapse_fold=synapse, neuron_fold=neuron,
            weights=Table(words=None, file=f"weights/{file.name}.mem", width=file.width, depth=len(words)),
            multiplier=folding.multiplier, depth=depths[0], group=synapse // pixels,
            surplus=surplus_lanes(node, folding), part=folding.part or PART, ranges=_ranges(node),
            packing=packing, digits=digits,
        )
        return Built(core, [core.i], [core.o], [file])


def _unit(node: Node, folding: Folding, family: str) -> costs.Matrix:
    """Return what foldings of these input lanes share; cached with the node."""
    known: dict[tuple[str, int, str, int, bool], costs.Matrix] = node.attributes.setdefault("units", {})
    key = family, folding.input_lanes, folding.multiplier, folding.part, folding.whole_vector
    if key not in known:
        synapse, _ = folds(node, folding)
        known[key] = costs.Matrix(
            family, node.inputs[0].typed.element, weight_type(node), node.outputs[0].typed.element,
            folding.multiplier, folding.part, folding.input_lanes, synapse, surplus=surplus_lanes(node, folding),
            ranges=_ranges(node), packing=_packing(node, folding), digits=_digits(node, folding),
            sets=len(sets_of(node.attributes)),
        )
    return known[key]


def sets_of(attributes: Mapping[str, Any]) -> list[IntArray]:
    """The matrices of weights [M, K] that vectors take in turns."""
    weights = attributes["weights"]
    return [weights] if weights.ndim == 2 else list(weights)


def weight_type(node: Node) -> IntType:
    """The narrowest type that holds every weight (and the zeros of surplus lanes)."""
    return _holding(*node.attributes["weight_range"])


@lru_cache(maxsize=1024)
def _holding(low: int, high: int) -> IntType:
    return IntType.holding(Interval(low, high))


def _ranges(node: Node) -> tuple[tuple[int, int], tuple[int, int]]:
    """The least and the greatest input and weight, the zeros of surplus lanes among the weights."""
    x = node.inputs[0].typed.interval
    return (x.lo, x.hi), node.attributes["weight_range"]


def _packing(node: Node, folding: Folding) -> Packing | None:
    """How two weights share a multiplier block, in the kind "dsp2"."""
    if folding.multiplier != "dsp2":
        return None
    widest = folding.part + 1
    packing = Packing.of(*_ranges(node), folding.input_lanes, (widest, min(widest, WIDEST_INPUT)))
    assert packing is not None, "dsp2 is offered where two products fit a block"
    return packing


def _digits(node: Node, folding: Folding) -> Digits | None:
    """The digits of weights that products of look-up tables take; None where there are no products of several bits, or
    where a table has all of one's bits."""
    x, weights = node.inputs[0].typed.element.bits, weight_type(node).bits
    if folding.multiplier != "lut" or min(x, weights) == 1 or x == weights == 2:
        return None
    return Digits.of(node.attributes["weight_range"])


def _paired(words: IntArray, folding: Folding, packing: Packing) -> tuple[IntArray, list[int]]:
    """Words of weights as the core takes them in pairs of rows, with the bits of each lane."""
    pe, simd, low, high = folding.output_lanes, folding.input_lanes, packing.low_shape.width, packing.high_shape.width
    lanes = words.reshape(len(words), pe, simd)
    pairs = np.stack([lanes[:, 0 : pe - 1 : 2], borrowed(lanes[:, 1::2], lanes[:, 0 : pe - 1 : 2])], axis=-1)
    last = lanes[:, pe - pe % 2 :].reshape(len(words), -1)
    bits = [low, high] * (pe // 2 * simd) + [low] * last.shape[1]
    return np.concatenate([pairs.reshape(len(words), -1), last], axis=1), bits


def _stored(node: Node, folding: Folding) -> tuple[IntArray, list[int]]:
    """Return the contents of the core's table, [words, lanes], and the bits of each lane."""
    words, packing, digits = weight_words(node, folding), _packing(node, folding), _digits(node, folding)
    if packing is not None:
        return _paired(words, folding, packing)
    if digits is not None:
        return digits.stored(words), [digits.bits] * words.shape[1]
    return words, [weight_type(node).bits] * words.shape[1]


def _few_words(node: Node, folding: Folding) -> costs.FewWords | None:
    """The table, where it is so small that the weights in it matter; once this folding is chosen, of most sizes."""
    synapse, neuron = folds(node, folding)
    lanes = folding.input_lanes * folding.output_lanes
    table = len(sets_of(node.attributes)) * synapse * neuron * lanes
    chosen = node.attributes.get("folding") == folding
    if table * weight_type(node).bits > (costs.MOST_CHOSEN_BITS if chosen else costs.MOST_KNOWN_BITS):
        return None
    stored, bits = _stored(node, folding)
    words = weight_words(node, folding)
    pe, simd = folding.output_lanes, folding.input_lanes
    rows = words.reshape(len(words), pe, simd)
    if folding.multiplier == "dsp2":
        paired = np.stack([rows[:, 0 : pe - 1 : 2], rows[:, 1::2]], axis=-1).reshape(len(words), -1, 2)
        single = rows[:, pe - pe % 2 :].reshape(len(words), -1, 1)
        weights = np.concatenate([paired, np.concatenate([single, np.zeros_like(single)], axis=-1)], axis=1)
    else:
        weights = words[:, :, None]
    return costs.FewWords(bit_table(stored, bits), weights)


def _changing(node: Node, folding: Folding) -> costs.Changing | None:
    """Of a large table's bits. All count until this folding is the one chosen: a search asks for the cost of every
    one, and this takes as long as the table is large."""
    if node.attributes.get("folding") != folding:
        return None
    return costs.changing_numbers(*_stored(node, folding))


def _type_of(weights: IntArray) -> IntType:
    return IntType.holding(Interval(min(0, int(weights.min())), max(0, int(weights.max()))))


def add_mvu(
    context: LoweringContext, stream: Value, weights: IntArray, pixels_per_vector: int, *, binary: bool
) -> Value | None:
    """The product of ``weights`` with a stream, or ``binary`` the number of equal bits; None, and a refusal, where an
    operand is too wide for the core."""
    operands = (("input", stream.typed.element, MAXIMUM_INPUT), ("weight", _type_of(weights), MAXIMUM_WEIGHT))
    for what, element, maximum in operands:
        if element.bits > maximum:
            context.refuse(
                "operand-width", f"{what}s must have at most {maximum} bits, not {element.bits}",
                "quantize them to fewer bits",
            )
            return None
    attributes = {"weights": weights, "pixels_per_vector": pixels_per_vector, **({"binary": True} if binary else {})}
    return context.add("mvu", "mvu", [stream], attributes)


def _lane_pairs(channels: int, outputs: int, elements: int, together: int) -> list[tuple[int, int, bool]]:
    """(PE, SIMD, whole vector) worth looking at for vectors of so many ``elements``; ``together``: outputs that share a
    multiplier.

    Lanes that fit a pixel take what producers offer; more take a vector's, in parts without surplus or with; at last
    come those that would fit a pixel with a surplus, and take a vector's. Of each kind those are left that no others,
    of the same or an earlier kind, undercut in steps or multipliers while they have no more of the other.
    """
    simds = [(0, simd, elements // channels * -(-channels // simd)) for simd in costs.useful_lanes(channels)]
    for simd in costs.useful_lanes(elements):
        if simd > channels:
            simds.append((1 if elements % simd == 0 else 2, simd, -(-elements // simd)))
        elif channels % simd and elements > channels:
            simds.append((3, simd, -(-elements // simd)))
    pes = [(pe, -(-outputs // pe)) for pe in costs.useful_lanes(outputs)]
    kept: list[tuple[int, int, bool]] = []
    front: set[tuple[int, int]] = set()  # (steps a vector, multipliers) that nothing undercuts
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


def _vector(node: Node, folding: Folding) -> tuple[int, int]:
    """(pixels, channels) of a vector as the folding takes it."""
    vector, channels = int(node.attributes["pixels_per_vector"]), node.inputs[0].typed.shape[1]
    whole = folding.whole_vector or folding.input_lanes > channels
    return (1, vector * channels) if whole else (vector, channels)


def folds(node: Node, folding: Folding) -> tuple[int, int]:
    """(synapse fold, neuron fold): steps over a vector, passes over the outputs."""
    pixels, channels = _vector(node, folding)
    synapse = pixels * -(-channels // folding.input_lanes)
    return synapse, -(-node.outputs[0].typed.shape[1] // folding.output_lanes)


def surplus_lanes(node: Node, folding: Folding) -> int:
    """Lanes of the last beat of a pixel (or of a vector taken as one) that carry no channel and would count: only equal
    bits do, products are zero."""
    return -_vector(node, folding)[1] % folding.input_lanes if is_binary(node.attributes) else 0


def weight_words(node: Node, folding: Folding) -> IntArray:
    """Weights as [words, lanes]: word nf * SF + sf of each set holds lane p * SIMD + s; surplus lanes hold zero, or one
    if binary (inputs there are taken as 0)."""
    sets, (vector, channels) = sets_of(node.attributes), _vector(node, folding)
    pe, simd = folding.output_lanes, folding.input_lanes
    outputs = len(sets[0])
    neuron, blocks = -(-outputs // pe), -(-channels // simd)
    shape = len(sets), neuron * pe, vector, blocks * simd
    padded = np.full(shape, int(is_binary(node.attributes)), dtype=np.int64)
    padded[:, :outputs, :, :channels] = np.stack(sets).reshape(len(sets), outputs, vector, channels)
    lanes = padded.reshape(len(sets), neuron, pe, vector, blocks, simd).transpose(0, 1, 3, 4, 2, 5)
    return lanes.reshape(len(sets) * neuron * vector * blocks, pe * simd)
