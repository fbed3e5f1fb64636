"""No attribute is ignored: of every operator that is taken, in every version, each is honoured as declared or refused.

The attributes are those of ONNX's schemas and of the dialects' forms, whatever the installed onnx has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, defs

from hwflow.api.checking import check
from hwflow.frontend.honoured_attributes import not_honoured
from hwflow.onnxspec.graphs.attribute_values import defaults
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.resolving.resolved_model import Attribute, OnnxNode
from hwflow.operators.onnx_operators import HANDLERS
from hwflow.operators.record import Operator
from hwflow.verify import golden
from tests.models import Builder
from tests.reference_agreement import agree_with_reference

REFUSED = {  # of operator sets before 7: the second operand's shape begins at this axis of the first one's
    (name, "axis") for name in ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
}
"""Attributes in ONNX's schemas that no handler honours."""

IDLE = "consumed_inputs"


def schemas() -> Iterator[onnx.defs.OpSchema]:
    """Every version of every operator of ONNX's own that is taken."""
    for schema in defs.get_all_schemas_with_history():
        if (schema.domain, schema.name) in HANDLERS and not schema.deprecated:
            yield schema


def another(kind: int, default: Attribute | None) -> Attribute:
    """A value of an attribute of that kind that no operator defines."""
    values: dict[int, Attribute] = {
        AttributeProto.INT: 9173, AttributeProto.FLOAT: 91.5, AttributeProto.STRING: "odd",
        AttributeProto.INTS: (9173,), AttributeProto.FLOATS: (91.5,), AttributeProto.STRINGS: ("odd",),
        AttributeProto.TENSOR: np.array([91.5]),
    }  # fmt: skip
    assert values[kind] is not default and not isinstance(default, np.ndarray)
    assert kind == AttributeProto.TENSOR or values[kind] != default
    return values[kind]


def node(domain: str, name: str, version: int, attributes: dict[str, Attribute]) -> OnnxNode:
    return OnnxNode("it", name, domain, version, ("x",), ("y",), attributes)


def refused(operator: Operator, of: OnnxNode) -> list[str]:
    """The attributes that are refused, by the findings' texts."""
    return [finding.message.split("'")[1] for finding in not_honoured(of, operator)]


def test_every_attribute_of_every_version_is_honoured_or_refused() -> None:
    ignored = set()
    walked = 0
    for schema in schemas():
        operator = HANDLERS[schema.domain, schema.name]
        standard = defaults(schema)
        for name, declared in schema.attributes.items():
            walked += 1
            odd = another(int(declared.type.value), standard.get(name))
            found = refused(operator, node(schema.domain, schema.name, schema.since_version, {**standard, name: odd}))
            if operator.honours.get(name, ()) is not None and name != IDLE:
                assert name in found, (schema.name, schema.since_version, name)
            if name not in operator.honours and name != IDLE:
                ignored.add((schema.name, name))
    assert walked > 400
    assert ignored == REFUSED  # a new attribute is looked at before it stands here


def test_defaults_are_not_refused() -> None:
    for schema in schemas():
        operator = HANDLERS[schema.domain, schema.name]
        assert refused(operator, node(schema.domain, schema.name, schema.since_version, defaults(schema))) == []


def test_what_is_declared_is_an_attribute_of_some_version() -> None:
    known: dict[tuple[str, str], set[str]] = {key: set() for key in HANDLERS}
    for schema in schemas():
        known[schema.domain, schema.name] |= set(schema.attributes)
    for (domain, name), operator in HANDLERS.items():
        form = facts_of(domain, name).form
        assert set(operator.honours) <= (known[domain, name] if form is None else set(form.attributes)), name


def test_an_attribute_of_another_version_is_refused() -> None:
    of = node("", "SpaceToDepth", 13, {"blocksize": 2, "mode": "DCR"})  # which has it since 28
    assert refused(HANDLERS["", "SpaceToDepth"], of) == ["mode"]


def test_every_attribute_of_the_dialects_is_honoured_or_refused() -> None:
    for (domain, name), operator in HANDLERS.items():
        form = facts_of(domain, name).form
        assert (form is None) == (domain in ("", "ai.onnx.ml"))
        if form is not None:
            assert set(form.attributes) == set(operator.honours), name
            assert refused(operator, node(domain, name, 1, {"unheard_of": 0})) == ["unheard_of"]


