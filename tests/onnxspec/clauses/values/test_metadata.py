"""Clauses about metadata, documentation and device annotations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from hwflow.onnxspec import validate
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.model_parts import branch, conditional
from tests.onnxspec.clauses.twins import Twin, check

KEYS = "\n  remedy: remove or rename the repeated keys"
PLAIN = "[GRA-26]\n  remedy: write the text plainly, or in Markdown"
MARKUP = "doc_string must not use HTML or other markup (Markdown is fine), but it has"


def everything() -> onnx.ModelProto:
    """A model with something of every kind: y = Own(If(c, Relu(x), Neg(x)) + w)."""
    own = helper.make_function(
        "org.example", "Own", ["a"], ["b"], [node("Relu", ["a"], ["b"], name="inner")], [helper.make_opsetid("", 21)],
        value_info=[value("b", [1, 4])],
    )  # fmt: skip
    proto = conditional(branch(), opsets={"": 21, "org.example": 1}, value_info=[value("s", [1, 4])], functions=[own])
    proto.graph.node[0].output[0] = "i"
    proto.graph.node.extend(
        [
            node("Constant", [], ["k"], name="constant", value=onnx.numpy_helper.from_array(np.ones(4, np.float32))),
            node("Sum", ["i", "k", "w"], ["s"], name="sum"),
            node("Own", ["s"], ["y"], name="call", domain="org.example"),
        ]
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(4, np.float32), "w"))
    return proto


Place = Callable[[onnx.ModelProto], Any]
# What the findings call it, and where it is.
PLACES: dict[str, Place] = {
    "graph 'graph'": lambda m: m.graph,
    "input 'x'": lambda m: m.graph.input[0],
    "value 's'": lambda m: m.graph.value_info[0],
    "output 'y'": lambda m: m.graph.output[0],
    "initializer 'w'": lambda m: m.graph.initializer[0],
    "node 'sum' (Sum)": lambda m: m.graph.node[2],
    "attribute 'value' of node 'constant' (Constant)": lambda m: m.graph.node[1].attribute[0].t,
    "graph 'then' in 'then_branch' of node 'choose' (If)": lambda m: then(m),
    "node 'Relu_t' (Relu) in 'then_branch' of node 'choose' (If)": lambda m: then(m).node[0],
    "output 't' in 'then_branch' of node 'choose' (If)": lambda m: then(m).output[0],
    "function 'org.example.Own'": lambda m: m.functions[0],
    "node 'inner' (Relu) in function 'org.example.Own'": lambda m: m.functions[0].node[0],
    "value 'b' in function 'org.example.Own'": lambda m: m.functions[0].value_info[0],
}


def then(proto: onnx.ModelProto) -> onnx.GraphProto:
    (graph,) = [a.g for a in proto.graph.node[0].attribute if a.name == "then_branch"]
    return graph


def with_keys(place: Place, *keys: str) -> onnx.ModelProto:
    proto = everything()
    for key in keys:
        place(proto).metadata_props.add(key=key, value="1")
    return proto


def metadata(where: str) -> Twin:
    return Twin(
        "PRO-20",
        name=where,
        bad=with_keys(PLACES[where], "a", "b", "a", "c", "c"),
        good=with_keys(PLACES[where], "a", "b", "c"),
        findings=[
            f"warning: {where}: the keys of metadata_props should be distinct, but repeated there: 'a', 'c' [PRO-20]"
            + KEYS
        ],
    )


def documented(place: Place, text: str) -> onnx.ModelProto:
    proto = everything()
    place(proto).doc_string = text
    return proto


def markup(where: str, place: Place) -> Twin:
    return Twin(
        "GRA-26",
        name=where,
        bad=documented(place, "Adds <b>two</b> values."),
        good=documented(place, "Adds **two** values, a < b."),
        findings=[f"warning: {where}: {MARKUP} '<b>' {PLAIN}"],
    )


def devices(change: Callable[[onnx.ModelProto], object] = lambda m: None) -> onnx.ModelProto:
    """A model with one configuration of two devices, which its node names."""
    proto = model([node("Relu", ["x"], ["y"], name="n")], ir_version=11)
    proto.configuration.add(name="pair", num_devices=2, device=["first", "second"])
    node_configuration = proto.graph.node[0].device_configurations.add(configuration_id="pair")
    node_configuration.sharding_spec.add(tensor_name="x", device=[0, 1])
    change(proto)
    return proto


def first(proto: onnx.ModelProto) -> onnx.NodeDeviceConfigurationProto:
    return proto.graph.node[0].device_configurations[0]


def device(name: str, change: Callable[[onnx.ModelProto], object], *findings: str) -> Twin:
    return Twin("PRO-22", name=name, bad=devices(change), good=devices(), findings=findings)


TWINS = [
    Twin(
        "MOD-11",
        bad=with_keys(lambda m: m, "author", "author", "author", "date"),
        good=with_keys(lambda m: m, "author", "Author", "date"),
        findings=[
            "warning: model: the keys of metadata_props should be distinct, but repeated there: 'author' [MOD-11]"
            + KEYS
        ],
    ),
    *map(metadata, PLACES),
    markup("model", lambda m: m),
    *(markup(where, place) for where, place in PLACES.items()),
    markup("attribute 'value' of node 'constant' (Constant)", lambda m: m.graph.node[1].attribute[0]),
    device(
        "no such configuration",
        lambda m: first(m).MergeFrom(onnx.NodeDeviceConfigurationProto(configuration_id="triple")),
        "error: node 'n' (Relu): configuration_id must be the name of a configuration of the model ('pair'), not "
        "'triple' [PRO-22]\n  remedy: add 'triple' to the model's configurations, or name another",
    ),
    device(
        "no configurations",
        lambda m: m.ClearField("configuration"),
        "error: node 'n' (Relu): configuration_id must be the name of a configuration of the model (none), not "
        "'pair' [PRO-22]\n  remedy: add 'pair' to the model's configurations, or name another",
    ),
    device(
        "no configuration_id",
        lambda m: first(m).ClearField("configuration_id"),
        "error: node 'n' (Relu): a device configuration must have a configuration_id, but one has none [PRO-22]\n"
        "  remedy: name a configuration",
    ),
    device(
        "too few devices",
        lambda m: m.configuration[0].device.pop(),
        "error: configuration 'pair': the list of devices must have num_devices = 2 entries, or none, not 1 [PRO-22]\n"
        "  remedy: correct one of them",
    ),
    device(
        "no num_devices",
        lambda m: m.configuration[0].ClearField("num_devices"),
        "error: configuration 'pair': num_devices must be at least 1, but it is absent [PRO-22]\n"
        "  remedy: state the number of devices",
    ),
    device(
        "negative num_devices",
        lambda m: m.configuration[0].MergeFrom(onnx.DeviceConfigurationProto(num_devices=-1)),
        "error: configuration 'pair': num_devices must be at least 1, but it is -1 [PRO-22]\n"
        "  remedy: state the number of devices",
    ),
    device(
        "names of configurations",
        lambda m: m.configuration.extend([m.configuration[0], onnx.DeviceConfigurationProto(num_devices=1)]),
        "error: configuration 'pair': names of device configurations must be distinct, but 'pair' names more than one "
        "[PRO-22]\n  remedy: rename one of them",
        "error: configuration 2: a device configuration must have a name, but this one has none [PRO-22]\n"
        "  remedy: give it one",
    ),
    device(
        "a value of another node",
        lambda m: first(m).sharding_spec.add(tensor_name="z"),
        "error: node 'n' (Relu): a sharding specification must be about an input or output of the node, not 'z' "
        "[PRO-22]\n  remedy: name one of the node's values",
    ),
    Twin(
        "PRO-22",
        name="devices need no names",
        bad=devices(lambda m: m.configuration[0].ClearField("num_devices")),
        good=devices(lambda m: m.configuration[0].ClearField("device")),
        findings=[
            "error: configuration 'pair': num_devices must be at least 1, but it is absent [PRO-22]\n"
            "  remedy: state the number of devices"
        ],
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def has_markup(text: str) -> bool:
    proto = model([node("Relu", ["x"], ["y"], doc_string=text)])
    return [f.rule for f in validate(proto)] == ["GRA-26"]


@pytest.mark.parametrize(
    "text",
    [
        "<b>", "</p>", "one<br>two", "one<br/>two", "<BR />", '<div class="x">', "<a href=x>link", "H<sub>2</sub>O",
        "<p\n>", "<H1>Title</H1>", "<!-- note -->", "<?xml version='1.0'?>", "<!DOCTYPE html>", "x</a >",
    ],
)  # fmt: skip
def test_markup(text: str) -> None:
    assert has_markup(text)


@pytest.mark.parametrize(
    "text",
    [
        'File "<eval_with_key>.9", line 5, in forward', "<ipython-input-3>", 'File "<stdin>", line 1, in <module>',
        "<lambda>", "<listcomp>", "<frozen importlib._bootstrap>", "a < b > c", "a<b and b>c", "x <p, q>",
        "std::vector<b>", "List<i>", "<object object at 0x7f>", "<code object f at 0x7f>", "<class 'torch.nn.Linear'>",
        "# Title\n\n* **bold** `code` [link](https://example.org) <https://example.org>",
        "> quote", "| a | b |\n|---|---|",
        "<s>", "</s>", "<mask>", "-> <=", "<batch> x <channels>", "1 <2> 3", "<", "<" * 10_000, "<p " * 10_000,
    ],
)  # fmt: skip
def test_no_markup(text: str) -> None:
    assert not has_markup(text)


def test_before_ir_11_devices_are_only_told_to_be_early() -> None:
    proto = devices(lambda m: m.ClearField("configuration"))
    proto.ir_version = 10
    assert [(f.rule, f.severity) for f in validate(proto)] == [("ir-version", "warning")]
