"""Validation: each rule on a hand-made model that breaks it, with the full text of what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hwflow.onnxspec import validate
from hwflow.onnxspec.clauses import RULES
from tests.onnxspec.build import FLOAT, model, node, texts, value


def findings(proto: onnx.ModelProto) -> list[str]:
    before = proto.SerializeToString()
    result = texts(validate(proto, "m.onnx"))
    assert proto.SerializeToString() == before, "validation must not change the model"
    return result


def test_a_valid_model() -> None:
    assert findings(model([node("Relu", ["x"], ["y"])])) == []


def test_the_long_name_of_the_default_domain() -> None:
    proto = model([node("Relu", ["x"], ["y"], domain="ai.onnx")], opsets={"ai.onnx": 13})
    assert findings(proto) == []


def test_no_ir_version() -> None:
    proto = model([node("Relu", ["x"], ["y"])])
    proto.ClearField("ir_version")
    assert findings(proto) == [
        "error: model: ir_version must be present, but the model has none [PRO-01]\n"
        "  remedy: export the model again with a current exporter"
    ]


def test_ir_version_of_the_future() -> None:
    assert findings(model([node("Relu", ["x"], ["y"])], ir_version=15)) == [
        "error: model: ir_version must be from 1 to 14, not 15 [VER-04]\n"
        "  remedy: export the model with IR version 14 or lower"
    ]


@pytest.mark.parametrize(
    ("op_type", "domain", "opsets", "message", "remedy"),
    [
        (
            "Rellu",
            "",
            {"": 21},
            "the operator must be in version 21 of operator set 'ai.onnx', but 'Rellu' is not",
            "did you mean Relu?",
        ),
        (
            "Zzzzzz",
            "",
            {"": 21},
            "the operator must be in version 21 of operator set 'ai.onnx', but 'Zzzzzz' is not",
            "replace the node by operators of a known set",
        ),
        (
            "Gelu",
            "",
            {"": 13},
            "the operator must be in version 13 of operator set 'ai.onnx', but Gelu came with version 20",
            "export the model with opset 20 or higher",
        ),
        (
            "Upsample",
            "",
            {"": 13},
            "the operator must not be deprecated, but Upsample is in version 13 of operator set 'ai.onnx'",
            "export the model with the operator that replaces it",
        ),
        (
            "Relu",
            "ai.onnx.ml",
            {"": 13, "ai.onnx.ml": 3},
            "the operator must be in version 3 of operator set 'ai.onnx.ml', but 'Relu' is not",
            "replace the node by operators of a known set",
        ),
    ],
)
def test_unknown_operators(op_type: str, domain: str, opsets: dict[str, int], message: str, remedy: str) -> None:
    proto = model([node(op_type, ["x"], ["y"], name="n", domain=domain)], opsets=opsets)
    assert findings(proto) == [f"error: node 'n' ({op_type}): {message} [OPR-01]\n  remedy: {remedy}"]


def test_a_domain_that_is_not_imported_is_said_once() -> None:
    proto = model([node("A", ["x"], ["a"], name="n", domain="my.domain"), node("B", ["a"], ["y"], domain="my.domain")])
    assert findings(proto) == [
        "error: node 'n' (A): the operator's domain must be imported, but 'my.domain' is not in opset_import [OPS-01]\n"
        "  remedy: add domain 'my.domain' to opset_import"
    ]


@pytest.mark.parametrize(
    "domain", ["com.microsoft", "qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"]
)
def test_dialects_are_known(domain: str) -> None:
    nodes = [node("Anything", ["x"], ["y"], name="q", domain=domain)]
    assert findings(model(nodes, opsets={"": 13, domain: 1})) == []
    # Exporters forget the import: nothing is unclear, so no error.
    assert findings(model(nodes, opsets={"": 13})) == [
        f"warning: node 'q' (Anything): the operator's domain must be imported, but '{domain}' is not in opset_import "
        f"[OPS-01]\n  remedy: add domain '{domain}' to opset_import"
    ]


def test_every_node_that_does_not_fit_its_schema() -> None:
    proto = model(
        [
            node("Relu", ["x"], ["a"], name="fine"),
            node("Concat", ["a", "x"], ["b"], name="no_axis"),
            node("Relu", ["b", "b"], ["c"], name="two_inputs"),
            node("LeakyRelu", ["c"], ["y"], name="odd", alfa=0.1),
        ]
    )
    assert findings(proto) == [
        "error: node 'no_axis' (Concat): Concat (version 13) must have attribute 'axis', but it is missing [NOD-33]\n"
        "  remedy: add attribute 'axis'",
        "error: node 'two_inputs' (Relu): Relu (version 14) must have 1 input (X), not 2 [NOD-30]\n"
        "  remedy: remove the last input",
        "error: node 'odd' (LeakyRelu): an attribute of LeakyRelu (version 16) must be one of 'alpha', not 'alfa' "
        "[NOD-33]\n  remedy: did you mean alpha?",
    ]


def test_a_malformed_tensor() -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], float_data=[1.0])
    (text,) = findings(model([node("Add", ["x", "w"], ["y"])], constants={"w": tensor}))
    assert text == (
        "error: initializer 'w': float_data must have 4 entries for 4 elements of float32 (dims [4]), not 1 [PRO-10]\n"
        "  remedy: export the model again"
    )


def test_types_that_do_not_fit() -> None:
    proto = model([node("Relu", ["x"], ["a"]), node("And", ["a", "a"], ["y"], name="and")])
    assert findings(proto) == [
        "error: node 'and' (And): input 0 ('a') must be bool, not float32 [NOD-32]\n"
        "  remedy: correct the node or the types of what it reads"
    ]


def test_shapes_that_do_not_fit() -> None:
    constants = {"w": np.ones((3, 2), np.float32)}
    (text,) = findings(model([node("MatMul", ["x", "w"], ["y"], name="mm")], constants=constants))
    assert text.startswith(
        "error: node 'mm' (MatMul): the node must fit what it reads, but onnx.shape_inference says: "
    )
    assert "Incompatible dimensions" in text


def test_all_at_once_in_the_order_of_the_graph() -> None:
    proto = model(
        [
            node("Rellu", ["x"], ["a"], name="n0"),
            node("Add", ["a", "lost"], ["b"], name="n1"),
            node("Concat", ["b"], ["c"], name="n2"),
            node("Add", ["c", "d"], ["d"], name="n3"),
        ],
        [value("", [1])],
        opsets={"": 13},
        ir_version=99,
    )
    assert [(f.rule, f.where) for f in validate(proto, "m.onnx")] == [
        ("VER-04", "model"),
        ("GRA-17", "input 0"),
        ("NOD-05", "node 'n0' (Rellu)"),
        ("OPR-01", "node 'n0' (Rellu)"),
        ("NOD-05", "node 'n1' (Add)"),
        ("NOD-33", "node 'n2' (Concat)"),
        ("GRA-03", "node 'n3' (Add)"),
        ("NOD-35", "node 'n3' (Add)"),
        ("NOD-12", "output 'y'"),
    ]


def branch(name: str, *nodes: onnx.NodeProto, output: str) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, [], [value(output, [1, 4])], doc_string="Made by a test.")


def conditional(**branches: Any) -> onnx.ModelProto:
    return model(
        [node("If", ["c"], ["y"], name="choose", **branches)],
        [value("x", [1, 4]), value("c", [], TensorProto.BOOL)],
    )


def test_subgraphs_see_outer_values() -> None:
    proto = conditional(
        then_branch=branch("a", node("Relu", ["x"], ["t"]), output="t"),
        else_branch=branch("b", node("Neg", ["x"], ["e"]), output="e"),
    )
    assert findings(proto) == []


def test_findings_in_subgraphs_say_where() -> None:
    proto = conditional(
        then_branch=branch("a", node("Relu", ["lost"], ["t"], name="r"), output="t"),
        else_branch=branch("b", node("Neg", ["x"], ["x"], name="n"), output="x"),
    )
    assert findings(proto) == [
        "error: node 'n' (Neg) in 'else_branch' of node 'choose' (If): output 'x' must have a name of its own, but an "
        "input of graph 'graph' has that name too [NOD-27]\n  remedy: rename one of them",
        "error: node 'r' (Relu) in 'then_branch' of node 'choose' (If): input 'lost' must be a graph input, "
        "an initializer or the output of a node, but nothing computes it [NOD-05]\n"
        "  remedy: add the node that computes 'lost', or read another value",
    ]


def test_local_functions() -> None:
    def with_body(*body: onnx.NodeProto) -> onnx.ModelProto:
        function = helper.make_function("org.example", "Twice", ["a"], ["b"], body, [helper.make_opsetid("", 21)])
        call = node("Twice", ["x"], ["y"], domain="org.example")
        return model([call], opsets={"": 21, "org.example": 1}, functions=[function])

    assert findings(with_body(node("Add", ["a", "a"], ["b"]))) == []


def test_rule_ids_are_given_once() -> None:
    ids = [rule.id for rule in RULES if not rule.id.startswith("onnx.")]
    assert len(ids) == len(set(ids))


def _sparse(name: str, dims: list[int]) -> onnx.SparseTensorProto:
    entries = helper.make_tensor(name, FLOAT, [1], [2.0])
    return helper.make_sparse_tensor(entries, helper.make_tensor("", TensorProto.INT64, [1], [2]), dims)


def test_a_sparse_initializer_is_a_tensor() -> None:
    product = node("MatMul", ["x", "w"], ["y"])
    assert findings(model([product], sparse_initializer=[_sparse("w", [4, 4])])) == []
    (text,) = findings(model([product], sparse_initializer=[_sparse("w", [5, 4])]))
    assert text.startswith("error: node 'MatMul_y' (MatMul): ")


@pytest.mark.parametrize("is_sparse", [False, True])
def test_branches_may_have_initializers_of_one_name(is_sparse: bool) -> None:
    def branched(name: str, size: int, said: int) -> onnx.GraphProto:
        nodes = [node("MatMul", ["x", "w"], [name])]
        graph = helper.make_graph(nodes, name, [], [value(name, [1, said])], doc_string="Made by a test.")
        if is_sparse:
            graph.sparse_initializer.append(_sparse("w", [4, size]))
        else:
            graph.initializer.append(numpy_helper.from_array(np.zeros((4, size), np.float32), "w"))
        return graph

    def chosen(said: int) -> onnx.ModelProto:
        branches = {"then_branch": branched("t", 300, 300), "else_branch": branched("e", 301, said)}
        choice = node("If", ["c"], ["k"], name="choose", **branches)
        made = [choice, node("Relu", ["x"], ["y"])]
        return model(made, [value("x", [1, 4]), value("c", [], TensorProto.BOOL)])

    assert findings(chosen(301)) == []
    (text,) = findings(chosen(300))
    assert "the size of axis 1 must be 301, which node 'MatMul_e' (MatMul)" in text


def test_functions_may_be_in_the_default_domain() -> None:
    opsets = [helper.make_opsetid("", 21)]
    function = helper.make_function("", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], opsets)
    assert findings(model([node("Twice", ["x"], ["y"])], functions=[function])) == []


def test_an_error_in_a_function_is_not_said_of_its_calls() -> None:
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("org.local", 1)]
    inner = helper.make_function("org.local", "F", ["a"], ["b"], [node("Own", ["a"], ["b"], domain="org.own")], opsets)
    outer = helper.make_function("org.local", "G", ["a"], ["b"], [node("F", ["a"], ["b"], domain="org.local")], opsets)
    proto = model(
        [node("G", ["x"], ["y"], domain="org.local")], opsets={"": 21, "org.local": 1}, functions=[inner, outer]
    )
    (text,) = findings(proto)
    assert "[OPS-01]" in text


def test_a_cycle_is_not_said_of_what_reads_from_it() -> None:
    nodes = [node("Neg", ["b"], ["a"], name="n"), node("Relu", ["a"], ["b"], name="r"), node("Abs", ["b"], ["y"])]
    cycle, order = findings(model(nodes))
    assert "[GRA-03]" in cycle
    assert order == cycle.replace("[GRA-03]", "[NOD-35]")


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_branch_may_be_an_initializer(is_sparse: bool) -> None:
    def branched(which: str, size: int) -> onnx.GraphProto:
        graph = helper.make_graph([], which, [], [value("w", [size, 300])], doc_string="Made by a test.")
        if is_sparse:
            graph.sparse_initializer.append(_sparse("w", [size, 300]))
        else:
            graph.initializer.append(numpy_helper.from_array(np.zeros((size, 300), np.float32), "w"))
        return graph

    choice = node("If", ["c"], ["y"], then_branch=branched("then", 4), else_branch=branched("else", 5))
    assert findings(model([choice], [value("c", [], TensorProto.BOOL)], [value("y", [None, 300])])) == []


def test_functions_may_call_each_other_deeply() -> None:
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("org.local", 1)]

    def function(number: int) -> onnx.FunctionProto:
        last = number == 400  # onnx gives up at 100, or a few hundred
        body = node("Relu", ["a"], ["b"]) if last else node(f"F{number + 1}", ["a"], ["b"], domain="org.local")
        return helper.make_function("org.local", f"F{number}", ["a"], ["b"], [body], opsets)

    proto = model(
        [node("F0", ["x"], ["y"], domain="org.local")],
        opsets={"": 21, "org.local": 1},
        functions=[function(number) for number in range(401)],
    )
    assert findings(proto) == []
