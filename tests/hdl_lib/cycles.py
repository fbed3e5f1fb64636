"""An Amaranth core in Amaranth's simulator, cycle by cycle from outside.

The simulator's own triggers, coroutines and falling edges take as long as the core. Here the core's compiled processes
run directly: those of the flip-flops at each edge, those of the logic until nothing changes. Processes that are alike
are compiled once, bits are masked only where an expression may have too many, and what Amaranth does for the names of a
netlist is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any
from unittest.mock import patch

from amaranth.hdl import ClockDomain, Const, Fragment, Shape, Signal, Value
from amaranth.hdl._ast import Concat, Operator, Part, Slice, SwitchValue
from amaranth.sim import _pyrtl, pysim
from amaranth.sim.pysim import _PyEngineState, _PyMemoryState

Process = Callable[[], None]


class Cycles:
    """``dut`` before the first edge of the clock of its domain "sync", all inputs at their initial values.

    A cycle: read what is settled, :meth:`edge`, set inputs (they change with the flip-flops), :meth:`settle`.
    ``set_reset`` sets the reset of all flip-flops.
    """

    def __init__(self, dut) -> None:
        fragment = Fragment.get(dut, platform=None)
        fragment._propagate_domains(ClockDomain)
        assert set(fragment.domains) == {"sync"}, "one clock"
        domain = fragment.domains["sync"]
        assert domain.clk_edge == "pos" and not domain.async_reset
        self._state = _PyEngineState()
        with (
            patch.multiple(
                _pyrtl, create=True, compile=_text, exec=_define, _RHSValueCompiler=_Expressions,
                _LHSValueCompiler=_Targets, _StatementCompiler=_Statements, comb_waker=lambda process: process,
                memory_waker=lambda process: process, edge_waker=lambda process, polarity: process,
            ),
            patch.object(pysim, "_PyMemoryState", _Memory), _shapes_remembered(),
        ):
            processes = _pyrtl._FragmentCompiler(self._state)(fragment)
        self._logic = [process.run for process in processes if process.is_comb]
        self._registers = [process.run for process in processes if not process.is_comb]
        self._memories: set[_PyMemoryState] = set()  # that are written
        for slot in self._state.slots:
            slot.wakers[:] = [process.run for process in slot.wakers]  # who reads it
            if isinstance(slot, _PyMemoryState):
                slot.pending = self._memories
        self._slot(domain.clk).wakers.clear()
        self.set_reset = self.setter(domain.rst)
        self.restart()

    @staticmethod
    def of(dut) -> Cycles:
        """``dut`` compiled, or if it is, from its beginning."""
        if not isinstance(dut, Cycles):
            return Cycles(dut)
        dut.restart()
        return dut

    def restart(self) -> None:
        """Go back to the beginning."""
        self._state.reset()
        self._memories.clear()
        for process in self._logic:
            process()
        self.settle()

    def edge(self) -> None:
        """Let the clock rise. Nothing acts on its fall."""
        for process in self._registers:
            process()

    def settle(self) -> None:
        """Compute what follows from the edge and from the inputs that were set."""
        pending, memories = self._state.pending, self._memories
        while pending or memories:
            runnable: set[Process] = set()
            for slot in pending:
                if slot.curr != slot.next:
                    slot.curr = slot.next
                    if slot.wakers:
                        runnable.update(slot.wakers)
            pending.clear()
            for memory in memories:
                for address, word in memory.write_queue.items():
                    memory.data[address] = word
                memory.write_queue.clear()
                runnable.update(memory.wakers)
            memories.clear()
            for process in runnable:
                process()

    def reader(self, signal) -> Callable[[], int]:
        """What reads a signal or a view of one, as an unsigned bit pattern."""
        slot, mask = self._slot(signal), (1 << len(Value.cast(signal))) - 1
        return lambda: slot.curr & mask

    def setter(self, signal) -> Callable[[int], None]:
        """What sets an input to an unsigned bit pattern."""
        slot, shape = self._slot(signal), Value.cast(signal).shape()
        sign = 1 << (shape.width - 1) if shape.signed else 0
        mask = (1 << shape.width) - 1
        return lambda pattern: slot.update(((pattern & mask) ^ sign) - sign)

    def _slot(self, signal):
        signal = Value.cast(signal)
        assert isinstance(signal, Signal), "only whole signals"
        return self._state.slots[self._state.get_signal(signal)]


class _Memory(_PyMemoryState):
    """A memory whose readers run when a word changes. Amaranth's writes, and has them run, in every cycle."""

    __slots__ = ("depth",)

    def __init__(self, memory, pending) -> None:
        super().__init__(memory, pending)
        self.depth = memory.depth

    def read(self, addr: int) -> int:
        return self.data[addr] if addr < self.depth else 0

    def write(self, addr: int, value: int, mask: int) -> None:
        if not mask or addr >= self.depth:
            return
        before = self.write_queue.get(addr, self.data[addr])
        value = (value & mask) | (before & ~mask)
        if self.shape.signed:
            half = 1 << (self.shape.width - 1)
            value = ((value & (2 * half - 1)) ^ half) - half
        if value != before:
            self.write_queue[addr] = value
            self.pending.add(self)


_OPERATORS = frozenset(("+", "-", "*", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">="))


