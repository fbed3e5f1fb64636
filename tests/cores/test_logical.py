"""Operators of the quantized stage but products (test_logical_products.py, test_logical_matrix_products.py): evaluate
against ONNX's reference evaluator, lowering against evaluate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from hwflow.cores.operator import HardwareOperator
from hwflow.cores.registry import OPERATORS
from hwflow.ir.graph import IntArray, Value
from hwflow.types import Interval, IntType, TensorType
from hwflow.verify import golden
from tests.attributes import attributes_of
from tests.cores import test_logical_matrix_products, test_logical_products
from tests.cores.one_operator import I8, U4, check_lowering, paired, reference, single
from tests.schedule.graphs import Builder, dataflow

POOLS = [
    # shape, kernel, strides, pads, dilations; the reference reads pads wrongly with strides of 1 and dilations
    ((2, 4, 6), (2, 2), (2, 2), (0, 0, 0, 0), (1, 1)),
    ((3, 5, 5), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    ((1, 6, 4), (2, 3), (1, 2), (1, 0, 0, 2), (1, 1)),
    ((2, 7, 6), (2, 2), (2, 2), (0, 0, 0, 0), (3, 2)),
    ((1, 3, 3), (3, 3), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((2, 2, 3), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
]


@pytest.mark.parametrize(("shape", "kernel", "strides", "pads", "dilations"), POOLS)
@pytest.mark.parametrize("element", [I8, U4], ids=str)
def test_max_pool2d(shape, kernel, strides, pads, dilations, element) -> None:
    graph, frames, result = single(
        "max_pool2d", shape, element, kernel=kernel, strides=strides, pads=pads, dilations=dilations
    )
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "dilations": dilations}
    assert np.array_equal(result, reference("MaxPool", [frames.astype(np.float64)], **attributes))
    check_lowering(graph, frames, result)


@pytest.mark.parametrize(("shape", "kernel", "strides", "pads", "dilations"), POOLS)
@pytest.mark.parametrize("pad_value", [0, -3])
def test_sum_pool2d(shape, kernel, strides, pads, dilations, pad_value) -> None:
    """ONNX's average counts padding as zeros: it is of what has had the padding's value subtracted."""
    graph, frames, result = single(
        "sum_pool2d", shape, I8, kernel=kernel, strides=strides, pads=pads, dilations=dilations, pad_value=pad_value
    )
    weights = np.ones((shape[0], 1, *kernel))
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "dilations": dilations, "group": shape[0]}
    centred = reference("Conv", [(frames - pad_value).astype(np.float64), weights], **attributes)
    assert np.array_equal(result, centred + pad_value * kernel[0] * kernel[1])
    check_lowering(graph, frames, result)


def test_sum_pool2d_has_exact_intervals() -> None:
    """2 x 2 of an image of 2 x 2 with a row of padding on top: windows of 2 and of 4 pixels, the rest is 10."""
    source = TensorType((1, 2, 2), IntType(4, True), Interval(-3, 5))
    attributes = {"kernel": (2, 2), "strides": (1, 1), "pads": (1, 0, 0, 0), "dilations": (1, 1), "pad_value": 10}
    (result,) = OPERATORS["sum_pool2d"].infer(attributes_of("sum_pool2d", **attributes), [source])
    assert result.interval == Interval(min(-12, -6 + 20), max(20, 10 + 20))


@pytest.mark.parametrize("op", ["max_pool2d", "sum_pool2d"])
def test_a_global_pool_holds_no_image(op) -> None:
    padding = {"pad_value": 0} if op == "sum_pool2d" else {}
    graph, frames, result = single(
        op, (3, 4, 5), I8, kernel=(4, 5), strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), **padding
    )
    expected = {"max_pool2d": frames.max(axis=(2, 3)), "sum_pool2d": frames.sum(axis=(2, 3))}[op]
    assert np.array_equal(result[:, :, 0, 0], expected)
    check_lowering(graph, frames, result)
    assert [n.op for n in dataflow(graph).nodes] == [op.removesuffix("2d")]


@pytest.mark.parametrize("op", ["max_pool2d", "sum_pool2d"])
def test_rows_of_a_matrix_are_taken_as_they_come(op) -> None:
    """3 rows of 5 are one channel of 15 elements, in the order of the matrix: wires, no memory."""
    padding = {"pad_value": 0} if op == "sum_pool2d" else {}
    graph, frames, result = single(
        op, (3, 1, 5), I8, kernel=(1, 5), strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), **padding
    )
    expected = {"max_pool2d": frames.max(axis=(2, 3)), "sum_pool2d": frames.sum(axis=(2, 3))}[op]
    assert np.array_equal(result[:, :, 0, 0], expected)
    check_lowering(graph, frames, result)
    lowered = dataflow(graph)
    regrouped, pool = lowered.nodes
    assert lowered.inputs[0].value.typed.shape == (3, 5) and np.array_equal(lowered.inputs[0].order, np.arange(15))
    assert regrouped.attributes.map.is_identity and regrouped.outputs[0].typed.shape == (15, 1)
    assert pool.op == op.removesuffix("2d") and pool.outputs[0].typed.shape == (3, 1)


@pytest.mark.parametrize(
    ("shape", "target"), [((2, 3, 4), (24,)), ((6,), (2, 3)), ((4, 2), (2, 2, 2)), ((5,), (5, 1, 1))]
)
def test_reshape(shape, target) -> None:
    graph, frames, result = single("reshape", shape, I8, shape=target)
    expected = reference("Reshape", [frames.astype(np.int32), np.array((len(frames), *target), dtype=np.int64)])
    assert np.array_equal(result, expected)
    check_lowering(graph, frames, result)


@pytest.mark.parametrize("perm", list(itertools.permutations(range(3))), ids=str)
def test_transpose(perm) -> None:
    graph, frames, result = single("transpose", (2, 3, 4), I8, perm=perm)
    expected = reference("Transpose", [frames.astype(np.int32)], perm=(0, *(a + 1 for a in perm)))
    assert np.array_equal(result, expected)
    check_lowering(graph, frames, result)


@pytest.mark.parametrize(
    ("shape", "axis", "multipliers"),
    [
        ((3, 2, 4), 0, ((1,), (1,))),
        ((3, 2, 4), 0, ((-7, 5, 2), (3,))),
        ((3, 2, 4), 2, ((5,), (1, -2, 3, 4))),
        ((6,), 0, ((2, 3, 4, 5, 6, 7), (-1, 1, -1, 1, -1, 1))),
        ((2, 3), -1, ((2, 3, 4), (9,))),
    ],
    ids=str,
)
def test_scaled_add(shape, axis, multipliers) -> None:
    """Each input times its multipliers along the axis, as ONNX's Mul and Add broadcast."""
    graph, frames, result = paired("scaled_add", [shape, shape], [I8, U4], axis=axis, multipliers=multipliers)
    along = [1] * (len(shape) + 1)
    along[axis % len(shape) + 1] = -1
    a, b = (
        reference("Mul", [x.astype(np.int64), np.array(m, dtype=np.int64).reshape(along if len(m) > 1 else 1)])
        for x, m in zip(frames, multipliers, strict=True)
    )
    assert np.array_equal(result, reference("Add", [a, b]))
    check_lowering(graph, frames, result)


