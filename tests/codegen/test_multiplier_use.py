"""What a design multiplies: products of data, counted beside padding, and the share of multipliers that make them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import hwflow
from hwflow.codegen.multiplier_use import macs_of_data
from hwflow.cores.registry import OPERATORS
from hwflow.ir.graph import Graph
from hwflow.passes import pipeline
from tests.models import Builder

CONVOLUTIONS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "same": ((3, 4, 3, 3), {"pads": [1, 1, 1, 1]}),
    "valid": ((3, 4, 3, 3), {}),
    "one side": ((2, 4, 2, 3), {"pads": [2, 0, 0, 1], "strides": [2, 1]}),
    "dilated": ((2, 4, 3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    "depthwise": ((4, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 4}),
    "two groups": ((6, 2, 3, 3), {"pads": [1, 0, 1, 0], "group": 2}),
}


def products_of_data(shape: tuple[int, ...], attributes: dict[str, Any]) -> int:
    """Convolution itself counts them: ones times ones, added."""
    w = helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, shape)
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 4, 6, 5])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"], **attributes)], "counted", [x, w], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ones = {"x": np.ones((1, 4, 6, 5), np.float32), "w": np.ones(shape, np.float32)}
    return int(ReferenceEvaluator(model).run(None, ones)[0].sum())


def dataflow_of(model: onnx.ModelProto, folder: Path) -> Graph:
    onnx.save(model, folder / "model.onnx")
    return pipeline.run(hwflow.load(folder / "model.onnx").quantized, pipeline.DATAFLOW)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_products_without_padding(name: str, tmp_path: Path) -> None:
    shape, attributes = CONVOLUTIONS[name]
    b = Builder()
    x = b.requantize(b.input("x", ("N", 4, 6, 5)), 0.5)
    weights = np.arange(np.prod(shape)).reshape(shape) % 7 - 3
    b.output(b.requantize(b.node("Conv", x, b.weights(weights, 0.5), **attributes), 4.0))
    graph = dataflow_of(b.build(), tmp_path)
    assert sum(macs_of_data(graph.nodes).values()) == products_of_data(shape, attributes)
    whole = sum(OPERATORS[node.op].macs(node) for node in graph.nodes)
    assert (whole > products_of_data(shape, attributes)) == (name != "valid")


def test_padding_of_its_own(tmp_path: Path) -> None:
    """A Pad before a convolution: the windows' elements that it adds are padding too."""
    b = Builder()
    x = b.requantize(b.input("x", ("N", 4, 6, 5)), 0.5)
    padded = b.node("Pad", x, b.constant([0, 0, 2, 1, 0, 0, 1, 1], "int64"))
    b.output(b.requantize(b.node("Conv", padded, b.weights(np.ones((3, 4, 3, 3), int), 0.5)), 4.0))
    found = macs_of_data(dataflow_of(b.build(), tmp_path).nodes)
    assert sum(found.values()) == products_of_data((3, 4, 3, 3), {"pads": [2, 1, 1, 1]})


def test_the_shares_of_kinds(tmp_path: Path) -> None:
    """The shares by kind are of the layers' products; the headline is of what could be any product."""
    b = Builder()
    x = b.requantize(b.input("x", ("N", 3, 8, 8)), 0.5)
    convolved = b.node("Conv", x, b.weights(np.arange(216).reshape(8, 3, 3, 3) % 7 - 3, 0.5), pads=[1, 1, 1, 1])
    flat = b.node("Flatten", b.requantize(convolved, 4.0))
    b.output(b.requantize(b.node("MatMul", flat, b.weights(np.arange(5120).reshape(512, 10) % 9 - 4, 0.5)), 64.0))
    onnx.save(b.build(), tmp_path / "model.onnx")
    design = hwflow.compile(tmp_path / "model.onnx", "ulx3s_85f", fps=100_000)
    table = design.write(tmp_path / "out")
    cycles, kinds = table["timing"]["initiation_interval"], table["multipliers"]
    of = {"dsp": "block", "dsp2": "block", "lut": "lut", "xnor": "xnor", "shift_add": "constant"}
    for kind in set(of.values()):
        layers = [row for row in table["layers"] if row["multipliers"] and of[row["folding"]["multiplier"]] == kind]
        assert kinds[kind]["multipliers"] == sum(row["multipliers"] for row in layers)
        if layers:
            made = sum(row["macs_without_padding"] for row in layers)
            assert kinds[kind]["busy"] * cycles * kinds[kind]["multipliers"] == pytest.approx(made)
        else:
            assert kinds[kind]["busy"] is None
    able = sum(kinds[kind]["multipliers"] for kind in ("block", "lut", "requantizer"))
    made = sum(
        row["macs_without_padding"] for row in table["layers"]
        if row["multipliers"] and of[row["folding"]["multiplier"]] in ("block", "lut")
    )
    if able:
        assert table["multiplier_utilization"] * cycles * able == pytest.approx(made)
    else:
        assert table["multiplier_utilization"] is None


def test_constants_are_apart(tmp_path: Path) -> None:
    """A layer of a frame per cycle is adders of its constants: no multiplier is said to be busy."""
    b = Builder()
    x = b.requantize(b.input("x", ("N", 6)), 0.5)
    b.output(b.requantize(b.node("MatMul", x, b.weights(np.arange(24).reshape(6, 4) % 7 - 3, 0.5)), 4.0))
    onnx.save(b.build(), tmp_path / "model.onnx")
    table = hwflow.compile(tmp_path / "model.onnx", "ulx3s_85f").write(tmp_path / "out")
    assert table["multipliers"]["constant"] == {"multipliers": 24, "busy": 1.0}
    assert table["multipliers"]["block"] == {"multipliers": 0, "busy": None}
    assert table["multiplier_utilization"] is None
