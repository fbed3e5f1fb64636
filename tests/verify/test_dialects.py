"""compare on networks of every dialect: everything is explained; what is planted wrong is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from hwflow.loaded_model import load
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.onnxspec.reference import evaluation
from hwflow.passes.infer_types import infer_types
from hwflow.types import Interval
from hwflow.verify.comparison import Comparison, compare
from tests.onnxspec.build import FLOAT, model, node, value
from tests.verify.test_comparison import row, saved

INT8, UINT8 = TensorProto.INT8, TensorProto.UINT8
QONNX, MICROSOFT = "qonnx.custom_op.general", "com.microsoft"


def f(value: float) -> Any:
    return np.float32(value)


def quant(x: str, y: str, scale: str, zero: str, bits: str, **attributes: Any) -> onnx.NodeProto:
    return node("Quant", [x, scale, zero, bits], [y], domain=QONNX, **{"signed": 1, "narrow": 0, **attributes})


def qonnx_model(
    middle: list[onnx.NodeProto], constants: dict[str, Any], scale: float = 0.25, kind: int = FLOAT, outputs: int = 6
) -> onnx.ModelProto:
    """x (float) -> Quant 6 bits (a) -> MatMul with 3-bit weights (m) -> ``middle`` -> y."""
    rng = np.random.default_rng(7)
    return model(
        [
            quant("x", "a", "sa", "zero", "six"), quant("w", "wq", "sw", "zero", "three", narrow=1),
            node("MatMul", ["a", "wq"], ["m"]), *middle,
        ],
        [value("x", ["N", 5])], [value("y", ["N", outputs], kind)],
        {
            "sa": f(scale), "sw": f(scale / 2), "zero": f(0), "six": f(6), "three": f(3), "four": f(4), "one": f(1),
            "w": rng.uniform(-0.5, 0.5, (5, 6)).astype(np.float32), **constants,
        },
        {"": 19, QONNX: 1},
    )


def check(folder: Path, proto: onnx.ModelProto, frames: int = 60, **arrays: Any) -> Comparison:
    """Compared with nothing unexplained."""
    if not arrays:
        arrays = {"x": np.random.default_rng(3).uniform(-9, 9, (frames, 5)).astype(np.float32)}
    comparison = compare(saved(folder, proto, **arrays))
    assert [(r.name, r.first) for r in comparison.rows if r.first] == []
    assert comparison.ok and all(r.elements for r in comparison.rows)
    assert not comparison.drift.failed
    return comparison


@pytest.mark.parametrize(
    "mode", ["ROUND", "HALF_EVEN", "CEIL", "FLOOR", "UP", "DOWN", "ROUND_TO_ZERO", "HALF_UP", "HALF_DOWN"]
)
@pytest.mark.parametrize("zero", [0, 1, -2.5])
def test_quant_rounding_modes_on_ties(tmp_path: Path, mode: str, zero: float) -> None:
    """Powers of two: sums are multiples of 1/32, levels of 1/4: every eighth is a tie, and floats are exact."""
    proto = qonnx_model([quant("m", "y", "sa", "z", "four", rounding_mode=mode)], {"z": f(zero)})
    comparison = check(tmp_path, proto)
    assert comparison.mismatches == comparison.drift.differing == 0
    assert [(r.name, r.elements) for r in comparison.rows] == [("y", 360)]


@pytest.mark.parametrize("scale", [0.1, 0.0371])
def test_quant_with_arbitrary_scales(tmp_path: Path, scale: float) -> None:
    nodes = [
        node("BatchNormalization", ["m", "g", "b", "mean", "var"], ["n"]), node("Sigmoid", ["n"], ["p"]),
        quant("p", "q", "s8", "zero", "four", signed=0), node("Mul", ["q", "k"], ["r"]),
        quant("r", "y", "s", "zero", "four"),
    ]
    rng = np.random.default_rng(1)
    constants = {
        "g": rng.uniform(-2, 2, 6).astype(np.float32), "b": rng.uniform(-2, 2, 6).astype(np.float32),
        "mean": rng.uniform(-2, 2, 6).astype(np.float32), "var": rng.uniform(0.1, 2, 6).astype(np.float32),
        "s8": f(1 / 16), "k": f(-0.7), "s": rng.uniform(0.05, 0.1, (1, 6)).astype(np.float32),
    }
    comparison = check(tmp_path, qonnx_model(nodes, constants, scale), 400)
    assert [(r.name, r.elements) for r in comparison.rows] == [("q", 2400), ("y", 2400)]


def test_biases_quantized_to_the_width_of_accumulators(tmp_path: Path) -> None:
    """As Brevitas exports them: 32 bits, in units of the accumulator."""
    bias = np.random.default_rng(4).uniform(-3, 3, 6).astype(np.float32)
    middle = [
        quant("b", "bq", "sb", "zero", "wide"), node("Add", ["m", "bq"], ["n"]), quant("n", "y", "sa", "zero", "four")
    ]
    check(tmp_path, qonnx_model(middle, {"b": bias, "sb": f(0.25 * 0.125), "wide": f(32)}))


@pytest.mark.parametrize(
    ("operation", "constant_first"), [("Mul", True), ("Div", False), ("Add", False), ("Sub", False), ("Sub", True)]
)
@pytest.mark.parametrize("shape", [(), (6,), (6, 1)])
def test_arithmetic_on_quantized_weights(
    tmp_path: Path, operation: str, constant_first: bool, shape: tuple[int, ...]
) -> None:
    """A constant row has one value per input of Gemm's transposed weights, not per output, though counts agree."""
    rng = np.random.default_rng(8)
    constants = {
        "v": rng.uniform(-0.5, 0.5, (6, 6)).astype(np.float32),
        "k": rng.choice(np.array([0.5, -0.25, 1.0, 2.0], np.float32), shape),
    }
    middle = [
        quant("m", "n", "sa", "zero", "four"), quant("v", "vq", "sw", "zero", "three"),
        node(operation, ["k", "vq"] if constant_first else ["vq", "k"], ["vk"]),
        node("Gemm", ["n", "vk"], ["g"], transB=1), quant("g", "y", "sa", "zero", "four"),
    ]
    check(tmp_path, qonnx_model(middle, constants))