def test_scaled_add_has_exact_intervals_a_channel() -> None:
    """[-8, 7] and [0, 15]: 3 * a - 2 * b in [-24 - 30, 21], -a - 2 * b in [-7 - 30, 8]."""
    i4, u4 = (TensorType((2, 1, 1), e, e.interval) for e in (IntType(4, True), U4))
    attributes = attributes_of("scaled_add", axis=0, multipliers=((3, -1), (-2,)))
    (result,) = OPERATORS["scaled_add"].infer(attributes, [i4, u4])
    assert result.channel_intervals(0) == (Interval(-54, 21), Interval(-37, 8))
    assert (result.interval, result.element) == (Interval(-54, 21), IntType(7, True))


@pytest.mark.parametrize(("shape", "offsets"), [((3, 2, 4), (0, 0)), ((5,), (-7, 15)), ((2, 3), (100, 1))])
def test_product(shape, offsets) -> None:
    graph, frames, result = paired("product", [shape, shape], [I8, U4], offsets=offsets)
    centred = [x.astype(np.int64) - o for x, o in zip(frames, offsets, strict=True)]
    assert np.array_equal(result, reference("Mul", centred))
    check_lowering(graph, frames, result)


def test_product_has_exact_intervals() -> None:
    """[-8, 7] - 3 = [-11, 4]; [0, 15] - 5 = [-5, 10]: from -11 * 10 to -11 * -5 = 55."""
    i4, u4 = (TensorType((2,), e, e.interval) for e in (IntType(4, True), U4))
    (result,) = OPERATORS["product"].infer(attributes_of("product", offsets=(3, 5)), [i4, u4])
    assert result.interval == Interval(-110, 55)


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        (((3, 2, 4), (2, 2, 4)), 0),
        (((3, 2, 4), (3, 1, 4)), 1),
        (((3, 2, 4), (3, 2, 1), (3, 2, 2)), 2),
        (((3, 2, 4), (3, 2, 5)), -1),
        (((4,), (1,), (3,)), 0),
        (((2, 3), (2, 2)), 1),
        (((2, 3), (1, 3)), 0),
    ],
    ids=str,
)
def test_concat(shapes, axis) -> None:
    elements = [I8, U4, I8][: len(shapes)]
    graph, frames, result = paired("concat", shapes, elements, axis=axis)
    expected = reference("Concat", [f.astype(np.int64) for f in frames], axis=axis + 1 if axis >= 0 else axis)
    assert np.array_equal(result, expected)
    check_lowering(graph, frames, result)


