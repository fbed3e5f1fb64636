"""Quantized models with control flow: golden model, and one in hardware, against onnxruntime's own Scan, Loop and If,
on numbers that floats carry exactly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from hwflow.api.compiler import compile
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.loaded_model import Model
from hwflow.verify import golden
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import passes_in_rtl
from tests.onnx_node_tests.top_simulation import SimulatedTop

FRAMES = 6


def info(name: str, kind: int = TensorProto.FLOAT, shape: Sequence[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def rounded(x: str, scale: str, zero: str, result: str) -> list[onnx.NodeProto]:
    """QuantizeLinear and DequantizeLinear in a body."""
    return [
        helper.make_node("QuantizeLinear", [x, scale, zero], [f"{result}_q"]),
        helper.make_node("DequantizeLinear", [f"{result}_q", scale, zero], [result]),
    ]


def same(builder: Builder, folder: Path, seed: int = 0) -> tuple[Model, dict[str, Any], dict[str, Any]]:
    """Random frames through onnxruntime, one by one and not optimized, and through the golden model, all at once."""
    model = builder.load(folder)
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {}
    for each in model.proto.graph.input:
        shape = (FRAMES, *[dim.dim_value for dim in each.type.tensor_type.shape.dim][1:])
        kind = helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)
        low, high = (0, 2) if kind.kind == "b" else (0, 9) if kind.kind in "iu" else (-30, 31)
        arrays[each.name] = (rng.integers(low, high, shape) * (0.25 if kind.kind == "f" else 1)).astype(kind)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.proto.SerializeToString(), options)
    frames = [session.run(None, {n: a[k : k + 1] for n, a in arrays.items()}) for k in range(FRAMES)]
    wanted = {o.name: np.concatenate([f[p] for f in frames]) for p, o in enumerate(model.proto.graph.output)}
    found = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, name)
    return model, arrays, wanted


def elman(steps: int, *, initial: bool = False) -> Builder:
    """A recurrent layer as a Scan, batch first, with quantizers at the sum and at the state; the last state and all."""
    b, rng = Builder(21, 10), np.random.default_rng(1)
    x = b.requantize(b.input("x", ["N", steps, 3]), 0.25, 3, "int8")
    given = b.node("MatMul", x, b.weights(rng.integers(-9, 9, (3, 2)), 0.125))
    recurrent = b.weights(rng.integers(-9, 9, (2, 2)), 0.0625)
    zero = b.constant(0, "int8")
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["h", recurrent], ["product"]),
            helper.make_node("Add", ["g", "product"], ["sum"]),
            *rounded("sum", b.constant(0.25), zero, "rounded"),
            helper.make_node("Relu", ["rounded"], ["new"]),
            *rounded("new", b.constant(0.125), zero, "state"),
            helper.make_node("Identity", ["state"], ["row"]),
        ],
        "step", [info("h"), info("g")], [info("state"), info("row")],
    )
    first = b.requantize(b.input("first", ["N", 2]), 0.25, 0, "int8") if initial else b.constant(np.zeros((1, 2)))
    b.node(
        "Scan", first, given, name="last", outputs=["all"], body=body, num_scan_inputs=1, scan_input_axes=[1],
        scan_output_axes=[1],
    )
    b.declare("last", ["N", 2])
    b.declare("all", ["N", steps, 2])
    b.output("last", "all")
    return b


@pytest.mark.parametrize("initial", [False, True])
def test_a_recurrent_layer(initial: bool, tmp_path: Path) -> None:
    same(elman(5, initial=initial), tmp_path)


def test_a_recurrent_layer_in_hardware(tmp_path: Path) -> None:
    model, arrays, wanted = same(elman(3), tmp_path)
    top = SimulatedTop(compile(model, "ulx3s_85f", fps=1).schedule.plan)
    for name, array in model_outputs(model, top.run(port_inputs(model, arrays), gap=0.0, stall=0.0), arrays).items():
        np.testing.assert_array_equal(array, wanted[name])


@pytest.mark.parametrize("name", ["test_scan9_multi_state", "test_reversesequence_batch", "test_simple_rnn_batchwise"])
def test_onnx_own_node_tests_in_hardware(name: str, tmp_path: Path) -> None:
    """With quantizers around the node; the RNN has one step."""
    passes_in_rtl(name, tmp_path)


def test_lengths_of_each_frame(tmp_path: Path) -> None:
    """Sequences are reversed up to lengths that come with the frames."""
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 8, 2]), 0.25, 0, "int8")
    lengths = b.node("Cast", b.input("lengths", ["N"], "uint8"), to=TensorProto.INT64)
    y = b.node("ReverseSequence", x, b.node("Min", lengths, b.constant([8], "int64")), batch_axis=0, time_axis=1)
    b.output(b.requantize(y, 0.25, 0, "int8"))
    same(b, tmp_path)


@pytest.mark.parametrize("kind", ["bool", "int8"])
def test_branches_of_each_frame(kind: str, tmp_path: Path) -> None:
    """A flag, or whether an integer is above 4: a convolution by one matrix or another."""
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 3]), 0.25, 3, "int8")
    flag = b.input("flag", ["N"], kind)
    if kind == "int8":
        flag = b.node("Greater", flag, b.constant(4, "int8"))
    branches = {
        f"{way}_branch": helper.make_graph(
            [helper.make_node("MatMul", [x, b.weights(np.array(matrix), 0.5)], [f"{way}_r"])], way, [],
            [info(f"{way}_r")],
        )
        for way, matrix in (("then", [[1, 2], [3, -4], [0, 1]]), ("else", [[-1, 0], [2, 5], [1, 1]]))
    }
    y = b.node("If", flag, name="choice", **branches)
    b.output(b.declare(b.requantize(y, 0.5, 0, "int8"), ["N", 2]))
    same(b, tmp_path)


def test_a_loop_that_each_frame_ends(tmp_path: Path) -> None:
    """Doubled until it is at least 20, at most four times; the number of rounds, too."""
    b = Builder(21, 10)
    x = b.input("x", ["N"], "int16")
    limit, one = b.constant([20], "int16"), b.constant([1], "int16")
    body = helper.make_graph(
        [
            helper.make_node("Add", ["a", "a"], ["b"]), helper.make_node("Add", ["count", one], ["more"]),
            helper.make_node("Less", ["b", limit], ["on"]),
        ],
        "body",
        [
            info("k", TensorProto.INT64, []), info("go", TensorProto.BOOL, [1]), info("a", TensorProto.INT16),
            info("count", TensorProto.INT16),
        ],
        [info("on", TensorProto.BOOL), info("b", TensorProto.INT16), info("more", TensorProto.INT16)],
    )
    most, zero = b.constant(4, "int64"), b.constant([0], "int16")
    b.node("Loop", most, b.node("Less", x, limit), x, zero, name="last", outputs=["rounds"], body=body)
    b.output(b.declare("last", ["N"], "int16"), b.declare("rounds", ["N"], "int16"))
    same(b, tmp_path)


def lstm(b: Builder, given: str, recurrent: str, hidden: int, batch: Sequence[int | str]) -> str:
    """An LSTM's Scan with quantizers at the sum, the gates, the cell and the state."""
    zero = b.constant(0, "int8")
    gate, cell = b.constant(0.0078125), b.constant(0.03125)
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["h", recurrent], ["product"]),
            helper.make_node("Add", ["g", "product"], ["sum"]),
            *rounded("sum", b.constant(0.0625), zero, "rounded"),
            helper.make_node("Split", ["rounded", b.constant([hidden] * 4, "int64")], [*"iofc"], axis=1),
            *(helper.make_node("Tanh" if n == "c" else "Sigmoid", [n], [f"{n}_real"]) for n in "iofc"),
            *(each for n in "iofc" for each in rounded(f"{n}_real", gate, zero, f"{n}_gate")),
            helper.make_node("Mul", ["f_gate", "s"], ["kept"]),
            helper.make_node("Mul", ["i_gate", "c_gate"], ["entered"]),
            helper.make_node("Add", ["kept", "entered"], ["wide"]),
            *rounded("wide", cell, zero, "cell"),
            helper.make_node("Tanh", ["cell"], ["t_real"]),
            *rounded("t_real", gate, zero, "t_gate"),
            helper.make_node("Mul", ["o_gate", "t_gate"], ["out"]),
            *rounded("out", gate, zero, "state"),
        ],
        "step", [info("h"), info("s"), info("g")], [info("state"), info("cell")],
    )
    first = b.constant(np.zeros((1, hidden)))
    scanned: dict[str, Any] = {"num_scan_inputs": 1, "scan_input_axes": [1]}
    b.node("Scan", first, first, given, name="last", outputs=["cells"], body=body, **scanned)
    return b.declare("last", [*batch, hidden])


def test_an_lstm_with_quantized_gates(tmp_path: Path) -> None:
    b, rng = Builder(21, 10), np.random.default_rng(3)
    x = b.requantize(b.input("x", ["N", 4, 3]), 0.25, 0, "int8")
    given = b.node("MatMul", x, b.weights(rng.integers(-9, 9, (3, 12)), 0.03125))
    b.output(lstm(b, given, b.weights(rng.integers(-9, 9, (3, 12)), 0.0625), 3, ["N"]))
    same(b, tmp_path)
