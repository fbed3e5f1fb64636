"""Put truth tables in place of constant matrices and their requantizers where they are smaller.

A plan with a matrix that takes whole vectors and a requantizer behind it that takes its results whole is what the
folding search has chosen, which knows of no tables: its foldings for fewer frames stay what they are.
"""

from __future__ import annotations

from hwflow.cores.chain import NO_QUEUE
from hwflow.cores.matrix.dot_products import MvuAttributes
from hwflow.cores.matrix.neurons import NeuronsAttributes, neuron_tables, neurons_folding
from hwflow.cores.operator import Decision, Device, Resources
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Node
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.schedule.converters import FreshNames
from hwflow.schedule.plan import Plan


def insert_truth_tables(plan: Plan, device: Device) -> None:
    """Replace each such pair by neurons, if these take fewer look-up tables and flip-flops. Requires: stream-shape,
    single-consumer."""
    graph, names = plan.graph, FreshNames(plan.graph)
    producers = graph.producers()
    replaced: dict[Node, Node] = {}
    for requantizer in graph.nodes:
        matrix = producers.get(requantizer.inputs[0]) if len(requantizer.inputs) == 1 else None
        if matrix is not None and _is_pair(plan, matrix, requantizer):
            made = _neurons(plan, matrix, requantizer, names, device)
            if made is not None:
                replaced[matrix] = made
                replaced[requantizer] = made
    graph.nodes = list(dict.fromkeys(replaced.get(node, node) for node in graph.nodes))


def _is_pair(plan: Plan, matrix: Node, requantizer: Node) -> bool:
    """Tell whether it is a matrix that takes whole vectors and a requantizer that takes its results as they come."""
    if not isinstance(matrix.attributes, MvuAttributes) or not isinstance(requantizer.attributes, RequantizeAttributes):
        return False
    return all(hardware(node.op).is_steady(node, plan.folding(node)) for node in (matrix, requantizer))


def _neurons(plan: Plan, matrix: Node, requantizer: Node, names: FreshNames, device: Device) -> Node | None:
    """Return the node of the neurons, with its decision, if it is better."""
    tables = neuron_tables(matrix, requantizer)
    if tables is None:
        return None
    made = Node(
        names.nodes.fresh(f"{matrix.name}_to_{requantizer.name}"), matrix.inputs, requantizer.outputs,
        NeuronsAttributes(matrix, requantizer, tables), tuple(dict.fromkeys(matrix.sources + requantizer.sources)),
    )
    folding = neurons_folding(plan.folding(matrix), device)
    own = hardware(made.op).resources(made, Decision(folding, NO_QUEUE), device)
    theirs = Resources()
    for node in (matrix, requantizer):
        theirs += hardware(node.op).resources(node, Decision(plan.folding(node), NO_QUEUE), device)
    if own.lut + own.ff >= theirs.lut + theirs.ff:
        return None
    plan[made] = Decision(folding)
    return made
