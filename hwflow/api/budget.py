"""Resource budgets: the defaults, and what is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, prod
from typing import TYPE_CHECKING

from hwflow.codegen.board.board_top import surroundings
from hwflow.cores.engine.layer_engine import LayerEngineAttributes
from hwflow.display import show
from hwflow.errors import Finding, UsageError
from hwflow.ir.graph import Graph, Port
from hwflow.schedule.search.folding_search import RESOURCES, Budget

if TYPE_CHECKING:
    from hwflow.boards.board import Board

# Place and route gets slow and clocks fall when a device is full; multipliers and memories are placed easily.
FILL = {"lut": 0.5, "ff": 0.5, "dsp": 1.0, "bram": 0.9}

SHARED_CELLS = frozenset({"ice40"})
"""Families whose flip-flops share a cell with the look-up table that drives them; any other takes a cell alone."""

SHARES = ((0.5, 0.5), *((lut, 0.95 - lut) for lut in (0.45, 0.4, 0.35, 0.325, 0.3, 0.275, 0.25)))
"""Shares of such a part's cells for look-up tables and for flip-flops. Which a network needs more of depends on its bit
widths, so the best pair is taken. A pair sums to at most 95 %: no flip-flop may share a cell, and a twentieth is lost
to tile packing. Of five designs, those at 83 to 88 % by this count were placed; one at 91 % was not."""

ENGINE_SHARES = ((0.75, 0.6),)
"""The same where an engine computes layers in turn: most of its flip-flops share a cell. A keyword DS-CNN with 1,884
look-up tables and 1,305 flip-flops takes 2,750 cells of an iCE40UP5K besides the link's. All block RAM may be taken."""

SHELL_ALONE = 0.5
"""Share of the shell's flip-flops that take such a cell alone: 550 of 950 (a Relu on an iCE40UP5K, whose link has 1,550
look-up tables; nextpnr 0.11)."""

# By default a design stays small enough for place and route to take minutes (6,000 look-up tables take one to two,
# 30,000 more than seven); --fps or --budget asks for more. Flip-flops have no such limit: most of a design's belong to
# its multiplier blocks, and are packed into them.
UNASKED = {"lut": 20_000}

LEEWAY = 1_000
"""Look-up tables beyond :data:`UNASKED` that queues may take; the folding search estimates these worst."""

MOST = 1 << 30  # of any resource: beyond what any design is made of, and within what the search counts with


@dataclass(frozen=True)
class Amount:
    """Of a resource: a ``number`` of at least 0, or that many ``percent`` of what there is."""

    number: float
    percent: bool = False

    def of(self, whole: int) -> int:
        """Return the number where there are ``whole``."""
        return int(whole * self.number / 100) if self.percent else int(self.number)


Amounts = Mapping[str, Amount]


def amounts(asked: Mapping[str, int | float | str] | None) -> Amounts:
    """Parse limits of resources, by name numbers or percentages such as "50%". Raises :class:`UsageError` with a
    finding for each invalid name and value."""
    found, findings = {}, []
    for name, value in (asked or {}).items():
        amount = _amount(value)
        if name not in RESOURCES:
            findings.append(malformed(f"names must be among {', '.join(RESOURCES)}, not {show(name)}"))
        elif amount is None:
            findings.append(malformed(f"{name} must be a number or a percentage of at least 0, not {show(value)}"))
        else:
            found[name] = amount
    if findings:
        raise UsageError(findings)
    return found


def beyond_part(
    board: Board, asked: Amounts, queued: Sequence[int] = (), *, carrier: str, what_if: bool
) -> list[Finding]:
    """Return a finding for each resource of which more is ``asked`` than ``board`` has beside its shell, or raise
    :class:`UsageError` with them unless such a design is wanted as a ``what_if``. The shell grows with the bytes that
    are ``queued`` (:func:`queued_bytes`): none are known before the model is."""
    there = _there(board, queued, carrier)
    counts = {name: amount.of(there[name]) for name, amount in asked.items()}
    beyond = [
        Finding(
            "budget-option", "option --budget",
            f"{name} must be at most {there[name]}, what {board.name} has beside its link, not {count}",
            f"ask for {name}=100% or less, choose a larger board, or stop at --until verilog",
        )
        for name, count in counts.items()
        if count > there[name]
    ]
    if beyond and not what_if:
        raise UsageError(beyond)
    return beyond


