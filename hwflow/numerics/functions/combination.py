"""Two chains of functions of one argument, combined: ``x * sigmoid(x)``, say.

Nested combinations share subexpressions: ``h + h`` of an h that is itself ``g + g``, and so on. A combination is
therefore evaluated as a straight-line program, each subexpression once, never as a tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

from hwflow.numerics.functions.float_interval import FloatIntervals
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.interval import Interval

Chain = tuple[Elementwise, ...]
Number = TypeVar("Number", Interval, FloatIntervals)

OPERATIONS = ("add", "sub", "mul", "div", "min", "max")


class Instruction(NamedTuple):
    """A function of one number, or an operation on two. ``operands``: indices of results (0 is x itself, k that of the
    k-th instruction); ``last``: those that no later instruction reads."""

    function: Elementwise | str
    operands: tuple[int, ...]
    last: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Combination(Elementwise):
    """``left(x) op right(x)`` with ``op`` one of OPERATIONS; an empty chain is x itself.

    Compared by identity: :func:`combination` returns the same object for the same chains.
    """

    op: str
    left: Chain
    right: Chain

    def __post_init__(self) -> None:
        if self.op not in OPERATIONS:  # uncovered: a defect of ours
            raise ValueError(f"operation of a Combination must be one of {', '.join(OPERATIONS)}, not {self.op}")

    def __repr__(self) -> str:
        return f"Combination({self.op} of {len(self.left)} and {len(self.right)} functions)"

    def __reduce__(self) -> tuple[Callable[..., Combination], tuple[object, ...]]:
        """Pickle the program: the nested objects would exceed the recursion limit."""
        return _of_program, (self.program,)

    @cached_property
    def program(self) -> tuple[Instruction, ...]:
        """The straight-line program, each subexpression once; the last instruction's result is the value."""
        steps: list[tuple[Elementwise | str, tuple[int, ...]]] = []
        known: dict[tuple[Elementwise | str, tuple[int, ...]], int] = {}

        def done(step: tuple[Elementwise | str, tuple[int, ...]]) -> int:
            if step not in known:
                steps.append(step)
                known[step] = len(steps)
            return known[step]

        results: list[int] = []  # of chains, awaited by those below them on the stack
        pending: list[tuple[Chain, int] | tuple[Chain, Combination, int]] = [((self,), 0)]
        while pending:
            task = pending.pop()
            if len(task) == 3:  # both chains of a combination are done
                chain, combined, number = task
                right, left = results.pop(), results.pop()
                known[combined, (number,)] = number = done((combined.op, (left, right)))
            else:
                chain, number = task
            for place, function in enumerate(chain):
                if isinstance(function, Combination) and (function, (number,)) not in known:
                    pending += [(chain[place + 1 :], function, number), (function.right, number)]
                    pending.append((function.left, number))
                    break
                number = done((function, (number,)))
            else:
                results.append(number)
        readers = {operand: place for place, (_, operands) in enumerate(steps) for operand in operands}
        return tuple(
            Instruction(function, operands, tuple({o for o in operands if readers[o] == place}))
            for place, (function, operands) in enumerate(steps)
        )

    @property
    def size(self) -> int:
        return len(self.program)

    def enclose(self, x: Interval, bits: int) -> Interval:
        return self._run(x, lambda function, number: function.enclose(number, bits).limited(bits), _exact, bits)

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        return self._run(x, lambda function, number: function.floats(number), _floats, 0)

    def _run(
        self, x: Number, apply: Callable[[Elementwise, Number], Number],
        combine: Callable[[str, Number, Number, int], Number], bits: int,
    ) -> Number:
        results = {0: x}
        for place, (function, operands, last) in enumerate(self.program, 1):
            numbers = [results[operand] for operand in operands]
            for operand in last:
                del results[operand]
            if isinstance(function, str):
                results[place] = combine(function, numbers[0], numbers[1], bits)
            else:
                results[place] = apply(function, numbers[0])
        return results[len(self.program)]


@lru_cache(maxsize=1 << 13)
def combination(op: str, left: Chain, right: Chain) -> Combination:
    """Return the Combination of these chains, always the same object for the same chains."""
    return Combination(op, left, right)


def _of_program(program: tuple[Instruction, ...]) -> Combination:
    chains: list[Chain] = [()]
    for function, operands, _ in program:
        if isinstance(function, str):
            chains.append((combination(function, chains[operands[0]], chains[operands[1]]),))
        else:
            chains.append((*chains[operands[0]], function))
    (result,) = chains[-1]
    assert isinstance(result, Combination), "a combination's last instruction is an operation"
    return result


def _exact(op: str, a: Interval, b: Interval, bits: int) -> Interval:
    match op:
        case "add":
            result = a + b
        case "sub":
            result = a + -b
        case "mul":
            result = a * b
        case "div":
            result = a * b.reciprocal()
        case "min":
            result = a.minimum(b)
        case _:
            result = a.maximum(b)
    return result.limited(bits)


def _floats(op: str, a: FloatIntervals, b: FloatIntervals, bits: int) -> FloatIntervals:
    match op:
        case "add":
            return a.sum(b)
        case "sub":
            return a.sum(b.negated())
        case "mul":
            return a.product(b)
        case "div":
            return a.product(b.reciprocal())
        case "min":
            return a.minimum(b)
        case _:
            return a.maximum(b)
