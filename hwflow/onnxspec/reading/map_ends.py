"""Maps at the ends of a model: dictionaries that come in, and a score for each class that goes out.

Nothing computes with maps in ONNX. Operators of ai.onnx.ml make a tensor of a map that is a graph input, or a sequence
of maps, one of each row, as a graph output. :func:`separated` takes these out of a model, whose ends are then tensors,
and says what the maps are; so nothing else knows of maps but what brings frames in and outputs out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field

import onnx
from onnx import TensorProto, helper

from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.onnxspec.graphs.operator_names import CAST_MAP, DICT_VECTORIZER, IDENTITY, ZIP_MAP
from hwflow.onnxspec.reading.numpy_tensors import DTYPE_NAMES
from hwflow.onnxspec.shapes.dialects import ML_DOMAIN

Keys = tuple[int, ...] | tuple[str, ...] | None

_CASTS = {"TO_FLOAT": TensorProto.FLOAT, "TO_INT64": TensorProto.INT64, "TO_STRING": TensorProto.STRING}
_SPARSE = "SPARSE"
_MOST_KEYS = 1 << 20


@dataclass(frozen=True)
class MapEnd:
    """``keys`` of the columns of a tensor, [frames, columns], that has the maps' values, of element type ``type``;
    None: integers in ascending order. ``node`` and ``info``: what was taken out."""

    keys: Keys
    columns: int
    type: str
    node: onnx.NodeProto
    info: onnx.ValueInfoProto


@dataclass(frozen=True)
class MapEnds:
    """By the names of graph inputs and outputs."""

    inputs: Mapping[str, MapEnd] = field(default_factory=dict)
    outputs: Mapping[str, MapEnd] = field(default_factory=dict)

    def attached(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Return ``model``, which was made of the one without maps, with maps at its ends."""
        if not self.inputs and not self.outputs:
            return model
        result = onnx.ModelProto()
        result.CopyFrom(model)
        graph, taken = result.graph, _names(model.graph)
        for name, end in self.inputs.items():
            _put(graph.input, name, end.info)
            tensor = _fresh(f"{name}_tensor", taken)
            for node in graph.node:
                _renamed(node.input, name, tensor)
            graph.node.insert(0, _node(end.node, name, tensor))
        for name, end in self.outputs.items():
            _put(graph.output, name, end.info)
            tensor = _fresh(f"{name}_tensor", taken)
            for node in graph.node:
                _renamed(node.input, name, tensor)
                _renamed(node.output, name, tensor)
            graph.node.append(_node(end.node, tensor, name))
        if all(plain.domain != ML_DOMAIN for plain in result.opset_import):
            result.opset_import.append(helper.make_opsetid(ML_DOMAIN, 1))
        return result


NO_MAPS = MapEnds()


def separated(model: onnx.ModelProto) -> MapEnds:
    """Take the maps at the ends of ``model`` out of it, in place. Raises :class:`ModelRefused` where what is made of
    them depends on the data."""
    graph = model.graph
    producers = {name: node for node in graph.node for name in node.output}
    inputs: dict[str, MapEnd] = {}
    outputs: dict[str, MapEnd] = {}
    unclear: list[Finding] = []
    for info in graph.input:
        if info.type.WhichOneof("value") == "map_type":
            readers = [node for node in graph.node if info.name in node.input]
            found = {_of_map(graph, info, node) for node in readers}
            form = found.pop() if len(found) == 1 else None
            if form is None:
                unclear.append(_unclear(info.name))
                continue
            keys, columns, kind = form
            inputs[info.name] = MapEnd(keys, columns, DTYPE_NAMES[kind], _copy(readers[0]), _info(info))
            info.CopyFrom(helper.make_tensor_value_info(info.name, kind, [_frames(graph), columns]))
            _forget(graph, {node.output[0] for node in readers})
            for node in readers:
                _pass_on(node)
    for info in graph.output:
        made = producers.get(info.name)
        if made is not None and (made.domain, made.op_type) == (ML_DOMAIN, ZIP_MAP):
            keys = _keys(made, "classlabels_int64s", "classlabels_strings")
            outputs[info.name] = MapEnd(keys, len(keys), "float32", _copy(made), _info(info))
            info.CopyFrom(helper.make_tensor_value_info(info.name, TensorProto.FLOAT, [None, len(keys)]))
            _pass_on(made)
    if unclear:
        raise ModelRefused(unclear)
    if (inputs or outputs) and all(opset.domain not in ("", "ai.onnx") for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid("", _IDENTITY_SINCE))
    return MapEnds(inputs, outputs)


