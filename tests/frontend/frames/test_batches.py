"""Models whose inputs' first axes are numbers: batches of frames, or whole tensors as one frame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from hwflow.errors import ModelRefused
from hwflow.frontend.frames.batches import FRAMES
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.host.inputs import choose_inputs
from hwflow.loaded_model import Model, load
from hwflow.onnxspec import dialect_operators
from hwflow.onnxspec.reference.evaluator_defects import substitutes
from hwflow.onnxspec.shapes.dialects import MICROSOFT_DOMAIN
from hwflow.passes import pipeline
from hwflow.verify import golden
from tests.ir.graph_text import to_text
from tests.models import Builder

BATCH = 3
RUNS = 2  # of the model as it is
QONNX = "qonnx.custom_op.general"

Make = Callable[[Builder, Any], str]
"""A model's output, of a builder and the size of the batch."""

CASES: dict[str, Make] = {}


def case(make: Make) -> Make:
    CASES[make.__name__] = make
    return make


def ints(b: Builder, *shape: int | str, name: str = "x") -> str:
    return b.input(name, shape, "int8")


def real(b: Builder, *shape: int | str, name: str = "x") -> str:
    """Eighths from 8-bit integers."""
    return b.dequantize(ints(b, *shape, name=name), 0.125, 3, "int8")


def quantized(b: Builder, x: str) -> str:
    return b.quantize(x, 0.5, 1, "int8")


def vector(b: Builder, *values: int) -> str:
    return b.constant(values, "int64")


def small(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape) % 7 - 3


def real_case(*shape: int) -> Callable[[Callable[[Builder, str], str]], Make]:
    """A model between quantizers: what the function makes of a real tensor [batch, *shape]."""

    def add(inner: Callable[[Builder, str], str]) -> Make:
        def make(b: Builder, n: Any) -> str:
            return quantized(b, inner(b, real(b, n, *shape)))

        CASES[inner.__name__] = make
        return make

    return add


@real_case(4)
def relu(b: Builder, x: str) -> str:
    return b.node("Relu", x)


@real_case(4)
def add_a_constant(b: Builder, x: str) -> str:
    return b.node("Add", x, b.constant([0.5, 1.0, 1.5, 2.0]))


@real_case(4)
def add_the_same_to_each(b: Builder, x: str) -> str:
    return b.node("Add", x, b.constant(np.broadcast_to([0.5, 1.0, 1.5, 2.0], (BATCH, 4))))


@case
def add_streams(b: Builder, n: Any) -> str:
    return quantized(b, b.node("Add", real(b, n, 4), real(b, n, 4, name="y")))


@real_case(2, 6)
def reshaped(b: Builder, x: str) -> str:
    return b.node("Reshape", x, vector(b, 0, 4, 3))


@real_case(2, 6)
def flattened(b: Builder, x: str) -> str:
    return b.node("Flatten", x)


@real_case(1, 6)
def squeezed(b: Builder, x: str) -> str:
    return b.node("Unsqueeze", b.node("Squeeze", x, vector(b, 1)), vector(b, -1))


@real_case(2, 6)
def transposed(b: Builder, x: str) -> str:
    return b.node("Transpose", x, perm=[0, 2, 1])


@real_case(4)
def concatenated(b: Builder, x: str) -> str:
    return b.node("Concat", x, b.node("Relu", x), axis=1)


@real_case(6)
def split(b: Builder, x: str) -> str:
    first = b.node("Split", x, vector(b, 2, 4), outputs=["rest"], axis=-1)
    return b.node("Concat", "rest", first, axis=-1)


@real_case(6)
def sliced(b: Builder, x: str) -> str:
    return b.node("Slice", x, vector(b, 0, 1), vector(b, BATCH, 5), vector(b, 0, 1))


@real_case(4)
def padded(b: Builder, x: str) -> str:
    return b.node("Pad", x, vector(b, 0, 1, 0, 2))


@real_case(1, 4)
def tiled(b: Builder, x: str) -> str:
    return b.node("Tile", b.node("Expand", x, vector(b, 1, 2, 4)), vector(b, 1, 2, 1))