def test_thresholds_at_a_float_input(tmp_path: Path) -> None:
    """The host counts the thresholds, the hardware reads their number."""
    steps = np.sort(np.random.default_rng(9).uniform(-4, 4, (5, 7)), axis=1).astype(np.float32)
    proto = model(
        [
            node("MultiThreshold", ["x", "steps"], ["t"], domain=QONNX, out_scale=0.5, out_bias=-1.0),
            quant("w", "wq", "scale", "zero", "three"), node("MatMul", ["t", "wq"], ["m"]),
            quant("m", "y", "scale", "zero", "three"),
        ],
        [value("x", ["N", 5])], [value("y", ["N", 6])],
        {"steps": steps, "scale": f(0.25), "zero": f(0), "three": f(3), "w": np.eye(5, 6, dtype=np.float32)},
        {"": 19, QONNX: 1},
    )
    check(tmp_path, proto)
    (port,) = load(saved(tmp_path, proto)).quantized.inputs
    assert port.value.origin == "t" and port.value.typed.interval == Interval(0, 7)


def test_one_bit(tmp_path: Path) -> None:
    """BipolarQuant, Quant of one signed and of one unsigned bit."""
    nodes = [
        node("BipolarQuant", ["m", "sb"], ["p"], domain=QONNX), quant("v", "vq", "sb", "zero", "one"),
        node("MatMul", ["p", "vq"], ["n"]), quant("n", "q", "sb", "zero", "one"),
        quant("q", "y", "sa", "zero", "one", signed=0),
    ]
    constants = {"sb": f(0.5), "v": np.random.default_rng(2).normal(size=(6, 6)).astype(np.float32)}
    comparison = check(tmp_path, qonnx_model(nodes, constants))
    assert [(r.name, r.mismatches) for r in comparison.rows] == [("p", 0), ("q", 0), ("y", 0)]


def test_multi_threshold(tmp_path: Path) -> None:
    steps = np.sort(np.random.default_rng(4).uniform(-2, 2, (6, 7)).astype(np.float32))
    nodes = [
        node("MultiThreshold", ["m", "steps"], ["t"], domain=QONNX, out_scale=0.3, out_bias=-1.1, out_dtype="INT4"),
        node("MatMul", ["t", "wq2"], ["n"]),
        node("MultiThreshold", ["n", "few"], ["y"], domain=QONNX, out_dtype="UINT2"),
    ]
    constants = {"steps": steps, "few": np.array([[-1, 0, 1.5]], np.float32), "w2": np.eye(6, dtype=np.float32)}
    nodes.insert(0, quant("w2", "wq2", "sw", "zero", "three"))
    comparison = check(tmp_path, qonnx_model(nodes, constants, 0.1))
    assert [r.name for r in comparison.rows] == ["t", "y"]


@pytest.mark.parametrize("mode", ["FLOOR", "CEIL", "ROUND"])
@pytest.mark.parametrize("version", [1, 2])
def test_trunc(tmp_path: Path, version: int, mode: str) -> None:
    inputs = ["q", "sa", "zero", "six", "four"] if version == 1 else ["q", "sa", "zero", "six", "s4", "four"]
    nodes = [
        quant("m", "q", "sa", "zero", "six"), node("Trunc", inputs, ["y"], domain=QONNX, rounding_mode=mode),
    ]
    comparison = check(tmp_path, qonnx_model(nodes, {"s4": f(1)}))
    assert [(r.name, r.mismatches) for r in comparison.rows] == [("q", 0), ("y", 0)]


