"""Products with constants at the quantized stage, convolutions and matrices: evaluate against ONNX's reference
evaluator, lowering against evaluate."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.boards import find_board
from hwflow.cores.registry import OPERATORS, hardware
from hwflow.errors import InternalError, ModelRefused
from hwflow.types import Interval, IntType, TensorType
from tests.attributes import attributes_of
from tests.cores.one_operator import I8, U4, check_lowering, reference, single
from tests.schedule.graphs import dataflow

CONVOLUTIONS = [
    # shape, outputs, kernel, strides, pads, dilations, pad value (the input's zero point)
    ((1, 4, 4), 1, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 0),
    ((3, 5, 6), 4, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 0),
    ((2, 6, 5), 3, (2, 3), (2, 1), (0, 2, 1, 0), (1, 1), -7),
    ((2, 7, 7), 2, (3, 2), (1, 2), (2, 0, 0, 1), (2, 3), 5),
    ((4, 3, 3), 5, (3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 0),
    ((2, 3, 4), 2, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 0),
    ((1, 2, 2), 2, (1, 1), (1, 1), (1, 2, 0, 1), (1, 1), 3),
]


@pytest.mark.parametrize(("shape", "outputs", "kernel", "strides", "pads", "dilations", "pad_value"), CONVOLUTIONS)
def test_conv2d(shape, outputs, kernel, strides, pads, dilations, pad_value) -> None:
    """ONNX pads with 0 what has had its zero point subtracted; here the zero point itself is the padding."""
    weights = np.random.default_rng(2).integers(-128, 128, (outputs, shape[0], *kernel))
    graph, frames, result = single(
        "conv2d", shape, I8, weights=weights, strides=strides, pads=pads, dilations=dilations, pad_value=pad_value
    )
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "dilations": dilations}
    centred = reference("Conv", [(frames - pad_value).astype(np.float64), weights.astype(np.float64)], **attributes)
    expected = centred + pad_value * weights.sum(axis=(1, 2, 3))[:, None, None]
    assert np.array_equal(result, expected)
    check_lowering(graph, frames, result)


@pytest.mark.parametrize(("pads", "stride"), [((1, 1, 1, 1), 1), ((0, 1, 2, 0), 2), ((0, 0, 0, 0), 1)])
def test_centred_conv2d(pads, stride) -> None:
    """Of elements from their least value on: ONNX's padding is right for these."""
    weights = np.random.default_rng(2).integers(-128, 128, (3, 2, 3, 2))
    strides = stride, stride
    graph, frames, result = single(
        "conv2d", (2, 5, 4), I8, weights=weights, strides=strides, pads=pads, dilations=(1, 1), pad_value=-128,
        centred=True,
    )
    assert graph.nodes[0].outputs[0].typed.interval.hi <= 255 * int(np.maximum(weights, 0).sum(axis=(1, 2, 3)).max())
    attributes = {"kernel_shape": (3, 2), "strides": strides, "pads": pads}
    expected = reference("Conv", [(frames + 128).astype(np.float64), weights.astype(np.float64)], **attributes)
    assert np.array_equal(result, expected)
    check_lowering(graph, frames, result)