@real_case(6)
def gathered(b: Builder, x: str) -> str:
    return b.node("Gather", x, vector(b, 4, 0, 1), axis=1)


@real_case(2, 6)
def reduced(b: Builder, x: str) -> str:
    return b.node("ReduceMax", x, vector(b, -1), keepdims=0)


@real_case(2, 6)
def summed(b: Builder, x: str) -> str:
    return b.node("ReduceSum", x, vector(b, 1, 2))


@case
def arg_max(b: Builder, n: Any) -> str:
    return b.node("ArgMax", real(b, n, 6), axis=1)


@real_case(6)
def top(b: Builder, x: str) -> str:
    return b.node("TopK", x, vector(b, 2), outputs=["places"])


@real_case(4)
def matmul(b: Builder, x: str) -> str:
    return b.node("MatMul", x, b.weights(small(4, 3), 0.25))


@real_case(2, 4)
def matmul_of_two_axes(b: Builder, x: str) -> str:
    return b.node("MatMul", x, b.weights(small(4, 3), 0.25))


@real_case(2, 4)
def matmul_from_the_left(b: Builder, x: str) -> str:
    return b.node("MatMul", b.weights(small(5, 2), 0.25), x)


@real_case(4)
def gemm(b: Builder, x: str) -> str:
    return b.node("Gemm", x, b.weights(small(3, 4), 0.25), b.constant([0.5, 0.25, 1.0]), transB=1)


@real_case(4)
def gemm_with_the_same_for_each(b: Builder, x: str) -> str:
    return b.node("Gemm", x, b.weights(small(4, 3), 0.25), b.constant(np.broadcast_to([0.5, 0.25, 1], (BATCH, 3))))


@real_case(2, 5, 5)
def conv(b: Builder, x: str) -> str:
    return b.node("Conv", x, b.weights(small(3, 2, 2, 2), 0.25))


@real_case(2, 4, 4)
def pooled(b: Builder, x: str) -> str:
    return b.node("GlobalAveragePool", b.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]))


@real_case(4, 2, 2)
def depth(b: Builder, x: str) -> str:
    return b.node("DepthToSpace", x, blocksize=2)


@real_case(2, 4)
def normalized(b: Builder, x: str) -> str:
    ones = b.constant([1.0, 2.0])
    return b.node("BatchNormalization", x, ones, ones, b.constant([0.5, 0.0]), ones, epsilon=0.0)


@real_case(2, 3, 3)
def resized(b: Builder, x: str) -> str:
    return b.node("Resize", x, "", "", vector(b, BATCH, 2, 6, 6), mode="nearest")


@real_case(2, 3, 3)
def resized_along_axes(b: Builder, x: str) -> str:
    return b.node("Resize", x, "", b.constant([2.0, 2.0]), mode="nearest", axes=[2, 3])


@real_case(2, 3)
def resized_from_a_region(b: Builder, x: str) -> str:
    region = b.constant([0.0, 0.0, 0.25, 1.0, 1.0, 1.0])
    more = {"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize"}
    return b.node("Resize", x, region, "", vector(b, BATCH, 2, 6), **more)


@case
def left_to_the_host(b: Builder, n: Any) -> str:
    d = b.dequantize(quantized(b, b.node("Relu", real(b, n, 4))), 0.5, 1, "int8")
    return b.node("Softmax", d, axis=1)


@case
def prepared_by_the_host(b: Builder, n: Any) -> str:
    scaled = b.node("Mul", b.input("x", [n, 4]), b.constant(0.5))
    return quantized(b, b.node("Relu", b.requantize(b.node("Reshape", scaled, vector(b, 0, 2, 2)), 0.5, 1, "int8")))


@case
def quantized_along_an_axis(b: Builder, n: Any) -> str:
    d = b.dequantize(ints(b, n, 2, 4), [0.5, 0.25], [1, 2], "int8", axis=1)
    return quantized(b, b.node("Relu", d))


@case
def integer_conv(b: Builder, n: Any) -> str:
    return b.node("ConvInteger", ints(b, n, 2, 4, 4), b.constant(small(3, 2, 2, 2), "int8"), b.constant(1, "int8"))


