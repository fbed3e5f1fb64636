"""The passes in order. After each one the graph is checked against the invariants of its stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hwflow.cores.registry import LEGAL
from hwflow.ir.graph import Graph
from hwflow.ir.legality import check
from hwflow.ir.node_attributes import LoopAttributes
from hwflow.passes.fuse_requantize import fuse_requantize
from hwflow.passes.infer_types import infer_types
from hwflow.passes.insert_forks import insert_forks
from hwflow.passes.requantize_choices import requantize_choices
from hwflow.passes.rescale_sums import rescale_sums
from hwflow.passes.roll_loops import roll_loops, share_layers
from hwflow.passes.to_dataflow import to_dataflow

Pass = Callable[[Graph], Graph]

def _inside(step: Pass) -> Pass:
    """Return a pass that also changes the bodies of loops."""

    def both(graph: Graph) -> Graph:
        graph = step(graph)
        for node in graph.nodes:
            if isinstance(node.attributes, LoopAttributes):
                node.attributes = replace(node.attributes, body=step(node.attributes.body))
        return graph

    both.__name__ = step.__name__
    return both


QUANTIZED: tuple[Pass, ...] = (infer_types,)
"""Passes on the front end's graph: nothing is fused, every ONNX integer value is still there (``compare`` uses it)."""

SIMPLER: tuple[Pass, ...] = tuple(map(_inside, (requantize_choices, fuse_requantize, rescale_sums)))
"""Optimisations."""

DATAFLOW: tuple[Pass, ...] = (*SIMPLER, to_dataflow, insert_forks)
"""Passes from there to streams."""

UNROLLED, ONCE, SHARED = "unrolled", "once", "shared"

FORMS: dict[str, tuple[Pass, ...]] = {
    ONCE: (roll_loops, *DATAFLOW),
    UNROLLED: DATAFLOW,
    SHARED: (roll_loops, *SIMPLER, share_layers, to_dataflow, insert_forks),
}
"""The same for each form of loops: one body for all rounds, hardware for each, and one body also for layers of one
shape that follow each other."""


def holding(hold: Pass) -> tuple[Pass, ...]:
    """Return the passes for hardware with room for other weights, which ``hold`` makes."""
    return (*SIMPLER[:-1], hold, to_dataflow, insert_forks)  # which shortens multipliers where it has none to hold


def run(graph: Graph, passes: tuple[Pass, ...]) -> Graph:
    """Apply ``passes`` in order; check the graph after each that must leave a legal one."""
    for index, step in enumerate(passes):
        graph = step(graph)
        if index + 1 == len(passes) or step not in _INCOMPLETE:
            check(graph, step.__name__, LEGAL)
    return graph


_INCOMPLETE = frozenset({to_dataflow})  # streams with several readers are legal only after insert_forks
