"""The words of a serial engine's program, as many of its narrow memory for each instruction as its numbers take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from amaranth.hdl import Const, Shape, Signal, Value
from amaranth.utils import bits_for

from hdl_lib.engine.engine_program import Instruction, Layer, Load, Send
from hdl_lib.engine.fields import MOVES, SIGNED, numbers_of
from hdl_lib.engine.serial_program import SerialProgram, split
from hdl_lib.memories.rom import Table

WIDTH = 16
"""Bits of a word."""


class SerialFields:
    """Where the numbers of a program's instructions lie, and the words. Numbers that are the same for all instructions
    are constants."""

    def __init__(self, program: SerialProgram) -> None:
        *_, last = program.instructions
        rows = [_numbers(program, each, each is last) for each in program.instructions]
        self.shapes: dict[str, Shape] = {}
        self.constants: dict[str, int] = {}
        for name in dict.fromkeys(name for row in rows for name in row):
            values = [row.get(name, 0) for row in rows]
            here = {row[name] for row in rows if name in row}
            if len(here) == 1 and name not in ("is_last", "loads", "sends"):
                self.constants[name] = here.pop()
            else:
                signed = name in SIGNED
                self.shapes[name] = Shape(max(bits_for(value, signed) for value in values), signed)
        self._rows = rows

    @property
    def bits(self) -> int:
        """Return the bits of an instruction."""
        return sum(shape.width for shape in self.shapes.values())

    @property
    def words(self) -> int:
        """Return the words of an instruction."""
        return -(-self.bits // WIDTH)

    @cached_property
    def table(self) -> Table:
        """Return the program, word by word."""
        found = []
        for row in self._rows:
            word = first = 0
            for name, shape in self.shapes.items():
                word |= (row.get(name, 0) & ((1 << shape.width) - 1)) << first
                first += shape.width
            found += split([word], self.words * WIDTH, WIDTH)
        return Table.of_words(found, WIDTH)

    def of(self, held: Signal) -> Mapping[str, Value]:
        """Return the numbers of an instruction whose words are ``held``, the first one lowest."""
        found: dict[str, Value] = {}
        first = 0
        for name, shape in self.shapes.items():
            bits = held[first : first + shape.width]
            found[name] = bits.as_signed() if shape.signed else bits
            first += shape.width
        for name, value in self.constants.items():
            found[name] = Const(value, Shape(bits_for(value, name in SIGNED), name in SIGNED))
        return found


def _numbers(program: SerialProgram, each: Instruction, is_last: bool) -> dict[str, int]:
    found = numbers_of(program, each, is_last)
    if isinstance(each, Load):
        found["target_pixel"] = 1
    if isinstance(each, Send):  # the walk's rows are words
        words = each.region.words
        found |= {"blocks_left": 0, "kernel_columns_left": 0, "kernel_row": 1 % words}
    if isinstance(each, Layer):
        for name in ("signed", "steps_left", *(f"{move}_round" for move in MOVES)):
            del found[name]
        found |= {
            "channels_left": program.runs(each) - 1, "out_words": program.made(each),
            "last_element": 0 if each.diagonal else (each.last or program.lanes) - 1,
            "idle_left": program.idle(each) - 1,
            "odd": int(program.is_odd(each)), "same": int(each.same),
            "maximum": int(each.maximum),
        }
    return found


def complete(program: SerialProgram) -> SerialProgram:
    """Return a program that knows how many words an instruction takes."""
    return replace(program, setting_words=SerialFields(program).words)
