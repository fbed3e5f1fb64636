"""onnx's own checker and shape inference as rules: whatever they raise becomes a finding.

Both stop early and blame one place; so each node is first checked alone, and the checks of the whole model run only
if no other rule objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from onnx import checker

from hwflow.onnxspec.clauses.rules import Context, Hit, Rule
from hwflow.onnxspec.graphs.schemas import known_domains
from hwflow.onnxspec.graphs.scopes import MODEL, NODES, Position, Scope
from hwflow.onnxspec.graphs.sites import TensorRole
from hwflow.onnxspec.reading.skeleton import skeleton
from hwflow.onnxspec.reading.text import one_line
from hwflow.onnxspec.shapes.dialects import DIALECT_DOMAINS
from hwflow.onnxspec.shapes.inference import free_names, roots
from hwflow.onnxspec.shapes.node_inference import FailureKind

_REMEDY = "correct the model, or export it again"
_TOO_MUCH = "look for absurd attributes, ranks or sizes, or export the model again"
# Inference's message about a node that reads an untyped value: a consequence of another fault.
_UNTYPED = "expected to have type but instead is null"
# Inference's message about a node that reads the result of a dialect's operator, whose type it does not know; the
# resolver does.
_UNKNOWN_TYPE = "Invalid tensor data type 0."
# onnx's own limit, 100 functions.
_TOO_DEEP = "Function call chain depth exceeds limit"
_NODE_NAMES = (
    re.compile(r"\(op_type:[^,)]*, node name: (?P<name>[^)]*)\)"),
    re.compile(r"Bad node spec for node\. Name: (?P<name>.*?) OpType:"),
    re.compile(r"for node name (?P<name>.*?)\. "),
)


def _place(scope: Scope, message: str) -> tuple[Position, str]:
    """Return the place of the node that the message names, or of the model."""
    for pattern in _NODE_NAMES:
        match = pattern.search(message)
        if match is not None:
            for index, node in enumerate(scope.nodes):
                if node.name and node.name == match["name"]:
                    return scope.at(NODES, index), scope.where(index)
    return (scope.position, scope.title) if scope.position else ((MODEL,), "model")


def _model_check(context: Context) -> Iterator[Hit]:
    if context.has_errors or any(t.gave_up for t in context.inference.troubles):
        return
    if any(domain in known_domains() for domain, _, _ in context.functions):
        return  # the checker does not know functions in onnx's own domains
    if any(stored.site.role is not TensorRole.INITIALIZER for stored, _ in context.external):
        return  # the checker would search the files in the current folder
    for root, below in roots(context.scopes):
        around = {name: context.inference.form(0, name) for name in free_names(root)}
        small = skeleton(
            context.model, root, below, context.type_reader, around, context.small_external, declared=True
        ).proto
        if not all(info.type.WhichOneof("value") for info in (*small.graph.input, *small.graph.output)):
            continue  # the checker requires a type there, even if the clauses do not
        try:
            # FUN-04 reports it for the versions that functions import, as a warning.
            checker.check_model(small, skip_opset_compatibility_check=True)
        except Exception as error:  # ValidationError, RuntimeError, ...
            if _TOO_DEEP in str(error):
                continue
            position, where = _place(root, str(error))
            yield Hit(position, where, f"the model must be valid, but onnx.checker says: {one_line(error)}")


def _inference(context: Context) -> Iterator[Hit]:
    """Yield the objections of inference other than types (NOD-32) and sizes that the model states (SHP-10, SHP-16)."""
    for failure in context.inference.failures:
        if _TOO_DEEP in failure.message or (context.has_errors and _UNTYPED in failure.message):
            continue
        if failure.kind is FailureKind.SHAPE:
            scope = context.scopes[failure.scope]
            yield Hit(scope.at(NODES, failure.node), scope.where(failure.node), failure.message)
    for trouble in context.inference.troubles:
        root = trouble.root
        if trouble.gave_up:
            message = f"types and shapes must be inferable, but onnx.shape_inference comes to no end: {trouble.message}"
            yield Hit(root.position or (MODEL,), root.title, message, _TOO_MUCH)
        elif _UNKNOWN_TYPE in trouble.message and _has_dialects(root):
            continue
        elif not context.has_errors and _TOO_DEEP not in trouble.message:
            position, where = _place(root, trouble.message)
            message = f"types and shapes must fit together, but onnx.shape_inference says: {trouble.message}"
            yield Hit(position, where, message)


def _has_dialects(scope: Scope) -> bool:
    return any(node.domain in DIALECT_DOMAINS for node in scope.nodes)


# In this order, after all other rules: each uses the findings of those before it.
RULES = (
    Rule("onnx.checker", "own", _model_check, _REMEDY),
    Rule("onnx.shape_inference", "own", _inference, _REMEDY),
)