def _pass_on(node: onnx.NodeProto) -> None:
    node.CopyFrom(helper.make_node(IDENTITY, node.input, node.output, name=node.name))


_IDENTITY_SINCE = 13


def _of_map(graph: onnx.GraphProto, info: onnx.ValueInfoProto, node: onnx.NodeProto) -> tuple[Keys, int, int] | None:
    """Return keys, columns and element type of the tensor that a node makes of a map; None where they depend on it."""
    if node.domain != ML_DOMAIN:
        return None
    if node.op_type == DICT_VECTORIZER:
        keys = _keys(node, "int64_vocabulary", "string_vocabulary")
        return keys, len(keys), info.type.map_type.value_type.tensor_type.elem_type
    if node.op_type != CAST_MAP:
        return None
    kind = _CASTS.get(_text(node, "cast_to", "TO_FLOAT"), TensorProto.FLOAT)
    if _text(node, "map_form", "DENSE") == _SPARSE:
        count = next((a.i for a in node.attribute if a.name == "max_map"), 1)
        return (tuple(range(count)), count, kind) if 0 < count <= _MOST_KEYS else None
    for known in (*graph.value_info, *graph.output):
        dims = known.type.tensor_type.shape.dim
        if known.name == node.output[0] and dims and dims[-1].dim_value > 0:
            return None, dims[-1].dim_value, kind
    return None


def _unclear(name: str) -> Finding:
    return Finding(
        "map-input", f"input {show(name)}",
        f"a map must be read by {DICT_VECTORIZER}, or by {CAST_MAP} with map_form {_SPARSE} or a size in the graph's "
        "value_info, and by all readers with the same keys", "give the map's tensor as the input",
    )


def _keys(node: onnx.NodeProto, of_integers: str, of_strings: str) -> tuple[int, ...] | tuple[str, ...]:
    for attribute in node.attribute:
        if attribute.name == of_integers and attribute.ints:
            return tuple(attribute.ints)
        if attribute.name == of_strings and attribute.strings:
            return tuple(text.decode("utf-8", "replace") for text in attribute.strings)
    return ()


def _text(node: onnx.NodeProto, name: str, default: str) -> str:
    return next((a.s.decode("utf-8", "replace") for a in node.attribute if a.name == name), default)


def _frames(graph: onnx.GraphProto) -> str | int:
    """Return the first size of the graph's tensors: 1, or a variable."""
    for info in graph.input:
        dims = info.type.tensor_type.shape.dim
        if info.type.WhichOneof("value") == "tensor_type" and dims:
            if dims[0].dim_value == 1:
                return 1
            if dims[0].dim_param:
                return str(dims[0].dim_param)
    taken = {d.dim_param for i in (*graph.output, *graph.value_info) for d in i.type.tensor_type.shape.dim}
    return _fresh("frames", taken)


def _forget(graph: onnx.GraphProto, names: set[str]) -> None:
    """Forget what the graph states of some values."""
    kept = [_info(info) for info in graph.value_info if info.name not in names]
    del graph.value_info[:]
    graph.value_info.extend(kept)


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def _info(info: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    return copy


def _node(node: onnx.NodeProto, source: str, result: str) -> onnx.NodeProto:
    copy = _copy(node)
    copy.input[0], copy.output[0] = source, result
    return copy


def _put(infos: Sequence[onnx.ValueInfoProto], name: str, info: onnx.ValueInfoProto) -> None:
    for each in infos:
        if each.name == name:
            each.CopyFrom(info)


def _names(graph: onnx.GraphProto) -> set[str]:
    def every() -> Iterator[str]:
        for node in graph.node:
            yield from (*node.input, *node.output)
        yield from (info.name for info in (*graph.input, *graph.output))
        yield from (tensor.name for tensor in graph.initializer)

    return {*every()}


def _fresh(stem: str, taken: set[str]) -> str:
    while stem in taken:
        stem += "_"
    taken.add(stem)
    return stem


def _renamed(names: MutableSequence[str], old: str, new: str) -> None:
    for place, name in enumerate(names):
        if name == old:
            names[place] = new
