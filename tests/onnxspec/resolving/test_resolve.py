"""Resolution: shapes, folding, nodes, on hand-made models with values worked out by hand."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hwflow.onnxspec import ValueInfo
from tests.onnxspec.build import FLOAT, model, node, refused, value
from tests.onnxspec.resolving.resolved import floats, ints, ops, run, shapes

pytestmark = pytest.mark.usefixtures("measured")


def test_a_small_model() -> None:
    proto = model(
        [node("Gemm", ["x", "w", "b"], ["h"], name="fc", transB=1), node("Relu", ["h"], ["y"])],
        [value("x", ["N", 4])],
        [value("y", ["M", 3])],
        {"w": np.ones((3, 4), np.float32), "b": floats(1, 2, 3), "unused": floats(9)},
    )
    resolved = run(proto)
    assert (resolved.name, resolved.ir_version, resolved.opsets) == ("graph", 10, {"": 21})
    assert (resolved.inputs, resolved.outputs) == (("x",), ("y",))
    assert resolved.values == {
        "x": ValueInfo("x", (1, 4), "float32"),
        "w": ValueInfo("w", (3, 4), "float32"),
        "b": ValueInfo("b", (3,), "float32"),
        "h": ValueInfo("h", (1, 3), "float32"),
        "y": ValueInfo("y", (1, 3), "float32"),
    }
    gemm, relu = resolved.nodes
    assert (gemm.name, gemm.op_type, gemm.domain, gemm.version) == ("fc", "Gemm", "", 21)
    assert (gemm.inputs, gemm.outputs) == (("x", "w", "b"), ("h",))
    # alpha, beta and transA are the schema's defaults
    assert gemm.attributes == {"transB": 1, "transA": 0, "alpha": 1.0, "beta": 1.0}
    assert (relu.name, relu.where) == ("Relu_y", "node 'Relu_y' (Relu)")
    assert resolved.constants["b"].tolist() == [1, 2, 3]
    assert not resolved.constants["b"].flags.writeable
    assert resolved.parameters == 15


def test_node_names_are_made_unique() -> None:
    proto = model(
        [
            node("Relu", ["x"], ["a"], name="n"),
            node("Neg", ["a"], ["b"], name="n"),
            node("Abs", ["b"], ["c"], name="n_2"),
            node("Neg", ["c"], ["y"]),
        ]
    )
    assert [n.name for n in run(proto).nodes] == ["n", "n_3", "n_2", "Neg_y"]


def test_attributes_of_every_kind() -> None:
    attributes = {
        "i": 3,
        "f": 0.5,
        "s": "text",
        "is": [1, 2],
        "fs": [0.5, 1.5],
        "ss": ["a", "b"],
        "t": helper.make_tensor("t", TensorProto.INT8, [2], [1, -1]),
    }
    proto = model([node("Quant", ["x", "s", "z", "b"], ["y"], domain="onnx.brevitas", **attributes)])
    for name in "szb":
        proto.graph.initializer.append(helper.make_tensor(name, FLOAT, [], [1.0]))
    (quant,) = run(proto).nodes
    tensor = quant.attributes["t"]
    assert isinstance(tensor, np.ndarray) and tensor.dtype == np.int8 and tensor.tolist() == [1, -1]
    assert {k: v for k, v in quant.attributes.items() if k != "t"} == {
        "i": 3,
        "f": 0.5,
        "s": "text",
        "is": (1, 2),
        "fs": (0.5, 1.5),
        "ss": ("a", "b"),
    }


def test_order_of_inputs_and_outputs_is_the_graph_s() -> None:
    proto = model(
        [node("Add", ["b", "a"], ["q"]), node("Sub", ["a", "b"], ["p"])],
        [value("w", [4]), value("b", ["N", 4]), value("z", [1, 2]), value("a", ["N", 4])],
        [value("p", None), value("q", None), value("b", None), value("w", None)],
        {"w": floats(1, 2, 3, 4)},
    )
    resolved = run(proto)
    assert resolved.inputs == ("b", "z", "a")  # w has an initializer
    assert resolved.outputs == ("p", "q", "b", "w")
    assert resolved.constants["w"].tolist() == [1, 2, 3, 4]
    assert shapes(resolved) == {"b": (1, 4), "z": (1, 2), "a": (1, 4), "p": (1, 4), "q": (1, 4), "w": (4,)}


def test_nodes_are_sorted() -> None:
    proto = model([node("Relu", ["a"], ["y"], name="second"), node("Neg", ["x"], ["a"], name="first")])
    assert [n.name for n in run(proto).nodes] == ["first", "second"]


def test_dead_nodes_are_dropped() -> None:
    proto = model([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["a"]), node("MatMul", ["a", "a"], ["b"])])
    assert ops(run(proto)) == ["Relu"]  # the MatMul would not even fit


# Constants


@pytest.mark.parametrize(
    ("kind", "stored", "name"),
    [
        (TensorProto.INT4, np.int8, "int4"),
        (TensorProto.UINT4, np.uint8, "uint4"),
        (TensorProto.INT2, np.int8, "int2"),
        (TensorProto.UINT2, np.uint8, "uint2"),
        (TensorProto.INT8, np.int8, "int8"),
        (TensorProto.INT32, np.int32, "int32"),
        (TensorProto.BOOL, np.bool_, "bool"),
        (TensorProto.FLOAT16, np.float16, "float16"),
        (TensorProto.BFLOAT16, np.float32, "bfloat16"),
        (TensorProto.FLOAT8E4M3FN, np.float32, "float8e4m3fn"),
        (TensorProto.DOUBLE, np.float64, "float64"),
    ],
)
def test_element_types(kind: int, stored: type, name: str) -> None:
    proto = model([node("Relu", ["x"], ["y"])], outputs=[value("y", None), value("w", [3], kind)], ir_version=13)
    values = [1, 0, 1] if name.startswith("u") or name == "bool" else [1, 0, -1]
    proto.graph.initializer.append(helper.make_tensor("w", kind, [3], values))
    resolved = run(proto)
    assert resolved.constants["w"].dtype == stored
    assert resolved.constants["w"].tolist() == values
    assert resolved.values["w"] == ValueInfo("w", (3,), name)


def test_constant_nodes() -> None:
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("v", FLOAT, [2], [5.0, 7.0]), helper.make_tensor("i", TensorProto.INT64, [2], [1, 3]), [4]
    )
    proto = model(
        [
            node("Constant", [], ["a"], value=helper.make_tensor("a", FLOAT, [4], [1, 2, 3, 4])),
            node("Constant", [], ["b"], value_float=0.5),
            node("Constant", [], ["c"], value_floats=[0.5, 1.0]),
            node("Constant", [], ["d"], value_int=3),
            node("Constant", [], ["e"], value_ints=[3, 4]),
            node("Constant", [], ["f"], value_string="t"),
            node("Constant", [], ["g"], value_strings=["t", "u"]),
            node("Constant", [], ["h"], sparse_value=sparse),
        ],
        outputs=[value(name, None) for name in "abcdefgh"],
    )
    resolved = run(proto)
    assert resolved.nodes == ()
    assert {name: array.tolist() for name, array in resolved.constants.items()} == {
        "a": [1, 2, 3, 4],
        "b": 0.5,
        "c": [0.5, 1],
        "d": 3,
        "e": [3, 4],
        "f": b"t",
        "g": [b"t", b"u"],
        "h": [0, 5, 0, 7],
    }
    assert [resolved.values[name].dtype for name in "abcdefgh"] == (
        ["float32"] * 3 + ["int64"] * 2 + ["string"] * 2 + ["float32"]
    )


def test_a_model_of_ir_version_3() -> None:
    # Before version 4, every initializer is an input as well; here it is a constant all the same.
    proto = model(
        [node("Add", ["x", "w"], ["y"])], [value("x", [1, 4]), value("w", [4])], constants={"w": floats(1, 2, 3, 4)},
        opsets={"": 8}, ir_version=3,
    )
    resolved = run(proto)
    assert resolved.inputs == ("x",)
    assert resolved.constants["w"].tolist() == [1, 2, 3, 4]


def test_variadic_operators() -> None:
    proto = model([node("Sum", ["x", "x", "x"], ["s"]), node("Split", ["s"], ["y", "", "z"], axis=1, num_outputs=3)],
                  outputs=[value("y", [1, 2]), value("z", None)])
    total, split = run(proto).nodes
    assert (total.inputs, split.outputs) == (("x", "x", "x"), ("y", "", "z"))
    assert run(proto).values["z"].shape == (1, 0)  # 4 in parts of 2


def test_sparse_initializers() -> None:
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("w", FLOAT, [2], [5.0, 7.0]),
        helper.make_tensor("i", TensorProto.INT64, [2, 2], [0, 1, 1, 0]),
        [2, 2],
    )
    proto = model(
        [node("MatMul", ["x", "w"], ["y"])], [value("x", [1, 2])], [value("y", [1, 2])], sparse_initializer=[sparse]
    )
    assert run(proto).constants["w"].tolist() == [[0, 5], [7, 0]]


def test_a_malformed_initializer() -> None:
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[4], float_data=[1.0])
    (text,) = refused(lambda: run(model([node("Add", ["x", "w"], ["y"])], constants={"w": tensor})))
    assert text.startswith("error: initializer 'w': the tensor must be well formed, but reading it failed: ")
    assert text.endswith(" [PRO-10]\n  remedy: export the model again")


def test_folding_by_hand() -> None:
    # (2 * [1, 2, 3, 4] + 1)^2 = [9, 25, 49, 81]; as int4, 3 * 2 = 6
    proto = model(
        [
            node("Mul", ["w", "two"], ["a"]),
            node("Add", ["a", "one"], ["b"]),
            node("Mul", ["b", "b"], ["c"]),
            node("Mul", ["x", "c"], ["y"]),
            node("Reshape", ["narrow", "to"], ["wide"]),
        ],
        outputs=[value("y", [1, 4]), value("wide", None)],
        constants={
            "w": floats(1, 2, 3, 4),
            "two": np.float32(2),
            "one": np.float32(1),
            "narrow": onnx.numpy_helper.from_array(np.array([[-8, 7]], ml_dtypes.int4), "narrow"),
            "to": ints(2),
        },
    )
    resolved = run(proto)
    assert ops(resolved) == ["Mul"]
    assert {name: array.tolist() for name, array in resolved.constants.items()} == {
        "c": [9, 25, 49, 81],
        "wide": [-8, 7],
    }
    assert resolved.constants["wide"].dtype == np.int8
    assert resolved.values["wide"] == ValueInfo("wide", (2,), "int4")
    assert not resolved.constants["c"].flags.writeable


def test_shape_subgraphs_fold() -> None:
    # Flatten as exporters write it: [shape(x)[0], -1] = [1, -1]
    proto = model(
        [
            node("Relu", ["x"], ["r"]),
            node("Shape", ["r"], ["s"]),
            node("Gather", ["s", "zero"], ["n"]),
            node("Unsqueeze", ["n", "axes"], ["n1"]),
            node("Concat", ["n1", "rest"], ["to"], axis=0),
            node("Reshape", ["r", "to"], ["y"]),
            node("Shape", ["x"], ["tail"], start=-2, end=3),
            node("Size", ["x"], ["size"]),
        ],
        [value("x", ["N", 2, 3, 4])],
        [value("y", None), value("tail", None), value("size", None)],
        {"zero": np.int64(0), "axes": ints(0), "rest": ints(-1)},
    )
    resolved = run(proto)
    assert ops(resolved) == ["Relu", "Reshape"]
    assert resolved.values["y"].shape == (1, 24)
    assert resolved.constants["to"].tolist() == [1, -1]
    assert resolved.constants["tail"].tolist() == [3]  # axes 2 and up, below 3
    assert resolved.constants["size"].tolist() == 24
    assert resolved.values["size"] == ValueInfo("size", (), "int64")


def test_what_only_a_shape_reads_is_dropped() -> None:
    proto = model(
        [node("Relu", ["x"], ["r"]), node("Shape", ["r"], ["s"]), node("Reshape", ["x", "s"], ["y"])],
    )
    resolved = run(proto)
    assert ops(resolved) == ["Reshape"]
    assert set(resolved.values) == {"x", "s", "y"}


def test_quantizers_and_random_nodes_stay() -> None:
    proto = model(
        [
            node("QuantizeLinear", ["w", "s", "z"], ["q"]),
            node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            node("RandomNormal", [], ["r"], shape=[1, 4]),
            node("BipolarQuant", ["w", "s"], ["p"], domain="onnx.brevitas"),
            node("Sum", ["x", "d", "r", "p"], ["y"]),
        ],
        constants={"w": floats(1, 2, 3, 4), "s": np.float32(0.5), "z": np.int8(3)},
    )
    resolved = run(proto)
    assert ops(resolved) == ["QuantizeLinear", "DequantizeLinear", "RandomNormal", "BipolarQuant", "Sum"]
    assert resolved.values["q"] == ValueInfo("q", (4,), "int8")
    assert resolved.parameters == 4  # w once; scale and zero point are none


def test_what_the_evaluator_cannot_compute_stays_a_node() -> None:
    # An index out of range: inference does not see it, the evaluator fails.
    proto = model([node("Gather", ["w", "i"], ["g"]), node("Add", ["x", "g"], ["y"])])
    proto.graph.initializer.append(helper.make_tensor("w", FLOAT, [4], [1, 2, 3, 4]))
    proto.graph.initializer.append(helper.make_tensor("i", TensorProto.INT64, [], [9]))
    assert ops(run(proto)) == ["Gather", "Add"]


def test_a_constant_that_would_be_huge_stays_a_node() -> None:
    proto = model([node("ConstantOfShape", ["n"], ["c"])], outputs=[value("c", None)], constants={"n": ints(1 << 40)})
    resolved = run(proto)
    assert ops(resolved) == ["ConstantOfShape"]
    assert resolved.values["c"].shape == (1 << 40,)


def test_folding_gives_no_warnings() -> None:
    proto = model([node("Div", ["w", "w"], ["c"]), node("Add", ["x", "c"], ["y"])], constants={"w": floats(0, 0, 0, 1)})
    assert np.isnan(run(proto).constants["c"]).tolist() == [True, True, True, False]


def test_the_same_layer_again_and_again() -> None:
    # Inference is asked once for equal nodes: other shapes, attributes, data and absent inputs make other nodes.
    proto = model(
        [
            node("Reshape", ["x", "a"], ["r"]),
            node("Reshape", ["x", "b"], ["s"]),
            node("Reshape", ["r", "b"], ["t"]),
            node("Concat", ["x", "x"], ["c"], axis=0),
            node("Concat", ["x", "x"], ["d"], axis=1),
            node("Relu", ["c"], ["e"]),
            node("Relu", ["d"], ["f"]),
            node("CastLike", ["x", "k"], ["g"]),
            node("CastLike", ["x", "l"], ["h"]),
        ],
        outputs=[value(name, None) for name in "rstefgh"],
        constants={"a": ints(2, 2), "b": ints(4, 1), "k": np.array([1], np.int8), "l": np.array([1], np.float16)},
    )
    for info in proto.graph.output:
        info.ClearField("type")
    found = run(proto).values
    assert {name: found[name].shape for name in "rstef"} == {
        "r": (2, 2), "s": (4, 1), "t": (4, 1), "e": (2, 4), "f": (1, 8),
    }
    assert (found["g"].dtype, found["h"].dtype) == ("int8", "float16")


def test_a_cast_to_the_type_of_another_value_folds() -> None:
    proto = model([node("CastLike", ["w", "x"], ["c"]), node("Add", ["x", "c"], ["y"])],
                  constants={"w": np.array([1, 2, 3, 4], np.int8)})
    resolved = run(proto)
    assert ops(resolved) == ["Add"]
    assert resolved.values["c"] == ValueInfo("c", (4,), "float32")
    assert resolved.constants["c"].tolist() == [1, 2, 3, 4]


# Nodes


def test_absent_optional_values() -> None:
    proto = model(
        [node("Clip", ["x", "", "high"], ["c"]), node("Dropout", ["c", "", ""], ["y", ""])],
        constants={"high": np.float32(6)},
    )
    clip, dropout = run(proto).nodes
    assert clip.inputs == ("x", "", "high")
    assert (dropout.inputs, dropout.outputs) == (("c",), ("y",))


def test_operators_defined_by_a_function() -> None:
    nodes = [node("MeanVarianceNormalization", ["x"], ["m"]), node("HardSwish", ["m"], ["y"])]
    proto = model(nodes, [value("x", ["N", 3, 4, 4])], [value("y", None)])
    assert shapes(run(proto)) == {"x": (1, 3, 4, 4), "m": (1, 3, 4, 4), "y": (1, 3, 4, 4)}


def test_local_functions_are_inlined() -> None:
    function = helper.make_function(
        "local", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 21)]
    )
    proto = model([node("Twice", ["x"], ["y"], domain="local")], opsets={"": 21, "local": 1}, functions=[function])
    resolved = run(proto)
    assert [(n.op_type, n.inputs, n.outputs) for n in resolved.nodes] == [("Add", ("x", "x"), ("y",))]


def test_the_long_name_of_the_default_domain() -> None:
    proto = model([node("Relu", ["x"], ["y"], domain="ai.onnx")], opsets={"ai.onnx": 13})
    resolved = run(proto)
    assert (resolved.nodes[0].domain, resolved.nodes[0].version, resolved.opsets) == ("", 13, {"": 13})


def test_nodes_that_do_not_fit_are_all_named() -> None:
    proto = model(
        [
            node("MatMul", ["x", "w"], ["a"], name="mm"),
            node("Relu", ["a"], ["b"], name="behind"),
            node("Add", ["x", "w"], ["c"], name="add"),
            node("SequenceConstruct", ["x"], ["s"], name="seq"),
        ],
        outputs=[value(name, None) for name in "bcs"],
        constants={"w": np.ones((3, 2), np.float32)},
    )
    found = refused(lambda: run(proto))
    assert [re.match(r"error: (\w+ '\w+')", text)[1] for text in found] == ["node 'mm'", "node 'add'", "output 's'"]
    assert found[0] == (
        "error: node 'mm' (MatMul): the node must fit its operator and its inputs, but: Incompatible dimensions for "
        "matrix multiplication [onnx.shape_inference]\n  remedy: correct the node or what it reads"
    )
    assert found[2] == (
        "error: output 's': an output must be a tensor, not a sequence or an optional [sequence]\n"
        "  remedy: give its tensors as outputs, or one tensor of them (ConcatFromSequence)"
    )


def test_shapes_that_depend_on_the_data() -> None:
    nodes = [node("NonZero", ["x"], ["i"], name="nz"), node("Cast", ["i"], ["y"], to=FLOAT)]
    assert refused(lambda: run(model(nodes, outputs=[value("y", None)]))) == [
        "error: node 'nz' (NonZero): the shape of output 'i' must be known, but inference leaves it open [shapes]\n"
        "  remedy: give the value a shape in the graph's value_info"
    ]
    declared = model(nodes, outputs=[value("y", None)], value_info=[value("i", [2, 4], TensorProto.INT64)])
    assert run(declared).values["y"] == ValueInfo("y", (2, 4), "float32")
    variable = model(nodes, outputs=[value("y", None)], value_info=[value("i", [2, "nnz"], TensorProto.INT64)])
    assert refused(lambda: run(variable)) == [
        "error: node 'nz' (NonZero): the shape of output 'i' must be known, but inference leaves it open [shapes]\n"
        "  remedy: give the size with --dim nnz=VALUE"
    ]
    assert run(variable, nnz=3).values["y"] == ValueInfo("y", (2, 3), "float32")


def test_unknown_dialect_operators_need_a_declared_shape() -> None:
    def proto(*info: onnx.ValueInfoProto) -> onnx.ModelProto:
        nodes = [node("Odd", ["x"], ["a"], name="odd", domain="com.microsoft"), node("Relu", ["a"], ["y"])]
        return model(nodes, [value("x", ["N", 4])], [value("y", None)], value_info=info)

    assert refused(lambda: run(proto())) == [
        "error: node 'odd' (Odd): operator must be one that hwflow knows, not com.microsoft.Odd, or output 'a' have a "
        "shape [supported-operator]\n"
        "  remedy: replace the node by operators that hwflow knows (hwflow ops); where the host can run it, in front "
        "of the hardware or behind it, give its outputs a shape in the graph's value_info"
    ]
    assert run(proto(value("a", ["N", 7]))).values["y"].shape == (1, 7)


def test_graphs_of_unknown_operators_are_refused() -> None:
    body = helper.make_graph([node("Relu", ["x"], ["t"])], "b", [], [value("t", [1, 4])])
    chosen = node("Choose", ["x"], ["y"], name="it", domain="other", branch=body)
    assert refused(lambda: run(model([chosen], opsets={"": 21, "other": 1}))) == [
        "error: node 'it' (Choose): a node must not carry a graph unless it is an If, Loop, Scan or SequenceMap of "
        "ai.onnx, but this one does [subgraphs]\n  remedy: express it with these, or replace it"
    ]


def test_constants_are_folded_around_the_defects_of_the_evaluator() -> None:
    """By hand: a mean of 1, a variance of 4 and no epsilon, not the statistics of the three numbers themselves."""
    constants = {"c": floats([[1, 3, 5]]), "s": floats(2), "b": floats(3), "m": floats(1), "v": floats(4)}
    nodes = [node("BatchNormalization", ["c", *"sbmv"], ["n"], epsilon=0.0), node("Add", ["x", "n"], ["y"])]
    proto = model(nodes, [value("x", ["N", 1, 3])], [value("y", None)], constants, {"": 9})
    assert run(proto).constants["n"].reshape(-1).tolist() == [3.0, 5.0, 7.0]
