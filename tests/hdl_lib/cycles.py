"""An Amaranth core in Amaranth's simulator, cycle by cycle from outside.

The simulator's own triggers, coroutines and falling edges take as long as the core. Here the core's compiled processes
run directly: those of the flip-flops at each edge, those of the logic until nothing changes. Processes that are alike
are compiled once, and bits are masked only where an expression may have too many.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType
from unittest.mock import patch

from amaranth.hdl import Fragment, Signal, Value
from amaranth.hdl._ast import Operator
from amaranth.sim import _pyrtl
from amaranth.sim.pysim import _PyEngineState, _PyMemoryState

Process = Callable[[], None]


class Cycles:
    """``dut`` before the first edge of the clock of its domain "sync", all inputs at their initial values.

    A cycle: read what is settled, :meth:`edge`, set inputs (they change with the flip-flops), :meth:`settle`.
    ``set_reset`` sets the reset of all flip-flops.
    """

    def __init__(self, dut) -> None:
        design = Fragment.get(dut, platform=None).prepare()
        assert set(design.fragment.domains) == {"sync"}, "one clock"
        domain = design.fragment.domains["sync"]
        assert domain.clk_edge == "pos" and not domain.async_reset
        self._state = _PyEngineState()
        with patch.multiple(
            _pyrtl, create=True, compile=_text, exec=_define, _RHSValueCompiler=_Expressions,
            comb_waker=lambda process: process, memory_waker=lambda process: process,
            edge_waker=lambda process, polarity: process,
        ):
            processes = _pyrtl._FragmentCompiler(self._state)(design.fragment)
        self._logic = [process.run for process in processes if process.is_comb]
        self._registers = [process.run for process in processes if not process.is_comb]
        self._readers: dict[object, list[Process]] = {
            slot: [process.run for process in slot.wakers] for slot in self._state.slots
        }
        self._readers[self._slot(domain.clk)] = []
        for slot in self._state.slots:
            slot.wakers.clear()
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
        for process in self._logic:
            process()
        self.settle()

    def edge(self) -> None:
        """Let the clock rise. Nothing acts on its fall."""
        for process in self._registers:
            process()

    def settle(self) -> None:
        """Compute what follows from the edge and from the inputs that were set."""
        pending, readers = self._state.pending, self._readers
        while pending:
            runnable: set[Process] = set()
            for slot in pending:
                if type(slot) is _PyMemoryState:
                    slot.commit()
                elif slot.curr == slot.next:
                    continue
                else:
                    slot.curr = slot.next
                runnable.update(readers.get(slot, ()))
            pending.clear()
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


_OPERATORS = frozenset(("+", "-", "*", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">="))


class _Expressions(_pyrtl._RHSValueCompiler):
    """Expressions of numbers that lie in their shapes' ranges: Amaranth's shapes hold every result, all but those of
    inversions and of casts between signed and unsigned."""

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
