"""Find the tensors that a graph puts into its sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from onnx import AttributeProto, TensorProto, numpy_helper

from hwflow.onnxspec.graphs.operator_names import (
    CONSTANT,
    IDENTITY,
    SEQUENCE_CONSTRUCT,
    SEQUENCE_EMPTY,
    SEQUENCE_INSERT,
    SPLIT_TO_SEQUENCE,
)
from hwflow.onnxspec.graphs.scopes import Node, Scope
from hwflow.onnxspec.graphs.typeforms import Dim, Level, LevelKind, TypeForm
from hwflow.onnxspec.reading.skeleton import is_large
from hwflow.onnxspec.shapes.inference import Inference
from hwflow.onnxspec.shapes.unify import Unifier

# The dims of a tensor, or None if its rank is unknown.
Shape: TypeAlias = tuple[Dim, ...] | None

_MOST = 64  # distinct shapes that are followed


def sequence_contents(
    scopes: Sequence[Scope], inference: Inference, unifier: Unifier, scope: Scope, name: str
) -> list[Shape]:
    """Return the known shapes of the tensors in the sequence ``name``, each once. Dimension variables of known size are
    replaced by it."""
    number = next(number for number, other in enumerate(scopes) if other is scope)
    producers = {out: node for node in scope.nodes for out in node.outputs if out}
    found: dict[Shape, None] = {}
    pending, seen = [name], {name}

    def value(form: TypeForm) -> None:
        dims = form[-1].dims if form else None
        if dims is not None:
            dims = tuple(d if not isinstance(d, str) else unifier.size(d) or d for d in dims)
        if len(found) < _MOST:
            found[dims] = None

    while pending:
        current = pending.pop()
        node = producers.get(current)
        inner: str | None = None
        if node is None or node.domain:
            value(_visible(scopes, inference, scope, number, current))
        elif node.op_type == SEQUENCE_CONSTRUCT:
            for item in node.inputs:
                value(_visible(scopes, inference, scope, number, item))
        elif node.op_type == SEQUENCE_INSERT and len(node.inputs) > 1:
            value(_visible(scopes, inference, scope, number, node.inputs[1]))
            inner = node.inputs[0]
        elif node.op_type == IDENTITY and node.inputs:
            inner = node.inputs[0]
        elif node.op_type == SPLIT_TO_SEQUENCE and node.inputs:
            source = _visible(scopes, inference, scope, number, node.inputs[0])
            for form in _pieces(scope, node, source):
                value(form)
        elif node.op_type != SEQUENCE_EMPTY:
            value(inference.form(number, current))
        if inner is not None and inner not in seen:
            seen.add(inner)
            pending.append(inner)
    return list(found)


def _visible(scopes: Sequence[Scope], inference: Inference, scope: Scope, number: int, name: str) -> TypeForm:
    """Return the inferred type of a value of the scope or of an enclosing one."""
    inside: Scope | None = scope
    while inside is not None and name not in inside.defined:
        inside = inside.parent
    if inside is None:
        return ()
    place = number if inside is scope else next(i for i, other in enumerate(scopes) if other is inside)
    return inference.form(place, name)


def _constant(scope: Scope, name: str) -> list[int] | None:
    """Return the elements of a small integer constant of the graph, flat."""
    tensor: TensorProto | None = None
    if scope.graph is not None:
        tensor = next((t for t in scope.graph.initializer if t.name == name), None)
    for node in scope.nodes:
        if node.op_type == CONSTANT and name in node.outputs:
            tensor = next((a.t for a in node.attributes if a.type == AttributeProto.TENSOR), None)
    if tensor is None or is_large(tensor):
        return None
    try:
        return [int(number) for number in np.ravel(numpy_helper.to_array(tensor))]
    except Exception:  # a malformed tensor: reported elsewhere
        return None


def _pieces(scope: Scope, node: Node, source: TypeForm) -> list[TypeForm]:
    """Return the distinct types of the pieces of a SplitToSequence."""
    dims = source[-1].dims if source else None
    if dims is None or not dims or len(source) != 1:
        return []
    axis = next((int(a.i) for a in node.attributes if a.name == "axis"), 0)
    keep = next((bool(a.i) for a in node.attributes if a.name == "keepdims"), True)
    if not -len(dims) <= axis < len(dims):
        return []
    axis %= len(dims)
    sizes: list[Dim]
    if len(node.inputs) < 2 or not node.inputs[1]:
        sizes = [1]
        if not keep:
            return [_piece(source, dims[:axis] + dims[axis + 1 :])]
    else:
        split = _constant(scope, node.inputs[1])
        size = dims[axis]
        if split is None or not split:
            sizes = [None]
        elif len(split) > 1:
            sizes = [*sorted(set(split))[:_MOST]]
        elif isinstance(size, int) and split[0] > 0:
            rest = size % split[0]
            sizes = [*[split[0]] * (size >= split[0]), *[rest] * (rest > 0)]
        else:
            sizes = [None]
    return [_piece(source, (*dims[:axis], size, *dims[axis + 1 :])) for size in sizes]


def _piece(source: TypeForm, dims: tuple[Dim, ...]) -> TypeForm:
    return (Level(LevelKind.TENSOR, source[0].code, dims),)