@pytest.mark.parametrize(("axis", "parts"), [(0, (3, 1, 2)), (1, (2, 2, 2)), (2, (1, 2, 1))])
def test_concatenated_images_are_images(axis, parts) -> None:
    """Along every axis of images the result is an image that a convolution takes."""
    build = Builder(np.random.default_rng(9))
    shapes = [tuple(part if a == axis else 3 for a in range(3)) for part in parts]
    images = [build.max_pool2d(build.input(shape, I8), 1, 1) for shape in shapes]
    build.output(build.conv2d(build.node("concat", *images, axis=axis), 2, 2, 1, 0, I8))
    graph = build.done()
    frames = [np.random.default_rng(k).integers(-128, 128, (2, *shape)) for k, shape in enumerate(shapes)]
    (expected,) = golden.evaluate(graph, {f"x{k}": f for k, f in enumerate(frames)}).values()
    check_lowering(graph, frames, expected)


def test_concatenated_vectors_come_in_any_order() -> None:
    """Flattened images, channels fastest: the weights of the matrix product take up the order."""
    build = Builder(np.random.default_rng(10))
    images = [build.max_pool2d(build.input(shape, I8), 1, 1) for shape in ((2, 3, 2), (4, 3, 2))]
    build.output(build.dense(build.node("concat", *map(build.flatten, images), axis=0), 3, I8))
    graph = build.done()
    rng = np.random.default_rng(11)
    frames = [rng.integers(-128, 128, (2, 2, 3, 2)), rng.integers(-128, 128, (2, 4, 3, 2))]
    (expected,) = golden.evaluate(graph, {"x0": frames[0], "x1": frames[1]}).values()
    check_lowering(graph, frames, expected)


def test_concatenation_keeps_intervals() -> None:
    a = TensorType((2, 3), IntType(4, True), Interval(-5, 7), (Interval(0, 3), Interval(-5, 7)), 0)
    b = TensorType((1, 3), U4, U4.interval)
    (result,) = OPERATORS["concat"].infer(attributes_of("concat", axis=0), [a, b])
    assert (result.shape, result.channel_intervals(0)) == ((3, 3), (*a.channels, U4.interval))
    assert result.element == IntType(5, True)
    c = TensorType((2, 1), U4, Interval(0, 9))
    (result,) = OPERATORS["concat"].infer(attributes_of("concat", axis=1), [a, c])
    assert (result.shape, result.channel_intervals(0)) == ((2, 4), (Interval(0, 9), Interval(-5, 9)))