def queued_bytes(graph: Graph) -> list[int]:
    """Bound the bytes of a frame of each stream that has a queue because several take turns
    (:mod:`hdl_lib.links.stream_turns`): lanes are not known yet; surplus lanes of last beats less than double it."""
    return [_most_bytes(port) for port in (*graph.inputs[:-1], *graph.outputs[1:])]


def _most_bytes(port: Port) -> int:
    return 2 * prod(port.value.typed.shape) * -(-port.value.typed.element.bits // 8)


def free_on(board: Board, graph: Graph, carrier: str = "serial") -> Budget:
    """Return all that ``board`` has for ``graph`` beside its shell."""
    return Budget(**_there(board, queued_bytes(graph), carrier))


def budgets_for(
    board: Board, graph: Graph, asked: Amounts, *, for_rate: bool, carrier: str = "serial", whole: bool = False
) -> list[Budget]:
    """Return the candidate budgets of ``graph`` on ``board``: of each resource what is ``asked``, else the default.

    The default is :data:`FILL` of what the board's shell leaves of the part, or :data:`SHARES` of the cells (or
    :data:`ENGINE_SHARES`) that it leaves for look-up tables and flip-flops; of these two at most :data:`UNASKED`,
    unless a rate is a target (``for_rate``) or one of them is asked for. ``whole``: the default is instead all that the
    shell leaves, of cells the same shares. ``asked``: by name, of what the shell leaves, possibly more than there is
    (:func:`beyond_part`). ``carrier``: the link's.
    """
    there = _there(board, queued_bytes(graph), carrier)
    asked_for = {name: min(MOST, amount.of(there[name])) for name, amount in asked.items()}
    most = dict(there) if whole else {name: int(there[name] * FILL[name]) for name in RESOURCES}
    # of a part with fewer flip-flops than look-up tables as many as of these
    most["ff"] = min(there["ff"], max(most["ff"], int(there["lut"] * FILL["ff"])))
    leeway = 0
    if not whole and not for_rate and not asked.keys() & UNASKED.keys():
        leeway = min(LEEWAY, max(0, most["lut"] - UNASKED["lut"]))
        most |= {name: min(most[name], limit) for name, limit in UNASKED.items()}
    if board.part.family in SHARED_CELLS and not asked.keys() & {"lut", "ff"}:
        cells = max(0, there["lut"] - int(SHELL_ALONE * (board.part.ff - there["ff"])))
        shares = SHARES
        if any(node.op == LayerEngineAttributes.op for node in graph.nodes):
            shares, most["bram"] = ENGINE_SHARES, there["bram"]
        splits = [{"lut": int(cells * lut), "ff": int(cells * ff)} for lut, ff in shares]
    else:
        splits = [{}]
    return [Budget(**most | split | asked_for, leeway=leeway) for split in splits]


def _there(board: Board, queued: Sequence[int], carrier: str) -> dict[str, int]:
    """Return what the shell leaves of the part."""
    shell = surroundings(board, queued, carrier)
    return {name: max(0, int(getattr(board.part, name)) - shell[name]) for name in RESOURCES}


def malformed(message: str) -> Finding:
    """Return the finding that --budget is malformed."""
    return Finding("budget-option", "option --budget", message, "for example --budget lut=30000,dsp=50%")


def _amount(value: int | float | str) -> Amount | None:
    """Return a number or a percentage; None if ``value`` is neither."""
    text = str(value).strip()
    number = text.removesuffix("%")
    try:
        amount = float(number) if text != number else int(number)
    except ValueError:
        return None
    return Amount(amount, text != number) if isfinite(amount) and amount >= 0 else None