@case
def integer_matmul(b: Builder, n: Any) -> str:
    return b.node("MatMulInteger", ints(b, n, 4), b.constant(small(4, 3), "int8"), b.constant(1, "int8"))


def scaled(b: Builder, scale: float = 0.5, zero: int = 1) -> list[str]:
    return [b.constant(scale), b.constant(zero, "int8")]


@case
def quantized_conv(b: Builder, n: Any) -> str:
    weights = b.constant(small(3, 2, 2, 2), "int8")
    return b.node("QLinearConv", ints(b, n, 2, 4, 4), *scaled(b), weights, *scaled(b, 0.25, 0), *scaled(b, 2.0))


@case
def quantized_matmul(b: Builder, n: Any) -> str:
    weights = b.constant(small(4, 3), "int8")
    return b.node("QLinearMatMul", ints(b, n, 2, 4), *scaled(b), weights, *scaled(b, 0.25, 0), *scaled(b, 2.0))


def contrib(op: str, *shape: int, out: tuple[int, ...] | None = None, **attributes: Any) -> None:
    """An operator of com.microsoft with the quantization of one operand and of its result."""

    def make(b: Builder, n: Any) -> str:
        b.declare("result", [n, *(shape if out is None else out)], "int8")
        more = {"domain": MICROSOFT_DOMAIN, **attributes}
        return b.node(op, ints(b, n, *shape), *scaled(b), *scaled(b, 0.25), name="result", **more)

    CASES[op] = make


contrib("QLinearSigmoid", 4)
contrib("QLinearLeakyRelu", 4, alpha=0.25)
contrib("QLinearGlobalAveragePool", 4, 4, 2, out=(1, 1, 2), channels_last=1)
contrib("QLinearAveragePool", 2, 4, 4, out=(2, 2, 2), kernel_shape=[2, 2], strides=[2, 2])
contrib("QLinearReduceMean", 2, 4, out=(2, 1), axes=[2], keepdims=1)


@case
def qlinear_add(b: Builder, n: Any) -> str:
    x, y = ints(b, n, 4), ints(b, n, 4, name="y")
    b.declare("result", [n, 4], "int8")
    return b.node(
        "QLinearAdd", x, *scaled(b), y, *scaled(b, 0.25), *scaled(b, 1.0), name="result", domain=MICROSOFT_DOMAIN
    )


@case
def qlinear_mul(b: Builder, n: Any) -> str:
    y = b.constant([3, 4, 5, 6], "int8")
    b.declare("result", [n, 4], "int8")
    return b.node(
        "QLinearMul", ints(b, n, 4), *scaled(b), y, *scaled(b, 0.25), *scaled(b, 4.0), name="result",
        domain=MICROSOFT_DOMAIN,
    )


@case
def qlinear_concat(b: Builder, n: Any) -> str:
    parts = [ints(b, n, 2), *scaled(b), ints(b, n, 3, name="y"), *scaled(b, 0.25)]
    b.declare("result", [n, 5], "int8")
    return b.node("QLinearConcat", *scaled(b), *parts, name="result", axis=1, domain=MICROSOFT_DOMAIN)


@case
def qlinear_where(b: Builder, n: Any) -> str:
    x = ints(b, n, 4)
    chosen = b.node("Greater", x, b.constant(0, "int8"))
    b.declare("result", [n, 4], "int8")
    return b.node(
        "QLinearWhere", chosen, x, *scaled(b), ints(b, n, 4, name="y"), *scaled(b, 0.25), *scaled(b, 1.0),
        name="result", domain=MICROSOFT_DOMAIN,
    )


@case
def qgemm(b: Builder, n: Any) -> str:
    b.declare("result", [n, 3], "int8")
    weights = [b.constant(small(4, 3), "int8"), *scaled(b, 0.25, 0)]
    return b.node(
        "QGemm", ints(b, n, 4), *scaled(b), *weights, "", *scaled(b, 2.0), name="result", domain=MICROSOFT_DOMAIN
    )