def test_narrow_inputs_in_front_of_a_table(tmp_path: Path) -> None:
    """Levels -3 to 3, of which Abs makes 0 to 3: -4 never comes."""
    proto = qonnx_model([], {})
    nodes = [
        quant("x", "a", "sa", "zero", "three", narrow=1), node("Abs", ["a"], ["b"]),
        quant("w", "wq", "sw", "zero", "three"), node("MatMul", ["b", "wq"], ["m"]),
        quant("m", "y", "sa", "zero", "four"),
    ]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    assert check(tmp_path, proto).mismatches == 0


def test_pool_of_levels_that_fall(tmp_path: Path) -> None:
    """MultiThreshold with a negative scale, and the greatest of its levels."""
    nodes = [
        node("MultiThreshold", ["m", "few"], ["t"], domain=QONNX, out_scale=-0.3, out_dtype="INT4"),
        node("Reshape", ["t", "image"], ["i"]), node("MaxPool", ["i"], ["p"], kernel_shape=[1, 3]),
        node("Flatten", ["p"], ["g"]), quant("g", "y", "sa", "zero", "four"),
    ]
    constants = {"few": np.array([[-1, 0, 1.5]], np.float32), "image": np.array([-1, 1, 2, 3])}
    comparison = check(tmp_path, qonnx_model(nodes, constants, 0.1, outputs=2))
    assert [r.name for r in comparison.rows] == ["t", "y"]


def test_a_wrong_level_of_a_real_tensor_is_unexplained(tmp_path: Path) -> None:
    proto = qonnx_model([quant("m", "y", "sa", "z", "four")], {"z": f(1)}, 0.1)
    check(tmp_path, proto)
    loaded = load(tmp_path / "model.onnx")
    last = loaded.quantized.nodes[-1]
    ((stage,),) = last.attributes.stages
    assert isinstance(stage, QuantizerStage)
    stages = ((replace(stage, zero_point=stage.zero_point + 1),),)
    last.attributes = replace(last.attributes, stages=stages)
    infer_types(loaded.quantized)
    comparison = compare(loaded)
    assert row(comparison, "y")["unexplained"] > 3
    assert "float error at most" in comparison.rows[0].first


def u8(*values: Any) -> Any:
    return np.array(values, np.uint8)


