"""Forks: one branch per reader, graph outputs last; nothing where there is one reader."""

from __future__ import annotations

from pathlib import Path

from hwflow.ir.graph import Graph
from hwflow.passes.fuse_requantize import fuse_requantize
from hwflow.passes.insert_forks import insert_forks
from hwflow.passes.to_dataflow import to_dataflow
from tests.models import Builder


def forked(b: Builder, folder: Path) -> Graph:
    return insert_forks(to_dataflow(fuse_requantize(b.load(folder).quantized)))


def wires(graph: Graph) -> list[tuple[str, list[str], list[str]]]:
    return [(n.op, [v.name for v in n.inputs], [v.name for v in n.outputs]) for n in graph.nodes]


def test_several_readers_and_an_output(tmp_path: Path) -> None:
    b = Builder()
    d = b.requantize(b.input("x", ["N", 2]), 0.5)
    h = b.quantize(b.node("MatMul", d, b.weights([[1, 0], [0, 1]]), name="fc"), 1.0, name="h")
    real = b.dequantize(h, 1.0)
    left = b.node("MatMul", real, b.weights([[1], [2]]), name="left")
    right = b.node("MatMul", real, b.weights([[3], [4]]), name="right")
    b.output(left, right, h)
    graph = forked(b, tmp_path)
    assert wires(graph) == [
        ("mvu", ["quantizelinear0"], ["fc_mvu"]),
        ("requantize", ["fc_mvu"], ["h"]),
        ("fork", ["h"], ["h_fork_0", "h_fork_1", "h_fork_2"]),
        ("mvu", ["h_fork_0"], ["left_mvu"]),
        ("mvu", ["h_fork_1"], ["right_mvu"]),
    ]
    assert [(p.name, p.value.name) for p in graph.outputs] == [
        ("left", "left_mvu"), ("right", "right_mvu"), ("h", "h_fork_2")
    ]  # fmt: skip
    assert graph.nodes[2].attributes.outputs == 3
    assert {v.origin for v in graph.nodes[2].outputs} == {"h"}


def test_an_input_that_is_an_output_twice(tmp_path: Path) -> None:
    b = Builder()
    x = b.input("x", ["N", 2], "int8")
    b.output(x, b.node("Identity", x, name="y"))
    assert wires(forked(b, tmp_path)) == [("fork", ["x"], ["x_fork_0", "x_fork_1"])]


def test_nothing_to_do(tmp_path: Path) -> None:
    b = Builder()
    b.output(b.requantize(b.requantize(b.input("x", ["N", 2]), 0.5), 1.0))
    assert [n.op for n in forked(b, tmp_path).nodes] == ["requantize"]
