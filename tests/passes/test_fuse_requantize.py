"""What is fused, what is dropped, and what must stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hwflow.ir.graph import Graph
from hwflow.passes.fuse_requantize import fuse_requantize
from tests.models import Builder


def fused(b: Builder, folder: Path) -> Graph:
    return fuse_requantize(b.load(folder).quantized)


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def test_a_chain_becomes_one_and_knows_its_sources(tmp_path: Path) -> None:
    b = Builder()
    y = b.requantize(b.input("x", ["N", 2]), 0.5)
    for scale, name in ((1.0, "q1"), (2.0, "q2"), (3.0, "q3")):
        y = b.dequantize(b.quantize(y, scale, name=name), scale)
    b.output(y)
    (node,) = fused(b, tmp_path).nodes
    assert node.sources == ("q1", "q2", "q3")
    assert [len(stages) for stages in node.attributes.stages] == [3]


def test_a_requantizer_with_other_readers_stays(tmp_path: Path) -> None:
    for output_inside in (False, True):
        b = Builder()
        first = b.requantize(b.requantize(b.input("x", ["N", 2]), 0.5), 1.0)
        b.output(b.requantize(first, 2.0))
        b.output(first if output_inside else b.requantize(first, 3.0))
        assert ops(fused(b, tmp_path)) == ["requantize"] * (2 if output_inside else 3)


def test_channels_of_different_axes_stay_apart(tmp_path: Path) -> None:
    b = Builder()
    d = b.requantize(b.input("x", ["N", 2, 3]), 0.5)
    y = b.requantize(b.requantize(d, [1.0, 2.0], [0, 0], axis=1), 1.0)
    y = b.requantize(b.requantize(y, [1.0, 2.0, 3.0], [0, 0, 0], axis=2), 1.0)
    b.output(y)
    assert [(n.attributes.axis, len(n.attributes.stages)) for n in fused(b, tmp_path).nodes] == [(0, 2), (1, 3)]


def test_a_curve_of_few_integers_stays_one_table(tmp_path: Path) -> None:
    """Not thresholds of the sums for each channel: where there are many channels, a curve, and at most 8 bits."""
    for channels, function, kind, parts in (
        (16, "Sigmoid", "int8", 2), (15, "Sigmoid", "int8", 1), (16, "Relu", "int8", 1), (16, "Sigmoid", "int16", 1)
    ):
        b = Builder(21, 10)
        d = b.requantize(b.input("x", ["N", 4]), 0.5)
        scales = [0.01 * (k + 1) for k in range(channels)]
        y = b.node("MatMul", d, b.weights(np.ones((4, channels), int), scales, axis=1))
        y = b.requantize(b.node(function, b.requantize(y, 0.1, 0, kind)), 1 / 256, -128, "int8")
        b.output(y)
        assert ops(fused(b, tmp_path)) == ["dense"] + ["requantize"] * parts


def test_a_curve_of_many_levels_stays_a_table(tmp_path: Path) -> None:
    """Not as many thresholds, as wide as the sums: where a curve with more than 255 levels follows, of any channels."""
    for function, scale, zero_point, kind, parts in (
        ("Sigmoid", 1 / 32768, 0, "uint16", 2), ("Sigmoid", 1 / 256, 0, "uint8", 1), ("Relu", 0.01, 0, "uint16", 1),
        ("LeakyRelu", 0.001, 300, "uint16", 2),
    ):
        b = Builder(21, 10)
        d = b.requantize(b.input("x", ["N", 4]), 0.5)
        y = b.node("MatMul", d, b.weights(np.ones((4, 1), int), 0.5))
        y = b.requantize(b.node(function, b.requantize(y, 0.001, 30000, "uint16")), scale, zero_point, kind)
        b.output(y)
        assert ops(fused(b, tmp_path)) == ["dense"] + ["requantize"] * parts


def test_a_smooth_curve_of_many_integers_stays_alone(tmp_path: Path) -> None:
    """Piecewise quadratics have no room for a second rounding, nor for a factor of each channel. A table of few
    integers has; few levels are few thresholds."""
    for source, target, kind, parts in (
        ("uint16", 1 / 50000, "uint16", 2), ("uint8", 1 / 50000, "uint16", 1), ("uint16", 1 / 200, "uint8", 1)
    ):
        b = Builder(21, 10)
        d = b.dequantize(b.quantize(b.input("x", ["N", 2]), 0.001, 0, source, name="x_q"), 0.001, 0, source)
        y = b.requantize(b.node("Sigmoid", d), 1 / 32768, 0, "uint16")
        y = b.node("Mul", y, b.constant([0.7, 0.9], name="each"))
        b.output(b.requantize(y, target, 0, kind))
        assert ops(fused(b, tmp_path)) == ["requantize"] * parts


def test_identities_go(tmp_path: Path) -> None:
    b = Builder()
    q = b.quantize(b.input("x", ["N", 2]), 0.5, 3, name="q")
    d = b.dequantize(q, 0.5, 3)
    same = b.requantize(d, 0.5, 3)
    b.output(same, b.node("MatMul", same, b.weights([[1], [2]])))
    graph = fused(b, tmp_path)
    assert ops(graph) == ["dense"]
    assert graph.outputs[0].value is graph.inputs[0].value is graph.nodes[0].inputs[0]


def test_a_shift_of_the_levels_is_no_identity(tmp_path: Path) -> None:
    b = Builder()
    b.output(b.requantize(b.requantize(b.input("x", ["N", 2]), 0.5, 3), 0.5, 4))
    assert ops(fused(b, tmp_path)) == ["requantize"]


def test_functions_that_fall_and_bend_are_fused(tmp_path: Path) -> None:
    """A negation by channel, then a product of x and a hard sigmoid: one requantizer, the same values."""
    b = Builder()
    d = b.requantize(b.input("x", ["N", 3]), 0.5, 128)
    signs = b.constant([1.0, -1.0, -0.25], name="signs")
    turned = b.requantize(b.node("Mul", d, signs, name="turn"), 0.5, 100)
    b.output(b.requantize(b.node("Mul", turned, b.node("HardSigmoid", turned), name="bend"), 0.125, 7))
    graph = b.load(tmp_path).quantized
    before = [n.attributes.steps for n in graph.nodes if n.op == "requantize"]
    (node,) = fused(b, tmp_path).nodes
    steps = node.attributes.steps
    assert len(before) == 2 and [s.direction for s in before[0]] == [1, -1, -1]
    assert [s.direction for s in steps] == [0, 0, 0]
    first, second = (functions * (3 // len(functions)) for functions in before)
    for one, other, both in zip(first, second, steps, strict=True):
        assert [both(q) for q in range(256)] == [other(one(q)) for q in range(256)]
