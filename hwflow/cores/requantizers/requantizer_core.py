"""The common base of requantizer cores: a form of step functions with its parameters in tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.memories.rom import Table
from hdl_lib.memories.storage import REGISTER_DEPTH
from hwflow.cores import costs
from hwflow.cores.operator import Folding, Implementation, MemoryFile, Resources, beats, grouped
from hwflow.cores.timing import Timing, beat_by_beat
from hwflow.ir.graph import IntArray, Node
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.form import Form
from hwflow.numerics.requantizers.requantizer import realise
from hwflow.numerics.requantizers.step_function import StepFunction, all_alike
from hwflow.types import IntType

F = TypeVar("F", bound=Form)
Field = tuple[IntArray, int]  # of a table, [words, lanes], and its bits


def form_of(node: Node[RequantizeAttributes]) -> Form:
    """Return the hardware form of a requantize node of the dataflow stage; found and proved once."""
    return node.once(_form)


def _form(node: Node[RequantizeAttributes]) -> Form:
    element, held = node.inputs[0].typed.element, node.attributes.held
    if held is not None:
        found = held.find(node.attributes.steps)
        assert found is not None, "looked for before it is held"
        return found
    return realise(node.attributes.steps, element.bits, element.signed)


class RequantizerCore(Implementation[RequantizeAttributes], Generic[F]):
    """A requantizer of one form, with ``folding.input_lanes`` lanes.

    ``own``: channels with parameters of their own, the same in each pixel of a beat; ``channels``: all that lanes take
    in turn; ``turns``: rounds with parameters of their own, and the pixels of each; ``words``: of each lane's table. If
    every channel is alike, one word of parameters serves all, unless they are ``changeable``: in block RAM, with all
    bits of their words. ``tabled``: the folding may ask for that. ``kind``: the multiplier of its foldings.
    """

    kind: ClassVar[ProductForm] = ProductForm.NONE
    steady = True
    tabled = False

    def __init__(self, node: Node[RequantizeAttributes], folding: Folding, form: F) -> None:
        super().__init__(node, folding)
        self.form = form
        self.input: IntType = node.inputs[0].typed.element
        self.output: IntType = node.outputs[0].typed.element
        self.steps: Sequence[StepFunction] = node.attributes.steps
        self.lanes = folding.input_lanes
        self.own: int = node.inputs[0].typed.shape[1]
        pixels, self.channels = grouped(node.inputs[0].typed.shape, self.lanes)
        rounds: int = node.attributes.rounds
        if node.attributes.row:
            pixels, self.own, self.channels = -(-node.attributes.row // self.lanes), 1, self.lanes
        held = node.attributes.held is not None
        if not held and all_alike(self.steps):
            self.own, self.channels, rounds = 1, self.lanes, 1
        if held and rounds == 1 and self.channels <= self.lanes:
            rounds = 2  # a table of one word is a constant: two frames in turns take the same
        self.turns = rounds, pixels
        self.words = rounds * -(-self.channels // self.lanes)
        self.changeable = held or (self.tabled and folding.in_block and self.words > 1)

    @classmethod
    def foldings(cls, node: Node[RequantizeAttributes], form: F, options: Sequence[Folding]) -> list[Folding]:
        """Return the foldings that this core offers for ``form``, the node's; ``options``: one for each number of
        lanes, of kind "" (:data:`hwflow.cores.requantizers.requantize.CORES`)."""
        return list(options)

    @classmethod
    def in_lanes(cls, options: Iterable[Folding]) -> list[Folding]:
        """Return foldings of this core's kind in the lanes of ``options``."""
        return [Folding(each.input_lanes, each.output_lanes, multiplier=cls.kind) for each in options]

    @abstractmethod
    def latency(self) -> int:
        """Return the cycles from a beat to its result."""

    def cycles(self) -> int:
        return beats(self.node.inputs[0].typed.shape, self.lanes)

    def timing(self) -> Timing:
        return beat_by_beat(self.cycles(), self.latency())

    def queue_bits(self, family: str, depth: int) -> int:
        """Return the bits of a beat in the queue. A memory of flip-flops stores neither constant bits nor copies of
        others, as far as synthesis sees it."""
        flat = costs.FAMILIES[family].lutram is None and depth > REGISTER_DEPTH
        if not flat or self.changeable:
            return self.lanes * self.output.bits
        if sum(step.count + 1 for step in self.steps[: self.all]) > costs.MOST_KNOWN_BITS:
            return self.lanes * self.output.bits
        if self.own == 1:
            return self.lanes * changing_bits(self.steps[: self.all], 1, self.output.bits)
        return changing_bits(self.steps[: self.all], self.lanes, self.output.bits)

    def wrapped(self, base: int) -> int:
        """Return the value of the output type that is ``base`` modulo its number of values."""
        return (base - self.output.min) % (1 << self.output.bits) + self.output.min

    def padded(self, values: Any) -> IntArray:
        """Arrange one row per channel, for each pixel of a beat, as [words, lanes, ...]; surplus lanes get zeros."""
        every = np.array(values[: self.all], dtype=object)  # addends of 16-bit levels pass 64 bits
        array = self.of_rounds(np.resize(every, (self.all, *every.shape[1:])))
        rounds, _, *rest = array.shape
        array = np.tile(array, (1, self.channels // self.own, *(1,) * len(rest)))
        padded = np.zeros((rounds, self.words // rounds * self.lanes, *rest), dtype=object)
        padded[:, : self.channels] = array
        return padded.reshape(self.words, self.lanes, *rest)

    @property
    def all(self) -> int:
        """Return the channels with parameters of their own in all rounds."""
        return self.turns[0] * self.own

    def of_rounds(self, rows: Any) -> Any:
        """Arrange rows of all rounds' own channels as [rounds, channels, ...]."""
        return rows.reshape(self.turns[0], self.own, *rows.shape[1:])

    def packed(self, fields: Sequence[Field]) -> tuple[list[int], int]:
        """Return words of fields, lane 0 lowest and in each lane the first field lowest, and the bits of a word."""
        words = [0] * self.words
        offset = 0
        for lane in range(self.lanes):
            for values, bits in fields:
                for word in range(self.words):
                    words[word] |= (int(values[word, lane]) & ((1 << bits) - 1)) << offset
                offset += bits
        return words, offset

    def filled(self, fields: Sequence[Field], family: str) -> Resources:
        """Return the resources of a table of these fields, by its contents; none if it is a single word."""
        return costs.filled_rom(family, *self.packed(fields)) if self.words > 1 else Resources()


def table(
    name: str, words: Sequence[int], width: int, files: list[MemoryFile], *, held: bool = False, loadable: bool = False
) -> Table:
    """Return a table: one word is a constant of the core, more go to a memory file. ``held``: others may take their
    place; ``loadable``: while the design runs."""
    if len(words) == 1:
        return Table.of_words(words, width)
    files.append(MemoryFile(name, words, width, held, loadable))
    return files[-1].table


def changing_bits(steps: Sequence[StepFunction], lanes: int, bits: int) -> int:
    """Return the bits of a beat's results, of ``bits`` each, that change and are no copies of another of their lane;
    ``steps`` are one per channel, repeated over the ``lanes``."""
    total = 0
    for lane in range(min(lanes, len(steps))):
        values = [value for step in steps[lane::lanes] for value in step.values]
        columns = {tuple(value >> bit & 1 for value in values) for bit in range(bits)}
        total += sum(len(set(column)) > 1 for column in columns)
    return total * max(1, lanes // len(steps))
