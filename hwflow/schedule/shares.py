"""The share of a frame's cycles in which each core works.

An engine takes its image in strips, in the first part of a frame, and computes other layers in the rest of it. What is
in front of it works at nearly the same pace, and waits for the rest of the frame: a strip waits in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from hwflow.cores.engine.layer_engine import LayerEngineAttributes
from hwflow.ir.graph import Graph, Node


def shares(graph: Graph) -> Mapping[Node, Fraction]:
    """Return the shares that are less than a whole frame."""
    producers = graph.producers()
    found: dict[Node, Fraction] = {}
    for node in graph.nodes:
        given = node.attributes
        if not isinstance(given, LayerEngineAttributes):
            continue
        pace = given.pace
        strips, (begin, words) = len(pace.loads), pace.loads[-1]
        share = Fraction((begin + words) * strips, pace.cycles * max(1, strips - 1))
        if strips == 1 or share >= 1:
            continue
        pending = [node.inputs[0]]
        while pending:
            producer = producers.get(pending.pop())
            if producer is not None and producer not in found:
                found[producer] = share
                pending += producer.inputs
    return found
