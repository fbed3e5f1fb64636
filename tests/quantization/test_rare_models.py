"""Rare forms in a float model on its way through `quantize`: names, addends, outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hwflow.errors import ModelRefused
from hwflow.quantization.noise.precision import accuracy_of
from hwflow.quantization.preparation import name_nodes, plain_biases
from hwflow.quantization.quantizing import _refuse_infinite, quantize
from hwflow.quantization.sessions import refusing
from hwflow.verify.comparison import compare
from tests.onnxspec.build import model, node


def test_every_node_gets_a_name_of_its_own() -> None:
    """"Relu_1" and "Relu_2" are taken."""
    names = ["Relu_1", "", "Relu_2", "Relu_1", ""]
    proto = model([node("Relu", [f"v{k}"], [f"v{k + 1}"], name=name) for k, name in enumerate(names)])
    name_nodes(proto)
    assert [n.name for n in proto.graph.node] == ["Relu_1", "Relu_3", "Relu_2", "Relu_1_1", "Relu_4"]


@pytest.mark.parametrize("addend, beta, expected", [
    (np.float32([1, 2]), 1.0, None), (np.float32([[1, 2]]), 2.0, [2, 4]), (np.float32(3), 1.0, [3, 3]),
    (np.float32([[1, 2], [3, 4]]), 2.0, None),  # one for each row: it stays
])
def test_addends_of_gemm(addend: Any, beta: float, expected: list[float] | None) -> None:
    proto = model(
        [node("Gemm", ["x", "w", "c"], ["y"], name="g", beta=beta)],
        constants={"w": np.ones((4, 2), np.float32), "c": addend},
    )
    plain_biases(proto)
    there = {i.name: numpy_helper.to_array(i) for i in proto.graph.initializer}
    used = proto.graph.node[0].input[2]
    assert (used == "c") == (expected is None)
    assert expected is None or there[used].tolist() == expected


def test_accuracy_by_hand() -> None:
    labels = np.array([1, 0])
    assert accuracy_of(np.array([[0.1, 0.9], [0.2, 0.8]]), labels) == 0.5
    assert accuracy_of(np.array([[1], [0]]), labels) == 1.0  # a class
    assert accuracy_of(np.array([[1.0], [0.0]]), labels) is None


def test_integers_are_finite() -> None:
    _refuse_infinite({"y": np.array([[1]])}, None)  # type: ignore[arg-type]


def test_findings_pass_through() -> None:
    """What is a finding already keeps its words."""
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    proto = helper.make_model(helper.make_graph([], "g", [info], [info]))
    with pytest.raises(ModelRefused, match="here: this must be"), refusing(proto, "be good"):
        raise ModelRefused.of("odd", "here", "this must be", "that")
    with pytest.raises(MemoryError), refusing(proto, "be good"):
        raise MemoryError
    assert isinstance(proto, onnx.ModelProto)


def test_a_flag_chooses_a_branch_at_run_time(tmp_path: Path) -> None:
    """An If of a bool input: both branches are quantized, and compile."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.normal(size=(4, 3)).astype(np.float32), name) for name in ("v", "w")]
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node("MatMul", ["x", weight.name], [name])], name, [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3])],
        )
        for name, weight in zip(("then", "else"), weights, strict=True)
    }
    graph = helper.make_graph(
        [helper.make_node("Squeeze", ["flag", "axes"], ["one"]), helper.make_node("If", ["one"], ["y"], **branches)],
        "choice",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4]),
         helper.make_tensor_value_info("flag", TensorProto.BOOL, [1, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [*weights, numpy_helper.from_array(np.array([0, 1]), "axes")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "f.onnx")
    flag = rng.random((16, 1)) < 0.5
    np.savez(tmp_path / "x.npz", x=rng.normal(size=(16, 4)).astype(np.float32), flag=flag)
    done = quantize(tmp_path / "f.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    assert done.compiles and done.qualities[0].snr_db > 30
    rows = compare(tmp_path / "q.onnx", inputs=tmp_path / "x.npz").rows
    assert rows and all(row.unexplained == 0 for row in rows)
