"""Refuse models far beyond a part, or far from the rate asked for, by lower bounds and before any search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from math import prod

from hwflow.boards import all_boards
from hwflow.boards.board import Part
from hwflow.cores.loops.followed_by import FollowedByAttributes
from hwflow.cores.registry import hardware
from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.ir.graph import Graph, Node
from hwflow.schedule.search.bounds import Bounds, weight_bits
from hwflow.schedule.search.circuit_nodes import circuit_nodes
from hwflow.schedule.search.folding_search import RESOURCES, Budget, free_text

LARGE = 1 << 22
"""Bits of weights, or streamed elements per frame, from which on lower bounds refuse a model. For smaller ones the
search says which budget or rate is enough."""

NAMED = 3  # nodes that hold most


class FarBeyond(ModelRefused):
    """Lower bounds show that nothing can fit."""


def refuse_far_beyond(
    graph: Graph, device: Part, budgets: Sequence[Budget], interval: int | None, clock_hz: float,
    free: Budget, executor: Executor | None = None,
) -> None:
    """Raise :class:`ModelRefused` if by lower bounds no folding fits any of the ``budgets``, or none with an initiation
    interval of ``interval`` cycles does. ``clock_hz``: of the design's clock; ``free``: what the part has for it."""
    weights = sum(map(weight_bits, graph.nodes))
    turning = _turning_bits(graph)
    if turning:
        most = max(Bounds(graph, device, executor).held_bits(budget.of_whole_designs) for budget in budgets)
        if weights + sum(turning.values()) > most:
            raise FarBeyond.of(
                "device-budget", f"model {show(graph.name)}",
                f"its weights and what circulates in its loops must have at most {most:,} bits, not "
                f"{weights + sum(turning.values()):,} ({_most(turning)})",
                "give each round cores of its own ('--loops unrolled'), choose a larger board, or use smaller images",
            )
    streamed = sum(prod(value.typed.shape) for node in graph.nodes for value in node.inputs)
    if max(weights, streamed) < LARGE:
        return
    bounds, budgets = Bounds(graph, device, executor), [budget.of_whole_designs for budget in budgets]
    roomiest = min(budgets, key=lambda budget: bounds.missing_luts(budget, None))
    if bounds.missing_luts(roomiest, None):
        raise FarBeyond(_too_large(graph, bounds, roomiest, free))
    if interval is not None:
        nearest = min(least for budget in budgets if (least := bounds.least_interval(budget)) is not None)
        if interval < nearest:
            aim = max(interval, bounds.intervals[0])
            roomiest = min(budgets, key=lambda budget: bounds.missing_luts(budget, aim))
            raise FarBeyond(_too_fast(graph, bounds, roomiest, interval, nearest, clock_hz, free))


def _turning_bits(graph: Graph) -> Mapping[Node, int]:
    """Return the bits of a round of each loop, where they are fewest: in a circuit of cores that work for all rounds in
    turn, so much is on its way or waits."""
    circuit = circuit_nodes(graph)
    bits = [
        prod(value.typed.shape) * value.typed.element.bits for node in graph.nodes if node in circuit
        for value in node.outputs
    ]
    rounds = {node: node.attributes.rounds for node in circuit if isinstance(node.attributes, FollowedByAttributes)}
    return {node: min(bits) // count for node, count in rounds.items()}


def _too_large(graph: Graph, bounds: Bounds, budget: Budget, free: Budget) -> Finding:
    held = bounds.held_bits(budget)
    bits: Mapping[Node, int] = {node: weight_bits(node) for node in graph.nodes}
    what, act = "weights", "weights of fewer bits"
    if sum(bits.values()) <= held:
        what, bits, act = "weights, line buffers and registers", bounds.least_bits(), "smaller images"
    if sum(bits.values()) > held:
        message = (
            f"its {what} must have at most {held:,} bits, the capacity of {budget.bram} block RAMs, {budget.lut} "
            f"look-up tables and {budget.ff} flip-flops, not {sum(bits.values()):,} (most are in {_most(bits)})"
        )
    else:
        message = _luts_at_least(budget, bounds.missing_luts(budget, None))
    remedy = _remedy(bounds, None, budget, free, f"use a smaller model, or {act}")
    return Finding("device-budget", f"model {show(graph.name)}", message, remedy)


def _too_fast(
    graph: Graph, bounds: Bounds, budget: Budget, interval: int, nearest: int, clock_hz: float, free: Budget
) -> Finding:
    """Refuse a rate beyond the bounds. ``nearest``: the least interval that the bounds admit."""
    macs = {node: hardware(node.op).macs(node) for node in graph.nodes}
    fastest = bounds.intervals[0]
    why = f"the slowest core takes {fastest} cycles"
    if interval >= fastest:
        why = _luts_at_least(budget, bounds.missing_luts(budget, interval))
    total = sum(macs.values())
    return Finding(
        "reachable-rate", "option --fps",
        f"--fps {clock_hz / interval:.4g} not met: at most {clock_hz / nearest:.4g} frames/s: {total:,} products per "
        f"frame (most are in {_most(macs)}) in {interval} cycles are {-(-total // interval):,} per cycle; "
        + why,
        _remedy(
            bounds, max(interval, fastest), budget, free,
            "ask for fewer frames per second (the bound may not be reachable), or use a smaller model",
        ),
    )


def _luts_at_least(budget: Budget, missing: int) -> str:
    return (
        f"look-up tables must be at most {budget.lut}, not at least {budget.lut + missing}, beside all "
        f"{budget.dsp} multiplier blocks and {budget.bram} block RAMs"
    )


def _most(of: Mapping[Node, int]) -> str:
    most = sorted(of, key=lambda node: -of[node])[:NAMED]
    return ", ".join(f"{show(node.name)} {of[node]:,}" for node in most if of[node])


def _remedy(bounds: Bounds, interval: int | None, budget: Budget, free: Budget, act: str) -> str:
    """Say which budget or board would be enough. A board comes second: only where what is ``free``, or asked for in
    ``budget``, does not hold it."""
    enough = bounds.about_enough(interval)
    text = ", ".join(f"{name}={getattr(enough, name)}" for name in RESOURCES)
    if all(getattr(enough, name) <= max(getattr(budget, name), getattr(free, name)) for name in RESOURCES):
        return f"a budget of about {text} should hold it: request it with --budget"
    most = Budget(*(max(getattr(budget, name), getattr(free, name)) for name in RESOURCES))
    if not bounds.missing_luts(most, interval):
        return f"all that is there may hold it: request '--budget {free_text(budget, free)}'"
    boards = sorted(all_boards(), key=lambda board: board.part.bram * board.part.bram_bits)
    larger = [b.name for b in boards if all(getattr(b.part, n) >= getattr(enough, n) for n in RESOURCES)]
    board = (
        f"{larger[0]} is the smallest board that may hold it" if larger
        else f"no board of hwflow holds it ({boards[-1].name} has the most block RAM)"
    )
    return f"{board}: {act}; for Verilog alone (--until verilog) a --budget of about {text} should hold it"