@case
def nhwc_max_pool(b: Builder, n: Any) -> str:
    b.declare("result", [n, 2, 2, 3], "int8")
    more = {"kernel_shape": [2, 2], "strides": [2, 2], "domain": MICROSOFT_DOMAIN}
    return b.node("NhwcMaxPool", ints(b, n, 4, 4, 3), name="result", **more)


@case
def qonnx(b: Builder, n: Any) -> str:
    parameters = [b.constant(np.full((1, 1), 0.5)), b.constant(0.0), b.constant(4.0)]
    b.declare("q", [n, 4])
    b.declare("result", [n, 4])
    x = b.node("Quant", b.input("x", [n, 4]), *parameters, name="q", domain=QONNX)
    return b.node("Quant", b.node("Relu", x), *parameters, name="result", domain=QONNX)


@case
def thresholds(b: Builder, n: Any) -> str:
    b.declare("result", [n, 4])
    limits = b.constant(small(4, 1) + np.arange(3))
    return b.node("MultiThreshold", real(b, n, 4), limits, name="result", domain=QONNX)


# Where operators work along the first axis, a model's whole inputs are one frame.
WHOLE: dict[str, Make] = {
    "across_the_first_axis": lambda b, n: quantized(b, b.node("MatMul", b.weights(small(2, 3), 0.5), real(b, n, 4))),
    "another_constant_for_each": lambda b, n: quantized(b, b.node("Add", real(b, n, 4), b.constant(small(3, 4)))),
    "another_constant_joined_to_each": lambda b, n: quantized(
        b, b.node("Concat", real(b, n, 4), b.weights(small(3, 2), 0.125), axis=1)
    ),
    "another_addend_of_gemm_for_each": lambda b, n: quantized(
        b, b.node("Gemm", real(b, n, 4), b.weights(small(4, 3), 0.25), b.constant(small(3, 3)), beta=0.5)
    ),
    "streams_of_other_ranks": lambda b, n: quantized(b, b.node("Add", real(b, n, 4), real(b, 4, name="y"))),
    "one_left_out": lambda b, n: quantized(b, b.node("Slice", real(b, n, 4), *(vector(b, v) for v in (0, 2, 0)))),
    "turned_by_gemm": lambda b, n: quantized(b, b.node("Gemm", real(b, n, 4), b.weights(small(3, 2), 0.25), transA=1)),
    "resized_across_the_first_axis": lambda b, n: quantized(
        b, b.node("Resize", real(b, n, 4), "", b.constant([2.0, 1.0]), mode="nearest")
    ),
    "resized_vector": lambda b, n: quantized(b, b.node("Resize", real(b, 5), "", b.constant([2.0]), mode="nearest")),
    "resized_with_a_policy": lambda b, n: quantized(
        b,
        b.node(
            "Resize", real(b, n, 4), "", "", vector(b, 3, 8), mode="nearest", keep_aspect_ratio_policy="not_larger"
        ),
    ),
    "resized_from_a_region_of_frames": lambda b, n: quantized(
        b,
        b.node(
            "Resize", real(b, n, 4), b.constant([0.25, 0.0, 1.0, 1.0]), "", vector(b, 3, 8), mode="nearest",
            coordinate_transformation_mode="tf_crop_and_resize",
        ),
    ),
    "moved_to_the_end": lambda b, n: quantized(b, b.node("Transpose", real(b, n, 4, 2), perm=[1, 2, 0])),
    "reduced_away": lambda b, n: quantized(b, b.node("ReduceSum", real(b, n, 4), vector(b, 0), keepdims=0)),
    "rows_of_gemm": lambda b, n: quantized(
        b,
        b.node(
            "Gemm", b.node("Reshape", real(b, n, 2, 4), vector(b, -1, 4)), b.weights(small(3, 4), 0.25),
            b.constant([0.5, 1.0, 0.0]), transB=1,
        ),
    ),
    "time_first": lambda b, n: quantized(
        b, b.node("Conv", b.node("Transpose", real(b, 5, 1, 2), perm=[1, 2, 0]), b.weights(small(3, 2, 2), 0.5))
    ),
    "a_vector": lambda b, n: quantized(b, b.node("Relu", real(b, 5))),
    "one_dropped": lambda b, n: quantized(b, b.node("Squeeze", real(b, 1, 5, 4), vector(b, 0))),
    "one_dropped_and_put_back": lambda b, n: quantized(
        b, b.node("Unsqueeze", b.node("Relu", b.node("Squeeze", real(b, 1, 5, 4), vector(b, 0))), vector(b, 0))
    ),
    "one_moved": lambda b, n: quantized(b, b.node("Relu", b.node("Transpose", real(b, 1, 5, 4), perm=[1, 0, 2]))),
    "one_moved_to_its_like": lambda b, n: quantized(
        b, b.node("Relu", b.node("Transpose", real(b, 1, 1, 4), perm=[1, 0, 2]))
    ),
    "one_dropped_behind_a_conv": lambda b, n: quantized(
        b, b.node("Squeeze", b.node("Conv", real(b, 1, 2, 4, 4), b.weights(small(3, 2, 2, 2), 0.5)), vector(b, 0))
    ),
    "one_dropped_behind_a_pool": lambda b, n: quantized(
        b,
        b.node(
            "Squeeze",
            b.node(
                "Gemm", b.node("Flatten", b.node("GlobalAveragePool", real(b, 1, 2, 4, 4))), b.weights(small(2, 3), 0.5)
            ),
            vector(b, 0),
        ),
    ),
    "a_vector_by_matrices": lambda b, n: quantized(b, b.node("MatMul", real(b, 4), b.weights(small(2, 4, 3), 0.5))),
    "a_matrix_by_a_vector": lambda b, n: quantized(b, b.node("MatMul", b.weights(small(2, 4), 0.5), real(b, 4))),
}