def in_hardware(make: Callable[[Builder, str], str], opset: int = 28, shape: tuple[int, ...] = (2, 2, 4)) -> Builder:
    """A node between two quantizers."""
    b = Builder(opset, 14 if opset > 25 else 10)
    b.output(b.requantize(make(b, b.requantize(b.input("x", ["N", *shape]), 0.25, 3, "int8")), 0.5, -4, "int8"))
    return b


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("op", ["SpaceToDepth", "DepthToSpace"])
def test_depth_and_space_in_both_modes(op: str, mode: str) -> None:
    shape = (3, 4, 6) if op == "SpaceToDepth" else (12, 2, 3)
    agree_with_reference(in_hardware(lambda b, x: b.node(op, x, blocksize=2, mode=mode), shape=shape))


@pytest.mark.parametrize(
    ("mode", "expected"), [("CRD", [0, 1, 2, 3, 4, 5, 6, 7]), ("DCR", [0, 4, 1, 5, 2, 6, 3, 7])]
)
def test_space_to_depth_of_eight_numbers(mode: str, expected: list[int], tmp_path: Path) -> None:
    """By hand: [1, 2, 2, 2], each 2 x 2 block to 4 channels, a channel's own next to each other or apart."""
    b = Builder(28, 14)
    b.output(b.node("SpaceToDepth", b.input("x", ["N", 2, 2, 2], "int8"), blocksize=2, mode=mode, name="y"))
    graph = b.load(tmp_path).quantized
    (result,) = golden.evaluate(graph, {"x": np.arange(8).reshape(1, 2, 2, 2)}).values()
    assert result.reshape(-1).tolist() == expected


def findings(b: Builder, folder: Path) -> list[str]:
    found = check(b.save(folder))
    assert not [finding for finding in found if finding.severity == "error"]
    return [f"{finding.where}: {finding.message}" for finding in found if finding.rule == "supported-attribute"]


def test_an_unknown_mode(tmp_path: Path) -> None:
    b = in_hardware(lambda b, x: b.node("SpaceToDepth", x, blocksize=2, mode="RCD", name="it"))
    assert findings(b, tmp_path) == [
        "node 'it' (SpaceToDepth): attribute 'mode' must be 'DCR' or 'CRD', not 'RCD'"
    ]


def test_all_attributes_that_are_not_honoured_are_said_at_once(tmp_path: Path) -> None:
    def unknown(b: Builder, x: str) -> str:
        more: dict[str, Any] = {"one": 1, "two": "b" * 100, "alpha": 0.5}
        q = b.quantize(x, 0.25, 3)
        y = b.node(
            "QLinearLeakyRelu", q, b.constant(0.25), b.constant(3, "uint8"), b.constant(0.25), b.constant(3, "uint8"),
            domain="com.microsoft", name="it", **more,
        )
        return b.dequantize(b.declare(y, ["N", 2, 2, 4], "uint8"), 0.25, 3)

    assert findings(in_hardware(unknown, 21), tmp_path) == [
        "node 'it' (QLinearLeakyRelu): attribute 'one' must be absent: the operator has no attribute of that name, "
        "not 1",
        "node 'it' (QLinearLeakyRelu): attribute 'two' must be absent: the operator has no attribute of that name, "
        f"not '{'b' * 59}...",
    ]


def test_an_axis_before_operator_set_7(tmp_path: Path) -> None:
    """[2] along axis 1 of [N, 2, 3]; aligned at the ends, it would not even fit."""
    b = Builder(6, 4)
    x = b.input("x", ["N", 2, 3], "int32")
    y = b.node("Add", x, b.constant([1, 2], "int32"), axis=1, broadcast=1, name="it")
    b.output(b.declare(y, ["N", 2, 3], "int32"))
    assert findings(b, tmp_path) == ["node 'it' (Add): attribute 'axis' must be absent, not 1"]


def test_a_node_on_the_host_keeps_its_attributes(tmp_path: Path) -> None:
    """Behind the last quantizer nothing is refused: the host knows all of ONNX's attributes."""
    b = Builder(6, 4)
    x = b.input("x", ["N", 2, 3], "int32")
    real = b.declare(b.node("Cast", b.node("Neg", x), to=onnx.TensorProto.FLOAT), ["N", 2, 3])
    y = b.node("Add", real, b.constant([1, 2]), axis=1, broadcast=1, name="it")
    b.output(b.declare(y, ["N", 2, 3]))
    assert not [finding for finding in check(b.save(tmp_path)) if finding.severity != "warning"]