class _Expressions(_pyrtl._RHSValueCompiler):
    """Expressions of numbers that lie in their shapes' ranges: Amaranth's shapes hold every result, all but those of
    inversions and of casts between signed and unsigned."""

    def on_value(self, value) -> str:
        code = self._on[type(value)](self, value)
        return self.emitter.def_var("expr_split", code) if len(code) > 1000 else code

    def on_Concat(self, value) -> str:
        parts, offset = [], 0
        for part in value.parts:
            code, width = self.sign(part), len(part)
            if part.shape().signed:
                code = f"({(1 << width) - 1:#x} & {code})"
            parts.append(f"({code} << {offset})" if offset else code)
            offset += width
        return f"({' | '.join(parts)})" if parts else "0"

    def sign(self, value) -> str:
        inverted = isinstance(value, Operator) and value.operator == "~"
        cast = isinstance(value, Operator) and value.operator in ("u", "s")
        if not inverted and not cast:
            return self(value)
        (operand,) = value.operands
        width = len(value)
        code = f"({(1 << width) - 1:#x} & {self.sign(operand) if cast else self(value)})"
        half = 1 << max(width - 1, 0)
        return f"(({code} ^ {half:#x}) - {half:#x})" if value.shape().signed else code

    def on_Operator(self, value) -> str:
        if value.operator == "~":
            return f"(~{self.sign(value.operands[0])})"
        if len(value.operands) == 2 and value.operator in _OPERATORS:
            left, right = map(self.sign, value.operands)
            return f"({left} {value.operator} {right})"
        return super().on_Operator(value)


_Expressions._on = {
    Const: _Expressions.on_Const, Signal: _Expressions.on_Signal, Operator: _Expressions.on_Operator,
    Slice: _Expressions.on_Slice, Part: _Expressions.on_Part, Concat: _Expressions.on_Concat,
    SwitchValue: _Expressions.on_SwitchValue,
}  # fmt: skip


class _Targets(_pyrtl._LHSValueCompiler):
    """What is assigned to, with signs without a call."""

    def on_Signal(self, value):
        shape, name = value.shape(), f"next_{self.state.get_signal(value)}"
        mask, half = (1 << shape.width) - 1, 1 << max(shape.width - 1, 0)

        def assign(code: str) -> None:
            masked = f"(({mask:#x} & {code}) ^ {half:#x}) - {half:#x}" if shape.signed else f"{mask:#x} & {code}"
            self.emitter.append(f"{name} = {masked}")

        return assign


class _Statements(_pyrtl._StatementCompiler):
    """Assignments without a mask where every number of the one shape is one of the other."""

    def on_Assign(self, stmt) -> None:
        target, source = stmt.lhs, stmt.rhs
        if type(target) is Signal:
            there, here = target.shape(), source.shape()
            if here.width + (there.signed and not here.signed) <= there.width and here.signed <= there.signed:
                self.emitter.append(f"next_{self.state.get_signal(target)} = {self.rhs.sign(source)}")
                return
        super().on_Assign(stmt)


@contextmanager
def _shapes_remembered() -> Iterator[None]:
    """Amaranth computes the shape of an expression again for every expression around it."""
    known: dict[int, tuple[object, Shape]] = {}  # by identity: the value itself keeps it from being another's

    def remembered(shape: Callable[[Any], Shape]) -> Callable[[Any], Shape]:
        def of(value) -> Shape:
            found = known.get(id(value))
            if found is None:
                found = known[id(value)] = value, shape(value)
            return found[1]

        return of

    with (
        patch.object(Operator, "shape", remembered(Operator.shape)),
        patch.object(Concat, "shape", remembered(Concat.shape)),
        patch.object(SwitchValue, "shape", remembered(SwitchValue.shape)),
    ):
        yield


def _text(code: str, filename: str, mode: str) -> str:
    """In place of Python's ``compile``: nothing, :func:`_define` does it."""
    return code


_NAMES = re.compile(r"slots\[(\d+)\]|\bnext_(\d+)\b")
_UPDATE = re.compile(r"^( *)slots\[(\d+)\]\.update\(next_\2, (-?\d+)\)$", re.MULTILINE)


def _define(code: str, names: dict) -> None:
    """In place of Python's ``exec`` of a process: the same with its signals as local names, whatever their numbers are,
    and without a call for a whole signal that does not change."""
    slots, numbers = names["slots"], {}

    def update(found: re.Match) -> str:
        indent, number, mask = found.groups()
        shape = slots[int(number)].signal.shape()
        if int(mask) != (-1 if shape.signed else (1 << shape.width) - 1):
            return found[0]
        slot, value = f"slots[{number}]", f"next_{number}"
        return f"{indent}if {slot}.next != {value}:\n{indent}    {slot}.next = {value}; pending.add({slot})"

    def local(found: re.Match) -> str:
        number = found[1] or found[2]
        name = numbers.setdefault(number, len(numbers))
        return f"slot_{name}" if found[1] else f"next_{name}"

    body = _NAMES.sub(local, _UPDATE.sub(update, code))
    parameters = ", ".join(f"slot_{name}" for name in range(len(numbers)))
    body = body.replace("def run():", f"def run(pending, {parameters}):", 1)
    known = tuple(slots[int(number)] for number in numbers)
    pending = known[0].pending if known else set()
    names["run"] = FunctionType(_compiled(body), names, "run", (pending, *known))


@lru_cache(maxsize=4096)
def _compiled(text: str) -> CodeType:
    """The code of the one function that a text defines."""
    (code,) = (part for part in compile(text, "<string>", "exec").co_consts if isinstance(part, CodeType))
    return code
