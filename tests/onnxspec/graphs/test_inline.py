"""Functions in the place of calls, branches in the place of an If, definitions in the place of operators.

What is inlined must compute what the model did: the ONNX reference evaluator runs both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from hwflow.onnxspec import ResolvedModel, resolve_with_graph, validate
from hwflow.onnxspec.graphs.inline import inline_functions
from hwflow.onnxspec.reading.numpy_tensors import ELEMENT_TYPES, native, to_tensor
from tests.onnxspec.build import FLOAT, model, node, refused, texts, value
from tests.onnxspec.resolving.resolved import resolve

pytestmark = pytest.mark.usefixtures("measured")

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64
LOCAL = "org.local"
Arrays = Mapping[str, npt.NDArray[Any]]


def function(
    nodes: Sequence[onnx.NodeProto],
    name: str = "F",
    inputs: Sequence[str] = ("a",),
    outputs: Sequence[str] = ("b",),
    version: int = 21,
    **more: Any,
) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", version), helper.make_opsetid(LOCAL, 1)]
    return helper.make_function(LOCAL, name, inputs, outputs, nodes, imports, **more)


def call(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    return node(op_type, inputs, outputs, domain=LOCAL, **attributes)


def calling(nodes: Sequence[onnx.NodeProto], *functions: onnx.FunctionProto, **more: Any) -> onnx.ModelProto:
    return model(nodes, opsets={"": 21, LOCAL: 1}, functions=functions, **more)


def ref(inner: onnx.NodeProto, kind: int = AttributeProto.FLOAT, **references: str) -> onnx.NodeProto:
    for name, outer in references.items():
        inner.attribute.append(AttributeProto(name=name, ref_attr_name=outer, type=kind))  # type: ignore[arg-type]  # an int is one
    return inner


def graph(
    nodes: Sequence[onnx.NodeProto], output: str | Sequence[str] = "t", constants: Sequence[TensorProto] = ()
) -> onnx.GraphProto:
    outputs = [output] if isinstance(output, str) else output
    return helper.make_graph(nodes, "branch", [], [value(name, None) for name in outputs], constants)


def truth(name: str, holds: bool) -> onnx.NodeProto:
    return node("Constant", [], [name], value=helper.make_tensor(name, BOOL, [], [holds]))


def rebuilt(resolved: ResolvedModel) -> onnx.ModelProto:
    """A model of the resolved nodes."""

    def info(name: str) -> onnx.ValueInfoProto:
        found = resolved.values[name]
        return value(name, found.shape, ELEMENT_TYPES[found.dtype])

    nodes = []
    for n in resolved.nodes:
        attributes = {k: helper.make_attribute(k, v if not isinstance(v, np.ndarray) else to_tensor(k, v, str(v.dtype)))
                      for k, v in n.attributes.items() if v != ()}
        copy = node(n.op_type, n.inputs, n.outputs, name=n.name, domain=n.domain)
        copy.attribute.extend(attributes.values())
        nodes.append(copy)
    constants = [to_tensor(name, array, resolved.values[name].dtype) for name, array in resolved.constants.items()]
    inputs, outputs = list(map(info, resolved.inputs)), list(map(info, resolved.outputs))
    return onnx.helper.make_model(
        helper.make_graph(nodes, "rebuilt", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid(d, v) for d, v in resolved.opsets.items()],
        ir_version=resolved.ir_version,
    )


def outputs_of(proto: onnx.ModelProto, feeds: Arrays) -> list[npt.NDArray[Any]]:
    return [np.asarray(array) for array in ReferenceEvaluator(proto).run(None, dict(feeds))]


def same(
    proto: onnx.ModelProto,
    keep: set[tuple[str, str]] | None = None,
    rebuild: bool = True,
    like: Sequence[onnx.NodeProto] | None = None,
) -> ResolvedModel:
    """Resolves ``proto``; what comes out computes the same, with and without folding, for random inputs.

    ``like``: nodes written by hand that say what the model computes, where the evaluator (of onnx 1.23.2) cannot: it
    knows no references to attributes in most operators, no absent inputs of functions.
    """
    before = proto.SerializeToString()
    resolved, flat = resolve_with_graph(proto, {}, keep)
    assert proto.SerializeToString() == before, "resolving must not change the model"
    onnx.checker.check_model(flat, skip_opset_compatibility_check=True)
    rng = np.random.default_rng(1)
    feeds = {
        name: native(rng.normal(size=resolved.values[name].shape).astype(np.float32), resolved.values[name].dtype)
        for name in resolved.inputs
    }
    expected = outputs_of(proto if like is None else model(like, proto.graph.input, proto.graph.output), feeds)
    for other in (flat, rebuilt(resolved)) if rebuild else (flat,):
        for one, two in zip(expected, outputs_of(other, feeds), strict=True):
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one, two)
    made = {name for n in flat.graph.node for name in n.output}
    assert {name for n in resolved.nodes for name in n.outputs} <= made, "the flat model has every value"
    return resolved


def nodes(resolved: ResolvedModel) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    return [(n.name, n.op_type, n.inputs, n.outputs) for n in resolved.nodes]


# Functions


def test_a_function_called_twice() -> None:
    # h and a are values of the main graph, too
    body = function([node("Neg", ["a"], ["h"], name="inner"), node("Exp", ["h"], ["b"])])
    main = [
        node("Relu", ["x"], ["a"]),
        call("F", ["a"], ["h"], name="one"),
        call("F", ["h"], ["y"], name="two"),
    ]
    resolved = same(calling(main, body))
    assert nodes(resolved) == [
        ("Relu_a", "Relu", ("x",), ("a",)),
        ("one/inner", "Neg", ("a",), ("one/h",)),
        ("one/Exp_b", "Exp", ("one/h",), ("h",)),
        ("two/inner", "Neg", ("h",), ("two/h",)),
        ("two/Exp_b", "Exp", ("two/h",), ("y",)),
    ]
    assert resolved.nodes[1].where == "node 'one/inner' (Neg) in function 'org.local.F'"
    assert resolved.nodes[0].where == "node 'Relu_a' (Relu)"


def test_names_that_are_taken() -> None:
    body = function([node("Neg", ["a"], ["t"], name="n"), node("Exp", ["t"], ["b"], name="e")])
    main = [node("Relu", ["x"], ["c/t"], name="c/n"), call("F", ["c/t"], ["y"], name="c")]
    assert nodes(same(calling(main, body))) == [
        ("c/n", "Relu", ("x",), ("c/t",)),
        ("c/n_2", "Neg", ("c/t",), ("c/t_2",)),
        ("c/e", "Exp", ("c/t_2",), ("y",)),
    ]


def test_calls_in_functions() -> None:
    inner = function([node("Neg", ["a"], ["b"], name="n")], "Inner")
    outer = function([call("Inner", ["a"], ["c"], name="i"), node("Add", ["c", "a"], ["b"], name="s")], "Outer")
    resolved = same(calling([call("Outer", ["x"], ["y"], name="o")], inner, outer))
    assert nodes(resolved) == [("o/i/n", "Neg", ("x",), ("o/c",)), ("o/s", "Add", ("o/c", "x"), ("y",))]
    assert resolved.nodes[0].where == "node 'o/i/n' (Neg) in function 'org.local.Inner'"


def test_names_do_not_grow_without_bound() -> None:
    depth = 60
    chain = [function([call(f"F{i + 1}", ["a"], ["b"], name="a_rather_long_name")], f"F{i}") for i in range(depth)]
    last = function([node("Neg", ["a"], ["b"])], f"F{depth}")
    resolved = same(calling([call("F0", ["x"], ["y"])], last, *chain[::-1]))
    assert len(resolved.nodes) == 1 and len(resolved.nodes[0].name) < 250


def test_attributes() -> None:
    def elus(one: float, two: float) -> list[onnx.NodeProto]:
        return [node("Elu", ["x"], ["t"], alpha=one), node("LeakyRelu", ["t"], ["y"], alpha=two)]

    body = function(
        [ref(node("Elu", ["a"], ["t"]), alpha="given"), ref(node("LeakyRelu", ["t"], ["b"]), alpha="slope")],
        attributes=["given"],
        attribute_protos=[helper.make_attribute("slope", 0.25)],
    )
    default = same(calling([call("F", ["x"], ["y"], given=0.5)], body), like=elus(0.5, 0.25))
    assert [n.attributes for n in default.nodes] == [{"alpha": 0.5}, {"alpha": 0.25}]
    own = same(calling([call("F", ["x"], ["y"], given=0.5, slope=2.0)], body), like=elus(0.5, 2.0))
    assert [n.attributes for n in own.nodes] == [{"alpha": 0.5}, {"alpha": 2.0}]


def test_attributes_passed_on() -> None:
    inner = function([ref(node("Elu", ["a"], ["b"]), alpha="slope")], "Inner", attributes=["slope"])
    outer = function([ref(call("Inner", ["a"], ["b"]), slope="steep")], "Outer", attributes=["steep"])
    proto = calling([call("Outer", ["x"], ["y"], steep=3.0)], outer, inner)
    (elu,) = same(proto, like=[node("Elu", ["x"], ["y"], alpha=3.0)]).nodes
    assert elu.attributes == {"alpha": 3.0}


def test_a_tensor_as_attribute() -> None:
    body = function(
        [ref(node("Constant", [], ["c"]), AttributeProto.TENSOR, value="table"), node("Add", ["a", "c"], ["b"])],
        attributes=["table"],
    )
    table = helper.make_tensor("table", FLOAT, [4], [1, 2, 3, 4])
    resolved = same(calling([call("F", ["x"], ["y"], name="f", table=table)], body))
    assert resolved.constants["f/c"].tolist() == [1, 2, 3, 4]


def test_references_in_a_function_s_subgraph() -> None:
    then_branch = graph([ref(node("Elu", ["a"], ["t"], name="e"), alpha="slope")])
    else_branch = graph([node("Neg", ["a"], ["t"], name="n")])
    choice = node("If", ["c"], ["b"], name="choose", then_branch=then_branch, else_branch=else_branch)
    body = function([choice], inputs=["a", "c"], attributes=["slope"])
    for holds, op_type, attributes in ((True, "Elu", {"alpha": 0.5}), (False, "Neg", {})):
        proto = calling([truth("yes", holds), call("F", ["x", "yes"], ["y"], name="f", slope=0.5)], body)
        (only,) = same(proto, like=[node(op_type, ["x"], ["y"], **attributes)]).nodes
        assert (only.op_type, only.inputs, only.outputs) == (op_type, ("x",), ("y",))
    assert only.where == (
        "node 'f/choose/n' (Neg) in 'else_branch' of node 'f/choose' (If) in function 'org.local.F'"
    )


@pytest.mark.parametrize("given", [["x", ""], ["x"]])
def test_optional_inputs_left_out(given: list[str]) -> None:
    body = function([node("Clip", ["a", "low", "high"], ["b"])], inputs=["a", "low", "high"])
    (clip,) = same(calling([call("F", given, ["y"])], body), like=[node("Clip", ["x"], ["y"])]).nodes
    assert clip.inputs == ("x",)


def test_optional_outputs_left_out() -> None:
    body = function([node("Neg", ["a"], ["b"]), node("Split", ["a"], ["c", "d"], axis=1, num_outputs=2)],
                    outputs=["b", "c", "d"])
    main = [call("F", ["x"], ["", "", "y"], name="f"), call("F", ["x"], ["z"], name="g")]
    resolved = same(calling(main, body, outputs=[value("y", [1, 2]), value("z", [1, 4])]))
    assert nodes(resolved) == [
        ("f/Split_c", "Split", ("x",), ("f/c", "y")),
        ("g/Neg_b", "Neg", ("x",), ("z",)),
    ]


def test_overloads() -> None:
    one = function([node("Neg", ["a"], ["b"])], overload="one")
    two = function([node("Abs", ["a"], ["b"])], overload="two")
    main = [call("F", ["x"], ["t"], overload="two"), call("F", ["t"], ["y"], overload="one")]
    proto = calling(main, one, two)
    assert [n.op_type for n in resolve(proto, {}).nodes] == ["Abs", "Neg"]


def test_a_function_s_own_version_of_an_operator() -> None:
    # Until version 12, the axes of Unsqueeze are an attribute.
    body = function([node("Unsqueeze", ["a"], ["b"], axes=[0])], version=11)
    proto = calling([call("F", ["x"], ["u"]), node("Relu", ["u"], ["y"])], body, outputs=[value("y", [1, 1, 4])])
    resolved = same(proto, rebuild=False)
    assert [(n.op_type, n.version) for n in resolved.nodes] == [("Unsqueeze", 11), ("Relu", 21)]
    assert resolved.nodes[0].attributes == {"axes": (0,)}
    assert resolved.values["y"].shape == (1, 1, 4)


def test_a_domain_that_only_the_function_imports() -> None:
    body = helper.make_function(
        LOCAL, "F", ["a"], ["b"], [node("Binarizer", ["a"], ["b"], domain="ai.onnx.ml", threshold=0.5)],
        [helper.make_opsetid("ai.onnx.ml", 3)],
    )
    called = calling([call("F", ["x"], ["y"])], body)
    greater, cast = same(called, {("", "Greater"), ("", "Cast")}, rebuild=False).nodes
    assert (greater.op_type, cast.op_type) == ("Greater", "Cast")
    assert "in the definition of node 'F_y/Binarizer_b' (Binarizer)" in greater.where


def test_a_call_in_a_branch() -> None:
    body = function([node("Neg", ["a"], ["b"], name="n")])
    branch = graph([call("F", ["x"], ["t"], name="f")])
    main = [truth("c", True), node("If", ["c"], ["y"], name="choose", then_branch=branch, else_branch=branch)]
    resolved = same(calling(main, body))
    assert nodes(resolved) == [("choose/f/n", "Neg", ("x",), ("y",))]
    assert resolved.nodes[0].where == "node 'choose/f/n' (Neg) in function 'org.local.F'"


def test_a_fault_in_a_function() -> None:
    body = function([node("MatMul", ["a", "w"], ["b"], name="mm")], inputs=["a", "w"])
    proto = calling([call("F", ["x", "w"], ["y"], name="f")], body, constants={"w": np.ones((3, 2), np.float32)})
    assert refused(lambda: resolve(proto, {})) == [
        "error: node 'f/mm' (MatMul) in function 'org.local.F': the node must fit its operator and its inputs, but: "
        "Incompatible dimensions for matrix multiplication [onnx.shape_inference]\n"
        "  remedy: correct the node or what it reads"
    ]


def test_calls_with_too_much() -> None:
    body = function([node("Neg", ["a"], ["b"])])
    proto = calling([call("F", ["x", "x"], ["t"], name="f"), call("F", ["x"], ["y", "z"], name="g")], body,
                    outputs=[value("t", None), value("z", None)])
    found = refused(lambda: resolve(proto, {}))
    assert [text.splitlines()[0] for text in found[-2:]] == [
        "error: node 'f' (F): a call must have at most the 1 inputs of its function, not 2 [NOD-30]",
        "error: node 'g' (F): a call must have at most the 1 outputs of its function, not 2 [NOD-31]",
    ]


def test_functions_that_nothing_calls() -> None:
    odd = function([node("Unknown", ["a"], ["b"], domain=LOCAL)])
    call_of_it = call("F", ["x"], ["dead"])
    proto = calling([node("Relu", ["x"], ["y"]), call_of_it], odd, function([node("Neg", ["a"], ["b"])], "Unknown"))
    resolved, flat = resolve_with_graph(proto, {})
    assert [n.op_type for n in resolved.nodes] == [n.op_type for n in flat.graph.node] == ["Relu"]
    assert not flat.functions


def test_calls_that_multiply() -> None:
    # 2^60 nodes if they were all written out
    def twice(name: str) -> list[onnx.NodeProto]:
        return [call(name, ["a"], ["t"]), call(name, ["t"], ["b"])]

    doubling = [function(twice(f"F{i + 1}"), f"F{i}") for i in range(60)]
    # 3 * 2^16 - 2 in F44, the calls counted
    proto = calling([call("F0", ["x"], ["y"])], *doubling, function([node("Neg", ["a"], ["b"])], "F60"))
    assert texts([finding for finding in validate(proto) if finding.rule == "inlined-size"]) == [
        "error: function 'org.local.F44': a function must stand for at most 100000 nodes, those of the functions it "
        "calls included, but this one stands for more [inlined-size]\n  remedy: write the model with fewer calls"
    ]


def test_calls_that_add_up() -> None:
    body = function([node("Neg", ["a"], [f"t{i}"]) for i in range(1000)], outputs=["t0"])
    proto = calling([call("F", ["x"], [f"y{i}"]) for i in range(101)], body, outputs=[value("y0", [1, 4])])
    assert texts(validate(proto)) == [
        "error: model: calls of functions must stand for at most 100000 nodes, not 101000 [inlined-size]\n"
        "  remedy: write the model with fewer calls"
    ]


def test_functions_alone() -> None:
    """Without resolving: every call everywhere, and nothing else."""
    body = function([node("LeakyRelu", ["a"], ["t"]), call("Inner", ["t"], ["b"], name="i")], attributes=["slope"])
    body.node[0].attribute.append(AttributeProto(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT))
    body.attribute.remove("slope")
    body.attribute_proto.append(helper.make_attribute("slope", 0.5))
    inner = function([node("Unsqueeze", ["a"], ["b"], axes=[0])], "Inner", version=11)
    branch = graph([node("Neg", ["x"], ["h"], name="i"), call("F", ["h"], ["t"], name="f")])
    choice = node("If", ["c"], ["y"], name="choose", then_branch=branch, else_branch=branch)
    proto = calling([truth("c", True), choice], body, inner, outputs=[value("y", [1, 1, 4])])
    proto.graph.node[1].attribute[1].g.node[0].output[0] = "h2"
    proto.graph.node[1].attribute[1].g.node[1].input[0] = "h2"
    flat = inline_functions(proto)
    onnx.checker.check_model(flat, skip_opset_compatibility_check=True)
    for attribute in flat.graph.node[1].attribute:
        ops = [(n.op_type, n.domain) for n in attribute.g.node]
        assert [op for op, _ in ops[:2]] == ["Neg", "LeakyRelu"] and ops[2][1] == "hwflow.versions"
    (y,) = outputs_of(flat, {"x": np.array([[-4, -1, 1, 4]], np.float32)})
    assert y.tolist() == [[[4, 1, -0.5, -2]]]


# Branches


def choosing(
    holds: onnx.NodeProto | bool, then_branch: onnx.GraphProto, else_branch: onnx.GraphProto, **more: Any
) -> onnx.ModelProto:
    condition = truth("c", holds) if isinstance(holds, bool) else holds
    before = more.pop("before", [])
    choice = node("If", ["c"], ["y"], name="choose", then_branch=then_branch, else_branch=else_branch)
    return model([condition, *before, choice], **more)


@pytest.mark.parametrize(("holds", "op_type"), [(True, "Neg"), (False, "Abs")])
def test_the_branch_taken(holds: bool, op_type: str) -> None:
    negated = graph([node("Neg", ["x"], ["t"], name="n")])
    resolved = same(choosing(holds, negated, graph([node("Abs", ["x"], ["t"], name="n")])))
    assert nodes(resolved) == [("choose/n", op_type, ("x",), ("y",))]
    branch = "then_branch" if holds else "else_branch"
    assert resolved.nodes[0].where == f"node 'choose/n' ({op_type}) in '{branch}' of node 'choose' (If)"


def test_conditions_that_are_constant() -> None:
    then_branch, else_branch = graph([node("Neg", ["x"], ["t"])]), graph([node("Abs", ["x"], ["t"])])
    choice = node("If", ["c"], ["y"], then_branch=then_branch, else_branch=else_branch)
    assert [n.op_type for n in same(model([choice], constants={"c": np.array([True])})).nodes] == ["Neg"]
    folded = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["width"]),
        node("Equal", ["width", "four"], ["same"]),
        node("Not", ["same"], ["c"]),
        choice,
    ]
    constants = {"one": np.int64(1), "four": np.int64(4)}
    assert [n.op_type for n in same(model(folded, constants=constants)).nodes] == ["Abs"]


def test_names_in_a_branch() -> None:
    # t is a value of both branches, k an initializer of one; h is made outside; r is a name of the main graph
    constant = helper.make_tensor("k", FLOAT, [4], [1, 2, 3, 4])
    then_branch = graph([node("Add", ["h", "k"], ["r"], name="r"), node("Exp", ["r"], ["t"])], "t", [constant])
    before = [node("Relu", ["x"], ["h"], name="r")]
    resolved = same(choosing(True, then_branch, graph([node("Neg", ["h"], ["t"])]), before=before))
    assert nodes(resolved) == [
        ("r", "Relu", ("x",), ("h",)),
        ("choose/r", "Add", ("h", "choose/k"), ("choose/r",)),
        ("choose/Exp_t", "Exp", ("choose/r",), ("y",)),
    ]


def test_outputs_of_a_branch_that_no_node_makes() -> None:
    constant = helper.make_tensor("k", FLOAT, [4], [1, 2, 3, 4])
    branch = graph([node("Neg", ["x"], ["t"])], ["t", "t", "k"], [constant])
    choice = node("If", ["c"], ["y", "z", "u"], name="choose", then_branch=branch, else_branch=branch)
    proto = model([truth("c", True), choice], outputs=[value(n, None) for n in "yzu"])
    del proto.graph.output[:]
    proto.graph.output.extend([value("y", [1, 4]), value("z", [1, 4]), value("u", [4])])
    resolved = same(proto)
    assert nodes(resolved) == [
        ("choose/Neg_t", "Neg", ("x",), ("y",)),
        ("choose/Identity", "Identity", ("y",), ("z",)),
    ]
    assert resolved.constants["u"].tolist() == [1, 2, 3, 4]


def test_branches_in_branches() -> None:
    inner = node("If", ["d"], ["t"], name="in", then_branch=graph([node("Exp", ["h"], ["u"])], "u"),
                 else_branch=graph([node("Neg", ["h"], ["u"])], "u"))
    then_branch = graph([node("Abs", ["x"], ["h"]), truth("d", False), inner])
    resolved = same(choosing(True, then_branch, graph([node("Neg", ["x"], ["t"])])))
    assert nodes(resolved) == [
        ("choose/Abs_h", "Abs", ("x",), ("choose/h",)),
        ("choose/in/Neg_u", "Neg", ("choose/h",), ("y",)),
    ]


def test_what_only_the_other_branch_reads_is_dead() -> None:
    before = [node("MatMul", ["x", "x"], ["h"], name="wrong")]  # [1, 4] x [1, 4] does not fit
    then_branch, else_branch = graph([node("Neg", ["x"], ["t"])]), graph([node("Neg", ["h"], ["t"])])
    assert [n.op_type for n in resolve(choosing(True, then_branch, else_branch, before=before), {}).nodes] == ["Neg"]
    assert len(refused(lambda: resolve(choosing(False, then_branch, else_branch, before=before), {}))) == 1


def test_branches_behind_what_is_wrong_hide_nothing() -> None:
    branch = graph([node("Neg", ["h"], ["t"])])
    main = [
        node("MatMul", ["x", "x"], ["h"], name="wrong"),
        node("If", ["c"], ["u"], name="choose", then_branch=branch, else_branch=branch),
        node("Relu", ["u"], ["y"], name="behind"),
        node("MatMul", ["x", "x"], ["z"], name="wrong too"),
    ]
    proto = model(main, [value("x", [1, 4]), value("c", [1], BOOL)], [value("y", None), value("z", None)])
    assert [text.split(":")[1] for text in refused(lambda: resolve(proto, {}))] == [
        " node 'wrong' (MatMul)", " node 'wrong too' (MatMul)",
    ]


def test_branches_with_too_few_outputs() -> None:
    branch = graph([node("Neg", ["x"], ["t"])])
    choice = node("If", ["c"], ["y", "z"], name="choose", then_branch=branch, else_branch=branch)
    proto = model([truth("c", True), choice], outputs=[value("y", [1, 4]), value("z", [1, 4])])
    assert refused(lambda: resolve(proto, {}))[-1] == (
        "error: node 'choose' (If): If must have a condition of one element, and branches with as many outputs as the "
        "node [onnx.shape_inference]\n  remedy: correct the node or what it reads"
    )


# Definitions of standard operators

KEEP = {("", "Add"), ("", "Relu"), ("", "Reshape"), ("", "Transpose")}


def test_an_operator_whose_definition_leads_to_those_to_keep() -> None:
    # DepthToSpace is defined as Reshape, Transpose, Reshape, with shapes computed from its input's
    main = [node("DepthToSpace", ["x"], ["d"], name="deep", blocksize=2), node("Relu", ["d"], ["y"])]
    proto = model(main, [value("x", [1, 8, 2, 3])], [value("y", [1, 2, 4, 6])], opsets={"": 28}, ir_version=14)
    resolved = same(proto, KEEP)
    assert [n.op_type for n in resolved.nodes] == ["Reshape", "Transpose", "Reshape", "Relu"]
    assert resolved.nodes[1].where == (
        "node 'deep/Transpose_tmp_transposed' (Transpose) in the definition of node 'deep' (DepthToSpace)"
    )
    assert resolved.values["d"].shape == (1, 2, 4, 6)
    assert [n.op_type for n in same(proto).nodes] == ["DepthToSpace", "Relu"]
    assert [n.op_type for n in same(proto, KEEP | {("", "DepthToSpace")}).nodes] == ["DepthToSpace", "Relu"]


def test_a_definition_for_any_number_of_frames() -> None:
    main = [node("DepthToSpace", ["x"], ["y"], blocksize=2)]
    proto = model(main, [value("x", ["N", 8, 2, 3])], [value("y", ["N", 2, 4, 6])], opsets={"": 28}, ir_version=14)
    _, flat = resolve_with_graph(proto, {}, KEEP)
    x = np.arange(3 * 48, dtype=np.float32).reshape(3, 8, 2, 3)
    (found,), (expected,) = outputs_of(flat, {"x": x}), outputs_of(proto, {"x": x})
    assert len(flat.graph.node) > 3
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("op_type", ["HardSwish", "MeanVarianceNormalization", "Softplus", "DynamicQuantizeLinear"])
def test_an_operator_whose_definition_leads_elsewhere_stays(op_type: str) -> None:
    outputs = ["y", "s", "z"] if op_type == "DynamicQuantizeLinear" else ["y"]
    proto = model([node(op_type, ["x"], outputs, name="one"), node(op_type, ["x"], ["u", *outputs[1:]][:1] + [
        f"{name}2" for name in outputs[1:]], name="two")], [value("x", [1, 2, 2, 2])],
        [value(name, None) for name in ("y", "u")], opsets={"": 18})
    resolved, flat = resolve_with_graph(proto, {}, KEEP)
    assert [(n.name, n.op_type) for n in resolved.nodes] == [("one", op_type), ("two", op_type)]
    assert flat is proto


def test_a_definition_through_another() -> None:
    # HardSwish is HardSigmoid and Mul, HardSigmoid is Add, Mul, Max, Min and constants of the input's type
    keep = {("", name) for name in ("Add", "Mul", "Max", "Min")}
    proto = model([node("HardSwish", ["x"], ["y"], name="h")], opsets={"": 22})
    expected = outputs_of(proto, {"x": np.array([[-4, -1, 1, 4]], np.float32)})
    resolved, flat = resolve_with_graph(proto, {}, keep)
    assert {n.op_type for n in resolved.nodes} == {"Add", "Mul", "Max", "Min"}
    assert resolved.nodes[0].where.endswith(
        " in the definition of node 'h/HardSigmoid_HS_X' (HardSigmoid) in the definition of node 'h' (HardSwish)"
    )
    for proto in (flat, rebuilt(resolved)):
        np.testing.assert_allclose(outputs_of(proto, {"x": np.array([[-4, -1, 1, 4]], np.float32)}), expected, 1e-6)


def test_constants_fold_before_definitions_are_looked_at() -> None:
    proto = model([node("HardSwish", ["w"], ["h"]), node("Add", ["x", "h"], ["y"])],
                  constants={"w": np.array([4, -4, 5, -5], np.float32)})
    resolved = same(proto, KEEP)
    assert [n.op_type for n in resolved.nodes] == ["Add"]
    assert resolved.constants["h"].tolist() == [4, 0, 5, 0]  # x at 3 and above, 0 at -3 and below


def test_outputs_that_a_call_leaves_out() -> None:
    two = function([node("Relu", ["a"], ["b"]), node("Neg", ["a"], ["c"])], "Two", outputs=["b", "c"])
    outer = function([call("Two", ["a"], ["b"])], "Outer")
    for name in ("Two", "Outer"):
        proto = calling([call(name, ["x"], ["y"])], two, outer)
        assert [f for f in validate(proto) if f.severity == "error"] == []
        assert [n.op_type for n in resolve(proto, {}).nodes] == ["Relu"]
    branches = {name: graph([call("Two", ["x"], ["t"])]) for name in ("then_branch", "else_branch")}
    proto = calling([truth("c", True), node("If", ["c"], ["y"], **branches)], two)
    assert [f for f in validate(proto) if f.severity == "error"] == []
