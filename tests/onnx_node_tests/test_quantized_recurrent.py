"""ONNX's node tests of RNN, GRU, LSTM, Scan and Loop on floats: `hwflow quantize` puts quantizers inside, and hardware
is what the quantized graph means in rational numbers, of which a second implementation stands here."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hwflow
from hwflow.api.compiler import compile
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.loaded_model import load
from hwflow.verify import golden
from tests.onnx_node_tests.quantized_nodes import node_tests_of, with_values
from tests.onnx_node_tests.top_simulation import SimulatedTop

Array = Any
DIGITS = 60
FRAMES = 12

CASES = [name for op in ("RNN", "GRU", "LSTM", "Scan") for name in node_tests_of(op)]
CASES += ["test_loop11"]  # the others are of sequences and of constants
IN_RTL = frozenset({"test_gru_defaults", "test_lstm_with_peepholes", "test_rnn_seq_length", "test_scan9_sum"})


@pytest.mark.parametrize("name", CASES)
def test_exact_against_rationals(name: str, tmp_path: Path) -> None:
    frames = written(name, tmp_path / "float.onnx")
    np.savez(tmp_path / "x.npz", **frames)
    made = hwflow.quantize(tmp_path / "float.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    assert made.compiles and min(q.snr_db for q in made.qualities if q.snr_db is not None) > 20
    few = {key: array[:3] for key, array in frames.items()}
    quantized = onnx.load(tmp_path / "q.onnx")
    wanted = [rationals(quantized, {key: array[k : k + 1] for key, array in few.items()}) for k in range(3)]
    model = load(tmp_path / "q.onnx")
    if model.whole:
        few = {key: array[:, None] for key, array in few.items()}
    ports = port_inputs(model, few)
    results = [golden.evaluate(model.quantized, ports)]
    if name in IN_RTL:
        top = SimulatedTop(compile(model, "ulx3s_85f", fps=1).schedule.plan)
        results += [top.run(ports), top.run(ports, gap=0.3, stall=0.3)]
    for result in results:
        for output, found in model_outputs(model, result, few).items():
            real = np.concatenate([each[output] for each in wanted])
            assert real.size == found.size
            # The host's product of a level and its scale is rounded to float32.
            for level, number in zip(found.flat, real.flat, strict=True):
                assert abs(Fraction(float(level)) - number) <= abs(number) / 2**23


def written(name: str, path: Path) -> dict[str, Array]:
    """Write a node test as a model of frames: an axis in front of what is streamed, weights as constants. Return frames
    like the test's own, which is the first. The Scan of operator set 8 has a batch of its own."""
    model, given = with_values(name)
    graph = model.graph
    if model.opset_import[0].version < 9:
        rng = np.random.default_rng(0)
        model.ir_version = 8
        onnx.save(model, path)
        return {
            info.name: np.concatenate([array, rng.normal(0, np.abs(array).max() / 2, (FRAMES - 1, *array.shape[1:]))])
            .astype(np.float32) for info, array in zip(graph.input, given, strict=True)
        }
    (node,) = graph.node
    first = {"Scan": 0, "Loop": 2}.get(node.op_type)
    streams = set(node.input[:1] if first is None else node.input[first:])
    version = model.opset_import[0].version
    opset = version if node.op_type == "Loop" else max(13, version)
    front = ([], {"axes": [0]}) if opset < 13 else (["front"], {})
    rng, frames = np.random.default_rng(0), {}
    nodes, inputs = [], []
    graph.initializer.append(numpy_helper.from_array(np.array([0]), "front"))
    for info, array in zip(list(graph.input), given, strict=True):
        if info.name not in streams:
            graph.initializer.append(numpy_helper.from_array(array, info.name))
            continue
        more = rng.normal(0, np.abs(array).max() / 2, (FRAMES - 1, *array.shape))
        frames[f"{info.name}_in"] = np.concatenate([array[None], more]).astype(np.float32)
        inputs.append(helper.make_tensor_value_info(f"{info.name}_in", TensorProto.FLOAT, [1, *array.shape]))
        nodes.append(helper.make_node("Squeeze", [f"{info.name}_in", *front[0]], [info.name], **front[1]))
    outputs = []
    for info in graph.output:
        shape = [1, *(dim.dim_value for dim in info.type.tensor_type.shape.dim)]
        outputs.append(helper.make_tensor_value_info(f"{info.name}_out", TensorProto.FLOAT, shape))
        nodes.append(helper.make_node("Unsqueeze", [info.name, *front[0]], [f"{info.name}_out"], **front[1]))
    nodes.insert(len(inputs), node)
    made = helper.make_graph(nodes, name, inputs, outputs, graph.initializer)
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)
    return frames


