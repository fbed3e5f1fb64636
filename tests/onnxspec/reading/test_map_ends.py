"""Maps at the ends of a model: taken out of it and put back."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from hwflow.errors import ModelRefused
from hwflow.onnxspec.reading.map_ends import separated

ML = "ai.onnx.ml"
FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def map_type(key: int, value: int) -> onnx.TypeProto:
    return helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))


def maps(name: str, key: int) -> onnx.ValueInfoProto:
    return helper.make_value_info(name, helper.make_sequence_type_proto(map_type(key, FLOAT)))


def node(op: str, source: str, result: str, domain: str = ML, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, [source], [result], name=op, domain=domain, **attributes)


def model(
    nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)])


def both_ends(**vectorizer: Any) -> onnx.ModelProto:
    vectorizer = vectorizer or {"string_vocabulary": ["u", "v"]}
    key = STRING if "string_vocabulary" in vectorizer else INT64
    return model(
        [
            node("DictVectorizer", "d", "f", **vectorizer), node("Neg", "f", "s", ""),
            node("ZipMap", "s", "z", classlabels_int64s=[7, -1]),
        ],
        [helper.make_value_info("d", map_type(key, FLOAT))], [maps("z", INT64)],
    )


def test_ends_become_tensors() -> None:
    proto = both_ends()
    ends = separated(proto)
    assert [n.op_type for n in proto.graph.node] == ["Identity", "Neg", "Identity"]
    onnx.checker.check_model(proto, full_check=True)
    (into,), (out,) = proto.graph.input, proto.graph.output
    assert into.type.tensor_type.elem_type == FLOAT and into.type.tensor_type.shape.dim[1].dim_value == 2
    assert out.type.tensor_type.elem_type == FLOAT and out.type.tensor_type.shape.dim[1].dim_value == 2
    assert (ends.inputs["d"].keys, ends.inputs["d"].columns, ends.inputs["d"].type) == (("u", "v"), 2, "float32")
    assert (ends.outputs["z"].keys, ends.outputs["z"].columns) == ((7, -1), 2)


def test_they_are_put_back() -> None:
    before = both_ends()
    proto = both_ends()
    after = separated(proto).attached(proto)
    onnx.checker.check_model(after)
    assert [*after.graph.input] == [*before.graph.input] and [*after.graph.output] == [*before.graph.output]
    assert [n.op_type for n in after.graph.node] == ["DictVectorizer", "Identity", "Neg", "Identity", "ZipMap"]
    for name in ("DictVectorizer", "ZipMap"):
        first, second = ([n for n in each.graph.node if n.op_type == name] for each in (before, after))
        assert [*first[0].attribute] == [*second[0].attribute]
    assert separated(after).inputs["d"].keys == ("u", "v")


def cast(**attributes: Any) -> onnx.ModelProto:
    shape = [1, 3] if attributes.get("map_form") != "SPARSE" else None
    return model(
        [node("CastMap", "m", "y", **attributes)], [helper.make_value_info("m", map_type(INT64, FLOAT))],
        [helper.make_tensor_value_info("y", FLOAT, shape)],
    )


def test_cast_maps() -> None:
    proto = cast(map_form="SPARSE", max_map=4)
    (end,) = separated(proto).inputs.values()
    assert (end.keys, end.columns, end.type) == ((0, 1, 2, 3), 4, "float32")
    (end,) = separated(cast(cast_to="TO_INT64")).inputs.values()
    assert (end.keys, end.columns, end.type) == (None, 3, "int64")


def test_what_depends_on_the_map() -> None:
    proto = cast()
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ModelRefused, match="a map must be read by DictVectorizer, or by CastMap with map_form SPARSE"):
        separated(proto)
    proto = both_ends()
    proto.graph.node.append(node("DictVectorizer", "d", "other", string_vocabulary=["v", "u"]))
    with pytest.raises(ModelRefused, match="by all readers with the same keys"):
        separated(proto)


def test_a_model_without_maps_stays_as_it_is() -> None:
    tensor = helper.make_tensor_value_info("x", FLOAT, [None, 2])
    proto = model([node("Neg", "x", "y", "")], [tensor], [helper.make_tensor_value_info("y", FLOAT, [None, 2])])
    before = proto.SerializeToString()
    assert separated(proto).attached(proto) is proto
    assert proto.SerializeToString() == before
