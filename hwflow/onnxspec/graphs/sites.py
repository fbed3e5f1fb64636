"""All places of tensors and types in a model, with their names in findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum

import onnx
from onnx import AttributeProto

from hwflow.display import show
from hwflow.onnxspec.graphs.scopes import INITIALIZERS, INPUTS, NODES, OUTPUTS, VALUE_INFO, Position, Scope


class TensorRole(Enum):
    """Where a tensor stands."""

    INITIALIZER = "initializer"
    SPARSE_VALUES = "sparse values"
    SPARSE_INDICES = "sparse indices"
    ATTRIBUTE = "attribute"


class TypeRole(StrEnum):
    """What states a type. The values are the words of messages."""

    INPUT = "input"
    OUTPUT = "output"
    VALUE_INFO = "value_info"
    ATTRIBUTE = "attribute"


_TENSOR_KINDS = frozenset(
    {AttributeProto.TENSOR, AttributeProto.TENSORS, AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS}
)
_TYPE_KINDS = frozenset({AttributeProto.TYPE_PROTO, AttributeProto.TYPE_PROTOS})


@dataclass(slots=True)
class TensorSite:
    """One dense tensor, or one of the two tensors of a sparse one (``sparse`` is then the whole).

    ``index``: of the initializer (dense ones first) or of the node in ``scope``; -1 for a default of a function's
    attribute. ``attribute``: the attribute's name, with [k] in a list.
    """

    tensor: onnx.TensorProto
    role: TensorRole
    scope: Scope
    index: int
    attribute: str = ""
    sparse: onnx.SparseTensorProto | None = None

    @property
    def position(self) -> Position:
        """Orders findings."""
        if self.index < 0:
            return self.scope.position
        return self.scope.at(NODES if self.attribute else INITIALIZERS, self.index)

    @property
    def where(self) -> str:
        """The ``where`` of findings about the tensor."""
        if not self.attribute:
            name = self.tensor.name if self.sparse is None else self.sparse.values.name
            kind = "initializer" if self.sparse is None else "sparse initializer"
            return f"{kind} {show(name) if name else self.index}{self.scope.label}"
        if self.index < 0:
            return f"attribute {show(self.attribute)} of {self.scope.title}"
        return f"attribute {show(self.attribute)} of {self.scope.where(self.index)}"


def _attribute_tensors(attribute: AttributeProto, scope: Scope, index: int) -> Iterator[TensorSite]:
    name = attribute.name or "(unnamed)"
    kind = attribute.type
    if kind == AttributeProto.TENSOR:
        yield TensorSite(attribute.t, TensorRole.ATTRIBUTE, scope, index, name)
    elif kind == AttributeProto.TENSORS:
        for k, tensor in enumerate(attribute.tensors):
            yield TensorSite(tensor, TensorRole.ATTRIBUTE, scope, index, f"{name}[{k}]")
    elif kind == AttributeProto.SPARSE_TENSOR:
        yield from _sparse_tensors(attribute.sparse_tensor, scope, index, name)
    elif kind == AttributeProto.SPARSE_TENSORS:
        for k, sparse in enumerate(attribute.sparse_tensors):
            yield from _sparse_tensors(sparse, scope, index, f"{name}[{k}]")


def _sparse_tensors(sparse: onnx.SparseTensorProto, scope: Scope, index: int, name: str = "") -> Iterator[TensorSite]:
    yield TensorSite(sparse.values, TensorRole.SPARSE_VALUES, scope, index, name, sparse)
    yield TensorSite(sparse.indices, TensorRole.SPARSE_INDICES, scope, index, name, sparse)


def tensor_sites(scopes: Iterable[Scope]) -> Iterator[TensorSite]:
    """Yield every tensor of the scopes, each sparse one as its values and its indices."""
    for scope in scopes:
        if scope.graph is not None:
            for index, tensor in enumerate(scope.graph.initializer):
                yield TensorSite(tensor, TensorRole.INITIALIZER, scope, index)
            dense = len(scope.graph.initializer)
            for index, sparse in enumerate(scope.graph.sparse_initializer):
                yield from _sparse_tensors(sparse, scope, dense + index)
        if scope.function is not None:
            for attribute in scope.function.attribute_proto:
                yield from _attribute_tensors(attribute, scope, -1)
        for index, node in enumerate(scope.nodes):
            for attribute in node.attributes:
                if attribute.type in _TENSOR_KINDS:
                    yield from _attribute_tensors(attribute, scope, index)


_SECTIONS = {
    TypeRole.INPUT: INPUTS, TypeRole.OUTPUT: OUTPUTS, TypeRole.VALUE_INFO: VALUE_INFO, TypeRole.ATTRIBUTE: NODES
}


@dataclass(slots=True)
class TypeSite:
    """One type. ``name``: of the value, or of the attribute; ``index``: in its list, or of the node."""

    type: onnx.TypeProto
    role: TypeRole
    scope: Scope
    index: int
    name: str

    @property
    def position(self) -> Position:
        """Orders findings."""
        return self.scope.at(_SECTIONS[self.role], self.index)

    @property
    def where(self) -> str:
        """The ``where`` of findings about the value or attribute."""
        if self.role is TypeRole.ATTRIBUTE:
            return f"attribute {show(self.name)} of {self.scope.where(self.index)}"
        kind = "value" if self.role is TypeRole.VALUE_INFO else self.role
        return f"{kind} {show(self.name) if self.name else self.index}{self.scope.label}"


def type_sites(scopes: Iterable[Scope]) -> Iterator[TypeSite]:
    """Yield every type that the scopes state, including absent ones of inputs and outputs."""
    for scope in scopes:
        lists: tuple[tuple[TypeRole, Iterable[onnx.ValueInfoProto]], ...] = ()
        if scope.graph is not None:
            graph = scope.graph
            lists = (
                (TypeRole.INPUT, graph.input), (TypeRole.VALUE_INFO, graph.value_info), (TypeRole.OUTPUT, graph.output)
            )
        elif scope.function is not None:
            lists = ((TypeRole.VALUE_INFO, scope.function.value_info),)
        for role, infos in lists:
            for index, info in enumerate(infos):
                yield TypeSite(info.type, role, scope, index, info.name)
        for index, node in enumerate(scope.nodes):
            for attribute in node.attributes:
                if attribute.type in _TYPE_KINDS:
                    every = [attribute.tp, *attribute.type_protos]
                    for kind in every if attribute.type == AttributeProto.TYPE_PROTO else every[1:]:
                        yield TypeSite(kind, TypeRole.ATTRIBUTE, scope, index, attribute.name)
