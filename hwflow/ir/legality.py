"""The invariants of each stage's graph, checked after every pass. Each rule has a name and the sentence of its error.

The table of legal operators comes from the operators themselves (each declares its stages); callers pass it in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from hwflow.display import show
from hwflow.errors import Finding, InternalError
from hwflow.ir.graph import Delaying, Graph, Recurring, Stage

Operators = Mapping[Stage, frozenset[str]]


@dataclass(frozen=True)
class Rule:
    """``violations`` yields (where, what was found) for each violation of ``sentence``."""

    name: str
    sentence: str
    stages: frozenset[Stage]
    violations: Callable[[Graph, Operators], Iterator[tuple[str, str]]]


def _unknown_operators(graph: Graph, operators: Operators) -> Iterator[tuple[str, str]]:
    legal = operators[graph.stage]
    for node in graph.nodes:
        if node.op not in legal:
            yield f"node {show(node.name)}", f"operator {show(node.op)}"


def _multiple_producers(graph: Graph, operators: Operators) -> Iterator[tuple[str, str]]:
    seen = set()
    for value in graph.values():
        if value in seen:
            yield f"value {show(value.name)}", "two producers"
        seen.add(value)


def _use_before_production(graph: Graph, operators: Operators) -> Iterator[tuple[str, str]]:
    known = {p.value for p in graph.inputs}
    later = []
    for node in graph.nodes:
        for value in node.inputs:
            if value not in known and isinstance(node.attributes, Recurring):
                later.append((node, value))
            elif value not in known:
                yield f"node {show(node.name)}", f"{show(value.name)}, which nothing before it produces"
        known.update(node.outputs)
    for node, value in later:
        if value not in known:
            yield f"node {show(node.name)}", f"{show(value.name)}, which nothing produces"
    for port in graph.outputs:
        if port.value not in known:
            yield f"output {show(port.name)}", f"{show(port.value.name)}, which nothing produces"


def _repeated_names(graph: Graph, operators: Operators) -> Iterator[tuple[str, str]]:
    values = dict.fromkeys(graph.values())  # a value that is produced twice breaks single-producer instead
    for kind, names in (("value", Counter(v.name for v in values)), ("node", Counter(n.name for n in graph.nodes))):
        for name, count in names.items():
            if count > 1:
                yield f"{kind} {show(name)}", "the same name twice"


def _untyped(graph: Graph, operators: Operators) -> Iterator[tuple[str, str]]:
    for value in graph.values():
        if value.type is None:
            yield f"value {show(value.name)}", "no type"
        elif value.type.element.interval.hull(value.type.interval) != value.type.element.interval:
            yield f"value {show(value.name)}", f"interval {value.type.interval} outside {value.type.element}"


def _unlike_delays(graph: Graph, operators: Operators) -> Iterator[tuple[str, str]]:
    for node in graph.nodes:
        if not isinstance(node.attributes, Delaying):
            continue
        for before, after in zip(node.inputs, node.outputs, strict=True):
            a, b = before.type, after.type
            if a is not None and b is not None and (a.shape != b.shape or b.interval.hull(a.interval) != b.interval):
                yield f"node {show(node.name)}", f"{a} delayed as {b}"


def _fan_out(graph: Graph, operators: Operators) -> Iterator[tuple[str, str]]:
    uses = {v: len(c) for v, c in graph.consumers().items()}
    for port in graph.outputs:
        uses[port.value] = uses.get(port.value, 0) + 1
    for value, count in uses.items():
        if count != 1:
            yield f"value {show(value.name)}", f"{count} consumers"


def _not_a_stream(graph: Graph, operators: Operators) -> Iterator[tuple[str, str]]:
    for value in graph.values():
        if value.type is not None and len(value.type.shape) != 2:
            yield f"value {show(value.name)}", f"shape {value.type.shape}"


_ALL = frozenset(Stage)
_STREAMS = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

RULES = (
    Rule("legal-operators", "every node's operator must be legal at this stage", _ALL, _unknown_operators),
    Rule("single-producer", "every value must have exactly one producer", _ALL, _multiple_producers),
    Rule(
        "topological-order", "a node must read only values produced before it, unless it delays them", _ALL,
        _use_before_production,
    ),
    Rule("unique-names", "node names and value names must be unique", _ALL, _repeated_names),
    Rule("typed-values", "every value must have a type that holds its interval", _ALL, _untyped),
    Rule("delayed-type", "a delay's result must hold what it delays", _ALL, _unlike_delays),
    Rule("stream-shape", "every value must have the shape (pixels, channels)", _STREAMS, _not_a_stream),
    Rule("single-consumer", "every value must have exactly one consumer (fan-out is a fork)", _STREAMS, _fan_out),
)


def check(graph: Graph, after: str, operators: Operators) -> None:
    """Raise :class:`InternalError` with every violation of the rules for ``graph.stage``; ``after`` names the pass."""
    findings = [
        Finding(
            rule.name, where, f"{rule.sentence}; found: {found} (after pass {show(after)})",
            "report this model as a defect of hwflow"
        )
        for rule in RULES
        if graph.stage in rule.stages
        for where, found in rule.violations(graph, operators)
    ]
    if findings:
        raise InternalError(findings)