@pytest.mark.parametrize(("channels", "outputs", "groups"), [(4, 4, 4), (3, 6, 3), (4, 6, 2), (6, 3, 3), (2, 2, 1)])
@pytest.mark.parametrize(("kernel", "pads"), [((3, 2), (1, 0, 1, 1)), ((1, 1), (0, 0, 0, 0))])
def test_grouped_conv2d(channels, outputs, groups, kernel, pads) -> None:
    shape, pad_value = (channels, 5, 4), -3
    weights = np.random.default_rng(2).integers(-128, 128, (outputs, channels // groups, *kernel))
    graph, frames, result = single(
        "conv2d", shape, I8, weights=weights, strides=(1, 1), pads=pads, dilations=(1, 1), pad_value=pad_value,
        groups=groups,
    )
    attributes = {"kernel_shape": kernel, "pads": pads, "group": groups}
    centred = reference("Conv", [(frames - pad_value).astype(np.float64), weights.astype(np.float64)], **attributes)
    expected = centred + pad_value * weights.sum(axis=(1, 2, 3))[:, None, None]
    assert np.array_equal(result, expected)
    check_lowering(graph, frames, result)


@pytest.mark.parametrize(("rows", "length", "outputs"), [((), 5, 3), ((), 1, 1), ((4,), 6, 2), ((2, 3), 4, 5)])
def test_dense(rows, length, outputs) -> None:
    weights = np.random.default_rng(3).integers(-128, 128, (outputs, length))
    graph, frames, result = single("dense", (*rows, length), I8, weights=weights)
    assert np.array_equal(result, reference("MatMul", [frames.astype(np.int32), weights.T.astype(np.int32)]))
    check_lowering(graph, frames, result)


@pytest.mark.parametrize(("element", "weight_bits"), [(IntType(16, True), 40), (U4, 40), (IntType(32, True), 24)])
def test_dense_of_wide_operands(element, weight_bits) -> None:
    """Weights at both ends of their range; results against Python's integers."""
    ends = [-(1 << weight_bits - 1), (1 << weight_bits - 1) - 1]
    weights = np.random.default_rng(3).choice([*ends, 3, -12345678], (4, 7))
    graph, frames, result = single("dense", (7,), element, weights=weights)
    assert result.tolist() == [
        [sum(x * w for x, w in zip(frame, row, strict=True)) for row in weights.tolist()] for frame in frames.tolist()
    ]
    check_lowering(graph, frames, result)


@pytest.mark.parametrize(
    ("element", "weight", "message"),
    [
        (IntType(33, True), 1, "inputs must have at most 32 bits, not 33"),
        (U4, 1 << 40, "weights must have at most 40 bits, not 41"),
        (U4, -(1 << 39) - 1, "weights must have at most 40 bits, not 41"),
    ],
)
def test_operands_too_wide_for_a_core(element, weight, message) -> None:
    graph, _, _ = single("dense", (2,), element, weights=np.array([[weight, 1]]))
    with pytest.raises(ModelRefused) as raised:
        dataflow(graph)
    assert str(raised.value).endswith(f"{message} [operand-width]\n  remedy: quantize them to fewer bits")


def test_wide_products_have_blocks_of_the_device() -> None:
    graph, _, _ = single("dense", (3,), IntType(16, True), weights=np.array([[1 << 38, 5, -7]]))
    (node,) = dataflow(graph).nodes
    for board, part in (("ulx3s_85f", 17), ("icebreaker", 15)):
        foldings = hardware("mvu").foldings(node, find_board(board).part)
        # the vector whole may also be a network of adders
        assert {(f.multiplier, f.part) for f in foldings} == {("dsp", part), ("lut", 0), ("shift_add", 0)}


U1 = IntType(1, False)


@pytest.mark.parametrize(("rows", "length", "outputs"), [((), 5, 3), ((), 1, 1), ((4,), 6, 2), ((), 130, 4)])
def test_binary_dense(rows, length, outputs) -> None:
    """With bits as -1 and 1 the product counts equal bits once more than different ones."""
    weights = np.random.default_rng(3).integers(0, 2, (outputs, length))
    graph, frames, result = single("dense", (*rows, length), U1, weights=weights, binary=True)
    signs = reference("MatMul", [2 * frames.astype(np.int32) - 1, 2 * weights.T.astype(np.int32) - 1])
    assert np.array_equal(2 * result - length, signs)
    check_lowering(graph, frames, result)


@pytest.mark.parametrize(("shape", "outputs", "kernel", "strides", "pads", "dilations", "pad_value"), [
    ((3, 5, 6), 4, (3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 0),
    ((2, 7, 7), 2, (3, 2), (1, 2), (0, 0, 0, 0), (2, 3), 0),
    ((5, 3, 4), 3, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 0),
])  # fmt: skip
def test_binary_conv2d(shape, outputs, kernel, strides, pads, dilations, pad_value) -> None:
    weights = np.random.default_rng(2).integers(0, 2, (outputs, shape[0], *kernel))
    attributes = {"strides": strides, "pads": pads, "dilations": dilations}
    graph, frames, result = single("conv2d", shape, U1, weights=weights, pad_value=pad_value, binary=True, **attributes)
    signs = [2.0 * frames - 1, 2.0 * weights - 1]
    expected = reference("Conv", signs, kernel_shape=kernel, **attributes)
    assert np.array_equal(2 * result - weights[0].size, expected)
    check_lowering(graph, frames, result)
    assert [n.op for n in dataflow(graph).nodes][-1] == "mvu"


def test_binary_counts_know_what_inputs_are_constant() -> None:
    """Inputs 0..1, 0, 1 against the rows 1 0 0 and 0 1 1: one that is equal and one that is free; likewise."""
    source = TensorType((3,), U1, Interval(0, 1), (Interval(0, 1), Interval(0, 0), Interval(1, 1)), 0)
    weights = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 1]])
    (result,) = OPERATORS["dense"].infer(attributes_of("dense", weights=weights, binary=True), [source])
    assert result.channels == (Interval(1, 2), Interval(1, 2), Interval(2, 3))


@pytest.mark.parametrize(
    ("weights", "element", "message"),
    [
        ([[0, 2]], U1, "weights must be 0 and 1, not within [0, 2]"),
        ([[-1, 1]], U1, "weights must be 0 and 1, not within [-1, 1]"),
        ([[0, 1]], U4, "inputs must be 0 and 1, not within [0, 15]"),
    ],
)
def test_binary_operands_that_are_no_bits(weights, element, message) -> None:
    source = TensorType((2,), element, element.interval)
    with pytest.raises(InternalError) as raised:
        OPERATORS["dense"].infer(attributes_of("dense", weights=np.array(weights), binary=True), [source])
    assert message in str(raised.value)


def test_binary_products_have_one_form() -> None:
    """784 bits by 64 rows: counts of equal bits only, up to all bits at once."""
    weights = np.random.default_rng(3).integers(0, 2, (64, 784))
    graph, _, _ = single("dense", (784,), U1, weights=weights, binary=True)
    (node,) = dataflow(graph).nodes
    foldings = hardware("mvu").foldings(node, find_board("ulx3s_85f").part)
    assert {f.multiplier for f in foldings} == {"xnor"}
    assert {(1, 1), (784, 1), (784, 64), (98, 8)} <= {(f.input_lanes, f.output_lanes) for f in foldings}
    assert OPERATORS["mvu"].macs(node) == 784 * 64
