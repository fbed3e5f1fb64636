"""Requantizers that take several cycles per element and no multiplier block, for slow streams.

The kind "serial" of a folding, whose ``part`` is how many digits of the input a step takes
(:mod:`hdl_lib.requantizers.requantize_serial`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from amaranth.hdl import Shape

from hdl_lib.memories.rom import Table
from hdl_lib.requantizers.requantize_serial import WORDS, SerialMultiplyAddShift, SerialSteps
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import Built, Folding, MemoryFile, Resources, beats
from hwflow.cores.timing import Process, Timing, every
from hwflow.ir.graph import IntArray, Node
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift, with_multiple_addends
from hwflow.types import IntType

KIND = "serial"
TOGETHER = (1, 2, 3, 5)  # digits a step: with more of them products in one step cost no more


def foldings(node: Node, form: MultiplyAddShift) -> list[Folding]:
    """An element after the other, the most steps first: where there are parameters for it."""
    found: dict[int, Folding] = {}
    for together in TOGETHER:
        digits = _digits_of(node, together)
        if digits // together not in found and form_for(node, form, together) is not None:
            found[digits // together] = Folding(1, 1, multiplier=KIND, part=together)
    return list(found.values())


def form_for(node: Node, form: MultiplyAddShift, together: int) -> MultiplyAddShift | None:
    """Parameters whose addends suit so many digits a step, if there are any; found and proved once."""
    element, digits = node.inputs[0].typed.element, _digits_of(node, together)
    known: dict[int, MultiplyAddShift | None] = node.attributes.setdefault("serial_forms", {})
    if digits not in known:
        least = SerialSteps(shape_of(element), Shape(1), Shape(1), together)
        known[digits] = with_multiple_addends(form, node.attributes["steps"], least.offset, 2 * digits)
    return known[digits]


def _digits_of(node: Node, together: int) -> int:
    return SerialSteps(shape_of(node.inputs[0].typed.element), Shape(1), Shape(1), together).digits


def cycles(node: Node, folding: Folding) -> int:
    """Steps a frame."""
    steps = _digits_of(node, folding.part) // folding.part + 1
    return beats(node.inputs[0].typed.shape, folding.input_lanes) * steps


def timing(node: Node, folding: Folding) -> Timing:
    """The first step of a beat consumes, the last one produces."""
    steps = every(cycles(node, folding)).reshape(beats(node.inputs[0].typed.shape, folding.input_lanes), -1)
    process = Process(steps.size, {0: steps[:, 0]}, {0: steps[:, -1]})
    return Timing((process,), (SerialMultiplyAddShift.serial_latency_of(folding.part),))


def resources(
    node: Node, folding: Folding, form: MultiplyAddShift, fields: Sequence[IntArray], family: str, depth: int
) -> Resources:
    """Predicted; ``form``: as :func:`form_for` has it; ``fields``: its multipliers and addends, each [words, lanes]."""
    multiplier, addend = fields
    words = len(multiplier) * WORDS
    steps = _steps(node, form, folding.part)
    width = folding.input_lanes * steps.word_shape.width
    if words * width > costs.MOST_KNOWN_BITS:
        changing = None
        if node.attributes.get("folding") == folding:  # chosen: a search asks for every one
            file = _file("", steps, _pairs(multiplier, addend), folding.input_lanes)
            changing = costs.changing_bits(file.words, width)
        table = costs.rom(family, words, width, changing)
    else:
        table = _filled(family, steps, _pairs(multiplier, addend), folding.input_lanes)
    x, out = node.inputs[0].typed.element, node.outputs[0].typed.element
    types = IntType(*form.multiplier_type), IntType(*form.addend_type)
    return costs.serial_requantizer(
        family, x, *types, steps, form.shift, out, (form.low, form.high), words, table,
        _row_bits(steps, _pairs(multiplier, addend), folding.input_lanes), depth,
    )


def build(
    node: Node, folding: Folding, form: MultiplyAddShift, fields: Sequence[IntArray], channels: int, depth: int,
    name: str,
) -> Built:
    """The core of ``channels``, whose parameters ``fields`` are as for :func:`resources`."""
    steps = _steps(node, form, folding.part)
    file = _file(f"{name}_parameters", steps, _pairs(*fields), folding.input_lanes)
    core = SerialMultiplyAddShift(
        shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element), lanes=folding.input_lanes,
        channels=channels, multiplier_shape=steps.multiplier_shape, addend_shape=steps.addend_shape,
        together=folding.part, shift=form.shift, low=form.low, high=form.high,
        parameters=Table(None, f"weights/{file.name}.mem", file.width, len(file.words)), depth=depth,
    )
    return Built(core, [core.i], [core.o], [file])


def _steps(node: Node, form: MultiplyAddShift, together: int) -> SerialSteps:
    types = node.inputs[0].typed.element, IntType(*form.multiplier_type), IntType(*form.addend_type)
    x, multiplier, addend = (shape_of(t) for t in types)
    return SerialSteps(x, multiplier, addend, together)


Pairs = tuple[tuple[tuple[int, int], ...], ...]


def _pairs(multipliers: IntArray, addends: IntArray) -> Pairs:
    """For each word the lanes' multiplier and addend."""
    rows = zip(multipliers.tolist(), addends.tolist(), strict=True)
    return tuple(tuple(zip(*row, strict=True)) for row in rows)


def _row_bits(steps: SerialSteps, pairs: Pairs, lanes: int) -> list[int]:
    """Of each lane how many bits of a digit's product differ from one another: by what two neighbours of its words
    are, where there are few words; of more all."""
    if len(pairs) > costs.FEW:
        return [steps.word_shape.width + 1] * lanes
    found = []
    for lane in range(lanes):
        words = [
            (word << 1) | (word >> steps.word_shape.width - 1) << steps.word_shape.width + 1
            for block in pairs for word in steps.stored(*block[lane])
        ]
        columns = {tuple(word >> bit & 3 for word in words) for bit in range(steps.word_shape.width + 1)}
        found.append(sum(any(column) for column in columns))  # of two zeros it is the digit's sign
    return found


def _file(name: str, steps: SerialSteps, pairs: Pairs, lanes: int) -> MemoryFile:
    stored = [[steps.stored(*pair) for pair in word] for word in pairs]
    words = np.array([[field[k] for field in word] for word in stored for k in range(WORDS)], dtype=object)
    width = steps.word_shape.width
    if width < 64:
        return MemoryFile(name, pack_words(words.astype(np.int64), width), lanes * width)
    packed = [sum(field << lane * width for lane, field in enumerate(word)) for word in words.tolist()]
    return MemoryFile(name, packed, lanes * width)


@lru_cache(maxsize=1000)
def _filled(family: str, steps: SerialSteps, pairs: Pairs, lanes: int) -> Resources:
    file = _file("", steps, pairs, lanes)
    return costs.filled_rom(family, file.words, file.width)