def built(make: Make, size: int | str, folder: Path, name: str) -> Path:
    b = Builder(19, 9)
    b.output(make(b, size))
    return b.save(folder, f"{name}.onnx")


def computed(model: Model, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays)
    return {name: np.asarray(array) for name, array in found.items()}


def as_it_is(path: Path, rng: np.random.Generator) -> tuple[list[dict[str, np.ndarray]], list[list[np.ndarray]]]:
    """Inputs and outputs of the model itself, of several runs."""
    proto = onnx.load(path)
    version = next(opset.version for opset in proto.opset_import if opset.domain == "")
    around = [*substitutes({"": version}, lambda defect: None), *dialect_operators.operators()]
    evaluator = ReferenceEvaluator(proto, new_ops=around)
    inputs = []
    for _ in range(RUNS):
        arrays = {}
        for info in proto.graph.input:
            shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
            kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            arrays[info.name] = rng.integers(-100, 100, shape).astype(kind)
        inputs.append(arrays)
    return inputs, [evaluator.run(None, arrays) for arrays in inputs]


@pytest.mark.parametrize("name", CASES)
def test_a_batch_is_frames(name: str, tmp_path: Path) -> None:
    """The same hardware as of the model with a variable, and what the model itself gives for whole batches."""
    path = built(CASES[name], BATCH, tmp_path, "fixed")
    model = load(path)
    assert not model.whole
    alone = name in ("resized", "resized_from_a_region", "sliced")  # a number of frames stands in it
    twin = None if alone else load(built(CASES[name], FRAMES, tmp_path, "variable"))
    if twin is not None and "the_same" not in name:
        assert to_text(model.quantized) == to_text(twin.quantized)
    pipeline.run(model.quantized, pipeline.DATAFLOW)
    inputs, expected = as_it_is(path, np.random.default_rng(1))
    found = computed(model, {key: np.concatenate([run[key] for run in inputs]) for key in inputs[0]})
    for place, array in enumerate(found.values()):
        np.testing.assert_array_equal(array, np.concatenate([run[place] for run in expected]))


@pytest.mark.parametrize("name", WHOLE)
def test_whole_inputs_are_a_frame(name: str, tmp_path: Path) -> None:
    path = built(WHOLE[name], BATCH, tmp_path, "model")
    model = load(path)
    assert model.whole
    pipeline.run(model.quantized, pipeline.DATAFLOW)
    inputs, expected = as_it_is(path, np.random.default_rng(1))
    found = computed(model, {key: np.stack([run[key] for run in inputs]) for key in inputs[0]})
    for place, array in enumerate(found.values()):
        np.testing.assert_array_equal(array, np.stack([run[place] for run in expected]))


