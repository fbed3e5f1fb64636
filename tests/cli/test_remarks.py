"""What nearly every exporter breaks without harm is counted, and shown when asked for."""

from __future__ import annotations

import json

import onnx
import pytest
from onnx import TensorProto, helper

NODES = 300
# By hand: no domain (MOD-14), main graph and branches have no doc_string (GRA-24, once a model), names of nodes
# and values are no C identifiers (NAM-01, once a graph), nor is the dimension variable (SHP-08, once a graph, and as a
# name NAM-01), and the attributes of If have no doc_string (ATT-07, once a graph that has any).
CLAUSES = ["MOD-14", "GRA-24", "NAM-01", "NAM-01", "SHP-08", "ATT-07", "NAM-01", "NAM-01"]


@pytest.fixture
def exported(tmp_path):
    """As an exporter writes it: 300 nodes, with an If among them."""
    branches = {
        key: helper.make_graph(
            [helper.make_node("Relu", ["v/1"], [f"{key}/y"], f"{key}/Relu")],
            key, [], [helper.make_tensor_value_info(f"{key}/y", TensorProto.FLOAT, None)],
        )
        for key in ("then_branch", "else_branch")
    }
    nodes = [helper.make_node("Relu", [f"v/{i}"], [f"v/{i + 1}"], f"/block/{i}/Relu") for i in range(NODES - 1)]
    nodes.append(helper.make_node("If", ["c"], ["y"], "/If", **branches))
    graph = helper.make_graph(
        nodes, "main",
        [
            helper.make_tensor_value_info("v/0", TensorProto.FLOAT, ["batch-size", 4]),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")


def test_silent(hwflow, exported):
    ran = hwflow("check", "m.onnx")
    assert "warning" not in ran.out.replace("0 warnings", "")
    closing = ran.out.splitlines()[-1]
    assert closing.startswith("m.onnx: 0 errors, ")
    assert closing.endswith(f", 0 warnings; {len(CLAUSES)} remarks of form not shown (--pedantic shows them)")


def test_shown(hwflow, exported):
    table = json.loads(hwflow("check", "m.onnx", "--pedantic", "--format", "json").out)
    shown = [f["clause"] for f in table["findings"] if f["severity"] == "warning"]
    assert sorted(shown) == sorted(CLAUSES)
    assert (table["warnings"], table["remarks"]) == (len(CLAUSES), len(CLAUSES))
    quiet = json.loads(hwflow("check", "m.onnx", "--format", "json").out)
    assert (quiet["warnings"], quiet["remarks"]) == (0, len(CLAUSES))
    assert quiet["findings"] == [f for f in table["findings"] if f["severity"] != "warning"]
    closing = hwflow("check", "m.onnx", "--pedantic").out.splitlines()[-1]
    assert closing.endswith(f", {len(CLAUSES)} warnings")


def test_of_several_models(hwflow, exported):
    table = json.loads(hwflow("check", "m.onnx", "m.onnx", "--format", "json").out)
    assert table["remarks"] == 2 * len(CLAUSES)


def test_none(hwflow, tmp_path):
    """No remark, no word of it."""
    node = helper.make_node("Relu", ["x"], ["y"], "n")
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], doc_string="A test.")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10, domain="org.example")
    onnx.save(model, tmp_path / "m.onnx")
    assert hwflow("check", "m.onnx").out.splitlines()[-1] == "m.onnx: 0 errors, 1 unsupported, 0 warnings"
