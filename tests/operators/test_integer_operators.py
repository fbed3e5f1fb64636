"""Operators on integer and bool tensors, element by element: the golden model, in both stages, and ONNX's reference
evaluator agree over the whole range of the types."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.ir.graph import Graph
from hwflow.passes import pipeline
from hwflow.verify import golden
from tests.agreement import same
from tests.models import Builder

FRAMES = 4


def exactly(b: Builder, seed: int = 0) -> Graph:
    """Equal for random frames, corners of the types among them. Returns the dataflow graph."""
    with tempfile.TemporaryDirectory() as folder:
        model = b.load(Path(folder))
    rng = np.random.default_rng(seed)
    arrays = {}
    for info in model.proto.graph.input:
        kind = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        shape = (FRAMES, *(dim.dim_value or 1 for dim in info.type.tensor_type.shape.dim[1:]))
        ends = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
        drawn = rng.integers(*ends, shape, endpoint=True)
        arrays[info.name] = np.where(rng.random(shape) < 0.3, rng.choice([*ends, 0, 1], shape), drawn).astype(kind)
    evaluator = ReferenceEvaluator(model.proto)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # divisors of 0, of which it makes 0
        frames = [evaluator.run(None, {name: a[k : k + 1] for name, a in arrays.items()}) for k in range(FRAMES)]
    feeds = port_inputs(model, arrays)
    found = model_outputs(model, golden.evaluate(model.quantized, feeds), arrays)
    for place, info in enumerate(model.proto.graph.output):
        expected = np.concatenate([np.asarray(frame[place]) for frame in frames])
        assert found[info.name].dtype == expected.dtype
        np.testing.assert_array_equal(found[info.name], expected, info.name)
    lowered = pipeline.run(model.quantized, pipeline.DATAFLOW)
    same(model.quantized, lowered, feeds)
    return lowered


Make = Callable[[Builder], str]


def x(b: Builder, kind: str = "int8") -> str:
    return b.input("x", ["N", 3, 8], kind)


def y(b: Builder, kind: str = "int8") -> str:
    return b.input("y", ["N", 3, 8], kind)


def multiplied_and_added(b: Builder) -> str:
    wide = [b.node("Cast", b.input(name, ["N", 3, 8], "int8"), to=TensorProto.INT32) for name in "xyz"]
    return b.node("Add", b.node("Mul", wide[0], wide[1]), wide[2])


CASES: dict[str, Make] = {
    "add_a_constant": lambda b: b.node("Add", x(b), b.constant(100, "int8")),
    "constant_minus": lambda b: b.node("Sub", b.constant([-100], "int8"), x(b)),
    "times_a_constant": lambda b: b.node("Mul", x(b, "int32"), b.constant(-77777, "int32")),
    "times_zero": lambda b: b.node("Add", b.node("Mul", x(b), b.constant(0, "int8")), "x"),
    "times_minus_one": lambda b: b.node("Mul", x(b, "int16"), b.constant(-1, "int16")),
    "times_256": lambda b: b.node("Add", b.node("Mul", x(b, "uint16"), b.constant(256, "uint16")), "x"),
    "by_a_constant": lambda b: b.node("Div", x(b, "int16"), b.constant(-10, "int16")),
    "a_constant_by": lambda b: b.node("Div", b.constant(1000, "int16"), x(b, "int16")),
    "modulo_a_constant": lambda b: b.node("Mod", x(b), b.constant(-7, "int8")),
    "c_modulo": lambda b: b.node("Mod", x(b), y(b), fmod=1),
    "python_modulo": lambda b: b.node("Mod", x(b, "int32"), y(b, "int32")),
    "greatest_of_four": lambda b: b.node(
        "Max", x(b), b.constant(-50, "int8"), y(b), b.input("z", ["N", 3, 8], "int8")
    ),
    "least_of_one": lambda b: b.node("Neg", b.node("Min", x(b))),
    "absolute_of_the_least": lambda b: b.node("Abs", x(b)),
    "relu_of_32_bits": lambda b: b.node("Relu", x(b, "int32")),
    "clip_of_32_bits": lambda b: b.node("Clip", x(b, "int32"), b.constant(-(10**8), "int32"), b.constant(7, "int32")),
    "clip_from_below": lambda b: b.node("Clip", x(b, "int32"), b.constant(-3, "int32")),
    "cast_that_wraps": lambda b: b.node("Cast", x(b, "int32"), to=TensorProto.INT8),
    "cast_to_bool": lambda b: b.node("Cast", b.node("Div", x(b), b.constant(50, "int8")), to=TensorProto.BOOL),
    "cast_of_a_bool": lambda b: b.node("Add", b.node("Cast", x(b, "bool"), to=TensorProto.INT32), y(b, "int32")),
    "logic": lambda b: b.node(
        "Not", b.node("And", x(b, "bool"), b.node("Or", y(b, "bool"), b.constant(False, "bool")))
    ),
    "selected_by_a_comparison": lambda b: b.node(
        "Where", b.node("GreaterOrEqual", x(b), y(b)), "x", b.constant(5, "int8")
    ),
    "shifted_by_a_constant": lambda b: b.node(
        "BitShift", x(b, "uint16"), b.constant(5, "uint16"), direction="LEFT"
    ),
    "shifted_out": lambda b: b.node("BitShift", x(b, "uint8"), b.constant(9, "uint8"), direction="RIGHT"),
    "a_constant_shifted": lambda b: b.node("BitShift", b.constant(3, "uint8"), x(b, "uint8"), direction="LEFT"),
    "bits": lambda b: b.node("BitwiseXor", b.node("BitwiseNot", x(b, "int16")), b.constant(255, "int16")),
    "of_channels": lambda b: b.node("Sub", x(b), b.input("y", ["N", 3, 1], "int8")),
    "of_pixels_and_channels": lambda b: b.node(
        "Mul", b.input("x", ["N", 1, 8], "int8"), b.input("y", ["N", 3, 1], "int8")
    ),
    "within_a_chain": multiplied_and_added,
    "add_a_tensor": lambda b: b.node("Add", x(b), b.constant(np.arange(24).reshape(1, 3, 8) * 5, "int8")),
    "by_a_channel": lambda b: b.node("Mod", x(b), b.constant([[3], [-4], [0]], "int8")),
    "times_a_channel": lambda b: b.node("Mul", b.constant([[3], [-4], [100]], "int32"), x(b, "int32")),
    "one_or_the_other": lambda b: b.node(
        "Where", x(b, "bool"), b.constant(np.arange(8), "int32"), b.constant([[7], [8], [-9]], "int32")
    ),
    "a_tensor_of_more": lambda b: b.node(
        "Max", b.input("x", ["N", 1, 8], "uint8"), b.constant(np.arange(24).reshape(3, 8) * 9, "uint8"), y(b, "uint8")
    ),
    "of_sums": lambda b: b.node(
        "BitwiseAnd",
        b.node("MatMulInteger", x(b), b.constant(np.arange(16).reshape(8, 2) - 7, "int8"), b.constant(3, "int8")),
        b.input("m", ["N", 3, 2], "int32"),
    ),
    "dequantized_then": lambda b: b.quantize(
        b.dequantize(b.node("Max", x(b), y(b)), 0.5, 3, "int8"), 0.25, 0, "int8"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_reference_evaluator(name: str) -> None:
    b = Builder(21, 10)
    b.output(CASES[name](b))
    exactly(b)


def test_what_cannot_overflow_is_as_wide_as_it_is() -> None:
    """Products of int8 in int32: 16 bits, and no more than 17 with another one added."""
    b = Builder(21, 10)
    wide = [b.node("Cast", b.input(name, ["N", 4], "int8"), to=TensorProto.INT32) for name in "abc"]
    b.output(b.node("Add", b.node("Mul", wide[0], wide[1]), wide[2]))
    graph = exactly(b)
    assert graph.outputs[0].value.typed.element.bits == 16
    assert graph.outputs[0].value.typed.interval.hi == 128 * 128 + 127


def test_operands_that_are_rearranged_both() -> None:
    """A stream that broadcasts is not rearranged twice."""
    b = Builder(21, 10)
    left, right = b.input("x", ["N", 1, 4, 1, 6], "int8"), b.input("y", ["N", 3, 1, 5, 6], "int8")
    b.output(b.node("Add", left, right))
    graph = exactly(b)
    assert [node.op for node in graph.nodes] == ["rearrange", "rearrange", "elementwise"]