def qoperator_model(last: list[onnx.NodeProto], outputs: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
    """x (float [3, 6, 6]) -> QLinearConv (per channel) -> c; two branches, QLinearAdd and QLinearMul -> e [4, 6, 6]."""
    rng = np.random.default_rng(8)
    weights = rng.integers(-60, 60, (4, 3, 3, 3)).astype(np.int8)
    constants = {
        "sx": f(0.031), "zx": np.uint8(121), "w": weights, "sw": rng.uniform(0.001, 0.01, 4).astype(np.float32),
        "zw": np.zeros(4, np.int8), "sc": f(0.043), "zc": np.uint8(77),
        "bias": rng.integers(-3000, 3000, 4).astype(np.int32), "v": rng.integers(-60, 60, (4, 4, 1, 1)).astype(np.int8),
        "sv": f(0.007), "zv": np.int8(3), "sd": f(0.0281), "zd": np.uint8(3), "se": f(0.09), "ze": np.uint8(55),
        "sm": f(0.27), "zm": np.uint8(101),
    }
    nodes = [
        node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
        node("QLinearConv", ["q", "sx", "zx", "w", "sw", "zw", "sc", "zc", "bias"], ["c"], pads=[1, 1, 1, 1]),
        node("QLinearConv", ["c", "sc", "zc", "v", "sv", "zv", "sd", "zd"], ["d"]),
        node("QLinearAdd", ["c", "sc", "zc", "d", "sd", "zd", "se", "ze"], ["e"], domain=MICROSOFT),
        node("QLinearMul", ["e", "se", "ze", "d", "sd", "zd", "sm", "zm"], ["m"], domain=MICROSOFT),
        *last,
    ]
    return model(nodes, [value("x", ["N", 3, 6, 6])], outputs, constants, {"": 19, MICROSOFT: 1})


def images(frames: int = 30) -> Any:
    return np.random.default_rng(9).uniform(-4, 4, (frames, 3, 6, 6)).astype(np.float32)


def test_qoperator(tmp_path: Path) -> None:
    last = [node("DequantizeLinear", ["m", "sm", "zm"], ["y"])]
    comparison = check(tmp_path, qoperator_model(last, [value("y", ["N", 4, 6, 6])]), x=images())
    assert [r.name for r in comparison.rows] == ["c", "d", "e", "m", "y"]
    assert all(r.mismatches <= 2 for r in comparison.rows)
    assert comparison.rows[0].defects == {"qlinearconv-zero-point"}


def test_qoperator_functions(tmp_path: Path) -> None:
    """LeakyRelu, Sigmoid, Concat: quotients of float64, so that hardly anything can differ."""
    last = [
        node("QLinearLeakyRelu", ["m", "sm", "zm", "se", "ze"], ["l"], domain=MICROSOFT, alpha=0.1),
        node("QLinearSigmoid", ["m", "sm", "zm", "s256", "z0"], ["s"], domain=MICROSOFT),
        node("QLinearConcat", ["sc", "zc", "l", "se", "ze", "s", "s256", "z0"], ["k"], domain=MICROSOFT, axis=1),
        node("DequantizeLinear", ["k", "sc", "zc"], ["y"]),
    ]
    proto = qoperator_model(last, [value("y", ["N", 8, 6, 6])])
    proto.graph.initializer.extend([
        onnx.numpy_helper.from_array(np.float32(1 / 256), "s256"), onnx.numpy_helper.from_array(np.uint8(0), "z0"),
    ])
    comparison = check(tmp_path, proto, x=images())
    assert [r.name for r in comparison.rows] == ["c", "d", "e", "m", "l", "s", "k", "y"]
    assert comparison.mismatches == 0


def test_what_the_host_computes_is_shown_and_compared(tmp_path: Path) -> None:
    """Softmax and ArgMax of a real accumulator: both sides round, each in its way."""
    rng = np.random.default_rng(10)
    proto = model(
        [
            node("DequantizeLinear", ["x", "s", "z"], ["d"]), node("DequantizeLinear", ["w", "sw", "zw"], ["wr"]),
            node("MatMul", ["d", "wr"], ["m"]), node("Softmax", ["m"], ["y"], axis=1),
            node("ArgMax", ["y"], ["k"], axis=1, keepdims=0),
        ],
        [value("x", ["N", 5], INT8)], [value("y", ["N", 6]), value("k", ["N"], TensorProto.INT64)],
        {
            "s": f(0.0371), "z": np.int8(3), "sw": f(0.0123), "zw": np.int8(0),
            "w": rng.integers(-128, 128, (5, 6)).astype(np.int8),
        },
        {"": 19},
    )
    x = rng.integers(-128, 128, (50, 5)).astype(np.int8)
    comparison = check(tmp_path, proto, x=x)
    assert [(r.name, r.elements) for r in comparison.rows] == [("m", 300), ("y", 300), ("k", 50)]
    assert set(comparison.drift.outputs) == {"y", "k"} and comparison.drift.outputs["y"] < 1e-5
    loaded = load(tmp_path / "model.onnx")
    (dense,) = [n for n in loaded.quantized.nodes if n.op == "dense"]
    dense.attributes = replace(dense.attributes, weights=dense.attributes.weights + np.eye(6, 5, dtype=np.int64))
    infer_types(loaded.quantized)
    comparison = compare(loaded)
    assert min(row(comparison, name)["unexplained"] for name in ("m", "y")) > 100
    assert row(comparison, "k")["unexplained"] == row(comparison, "k")["mismatches"]


def test_an_evaluator_that_fails_is_a_finding_and_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proto = qonnx_model([quant("m", "q", "sa", "zero", "four"), quant("q", "y", "sw", "zero", "three")], {})
    path = saved(tmp_path, proto, x=np.zeros((3, 5), np.float32))
    loaded = load(path)
    graph = loaded.quantized
    assert len(graph.nodes) >= 2
    original = evaluation.Region.run

    def fails(self: Any, feeds: Any) -> Any:
        if self.outputs == ("q",):
            raise self._refusal(ZeroDivisionError("by\nnothing"))
        return original(self, feeds)

    monkeypatch.setattr(evaluation.Region, "run", fails)
    comparison = compare(loaded)
    assert row(comparison, "q") == {
        "name": "q", "elements": 18, "mismatches": 18, "unexplained": 18, "max_lsb": 1 << 31,
    }
    assert comparison.rows[0].first == (
        "must be what ONNX's reference evaluator can compute, but it failed: by nothing"
    )
    assert row(comparison, "y")["unexplained"] == 0
    assert [str(finding) for finding in comparison.findings] == [
        "error: value 'q': must be what ONNX's reference evaluator can compute, but it failed: by nothing "
        "[reference-evaluator]\n"
        "  remedy: compare a model that ends before the node that makes it: what follows has nothing to compare with"
    ]