@pytest.mark.parametrize("op", ["scaled_add", "product"])
def test_a_graph_input_takes_the_order_of_what_it_meets(op) -> None:
    """A residual path that comes from outside: added to a convolution's result, which comes pixel by pixel."""
    attributes = {"axis": 0, "multipliers": ((3,), (5,))} if op == "scaled_add" else {"offsets": (1, 2)}
    build = Builder(np.random.default_rng(7))
    left, right = build.input((2, 3, 4), I8), build.input((3, 3, 4), U4)
    result = build.node(op, build.conv2d(left, 3, 3, 1, 1, I8), right, **attributes)
    build.output(build.requantize(result, I8))
    graph = build.done()
    rng = np.random.default_rng(8)
    frames = [rng.integers(-128, 128, (2, 2, 3, 4)), rng.integers(0, 16, (2, 3, 3, 4))]
    (expected,) = golden.evaluate(graph, {"x0": frames[0], "x1": frames[1]}).values()
    check_lowering(graph, frames, expected)


def test_a_channel_keeps_its_interval() -> None:
    """Channels 0 and 1 in [0, 3] and [-5, 7]: where a channel goes, its interval goes."""
    source = TensorType((2, 2, 3), IntType(4, True), Interval(-5, 7), (Interval(0, 3), Interval(-5, 7)), 0)
    (moved,) = OPERATORS["transpose"].infer(attributes_of("transpose", perm=(1, 2, 0)), [source])
    assert (moved.shape, moved.channel_intervals(-1)) == ((2, 3, 2), source.channels)
    (flat,) = OPERATORS["reshape"].infer(attributes_of("reshape", shape=(12,)), [source])
    assert flat.channel_intervals(0) == (Interval(0, 3),) * 6 + (Interval(-5, 7),) * 6
    (joined,) = OPERATORS["reshape"].infer(attributes_of("reshape", shape=(1, 12)), [source])
    assert joined.channel_intervals(1) == (Interval(-5, 7),) * 12
    pool = {"kernel": (2, 2), "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
    (pooled,) = OPERATORS["max_pool2d"].infer(attributes_of("max_pool2d", **pool), [source])
    assert pooled.channel_intervals(0) == source.channels


def test_chains_of_views_reach_their_consumer() -> None:
    """A channels-last image: transposed, convolved, transposed back, flattened, multiplied: no data moves, so the
    weights take up the order."""
    build = Builder(np.random.default_rng(4))
    value: Value = build.node("transpose", build.input((5, 4, 3), I8), perm=(2, 0, 1))
    value = build.requantize(build.conv2d(value, 2, 3, 1, 1, I8), I8)
    value = build.flatten(build.node("transpose", value, perm=(1, 2, 0)))
    build.output(build.dense(value, 3, I8))
    graph = build.done()
    frames = np.random.default_rng(5).integers(-128, 128, (3, 5, 4, 3))
    (result,) = golden.evaluate(graph, {"x0": frames}).values()
    check_lowering(graph, frames, result)
    assert [n.op for n in dataflow(graph).nodes] == ["sliding_window", "mvu", "requantize", "mvu"]


def _mixed(build: Builder, value: Value) -> Value:
    """The same elements flat, columns before rows."""
    return build.node("reshape", build.node("transpose", value, perm=(0, 2, 1)), shape=(24,))


@pytest.mark.parametrize(
    ("build_node", "rearranged"),
    [
        (lambda b, x: b.conv2d(b.node("transpose", b.max_pool2d(x, 1, 1), perm=(1, 0, 2)), 2, 1, 1, 0, I8), 1),
        (lambda b, x: b.max_pool2d(b.node("transpose", b.max_pool2d(x, 1, 1), perm=(1, 0, 2)), 2, 1), 1),
        (lambda b, x: b.dense(b.max_pool2d(x, 1, 1), 2, I8), 1),
        *(
            (
                lambda b, x, op=op, a=a: b.node(
                    op, b.node("reshape", y := b.max_pool2d(x, 1, 1), shape=(24,)), _mixed(b, y), **a
                ),
                1,
            )
            for op, a in (("scaled_add", {"axis": 0, "multipliers": ((1,), (1,))}), ("product", {"offsets": (0, 0)}))
        ),
        (lambda b, x: b.node("scaled_add", y := b.max_pool2d(x, 1, 1), y, axis=1, multipliers=((1, 2, 3), (1,))), 2),
        (
            lambda b, x: b.node(
                "concat",
                b.node("reshape", b.max_pool2d(x, 1, 1), shape=(24,)),
                b.flatten(b.conv2d(x, 3, 2, 1, 0, I8)),
                axis=0,
            ),
            2,
        ),
        (lambda b, x: b.requantize(b.node("transpose", b.max_pool2d(x, 1, 1), perm=(1, 0, 2)), U4), 1),
    ],
    ids=["conv2d", "max_pool2d", "dense", "scaled_add", "product", "multipliers", "concat", "requantize"],
)
def test_a_stream_in_another_order_is_rearranged(build_node, rearranged: int) -> None:
    build = Builder(np.random.default_rng(6))
    build.output(build_node(build, build.input((2, 3, 4), I8)))
    graph = build.done()
    frames = np.random.default_rng(7).integers(-128, 128, (3, 2, 3, 4))
    (result,) = golden.evaluate(graph, {"x0": frames}).values()
    check_lowering(graph, frames, result)
    assert [n.op for n in dataflow(graph).nodes].count("rearrange") == rearranged


REINDEXED = [
    # frame, where each element of the result comes from (numbers of elements, -1: the fill value)
    ((3, 4, 5), lambda n: n[:, 1:3, ::-2]),
    ((3, 4, 5), lambda n: np.pad(n, ((0, 0), (1, 2), (2, 0)), constant_values=-1)),
    ((3, 4, 5), lambda n: np.pad(n, ((1, 0), (1, 2), (2, 0)), constant_values=-1)),
    ((4, 2, 3), lambda n: n.repeat(2, 1).repeat(2, 2)),
    ((8, 2, 3), lambda n: n.reshape(2, 2, 2, 2, 3).transpose(2, 3, 0, 4, 1).reshape(2, 4, 6)),
    ((6,), lambda n: n[[5, 5, 0]]),
    ((6, 2), lambda n: np.tile(n, (2, 3))),
    ((1, 5), lambda n: np.broadcast_to(n, (4, 5))),
    ((2, 3), lambda n: n[1, 2].reshape(1)),
]


@pytest.mark.parametrize(("frame", "move"), REINDEXED)
def test_reindex(frame, move) -> None:
    """The meaning is indexing by numpy; behind a pool the stream is an image's."""
    index = move(np.arange(np.prod(frame)).reshape(frame))
    graph, frames, result = single("reindex", frame, I8, index=index, fill=-9)
    flat = frames.reshape(len(frames), -1)
    expected = np.array([[-9 if k < 0 else x[k] for k in index.reshape(-1)] for x in flat]).reshape(-1, *index.shape)
    assert np.array_equal(result, expected)
    check_lowering(graph, frames, result)
    if len(frame) == 3:
        build = Builder(np.random.default_rng(0))
        build.output(build.node("reindex", build.max_pool2d(build.input(frame, I8), 1, 1), index=index, fill=-9))
        check_lowering(build.done(), frames, result)


def test_pixel_product() -> None:
    factors = np.arange(-4, 8).reshape(3, 4)
    graph, frames, result = single("pixel_product", (2, 3, 4), I8, factors=factors)
    assert np.array_equal(result, frames * factors)
    check_lowering(graph, frames, result)


INTERPOLATED = [
    # frame, axis, starts, weights
    ((2, 3, 4), 1, [0, 0, 0, 1, 1, 1], [[4, 0], [3, 1], [1, 3], [3, 1], [1, 3], [0, 4]]),
    ((2, 3, 4), 2, [0, 0, 1, 2, 1], [[4, 0], [-1, 5], [2, 2], [1, 3], [7, -3]]),
    ((3, 4), 0, [0, 1], [[1, 1], [2, 0]]),
    ((5,), 0, [0, 1, 2], [[1, 2, 1], [3, 0, 1], [-5, 1, 8]]),
    ((2, 3, 2, 4), 1, [1], [[9, -1]]),
]


@pytest.mark.parametrize(("frame", "axis", "starts", "weights"), INTERPOLATED)
def test_interpolate(frame, axis, starts, weights) -> None:
    """The meaning is a product with a matrix along one axis; behind a pool the stream is an image's."""
    attributes = {"axis": axis, "starts": np.array(starts), "weights": np.array(weights)}
    graph, frames, result = single("interpolate", frame, I8, **attributes)
    matrix = np.zeros((len(starts), frame[axis]), dtype=np.int64)
    for row, (start, some) in enumerate(zip(starts, weights, strict=True)):
        matrix[row, start : start + len(some)] = some
    expected = np.moveaxis(np.tensordot(frames, matrix, (axis + 1, 1)), -1, axis + 1)
    assert np.array_equal(result, expected)
    check_lowering(graph, frames, result)
    if len(frame) == 3:
        build = Builder(np.random.default_rng(0))
        build.output(build.node("interpolate", build.max_pool2d(build.input(frame, I8), 1, 1), **attributes))
        check_lowering(build.done(), frames, result)


def test_intervals_of_interpolated_channels() -> None:
    source = TensorType.of((2, 3), (Interval(0, 3), Interval(-5, 7)), 0)
    weights = np.array([[3, -1], [1, 1]])
    attributes = attributes_of("interpolate", axis=1, starts=np.array([0, 1]), weights=weights)
    (within,) = OPERATORS["interpolate"].infer(attributes, [source])
    assert (within.shape, within.channel_intervals(0)) == ((2, 2), (Interval(-3, 9), Interval(-22, 26)))
    attributes = attributes_of("interpolate", axis=0, starts=np.array([0]), weights=weights[1:])
    (across,) = OPERATORS["interpolate"].infer(attributes, [source])
    assert (across.shape, across.interval) == ((1, 3), Interval(-10, 14))


def test_dense_of_sets() -> None:
    """Rows take the matrices in turns: a product with a constant batch of matrices."""
    weights = np.random.default_rng(3).integers(-128, 128, (3, 4, 5))
    graph, frames, result = single("dense", (2, 3, 5), I8, weights=weights)
    expected = np.stack([frames[:, :, turn] @ weights[turn].T for turn in range(3)], axis=2)
    assert np.array_equal(result, expected)
    check_lowering(graph, frames, result)


def test_intervals_of_channels_follow_reindexed_elements() -> None:
    source = TensorType.of((2, 3), (Interval(0, 3), Interval(-5, 7)), 0)
    numbers = np.arange(6).reshape(2, 3)
    (turned,) = OPERATORS["reindex"].infer(attributes_of("reindex", index=numbers.T[:, ::-1], fill=0), [source])
    assert (turned.shape, turned.channel_intervals(1)) == ((3, 2), (Interval(-5, 7), Interval(0, 3)))
    (padded,) = OPERATORS["reindex"].infer(
        attributes_of("reindex", index=np.pad(numbers, ((0, 1), (0, 0)), constant_values=-1), fill=9), [source]
    )
    assert padded.channel_intervals(0) == (Interval(0, 3), Interval(-5, 7), Interval(9, 9))
    (mixed,) = OPERATORS["reindex"].infer(attributes_of("reindex", index=np.array([[0, 5], [4, -1]]), fill=9), [source])
    assert (mixed.interval, mixed.channels) == (Interval(-5, 9), ())


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("least", "last"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("image", [False, True])
def test_top_k(axis: int, least: bool, last: bool, image: bool) -> None:
    """Of equal ones the first, or the last; of a row-major stream and of an image's. TopK has no choice of the last."""
    frame, element = (3, 4, 5), IntType(3, True)
    for k in (1, 3):
        attributes = {"axis": axis, "k": k, "least": least, "last": last}
        for take in ("index", "value"):
            build = Builder(np.random.default_rng(0))
            source = build.input(frame, element)
            source = build.max_pool2d(source, 1, 1) if image else source
            build.output(build.node("top_k", source, **attributes, take=take))
            graph = build.done()
            frames = np.random.default_rng(1).integers(element.min, element.max + 1, (3, *frame))
            (result,) = golden.evaluate(graph, {"x0": frames}).values()
            if k == 1 and take == "index":
                name = "ArgMin" if least else "ArgMax"
                expected = reference(name, [frames], axis=axis + 1, select_last_index=int(last))
                assert np.array_equal(result, expected)
            elif not last:
                assert np.array_equal(result, reference_top_k(frames, k, axis + 1, least)[take == "index"])
            check_lowering(graph, frames, result)


def reference_top_k(frames: IntArray, k: int, axis: int, least: bool) -> list[np.ndarray]:
    node = helper.make_node("TopK", ["x", "k"], ["values", "places"], axis=axis, largest=int(not least))
    infos = [helper.make_tensor_value_info(name, TensorProto.INT64, None) for name in ("x", "k", "values", "places")]
    graph = helper.make_graph([node], "g", infos[:2], infos[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    return ReferenceEvaluator(model).run(None, {"x": frames, "k": np.array([k])})


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("exclusive", "reverse"), list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("image", [False, True])
@pytest.mark.parametrize("wrap", [None, IntType(4, True)])
def test_cumulative_sum(axis: int, exclusive: bool, reverse: bool, image: bool, wrap: IntType | None) -> None:
    """Of a row-major stream and of an image's, along pixels and channels."""
    frame, element = (3, 4, 5), IntType(3, True)
    build = Builder(np.random.default_rng(0))
    source = build.input(frame, element)
    source = build.max_pool2d(source, 1, 1) if image else source
    attributes = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    build.output(build.node("cumulative_sum", source, **attributes, wrap=wrap))
    graph = build.done()
    frames = np.random.default_rng(1).integers(element.min, element.max + 1, (3, *frame))
    (result,) = golden.evaluate(graph, {"x0": frames}).values()
    given = [frames.astype(np.float64), np.array(axis + 1)]
    expected = reference("CumSum", given, exclusive=int(exclusive), reverse=int(reverse)).astype(np.int64)
    assert np.array_equal(result, expected if wrap is None else (expected + 8) % 16 - 8)
    check_lowering(graph, frames, result)


@pytest.mark.parametrize("image", [False, True])
@pytest.mark.parametrize("rows", [5, 8, 100])
def test_table_lookup(rows: int, image: bool) -> None:
    """Of a row-major stream and of an image's: numbers within the table, from its end, and beyond."""
    frame, element = (3, 4, 5), IntType(4, True)
    table = np.random.default_rng(2).integers(-9, 9, (rows, 3))
    build = Builder(np.random.default_rng(0))
    source = build.input(frame, element)
    source = build.max_pool2d(source, 1, 1) if image else source
    build.output(build.node("table_lookup", source, table=table))
    graph = build.done()
    frames = np.random.default_rng(1).integers(element.min, element.max + 1, (3, *frame))
    (result,) = golden.evaluate(graph, {"x0": frames}).values()
    nearest = np.minimum(np.maximum(frames, -rows), rows - 1)
    assert np.array_equal(result, reference("Gather", [table, nearest]))
    check_lowering(graph, frames, result)


@pytest.mark.parametrize("held", [1, 2, 5])
def test_delay(held: int) -> None:
    """Whole frames, as many behind: of more than there are, the first ones alone."""
    type_ = TensorType((2, 3), I8, I8.interval)
    first = np.arange(6).reshape(2, 3) - 3
    build = Builder(np.random.default_rng(0))
    build.output(build.node("delay", build.input((2, 3), I8), type=type_, initial=first, frames=held))
    graph, frames = build.done(), np.random.default_rng(1).integers(-128, 128, (3, 2, 3))
    (result,) = golden.evaluate(graph, {"x0": frames}).values()
    assert np.array_equal(result, np.concatenate([np.stack([first] * held), frames])[: len(frames)])
    check_lowering(graph, frames, result)


def test_every_logical_operator_is_tested_here() -> None:
    names = {name for name, operator in OPERATORS.items() if not isinstance(operator, HardwareOperator)}
    names -= {"loop", "by_round"}  # have others in them: test_roll_loops.py and test_share_layers.py in tests/passes
    here = (*globals(), *vars(test_logical_products), *vars(test_logical_matrix_products))
    tested = {name.removeprefix("test_") for name in here if name.startswith("test_")}
    assert names <= tested
