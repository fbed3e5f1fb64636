"""Features that a model uses before its IR version has them: a reader of that version ignores them.

The versions are from the comments of the Version enum in onnx.proto (onnx 1.23.2). Element types and kinds of types
have their own clauses (TYP-15, TYP-16), as have training and functions (CMP-05, MOD-13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from onnx import AttributeProto

from hwflow.errors import Severity
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule
from hwflow.onnxspec.graphs.scopes import ANNOTATIONS, MODEL, NODES, Node, Position
from hwflow.onnxspec.graphs.sites import TensorRole

_SPARSE = frozenset({AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS})
Place = tuple[Position, str]  # with the ``where`` of a finding


@dataclass(frozen=True)
class _Feature:
    """``name`` exists since IR version ``since``; ``places``: its uses in the model."""

    name: str
    since: int
    places: Callable[[Context], Iterator[Place]]


def _at_nodes(has: Callable[[Node], object]) -> Callable[[Context], Iterator[Place]]:
    def places(context: Context) -> Iterator[Place]:
        for scope in context.scopes:
            for index, node in enumerate(scope.nodes):
                if has(node):
                    yield scope.at(NODES, index), scope.where(index)

    return places


def _annotations(context: Context) -> Iterator[Place]:
    for scope, graph in context.graphs:
        for index in range(len(graph.quantization_annotation)):
            yield scope.at(ANNOTATIONS, index), scope.title


def _sparse_initializers(context: Context) -> Iterator[Place]:
    for site in context.tensors:
        if site.role is TensorRole.SPARSE_VALUES and not site.attribute:
            yield site.position, site.where


def _defaults(context: Context) -> Iterator[Place]:
    for scope in context.scopes:
        if scope.function is not None and scope.function.attribute_proto:
            yield scope.position, scope.title


def _overloads(context: Context) -> Iterator[Place]:
    for scope in context.scopes:
        if scope.function is not None and scope.function.overload:
            yield scope.position, scope.title
    yield from _at_nodes(lambda node: node.proto.overload)(context)


def _metadata(context: Context) -> Iterator[Place]:
    """Yield the places of metadata other than the model's own, which existed from the start."""
    for scope in context.scopes:
        holder = scope.function if scope.graph is None else scope.graph
        if holder is not None and holder.metadata_props:
            yield scope.position or (MODEL,), scope.title
        if scope.graph is not None:
            graph = scope.graph
            for info in (*graph.input, *graph.value_info, *graph.output):
                if info.metadata_props:
                    yield scope.position or (MODEL,), scope.title
    yield from _at_nodes(lambda node: node.proto.metadata_props)(context)
    yield from ((site.position, site.where) for site in context.tensors if site.tensor.metadata_props)


def _configurations(context: Context) -> Iterator[Place]:
    if context.model.configuration:
        yield (MODEL,), "model"


_FEATURES = (
    _Feature("domain of nodes", 3, _at_nodes(lambda node: node.proto.domain)),
    _Feature("quantization_annotation", 5, _annotations),
    _Feature("sparse_initializer", 6, _sparse_initializers),
    _Feature(
        "sparse tensors in attributes", 6, _at_nodes(lambda node: any(a.type in _SPARSE for a in node.attributes))
    ),
    _Feature("attribute_proto of functions", 9, _defaults),
    _Feature("overload", 10, _overloads),
    _Feature("metadata_props beside the model's own", 10, _metadata),
    _Feature("configuration of devices", 11, _configurations),
    _Feature("device_configurations of nodes", 11, _at_nodes(lambda node: node.proto.device_configurations)),
)


def _too_early(context: Context) -> Iterator[Hit]:
    """Yield one finding per feature, at its first place."""
    version = context.ir_version
    for feature in _FEATURES:
        if 1 <= version < feature.since:
            places = list(feature.places(context))
            if places:
                position, where = min(places)
                more = f", the first of {len(places)}" if len(places) > 1 else ""
                message = (
                    f"{feature.name} must be absent below IR version {feature.since}, which brought it, but the model "
                    f"has IR version {version}{more}"
                )
                remedy = f"export the model with IR version {feature.since} or higher"
                yield Hit(position, where, message, remedy)


RULES = (
    Rule("ir-version", "own", _too_early, "export the model with a newer IR version", severity=Severity.WARNING),
)
