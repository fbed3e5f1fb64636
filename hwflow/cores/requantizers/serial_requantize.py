"""Requantizers that take several cycles per element and no multiplier block, for slow streams.

The folding's kind is "serial", and its ``part`` the digits of the input taken in a step
(:mod:`hdl_lib.requantizers.requantize_serial`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from amaranth.hdl import Shape

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.requantizers.requantize_serial import WORDS, SerialMultiplyAddShift, SerialSteps
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Folding, MemoryFile, Resources
from hwflow.cores.requantizers.requantizer_core import RequantizerCore, form_of
from hwflow.cores.timing import Process, Timing, spaced
from hwflow.ir.graph import Node
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift, with_multiple_addends
from hwflow.types import IntType

Pairs = tuple[tuple[tuple[int, int], ...], ...]
TOGETHER = (1, 2, 3, 5)  # digits per step: with more of them products in one step cost no more


class SerialProducts(RequantizerCore[MultiplyAddShift]):
    """Implements :class:`hdl_lib.requantizers.requantize_serial.SerialMultiplyAddShift`. ``form``: with addends that
    suit the digits of a step."""

    kind: ClassVar[ProductForm] = ProductForm.SERIAL
    steady = False
    tabled = True

    def __init__(self, node: Node[RequantizeAttributes], folding: Folding, form: MultiplyAddShift) -> None:
        own = node.once(_SerialForms).form(folding.digits)
        assert own is not None, "offered where there are parameters"
        super().__init__(node, folding, own)
        shapes = shape_of(self.input), shape_of(IntType(*own.multiplier_type)), shape_of(IntType(*own.addend_type))
        self.serial = SerialSteps(*shapes, folding.digits)

    @classmethod
    def foldings(
        cls, node: Node[RequantizeAttributes], form: MultiplyAddShift, options: Sequence[Folding]
    ) -> list[Folding]:
        """Return foldings of one element at a time, the most steps first, if there are parameters for them."""
        forms, found = node.once(_SerialForms), dict[int, Folding]()
        for together in TOGETHER:
            steps = forms.digits(together) // together
            if steps not in found and forms.form(together) is not None:
                found[steps] = Folding(1, 1, multiplier=cls.kind, digits=together)
        return list(found.values())

    def latency(self) -> int:
        return SerialMultiplyAddShift.serial_latency_of(self.folding.digits)

    def cycles(self) -> int:
        return super().cycles() * (self.serial.digits // self.folding.digits + 1)

    def timing(self) -> Timing:
        """Return the timing: the first step of a beat consumes, the last one produces."""
        count = super().cycles()
        each = self.cycles() // count
        process = Process(self.cycles(), {0: spaced(count, each)}, {0: spaced(count, each, each - 1)})
        return Timing((process,), (self.latency(),))

    def resources(self, decision: Decision, family: str) -> Resources:
        words, width, pairs = self.words * WORDS, self.lanes * self.serial.word_shape.width, self._pairs()
        if self.changeable:
            cost = costs.rom(family, words, width, held=True)
        elif words * width > costs.MOST_KNOWN_BITS:
            file = _file("", self.serial, pairs, self.lanes) if not decision.provisional else None
            cost = costs.rom(family, words, width, None if file is None else costs.changing_bits(file.words, width))
        else:
            cost = _filled(family, self.serial, pairs, self.lanes)
        form, row_bits = self.form, _row_bits(self.serial, pairs, self.lanes, few=not self.changeable)
        return costs.serial_requantizer(
            family, self.input, IntType(*form.multiplier_type), IntType(*form.addend_type), self.serial, form.shift,
            self.output, (form.low, form.high), words, cost, row_bits, decision.depth,
        )

    def build(self, depth: int, name: str) -> Built:
        file = _file(f"{name}_parameters", self.serial, self._pairs(), self.lanes, held=self.changeable)
        core = SerialMultiplyAddShift(
            shape_of(self.input), shape_of(self.output), lanes=self.lanes, channels=self.channels,
            multiplier_shape=self.serial.multiplier_shape, addend_shape=self.serial.addend_shape,
            together=self.folding.digits, shift=self.form.shift, low=self.form.low, high=self.form.high,
            parameters=file.table, depth=depth, turns=self.turns,
        )
        return Built(core, [core.i], [core.o], [file])

    def _pairs(self) -> Pairs:
        """Return for each word the lanes' multiplier and addend."""
        fields = self.padded(self.form.multipliers), self.padded(self.form.addends)
        return tuple(tuple(zip(*row, strict=True)) for row in zip(*(field.tolist() for field in fields), strict=True))


class _SerialForms:
    """Parameters of a node whose addends suit the digits of a step, found and proved once."""

    def __init__(self, node: Node[RequantizeAttributes]) -> None:
        form = form_of(node)
        assert isinstance(form, MultiplyAddShift), "asked of that form alone"
        self._form, self._steps, self._input = form, node.attributes.steps, shape_of(node.inputs[0].typed.element)
        self._known: dict[int, MultiplyAddShift | None] = {}

    def digits(self, together: int) -> int:
        """Return the digits of the input, a multiple of those of a step."""
        return SerialSteps(self._input, Shape(1), Shape(1), together).digits

    def form(self, together: int) -> MultiplyAddShift | None:
        """Return the parameters, or None if there are none."""
        digits = self.digits(together)
        if digits not in self._known:
            least = SerialSteps(self._input, Shape(1), Shape(1), together)
            self._known[digits] = with_multiple_addends(self._form, self._steps, least.offset, 2 * digits)
        return self._known[digits]


def _row_bits(steps: SerialSteps, pairs: Pairs, lanes: int, *, few: bool) -> list[int]:
    """Return for each lane the distinct bits of a digit's product: by adjacent bits of its words if there are few
    words, known to synthesis (``few``: there may be), else all."""
    if not few or len(pairs) > costs.FEW:
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


def _file(name: str, steps: SerialSteps, pairs: Pairs, lanes: int, *, held: bool = False) -> MemoryFile:
    stored = [[steps.stored(*pair) for pair in word] for word in pairs]
    width = steps.word_shape.width
    words = [
        sum(field[k] << lane * width for lane, field in enumerate(word)) for word in stored for k in range(WORDS)
    ]
    return MemoryFile(name, words, lanes * width, held)


@lru_cache(maxsize=1000)
def _filled(family: str, steps: SerialSteps, pairs: Pairs, lanes: int) -> Resources:
    file = _file("", steps, pairs, lanes)
    return costs.filled_rom(family, file.words, file.width)
