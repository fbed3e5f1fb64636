"""What a model uses before its IR version has it. Versions: the Version enum's comments in onnx.proto."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import helper

from tests.onnxspec.build import model, node
from tests.onnxspec.clauses.twins import Twin, check

Change = Callable[[onnx.ModelProto], object]


def plain(version: int) -> onnx.ModelProto:
    """Of the newest operator set that goes with an IR version."""
    relu = node("Relu", ["x"], ["y"], name="n")
    return model([relu], opsets={"": 8 if version < 8 else 15}, ir_version=version)


def with_function(version: int) -> onnx.ModelProto:
    body = [node("Relu", ["a"], ["b"], name="inner")]
    function = helper.make_function("org.example", "F", ["a"], ["b"], body, [helper.make_opsetid("", 15)])
    call = node("F", ["x"], ["y"], name="n", domain="org.example")
    return model([call], opsets={"": 15, "org.example": 1}, functions=[function], ir_version=version)


def twin(
    what: str, since: int, change: Change, where: str = "node 'n' (Relu)",
    make: Callable[[int], onnx.ModelProto] = plain, more: str = "",
) -> Twin:
    def changed(version: int) -> onnx.ModelProto:
        result = make(version)
        change(result)
        return result

    text = (
        f"warning: {where}: {what} must be absent below IR version {since}, which brought it, but the model has IR "
        f"version {since - 1}{more} [ir-version]\n  remedy: export the model with IR version {since} or higher"
    )
    return Twin("ir-version", changed(since - 1), changed(since), [text], name=f"{what} {where}")


def annotate(proto: onnx.ModelProto) -> None:
    proto.graph.quantization_annotation.add(tensor_name="x")


def add_sparse(proto: onnx.ModelProto) -> None:
    indices = onnx.TensorProto(dims=[1], data_type=onnx.TensorProto.INT64, int64_data=[0])
    values = onnx.TensorProto(name="s", dims=[1], data_type=onnx.TensorProto.FLOAT, float_data=[1.0])
    proto.graph.sparse_initializer.add(values=values, indices=indices, dims=[4])


def overload(proto: onnx.ModelProto) -> None:
    proto.functions[0].overload = proto.graph.node[0].overload = "o"


def devices() -> Twin:
    """A configuration, and a node that is placed by it."""

    def placed(version: int) -> onnx.ModelProto:
        proto = plain(version)
        proto.configuration.add(name="c", num_devices=1)
        proto.graph.node[0].device_configurations.add(configuration_id="c")
        return proto

    found = {"model": "configuration of devices", "node 'n' (Relu)": "device_configurations of nodes"}
    texts = [
        f"warning: {where}: {what} must be absent below IR version 11, which brought it, but the model has IR version "
        "10 [ir-version]\n  remedy: export the model with IR version 11 or higher"
        for where, what in found.items()
    ]
    return Twin("ir-version", placed(10), placed(11), texts, name="devices")


METADATA = "metadata_props beside the model's own"
TWINS = [
    twin("quantization_annotation", 5, annotate, "graph 'graph'"),
    twin("sparse_initializer", 6, add_sparse, "sparse initializer 's'"),
    twin(
        "attribute_proto of functions", 9,
        lambda m: m.functions[0].attribute_proto.append(helper.make_attribute("k", 1)),
        "function 'org.example.F'", with_function,
    ),
    twin("overload", 10, overload, "node 'n' (F)", with_function, ", the first of 2"),
    twin(METADATA, 10, lambda m: m.graph.node[0].metadata_props.add(key="k", value="v")),
    twin(METADATA, 10, lambda m: m.graph.metadata_props.add(key="k", value="v"), "graph 'graph'"),
    twin("configuration of devices", 11, lambda m: m.configuration.add(name="c", num_devices=1), "model"),
    devices(),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)
