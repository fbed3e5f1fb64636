"""Initializers that are graph inputs: what ONNX lets override is loadable by itself; tensors name layers, too."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import helper

from hwflow.api.compiler import Design, compile_as
from hwflow.api.options.texts import holding
from hwflow.api.request import requested
from hwflow.errors import ModelRefused
from tests.loading.networks import network


def overridden(folder: Path, names: list[str], ir_version: int = 8, all_: bool = False) -> Path:
    """The network with initializers that are graph inputs, too: those whose names are given, or all."""
    path = network(folder, 0)
    model = onnx.load(path)
    model.ir_version = ir_version
    for tensor in model.graph.initializer:
        if all_ or tensor.name in names:
            model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    onnx.save(model, path)
    return path


def weights_of(path: Path, node: str) -> str:
    """The initializer with a node's weights, behind its DequantizeLinear."""
    graph = onnx.load(path).graph
    read = next(each for each in graph.node if each.name == node).input[1]
    return next(each for each in graph.node if read in each.output).input[0]


def compiled(path: Path, loadable: str | None = None, board: str = "ulx3s_12f") -> Design:
    request = requested(board, fps=1000, holding=holding(None, loadable), fixed=loadable == "none")
    return compile_as(path, request)


def held(design: Design) -> set[str]:
    of = design.request.holding
    return set() if of is None else set(of.found)


def test_by_themselves(tmp_path: Path) -> None:
    kernel = weights_of(network(tmp_path, 0), "conv")
    path = overridden(tmp_path, [kernel])
    assert held(compiled(path)) == {"conv"}
    assert held(compiled(path, "none")) == set()
    both = [kernel, weights_of(path, "dense"), "biases"]
    assert held(compiled(overridden(tmp_path, both))) == {"conv", "dense"}
    # all of them had to be inputs before version 4 of the IR, and exporters go on with it
    assert held(compiled(overridden(tmp_path, [], 3, all_=True))) == set()
    assert held(compiled(overridden(tmp_path, [], all_=True))) == set()
    assert held(compiled(overridden(tmp_path, []))) == set()


def test_where_it_cannot_be(tmp_path: Path) -> None:
    """A Zynq's processor sends frames by DMA: there weights stay what they are."""
    path = overridden(tmp_path, [weights_of(network(tmp_path, 0), "conv")])
    assert held(compiled(path, board="pynq_z2")) == set()


def test_tensors_name_layers(tmp_path: Path) -> None:
    path = network(tmp_path, 0)
    assert held(compiled(path, weights_of(path, "dense"))) == {"dense"}
    assert held(compiled(path, f"dense,{weights_of(path, 'conv')}")) == {"conv", "dense"}
    with pytest.raises(ModelRefused, match="must name nodes with constant weights, not 'nobody'"):
        compiled(path, "dense,nobody")
