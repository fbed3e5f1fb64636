"""Attributes of a node as plain Python values, with the schema's defaults filled in."""

from __future__ import annotations

import onnx
from onnx import AttributeProto

from hwflow.onnxspec.reading.numpy_tensors import from_sparse, to_array
from hwflow.onnxspec.resolving.resolved_model import Array, Attribute

_SUBGRAPH_TYPES = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def has_subgraph(node: onnx.NodeProto) -> bool:
    """Tell whether the node has a subgraph (If, Loop, Scan, ...)."""
    return any(attribute.type in _SUBGRAPH_TYPES for attribute in node.attribute)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _array(tensor: onnx.TensorProto) -> Array:
    return to_array(tensor)[0]


def python_value(attribute: AttributeProto) -> Attribute | None:
    """Return the attribute's value; None for kinds without data (graphs, types, references)."""
    kind = attribute.type
    if kind == AttributeProto.INT:
        return int(attribute.i)
    if kind == AttributeProto.FLOAT:
        return float(attribute.f)  # the float32 in the file, exactly
    if kind == AttributeProto.STRING:
        return _text(attribute.s)
    if kind == AttributeProto.INTS:
        return tuple(attribute.ints)
    if kind == AttributeProto.FLOATS:
        return tuple(attribute.floats)
    if kind == AttributeProto.STRINGS:
        return tuple(map(_text, attribute.strings))
    if kind == AttributeProto.TENSOR:
        return _array(attribute.t)
    if kind == AttributeProto.TENSORS:
        return tuple(_array(t) for t in attribute.tensors)
    if kind == AttributeProto.SPARSE_TENSOR:
        return from_sparse(attribute.sparse_tensor)[0]
    return None


def defaults(schema: onnx.defs.OpSchema) -> dict[str, Attribute]:
    """Return the defaults of the attributes that have one."""
    values = ((name, python_value(declared.default_value)) for name, declared in schema.attributes.items())
    return {name: value for name, value in values if value is not None}


def python_attributes(node: onnx.NodeProto, schema: onnx.defs.OpSchema | None) -> dict[str, Attribute]:
    """Return the node's attributes, with the defaults of ``schema`` (None for an operator of a dialect)."""
    attributes = {} if schema is None else defaults(schema)
    for attribute in node.attribute:
        value = python_value(attribute)
        if value is not None:
            attributes[attribute.name] = value
    return attributes
