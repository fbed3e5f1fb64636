"""Clauses about nodes: their inputs and outputs, their order, the scope of subgraphs."""

from __future__ import annotations

from collections.abc import Iterator

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.graphs.graph_parts import (
    needs_initializer_inputs,
    repeated_initializers,
    unlisted_initializers,
)
from hwflow.onnxspec.clauses.graphs.soundness import (
    BREAK_CYCLE,
    RENAME,
    cycles,
    disorder,
    double_definitions,
    undefined_inputs,
)
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, at_node
from hwflow.onnxspec.graphs.operator_names import IF, LOOP, SCAN
from hwflow.onnxspec.graphs.scopes import INITIALIZERS, INPUTS, OUTPUTS, Kind, Scope

# The clauses about functions cover the nodes of functions' bodies.


def _has_outputs(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        if "" not in scope.results and all([node.outputs for node in scope.nodes]):
            continue
        for index, node in enumerate(scope.nodes):
            if any(node.outputs):
                continue
            severity: Severity = Severity.ERROR
            if node.outputs:
                found = "all outputs of this one are left out"
                severity = Severity.WARNING  # nothing can read its results, but the meaning is clear
            else:
                found = "this one has none" if node.inputs else "this one has neither inputs nor outputs"
            message = f"a node must have at least one output, but {found}"
            yield at_node(scope, index, message, severity=severity)


def _dangling_inputs(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        for index, name in undefined_inputs(scope) if scope.kind is not Kind.FUNCTION else ():
            message = f"input {show(name)} must be a graph input, an initializer or the output of a node, "
            remedy = f"add the node that computes {show(name)}, or read another value"
            yield at_node(scope, index, message + "but nothing computes it", remedy)


def _one_definition(context: Context) -> Iterator[Hit]:
    for scope, _ in context.graphs:
        yield from (hit for _, hit in double_definitions(scope))
        yield from repeated_initializers(scope)


def _dangling_outputs(context: Context) -> Iterator[Hit]:
    for scope, _ in context.graphs:
        # The algorithm graph continues the main graph: its outputs may be values of that one.
        there = scope.visible if scope.kind is Kind.ALGORITHM else scope.defined
        missing = frozenset(scope.outputs) - there - {""}
        for index, name in enumerate(scope.outputs if missing else ()):
            if name not in missing:
                continue
            message = f"output {show(name)} must be the output of a node, an input or an initializer, but "
            if name in scope.visible:
                message += "it is a value of a graph around this one"
                remedy = f"add an Identity node to the subgraph that copies the output from {show(name)}"
            else:
                message += "nothing computes it"
                remedy = f"add the node that computes {show(name)}, or remove the output"
            yield Hit(scope.at(OUTPUTS, index), f"output {show(name)}{scope.label}", message, remedy)


# Subgraphs


def _subgraphs(context: Context) -> Iterator[Scope]:
    return (scope for scope in context.scopes if scope.kind is Kind.SUBGRAPH)


def _input_and_initializer(context: Context) -> Iterator[Hit]:
    for scope in _subgraphs(context):
        if scope.held.isdisjoint(scope.inputs):
            continue
        for index, name in enumerate(scope.inputs):
            if name and name in scope.held:
                yield Hit(
                    scope.at(INPUTS, index),
                    f"input {show(name)}{scope.label}",
                    f"a name must not be both input and initializer of a subgraph, but {show(name)} is",
                )


def _passed(scope: Scope) -> int | None:
    """Return how many inputs the operator passes to the subgraph, None if unknown."""
    assert scope.parent is not None  # every subgraph has one
    node = scope.parent.nodes[scope.caller]
    if node.domain == "":
        if node.op_type == IF:
            return 0
        if node.op_type == LOOP:  # iteration and condition, which it always passes, and the states
            return max(len(node.inputs), 2)
        if node.op_type == SCAN:
            # Version 8 has an input before the others, sequence_lens, which it does not pass.
            return max(len(node.inputs) - (scope.opsets.get("", 1) < 9), 0)
    return None


def _actual_inputs(scope: Scope) -> Iterator[Hit]:
    """Yield inputs that the operator passes although they are initializers."""
    passed = _passed(scope)
    if passed is None or scope.held.isdisjoint(scope.inputs[:passed]):
        return
    for index, name in enumerate(scope.inputs[:passed]):
        if name and name in scope.held:
            values = "value" if passed == 1 else "values"
            yield Hit(
                scope.at(INPUTS, index),
                f"input {show(name)}{scope.label}",
                f"initializers must be listed after the {passed} {values} that the node passes to the subgraph, "
                f"but {show(name)} is input {index}",
                "list the inputs that are initializers last",
            )


def _actual_inputs_are_free(context: Context) -> Iterator[Hit]:
    if needs_initializer_inputs(context):
        for scope in _subgraphs(context):
            yield from _actual_inputs(scope)


def _initializers_come_last(context: Context) -> Iterator[Hit]:
    if not needs_initializer_inputs(context):
        return
    for scope in _subgraphs(context):
        yield from _actual_inputs(scope)
        yield from unlisted_initializers(scope, context.ir_version)
        if _passed(scope) is None and not scope.held.isdisjoint(scope.inputs):
            last = max((i for i, name in enumerate(scope.inputs) if name not in scope.held), default=-1)
            for index, name in enumerate(scope.inputs[: max(last, 0)]):
                if name and name in scope.held:
                    yield Hit(
                        scope.at(INPUTS, index),
                        f"input {show(name)}{scope.label}",
                        "initializers must be listed after the subgraph's actual inputs, but "
                        f"{show(name)} is input {index}, and {show(scope.inputs[last])}, which is none, input {last}",
                        "list the inputs that are initializers last",
                    )


def _shadowed(scope: Scope, name: str) -> str | None:
    """Return what has the name in an outer graph and is visible in the subgraph; None if nothing has. Outputs of the
    subgraph's own node and of later ones are not visible."""
    inner = scope
    while inner.parent is not None:
        outer = inner.parent
        if name in outer.entered:
            return f"an {'initializer' if name in outer.held else 'input'} of {outer.title}"
        producer = outer.producers.get(name)
        if producer is not None and producer < inner.caller:
            return f"an output of {outer.where(producer)}"
        inner = outer
    return "a value of the main graph" if name in inner.outer else None


def _outputs_are_new(context: Context) -> Iterator[Hit]:
    for scope in _subgraphs(context):
        if scope.outer.isdisjoint(scope.computed):
            continue
        for index, node in enumerate(scope.nodes):
            for name in dict.fromkeys(node.outputs):
                other = _shadowed(scope, name) if name and name in scope.outer else None
                if other is not None:
                    message = f"output {show(name)} must have a name of its own, but {other} has that name too"
                    yield at_node(scope, index, message)


def _no_shadowing(context: Context) -> Iterator[Hit]:
    for scope in _subgraphs(context):
        if scope.outer.isdisjoint(scope.entered):
            continue
        seen: set[str] = set()
        for section, kind, names in (
            (INPUTS, "input", scope.inputs),
            (INITIALIZERS, "initializer", scope.initializers),
        ):
            for index, name in enumerate(names):
                other = _shadowed(scope, name) if name and name not in seen and name in scope.outer else None
                seen.add(name)
                if other is not None:
                    message = f"{kind} {show(name)} should have a name of its own, but {other} has that name too"
                    yield Hit(scope.at(section, index), f"{kind} {show(name)}{scope.label}", message)


# Order


def _no_cycles(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        yield from cycles(scope)


def _order(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        if scope.kind is not Kind.FUNCTION:
            yield from disorder(scope)


RULES = (
    Rule("GRA-06", "definition", _has_outputs, "name the node's outputs, or remove the node"),
    Rule("NOD-05", "MUST", _dangling_inputs, "add the node that computes the value"),
    Rule("NOD-11", "MUST", _one_definition, RENAME),
    Rule("NOD-12", "MUST", _dangling_outputs, "add the node that computes the value"),
    Rule(
        "NOD-17", "MUST", _input_and_initializer,
        "remove the initializer, or the input if the operator does not pass it", since_ir=4,
    ),
    Rule("NOD-19", "MUST", _actual_inputs_are_free, "list the inputs that are initializers last"),
    Rule("NOD-20", "MUST", _initializers_come_last, "list the initializers as inputs, after the others"),
    Rule("NOD-27", "MUST", _outputs_are_new, RENAME),
    # A warning: inside the subgraph the name can only mean the inner value.
    Rule("NOD-28", "definition", _no_shadowing, RENAME, severity=Severity.WARNING),
    Rule("GRA-03", "MUST", _no_cycles, BREAK_CYCLE),
    Rule("NOD-35", "MUST", _order, "sort the nodes so that each one follows those it reads from"),
)
