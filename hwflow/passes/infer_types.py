"""Infer types and exact intervals of all values. Requires: known operators. Ensures: typed-values."""

from __future__ import annotations

from hwflow.cores.registry import OPERATORS
from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.ir.graph import Graph, Inferred, Node, Recurring, Value
from hwflow.numerics.requantizers.stages import NoSteps
from hwflow.numerics.requantizers.staircase import LIMIT
from hwflow.types import TensorType


def infer_types(graph: Graph) -> Graph:
    """Set ``type`` of every node output, and add the attributes that operators derive from types.

    Raises :class:`ModelRefused` with a finding for every sum that exceeds the range of exact arithmetic and every
    function that has no step function on its interval; nodes that depend on these are skipped.
    """
    findings: list[Finding] = []
    unknown: set[Value] = set()
    for node in graph.nodes:
        if not unknown.isdisjoint(node.inputs) and not isinstance(node.attributes, Recurring):
            unknown.update(node.outputs)
            continue
        try:
            types = _types(node)
        except NoSteps as error:
            findings.append(_undecided(node, error))
            unknown.update(node.outputs)
            continue
        for value, type_ in zip(node.outputs, types, strict=True):
            if max(-type_.interval.lo, type_.interval.hi) > LIMIT:
                findings.append(_too_wide(node, str(type_.interval)))
                unknown.add(value)
            value.type = type_
    if findings:
        raise ModelRefused(findings)
    return graph


def _types(node: Node) -> tuple[TensorType, ...]:
    """Return the types of the node's outputs, cached while its inputs and attributes are the same. Adds derived
    attributes."""
    inputs = [] if isinstance(node.attributes, Recurring) else [value.typed for value in node.inputs]
    if node.inferred is None or not node.inferred.holds(node.attributes, inputs):
        operator = OPERATORS[node.op]
        node.attributes = operator.derive(node.attributes, inputs)
        node.inferred = Inferred(node.attributes, tuple(inputs), operator.infer(node.attributes, inputs))
    return node.inferred.outputs


def _place(node: Node) -> str:
    names = ", ".join(show(s) for s in node.sources) or show(node.name)
    return f"node {names} ({node.op})"


def _too_wide(node: Node, interval: str) -> Finding:
    return Finding(
        "accumulator-range", _place(node), f"its sums must lie within 62 bits, not in {interval}",
        "quantize the operands to fewer bits, or insert QuantizeLinear and DequantizeLinear before the node",
    )


def _undecided(node: Node, error: NoSteps) -> Finding:
    interval = node.inputs[0].typed.interval
    return Finding(
        "decidable-function", _place(node), f"for inputs in {interval} the function must {error.reason}",
        "keep its input where it is defined, with a Clip or another zero point say, or change its constants",
    )
