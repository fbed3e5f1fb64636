"""onnx's own checker and shape inference as rules: whatever they raise becomes a finding.

Both stop early and blame one place; so each node is first checked by itself, and the checks of the whole model run only
where nothing else has an objection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import onnx
from onnx import checker

from hwflow.onnxspec.attributes import has_subgraph
from hwflow.onnxspec.clauses.opsets import highest_version
from hwflow.onnxspec.dialects import DIALECT_DOMAINS
from hwflow.onnxspec.graph import INITIALIZERS, MODEL, NODES, Position, Scope
from hwflow.onnxspec.rules import Context, Hit, Rule
from hwflow.onnxspec.skeleton import skeleton
from hwflow.onnxspec.text import one_line

_REMEDY = "correct the model, or export it again"
_TOO_MUCH = "look for absurd attributes, ranks or sizes, or export the model again"
_NODE_NAMES = (
    re.compile(r"\(op_type:[^,)]*, node name: (?P<name>[^)]*)\)"),
    re.compile(r"Bad node spec for node\. Name: (?P<name>.*?) OpType:"),
    re.compile(r"for node name (?P<name>.*?)\. "),
)


def _place(scope: Scope, message: str) -> tuple[Position, str]:
    """The node that the message names, or the model."""
    for pattern in _NODE_NAMES:
        match = pattern.search(message)
        if match is not None:
            for index, node in enumerate(scope.nodes):
                if node.name and node.name == match["name"]:
                    return scope.at(NODES, index), scope.where(index)
    return (MODEL,), "model"


def _checker_context(scope: Scope, ir_version: int) -> checker.C.CheckerContext:
    """What onnx.checker wants to know; versions out of range (said by other rules) are left out or brought into it."""
    known = checker.C.CheckerContext()
    known.ir_version = min(max(ir_version, 1), onnx.IR_VERSION)
    opsets = {**dict.fromkeys(DIALECT_DOMAINS, 1), **(scope.opsets or {"": 1})}
    known.opset_imports = {d: version for d, version in opsets.items() if 1 <= version <= highest_version(d)}
    return known


def _node_check(context: Context) -> Iterator[Hit]:
    """Every node of the main graph against its schema: attributes, number of inputs and outputs."""
    scope = context.scopes[0]
    known = _checker_context(scope, context.model.ir_version)
    unknown = {position for position, finding in context.found if finding.severity == "error"}
    for index, node in enumerate(scope.nodes):
        position = scope.at(NODES, index)
        if (
            position in unknown
            or node.domain not in known.opset_imports  # said elsewhere
            or (node.domain, node.op_type, node.proto.overload) in context.functions
            or has_subgraph(node.proto)  # checked alone, it would not see the values around it
        ):
            continue
        alias = node.proto
        if alias.domain != node.domain:
            alias = onnx.NodeProto()
            alias.CopyFrom(node.proto)
            alias.domain = node.domain
        try:
            checker.check_node(alias, known)
        except Exception as error:  # ValidationError, RuntimeError, ...
            message = f"the node must fit its operator, but onnx.checker says: {one_line(error)}"
            yield Hit(position, scope.where(index), message)


def _tensor_check(context: Context) -> Iterator[Hit]:
    scope = context.scopes[0]
    known = _checker_context(scope, context.model.ir_version)
    for index, tensor in enumerate(context.model.graph.initializer):
        try:
            checker.check_tensor(tensor, known)
        except Exception as error:
            yield Hit(
                scope.at(INITIALIZERS, index),
                f"initializer '{tensor.name}'",
                f"the tensor must be well formed, but onnx.checker says: {one_line(error)}",
            )


def _model_check(context: Context) -> Iterator[Hit]:
    if context.has_errors or not context.scopes or any(t.gave_up for t in context.inference.troubles):
        return
    main, below = context.scopes[0], []
    for scope in context.scopes[1:]:
        if scope.parent is None:
            break
        below.append(scope)
    small = skeleton(context.model, main, below, context.type_reader, {}, declared=True)
    for info in small.proto.graph.output:
        if not info.type.WhichOneof("value"):
            return  # the checker wants a type there, and has no way to take none
    try:
        checker.check_model(small.proto)
    except Exception as error:
        position, where = _place(context.scopes[0], str(error))
        yield Hit(position, where, f"the model must be valid, but onnx.checker says: {one_line(error)}")


def _inference(context: Context) -> Iterator[Hit]:
    """What inference objects to beyond types (NOD-32) and sizes that the model states (SHP-10, SHP-16)."""
    for failure in context.inference.failures:
        if failure.kind == "shape":
            scope = context.scopes[failure.scope]
            yield Hit(scope.at(NODES, failure.node), scope.where(failure.node), failure.message)
    for trouble in context.inference.troubles:
        root = trouble.root
        if trouble.gave_up:
            message = f"types and shapes must be inferable, but onnx.shape_inference comes to no end: {trouble.message}"
            yield Hit(root.position or (MODEL,), root.title, message, _TOO_MUCH)
        elif not context.has_errors:
            position, where = _place(root, trouble.message)
            message = f"types and shapes must fit together, but onnx.shape_inference says: {trouble.message}"
            yield Hit(position, where, message)


# In this order, after all other rules: each looks at what the ones before it have found.
RULES = (
    Rule("onnx.checker", "own", _node_check, _REMEDY),
    Rule("onnx.checker", "own", _tensor_check, _REMEDY),
    Rule("onnx.checker", "own", _model_check, _REMEDY),
    Rule("onnx.shape_inference", "own", _inference, _REMEDY),
)
