"""What a design may use of a part: by default, or as it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from hwflow.codegen.board_top import shell_allowance
from hwflow.errors import Finding, UsageError
from hwflow.ir.graph import Graph
from hwflow.schedule.folding import RESOURCES, Budget

if TYPE_CHECKING:
    from hwflow.boards.board import Board

# Place and route gets slow and clocks fall when a device is full; multipliers and memories are placed easily.
FILL = {"lut": 0.5, "ff": 0.5, "dsp": 1.0, "bram": 0.9}

# Without a wish, a design stays small enough for place and route to take minutes (6,000 look-up tables take one to two
# of them, 30,000 more than seven): whoever wants more asks for it by --fps or --budget. Flip-flops are not limited
# beyond that: most of a design's are those of its multiplier blocks, which go into the blocks.
UNASKED = {"lut": 20_000}


def budget_for(
    board: Board, graph: Graph, asked: Mapping[str, int | float | str] | None, *, for_rate: bool
) -> Budget:
    """The budget of ``graph`` on ``board``: of each resource what is ``asked``, else the default.

    The default is :data:`FILL` of what the board's shell leaves of the part; of look-up tables and flip-flops no more
    than :data:`UNASKED`, unless a rate is to be reached (``for_rate``) or one of the two is asked for. ``asked``: by
    name, a number or a percentage such as "50%" of what the shell leaves.

    Raises :class:`UsageError` with a finding for each value that is none.
    """
    asked = asked or {}
    # Lanes are not known yet: surplus lanes of the last beats less than double a frame's bytes.
    types = [port.value.typed for port in graph.inputs]
    frame = sum(2 * prod(t.shape) * -(-t.element.bits // 8) for t in types)
    shell = shell_allowance(board.part, frame)
    there = {name: max(0, int(getattr(board.part, name)) - shell[name]) for name in RESOURCES}
    most = {name: int(there[name] * FILL[name]) for name in RESOURCES}
    if not for_rate and not asked.keys() & UNASKED.keys():
        most |= {name: min(most[name], limit) for name, limit in UNASKED.items()}
    findings = []
    for name, value in asked.items():
        if name not in there:
            findings.append(_bad(f"names must be among {', '.join(RESOURCES)}, not '{name}'"))
            continue
        count = _count(value, there[name])
        if count is None:
            findings.append(_bad(f"{name} must be a number of at least 0 or a percentage up to 100%, not '{value}'"))
        elif count > there[name]:
            findings.append(_bad(
                f"{name} must be at most {there[name]}, what {board.name} has beside its serial port, not {count}"
            ))
        else:
            most[name] = count
    if findings:
        raise UsageError(findings)
    return Budget(**most)


def _bad(message: str) -> Finding:
    return Finding("budget-option", "option --budget", message, "for example --budget lut=30000,dsp=50%")


def _count(value: int | float | str, whole: int) -> int | None:
    """A number, or the percentage of ``whole``; None if ``value`` is neither."""
    text = str(value).strip()
    number = text.removesuffix("%")
    try:
        amount = float(number) if text != number else int(number)
    except ValueError:
        return None
    if text == number:
        return int(amount) if amount >= 0 else None
    return int(whole * amount / 100) if 0 <= amount <= 100 else None