@pytest.mark.parametrize("name, frames", [("relu", RUNS * BATCH), ("across_the_first_axis", RUNS)])
def test_frames_of_a_file(name: str, frames: int, tmp_path: Path) -> None:
    """Whole batches one after the other are frames in both cases; there is a label for each."""
    model = load(built({**CASES, **WHOLE}[name], BATCH, tmp_path, "model"))
    array = np.arange(RUNS * BATCH * 4, dtype=np.int8).reshape(RUNS * BATCH, 4)
    np.savez(tmp_path / "inputs.npz", x=array, label=np.arange(frames))
    inputs = choose_inputs(model, None, tmp_path / "inputs.npz", None, np.random.default_rng(1))
    assert inputs.frames == frames
    assert inputs.labels is not None
    np.testing.assert_array_equal(inputs.arrays["x"].reshape(array.shape), array)


def test_what_is_neither(tmp_path: Path) -> None:
    """Images of which each has another constant."""
    b = Builder(19, 9)
    x = b.node("Conv", real(b, 3, 2, 4, 4), b.weights(small(3, 2, 2, 2), 0.5), name="conv")
    b.output(quantized(b, b.node("Add", x, b.constant(small(3, 1, 1, 1)), name="add")))
    with pytest.raises(ModelRefused) as refused:
        load(b.save(tmp_path))
    places = [(finding.rule, finding.where) for finding in refused.value.findings]
    assert places == [
        ("dimensions", "input 'x'"), ("frame-axis", "node 'add' (Add)"), ("frame-axis", "node 'conv' (Conv)"),
    ]


@pytest.mark.parametrize("op, inputs, shape, more", [
    ("Slice", ["p", "p"], [3, 2], {}), ("Pad", ["p"], [3, 5], {}), ("Resize", ["", "f"], [3, 8], {"mode": "nearest"}),
])
def test_parameters_at_run_time(op: str, inputs: list[str], shape: list[int], more: Any, tmp_path: Path) -> None:
    """The shape of the result is stated: nothing but the parameters is missing."""
    b = Builder(19, 9)
    b.input("p", [4 if op == "Pad" else 1], "int64")
    b.input("f", [2])
    b.declare("node", shape)
    b.output(quantized(b, b.node(op, real(b, 3, 4), *inputs, name="node", **more)))
    with pytest.raises(ModelRefused) as refused:
        load(b.save(tmp_path)).quantized  # noqa: B018  # lowered when it is asked for
    assert "node 'node'" in str(refused.value)


def test_an_operator_without_hardware_is_named(tmp_path: Path) -> None:
    b = Builder(19, 9)
    places, updates = b.constant(np.zeros((1, 4)), "int64"), b.constant(np.ones((1, 4)))
    b.output(quantized(b, b.node("ScatterElements", real(b, 3, 4), places, updates, name="turn")))
    with pytest.raises(ModelRefused) as refused:
        load(b.save(tmp_path))
    assert [(finding.rule, finding.where) for finding in refused.value.findings] == [
        ("supported-operator", "node 'turn' (ScatterElements)")
    ]


def test_a_part_of_no_elements(tmp_path: Path) -> None:
    """Joined to the other part: as rotary embeddings of whole heads are exported."""
    b = Builder(19, 9)
    first = b.node("Split", real(b, "N", 4), vector(b, 0, 4), outputs=["rest"], axis=1)
    b.output(quantized(b, b.node("Concat", b.node("Relu", "rest"), first, axis=1)))
    model = load(b.save(tmp_path))
    pipeline.run(model.quantized, pipeline.DATAFLOW)
    x = np.arange(-4, 4, dtype=np.int8).reshape(2, 4)
    (found,) = computed(model, {"x": x}).values()
    np.testing.assert_array_equal(found, np.rint(np.maximum((x - 3.0) / 8, 0) / 0.5) + 1)
