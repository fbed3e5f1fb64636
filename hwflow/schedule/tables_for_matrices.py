"""Put truth tables in place of constant matrices and their requantizers where they are smaller.

The folding search knows no tables. Where it has chosen a matrix that takes whole vectors and a requantizer that takes
its results as they come, the two may become one core; its foldings for fewer frames stay what they are. What this saves
at most is what a budget may be raised by before such a search (:func:`saving`).
"""

from __future__ import annotations

from collections.abc import Iterator

from hwflow.cores.chain import NO_QUEUE
from hwflow.cores.matrix.dot_products import MvuAttributes
from hwflow.cores.matrix.neurons import NeuronsAttributes, neuron_tables, neurons_folding
from hwflow.cores.operator import Decision, Device, Folding, Resources
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Graph, Node
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.schedule.converters import FreshNames
from hwflow.schedule.plan import Plan
from hwflow.schedule.search.exploration import PROVISIONAL_DEPTH


def insert_truth_tables(plan: Plan, device: Device) -> None:
    """Replace each such pair by neurons, if these take fewer look-up tables and flip-flops. Requires: stream-shape,
    single-consumer."""
    graph, names = plan.graph, FreshNames(plan.graph)
    replaced: dict[Node, Node] = {}
    for matrix, requantizer in _pairs(graph):
        if not all(hardware(node.op).is_steady(node, plan.folding(node)) for node in (matrix, requantizer)):
            continue
        made = _neurons(matrix, requantizer, names.nodes.fresh(f"{matrix.name}_to_{requantizer.name}"))
        if made is None:
            continue
        folding = neurons_folding(plan.folding(matrix), device)
        gain = _need(matrix, plan.folding(matrix), device) + _need(requantizer, plan.folding(requantizer), device)
        need = _need(made, folding, device)
        if need.lut + need.ff < gain.lut + gain.ff:
            plan[made] = Decision(folding)
            replaced |= {matrix: made, requantizer: made}
    graph.nodes = list(dict.fromkeys(replaced.get(node, node) for node in graph.nodes))


def saving(graph: Graph, device: Device, interval: int) -> Resources:
    """Return by how much a search for ``interval`` may overestimate a dataflow graph, since it knows no tables."""
    total = Resources()
    for matrix, requantizer in _pairs(graph):
        made = _neurons(matrix, requantizer, matrix.name)
        if made is None:
            continue
        core = hardware(matrix.op)
        steady = [
            folding for folding in core.foldings(matrix, device)
            if core.is_steady(matrix, folding) and core.cycles(matrix, folding) <= interval
        ]
        if not steady:
            continue
        least = min(steady, key=lambda folding: folding.output_lanes)
        behind = Folding(least.output_lanes, least.output_lanes)
        without = _estimate(matrix, least, device) + _estimate(requantizer, behind, device)
        need = _need(made, neurons_folding(least, device), device)  # in a chain it has no queue
        total += Resources(*(max(0, more - less) for more, less in zip(without, need, strict=True)))
    return total


def _pairs(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """Yield every matrix with the requantizer that reads it."""
    producers = graph.producers()
    for requantizer in graph.nodes:
        if isinstance(requantizer.attributes, RequantizeAttributes):
            matrix = producers.get(requantizer.inputs[0])
            if matrix is not None and isinstance(matrix.attributes, MvuAttributes) and matrix.attributes.held is None:
                yield matrix, requantizer


def _neurons(matrix: Node, requantizer: Node, name: str) -> Node | None:
    """Return the node that does the work of both; None if there are no tables."""
    tables = neuron_tables(matrix, requantizer)
    if tables is None:
        return None
    sources = tuple(dict.fromkeys(matrix.sources + requantizer.sources))
    attributes = NeuronsAttributes(matrix, requantizer, tables)
    return Node(name, matrix.inputs, requantizer.outputs, attributes, sources)


def _need(node: Node, folding: Folding, device: Device) -> Resources:
    """Return the resources without a queue."""
    return hardware(node.op).resources(node, Decision(folding, NO_QUEUE), device)


def _estimate(node: Node, folding: Folding, device: Device) -> Resources:
    """Return the resources that a search reckons with."""
    decision = Decision(folding, (PROVISIONAL_DEPTH,), provisional=True)
    return hardware(node.op).resources(node, decision, device)