def rationals(model: onnx.ModelProto, feeds: dict[str, Array]) -> dict[str, Array]:
    """Evaluate a quantized graph: all numbers are fractions but the results of Sigmoid and Tanh, which are close."""
    values: dict[str, Array] = {"": None}
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        values[tensor.name] = exact(array) if array.dtype == np.float32 else array
    values |= {name: exact(array) for name, array in feeds.items()}
    for node in model.graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        results = OPERATORS[node.op_type](attributes, *(values[name] for name in node.input))
        results = results if isinstance(results, list) else [results]
        values.update(zip(node.output, map(np.asarray, results), strict=True))  # numpy makes scalars of 0 axes
    return {output.name: values[output.name] for output in model.graph.output}


def exact(array: Array) -> Array:
    found = np.empty(array.shape, object)
    found[...] = np.vectorize(lambda number: Fraction(float(number)), otypes=[object])(array)
    return found


def along(array: Array, values: Array, axis: int) -> Array:
    """A scale or zero point, for each place along the axis."""
    places = [-1 if k == axis % array.ndim else 1 for k in range(array.ndim)]
    return values.reshape(places) if values.ndim else values


def quantize(attributes: dict[str, Any], x: Array, scale: Array, zero: Array) -> Array:
    info, axis = np.iinfo(zero.dtype), attributes.get("axis", 1)
    real = np.asarray(x / along(x, scale, axis))
    for number in real.flat:  # no result of a function is too close to a boundary to be rounded
        beside = abs(number - round(number)) - Fraction(1, 2)
        assert beside == 0 or abs(beside) > Fraction(1, 10 ** (DIGITS // 2))
    levels = np.vectorize(round, otypes=[object])(real) + along(x, zero, axis).astype(object)
    return np.clip(levels, int(info.min), int(info.max))


def dequantize(attributes: dict[str, Any], x: Array, scale: Array, zero: Array) -> Array:
    axis = attributes.get("axis", 1)
    return (x.astype(object) - along(x, zero, axis).astype(object)) * along(x, scale, axis)


def of_real(function: Callable[[Any], Any]) -> Callable[..., Array]:
    def of_fraction(number: Fraction) -> Fraction:
        with mpmath.workdps(DIGITS):
            result = function(mpmath.mpf(number.numerator) / number.denominator)
            return to_fraction(result)

    return lambda attributes, x: np.vectorize(of_fraction, otypes=[object])(x)


def to_fraction(number: Any) -> Fraction:
    sign, mantissa, exponent, _ = number._mpf_
    return Fraction(int(mantissa)) * Fraction(2) ** exponent * (-1 if sign else 1)


def gemm(attributes: dict[str, Any], a: Array, b: Array, c: Array | None = None) -> Array:
    product = (a.T if attributes.get("transA") else a) @ (b.T if attributes.get("transB") else b)
    return product if c is None else product + c


def slices(attributes: dict[str, Any], x: Array, starts: Array, ends: Array, axes: Array, steps: Array | None) -> Array:
    taken = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, [1] * len(axes) if steps is None else steps, strict=True):
        taken[axis] = slice(start, end, step)
    return x[tuple(taken)]


def split(attributes: dict[str, Any], x: Array, sizes: Array) -> list[Array]:
    return np.split(x, np.cumsum(sizes)[:-1], axis=attributes.get("axis", 0))


OPERATORS: dict[str, Callable[..., Any]] = {
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "MatMul": lambda a, x, y: x @ y,
    "Gemm": gemm,
    "Add": lambda a, x, y: x + y,
    "Sub": lambda a, x, y: x - y,
    "Mul": lambda a, x, y: x * y,
    "Sigmoid": of_real(lambda x: 1 / (1 + mpmath.exp(-x))),
    "Tanh": of_real(mpmath.tanh),
    "Split": split,
    "Slice": slices,
    "Gather": lambda a, x, at: np.take(x, at, axis=a.get("axis", 0)),
    "Squeeze": lambda a, x, axes: np.squeeze(x, tuple(axes)),
    "Unsqueeze": lambda a, x, axes: np.expand_dims(x, tuple(axes)),
    "Transpose": lambda a, x: np.transpose(x, a["perm"]),
    "Reshape": lambda a, x, shape: x.reshape(shape),
    "Concat": lambda a, *xs: np.concatenate(xs, axis=a["axis"]),
    "Identity": lambda a, x: x,
}
