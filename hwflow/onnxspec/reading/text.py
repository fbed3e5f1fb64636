"""Find strings that are not UTF-8, which protobuf's parser accepts, as bytes where text is expected."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import onnx
from onnx import AttributeProto

from hwflow.errors import Finding
from hwflow.onnxspec.graphs.scopes import Node, Scope

RULE = "utf-8"
_MOST = 5  # places that the finding names

# Attribute types whose value is no message.
_WITHOUT_MESSAGE = frozenset(
    {
        AttributeProto.FLOAT,
        AttributeProto.INT,
        AttributeProto.STRING,
        AttributeProto.FLOATS,
        AttributeProto.INTS,
        AttributeProto.STRINGS,
    }
)

# FieldDescriptor.TYPE_STRING and TYPE_MESSAGE
_STRING, _MESSAGE = 9, 11


def one_line(error: Exception) -> str:
    """Return the message of an onnx exception on one line, without its markers."""
    text = " ".join(str(error).split())
    text = re.sub(r"\[(Type|Shape)InferenceError\] ?", "", text)
    text = text.removeprefix("Inference error(s): ")
    return text or type(error).__name__


def bad_text(message: Any, path: str = "") -> Iterator[str]:
    """Yield the paths ("graph.node[3].name") of the string fields of a protobuf message that are not UTF-8."""
    for field, value in message.ListFields():
        if field.type == _STRING:
            if isinstance(value, bytes):
                yield f"{path}{field.name}"
            elif not isinstance(value, str):
                yield from (f"{path}{field.name}[{i}]" for i, item in enumerate(value) if isinstance(item, bytes))
        elif field.type == _MESSAGE:
            if hasattr(value, "ListFields"):
                yield from bad_text(value, f"{path}{field.name}.")
            else:
                for i, item in enumerate(value):
                    yield from bad_text(item, f"{path}{field.name}[{i}].")


def text_findings(model: onnx.ModelProto, scopes: Iterable[Scope]) -> list[Finding]:
    """Return one finding that names the first places, or none. No other rule can handle a model with such text."""
    if _all_text(model, scopes):
        return []
    places = list(itertools.islice(bad_text(model), _MOST))
    message = f"all names and strings must be UTF-8, but {', '.join(places)} {'is' if len(places) == 1 else 'are'} not"
    remedy = "export the model again, or copy the file again if it is damaged"
    return [Finding(RULE, "model", message, remedy)]


def _all_text(model: onnx.ModelProto, scopes: Iterable[Scope]) -> bool:
    """Tell whether :func:`bad_text` would find nothing, ten times faster for nodes, attributes and tensors."""
    try:
        for texts in _texts(model, scopes):
            "".join(texts)
    except TypeError:  # an item is bytes
        return False
    return True


def _texts(model: onnx.ModelProto, scopes: Iterable[Scope]) -> Iterator[Iterable[str]]:
    """Yield every string of the model, in lists; for rare messages only bytes if one of their strings is."""
    yield (model.producer_name, model.producer_version, model.domain, model.doc_string)
    yield from _rare(model.opset_import, model.metadata_props, model.configuration)
    for training in model.training_info:
        yield from _rare(training.initialization_binding, training.update_binding)
    for scope in scopes:
        if scope.graph is not None:
            yield from _graph_texts(scope.graph)
        elif scope.function is not None:
            yield from _function_texts(scope.function)
        yield from _node_texts(scope.nodes)


def _rare(*lists: Iterable[Any]) -> Iterator[Iterable[Any]]:
    for messages in lists:
        for message in messages:
            if next(bad_text(message), None) is not None:
                yield [b""]


def _graph_texts(graph: onnx.GraphProto) -> Iterator[Iterable[str]]:
    yield (graph.name, graph.doc_string)
    yield from _rare(graph.input, graph.output, graph.value_info)
    yield from _rare(graph.quantization_annotation, graph.metadata_props)
    yield from _tensor_texts(graph.initializer)
    for sparse in graph.sparse_initializer:
        yield from _tensor_texts([sparse.values, sparse.indices])


def _function_texts(function: onnx.FunctionProto) -> Iterator[Iterable[str]]:
    yield (function.name, function.domain, function.overload, function.doc_string)
    yield from (function.input, function.output, function.attribute)
    yield from _rare(function.opset_import, function.value_info, function.metadata_props)
    yield from _attribute_texts(function.attribute_proto)


def _node_texts(nodes: Sequence[Node]) -> Iterator[Iterable[str]]:
    yield [node.op_type for node in nodes]
    yield [node.domain for node in nodes]
    yield [node.name for node in nodes]
    yield (name for node in nodes for name in node.inputs)
    yield (name for node in nodes for name in node.outputs)
    protos = [node.proto for node in nodes]
    yield [proto.doc_string for proto in protos]
    yield [proto.overload for proto in protos]
    yield from _rare(*(proto.metadata_props for proto in protos if proto.metadata_props))
    yield from _rare(*(proto.device_configurations for proto in protos if proto.device_configurations))
    yield from _attribute_texts([attribute for node in nodes for attribute in node.attributes])


def _tensor_texts(tensors: Iterable[onnx.TensorProto]) -> Iterator[Iterable[str]]:
    yield [tensor.name for tensor in tensors]
    yield [tensor.doc_string for tensor in tensors]
    yield from _rare(*(tensor.external_data for tensor in tensors if tensor.external_data))
    yield from _rare(*(tensor.metadata_props for tensor in tensors if tensor.metadata_props))


def _attribute_texts(attributes: Iterable[onnx.AttributeProto]) -> Iterator[Iterable[str]]:
    """Yield the strings of attributes without graphs, which are scopes."""
    yield [attribute.name for attribute in attributes]
    yield [attribute.ref_attr_name for attribute in attributes]
    yield [attribute.doc_string for attribute in attributes]
    held = [attribute for attribute in attributes if attribute.type not in _WITHOUT_MESSAGE]
    yield from _tensor_texts([attribute.t for attribute in held if attribute.HasField("t")])
    yield from _rare([attribute.tp for attribute in held if attribute.HasField("tp")])
    yield from _rare([attribute.sparse_tensor for attribute in held if attribute.HasField("sparse_tensor")])
    for attribute in held:
        yield from _rare(attribute.tensors, attribute.sparse_tensors, attribute.type_protos)
