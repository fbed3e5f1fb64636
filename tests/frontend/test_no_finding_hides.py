"""One run of `check` names every fault of a model: what is refused hides nothing in front of it or behind it, and what
only follows from it is not said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from hwflow.api.checking import check
from tests.models import Builder

Put = Callable[[Builder, str, str], str]
"""Puts an operator that is refused, of a name, behind a value; returns its result."""

SHAPE = ["N", 3, 4]
ROOTS = np.sqrt(np.arange(16.0)).reshape(4, 4)
"""Weights that are no multiples of one number."""
FLOAT = helper.make_tensor_value_info("result", TensorProto.FLOAT, SHAPE)


def of_a_function(b: Builder, x: str, name: str) -> str:
    """It has a definition of other operators, but stays whole."""
    return b.node("RandomNormalLike", x, name=name)


def foreign(b: Builder, x: str, name: str) -> str:
    return b.declare(b.node("Strange", x, name=name, domain="org.example"), SHAPE)


def second_result(b: Builder, x: str, name: str) -> str:
    """A result that is not the first one, of another shape than that."""
    first = b.node("Strange", x, name=name, outputs=[f"{name}_second"], domain="org.example")
    b.declare(first, ["N", 7])
    return b.declare(f"{name}_second", SHAPE)


def endless(b: Builder, x: str, name: str) -> str:
    """A loop of as many rounds as an input says, whose body reads the stream and says no shape that could be read."""
    nothing = helper.make_tensor_value_info(f"{name}_after", TensorProto.FLOAT, None)
    body = helper.make_graph(
        [
            helper.make_node("Identity", [f"{name}_go"], [f"{name}_on"]),
            helper.make_node("Add", [f"{name}_before", x], [nothing.name]),
        ],
        f"{name}_body",
        [
            helper.make_tensor_value_info(f"{name}_k", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"{name}_go", TensorProto.BOOL, []),
            helper.make_tensor_value_info(f"{name}_before", TensorProto.FLOAT, None),
        ],
        [helper.make_tensor_value_info(f"{name}_on", TensorProto.BOOL, []), nothing],
    )
    return b.node("Loop", b.input(f"{name}_count", ["N"], "int64"), "", x, name=name, body=body)


def attribute(b: Builder, x: str, name: str) -> str:
    """One that nobody knows."""
    parameters = [b.constant(v) for v in (0.5, 0.0, 8.0)]
    y = b.node("Quant", x, *parameters, name=name, domain="qonnx.custom_op.general", colour=3)
    return b.declare(y, SHAPE)


def time_first(b: Builder, x: str, name: str) -> str:
    """The frame axis is moved, and brought back behind a node that works on it elsewhere."""
    y = b.node("Transpose", x, perm=[1, 0, 2], name=name)
    return b.node("Transpose", b.node("Relu", y), perm=[1, 0, 2])


KINDS: dict[Put, str] = {
    of_a_function: "supported-operator", foreign: "supported-operator", second_result: "supported-operator",
    endless: "control-flow", attribute: "supported-attribute", time_first: "frame-axis",
}  # fmt: skip


def dense(b: Builder, x: str, name: str, *, quantized: bool = True) -> str:
    weights = b.weights(np.ones((4, 4), int)) if quantized else b.constant(ROOTS)
    return b.node("MatMul", b.requantize(x, 0.5), weights, name=name)


def named(b: Builder, y: str, folder: Path) -> list[tuple[str, str]]:
    b.output(b.declare(b.quantize(y, 0.5), SHAPE, "uint8"))
    findings = [f for f in check(b.save(folder)) if f.severity != "warning"]
    assert all(f.severity == "unsupported" for f in findings)
    return sorted((f.where.split(" (")[0], f.rule) for f in findings)


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_in_front_of_between_and_behind_other_faults(first: Put, second: Put, tmp_path: Path) -> None:
    """Float weights and an operator that there is no core for."""
    b = Builder(21, 10)
    y = dense(b, b.input("x", SHAPE), "good")
    y = dense(b, y, "float0", quantized=False)
    y = dense(b, first(b, y, "first"), "float1", quantized=False)
    y = b.node("Bernoulli", b.requantize(y, 0.5), name="drawn")
    y = second(b, b.requantize(y, 0.5), "second")
    y = dense(b, y, "float2", quantized=False)
    floats = [(f"node 'float{k}'", "quantized-weights") for k in range(3)]
    assert named(b, y, tmp_path) == sorted(
        [*floats, ("node 'first'", KINDS[first]), ("node 'second'", KINDS[second]),
         ("node 'drawn'", "supported-operator")]
    )  # fmt: skip


@pytest.mark.parametrize("kind", [foreign, endless])
def test_behind_what_may_be_a_quantizer(kind: Put, tmp_path: Path) -> None:
    """In front of any quantizer: until there is one, nobody knows whether hardware has begun."""
    b = Builder(21, 10)
    y = kind(b, b.input("x", SHAPE), "strange")
    y = b.node("MatMul", y, b.constant(ROOTS), name="perhaps_the_host")
    y = dense(b, y, "float", quantized=False)
    rule = KINDS[kind]
    assert named(b, y, tmp_path) == [("node 'float'", "quantized-weights"), ("node 'strange'", rule)]


def test_operators_behind_one_without_a_shape(tmp_path: Path) -> None:
    """What is known without shapes, and what stands in front."""
    b = Builder(21, 10)
    y = dense(b, b.input("x", SHAPE), "float0", quantized=False)
    y = b.node("Strange", y, name="first", domain="org.example")
    y = dense(b, b.node("Stranger", y, name="second", domain="org.example"), "last")
    y = b.node("Bernoulli", b.requantize(y, 0.5), name="drawn")
    y = dense(b, y, "end")
    assert named(b, y, tmp_path) == [
        ("node 'drawn'", "supported-operator"), ("node 'first'", "supported-operator"),
        ("node 'float0'", "quantized-weights"), ("node 'second'", "supported-operator"),
    ]  # fmt: skip


def test_nothing_is_said_of_constants_behind_a_refused_one(tmp_path: Path) -> None:
    """Weights that a refused operator makes: its finding is enough."""
    b = Builder(21, 10)
    weights = b.declare(b.node("Strange", b.constant(np.ones((4, 4))), name="made", domain="org.example"), [4, 4])
    y = b.node("MatMul", b.requantize(b.input("x", SHAPE), 0.5), weights, name="product")
    y = dense(b, y, "float", quantized=False)
    assert named(b, y, tmp_path) == [("node 'float'", "quantized-weights"), ("node 'made'", "supported-operator")]
