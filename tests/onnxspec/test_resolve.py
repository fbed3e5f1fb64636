"""Resolution: dimensions, shapes, folding, on hand-made models with values worked out by hand."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hwflow.onnxspec import ResolvedModel, ValueInfo, resolve
from tests.onnxspec.build import FLOAT, model, node, refused, value


def run(proto: onnx.ModelProto, **dimensions: int) -> ResolvedModel:
    before = proto.SerializeToString()
    resolved = resolve(proto, dimensions)
    assert proto.SerializeToString() == before, "resolving must not change the model"
    return resolved


def ops(resolved: ResolvedModel) -> list[str]:
    return [n.op_type for n in resolved.nodes]


def shapes(resolved: ResolvedModel) -> dict[str, tuple[int, ...]]:
    return {name: info.shape for name, info in resolved.values.items()}


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.int64)


def floats(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.float32)


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


# Dimensions


@pytest.mark.parametrize("leading", ["N", "unk__133", None, 1])
@pytest.mark.parametrize("target", [[-1, 6], [0, 6], [1, 6], [1, -1], [0, -1]])
def test_frames_are_one(leading: str | int | None, target: list[int]) -> None:
    proto = model(
        [node("Reshape", ["x", "to"], ["y"])],
        [value("x", [leading, 2, 3])],
        [value("y", ["other", 6])],
        {"to": ints(*target)},
    )
    assert shapes(run(proto)) == {"x": (1, 2, 3), "to": (2,), "y": (1, 6)}


def test_open_dimensions_are_refused_with_the_option() -> None:
    proto = model(
        [node("Relu", ["x"], ["y"]), node("Relu", ["u"], ["v"])],
        [value("x", ["N", "H", "image width", None]), value("u", ["N", "H"])],
        [value("y", None), value("v", None)],
    )
    start = "error: input 'x': dimension variable"
    assert refused(lambda: run(proto)) == [
        f"{start} 'H' (axis 1) must have a size, but the model leaves it open [dimensions]\n"
        "  remedy: give its size with --dim H=VALUE",
        f"{start} 'image width' (axis 2) must have a size, but the model leaves it open [dimensions]\n"
        "  remedy: give its size with --dim 'image width=VALUE'",
        f"{start} 'x.3' (axis 3) must have a size, but the model leaves it open [dimensions]\n"
        "  remedy: give its size with --dim x.3=VALUE",
    ]
    given = {"H": 5, "image width": 7, "x.3": 3}
    assert shapes(run(proto, **given)) == {"x": (1, 5, 7, 3), "u": (1, 5), "y": (1, 5, 7, 3), "v": (1, 5)}


def test_options_for_odd_names_can_be_copied() -> None:
    names = ["-K", "N=3", "it's", "a\nb"]
    proto = model([node("Relu", ["x"], ["y"])], [value("x", [1, *names])], [value("y", None)])
    remedies = [text.rpartition("give its size with ")[2] for text in refused(lambda: run(proto))]
    assert remedies == [
        "--dim=-K=VALUE", "--dim N=3=VALUE", """--dim 'it'"'"'s=VALUE'""", r"--dim $'a\012b=VALUE'",
    ]
    assert shapes(run(proto, **dict.fromkeys(names, 2)))["y"] == (1, 2, 2, 2, 2)


def test_an_initializer_gives_a_variable_its_size() -> None:
    proto = model(
        [node("MatMul", ["x", "w"], ["y"])],
        [value("x", ["N", "K"]), value("w", ["K", "M"])],
        [value("y", ["N", "M"])],
        {"w": np.ones((4, 3), np.float32)},
    )
    assert shapes(run(proto)) == {"x": (1, 4), "w": (4, 3), "y": (1, 3)}
    assert shapes(run(proto, K=4, M=3))["y"] == (1, 3)
    assert refused(lambda: run(proto, M=5)) == [
        "error: option --dim M=5: dimension variable 'M' must be 3 as at input 'w' (axis 1), not 5 [dimensions]\n"
        "  remedy: leave it out: the model gives the size",
    ]
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "M"
    assert refused(lambda: run(proto)) == [
        "error: input 'x': the leading dimension (frames) must be 1 or open, but 'M' is 3 at input 'w' (axis 1) "
        "[dimensions]\n  remedy: export the model with a batch of 1 or a dynamic batch",
    ]


def test_a_negative_size_is_an_open_one() -> None:
    proto = model([node("Relu", ["x"], ["y"])], [value("x", [-1, -1])], [value("y", None)])
    assert refused(lambda: run(proto)) == [
        "error: input 'x': dimension variable 'x.1' (axis 1) must have a size, but the model leaves it open "
        "[dimensions]\n  remedy: give its size with --dim x.1=VALUE"
    ]
    assert shapes(run(proto, **{"x.1": 9}))["y"] == (1, 9)


def test_dim_for_a_variable_that_is_not_there() -> None:
    proto = model([node("Relu", ["x"], ["y"])], [value("x", ["N", "H", "W"])], [value("y", None)])
    assert refused(lambda: run(proto, H=3, W=3, K=2)) == [
        "error: option --dim K=2: --dim must name a dimension variable of the model's inputs, not 'K' [dimensions]\n"
        "  remedy: the variables there are: 'H', 'W'"
    ]
    proto = model([node("Relu", ["x"], ["y"])], [value("x", ["N", 4])])
    assert refused(lambda: run(proto, K=2)) == [
        "error: option --dim K=2: --dim must name a dimension variable of the model's inputs, not 'K' [dimensions]\n"
        "  remedy: leave it out: the model's inputs have no dimension variable that needs a size"
    ]


def test_sizes_that_cannot_be() -> None:
    proto = model([node("Relu", ["x"], ["y"])], [value("x", ["N", "H"])], [value("y", None)])
    assert run(proto, N=1, H=2).values["y"].shape == (1, 2)
    assert refused(lambda: run(proto, N=8, H=0)) == [
        "error: input 'x': dimension variable 'N' counts frames, which are processed one at a time: it must be 1, "
        "not 8 [dimensions]\n  remedy: leave out --dim N=8",
        "error: input 'x': dimension variable 'H' (axis 1) must be at least 1, not 0 [dimensions]\n"
        "  remedy: give its size with --dim H=VALUE",
    ]


def test_a_batch_that_is_not_one() -> None:
    proto = model([node("Relu", ["x"], ["y"])], [value("x", [8, 4, 0])], [value("y", None)])
    assert refused(lambda: run(proto)) == [
        "error: input 'x': the leading dimension (frames) must be 1 or a variable, not 8 [dimensions]\n"
        "  remedy: export the model with a batch of 1 or a dynamic batch",
        "error: input 'x': dimension 2 must be at least 1, not 0 [dimensions]\n  remedy: export the model again",
    ]


DIFFERENT = "  remedy: give dimensions that differ different names, or correct the shapes"


def test_a_variable_with_two_sizes() -> None:
    # W is 3 by --dim; the Concat has twice as much
    nodes = [node("Concat", ["x", "x"], ["h"], axis=1, name="cat"), node("Relu", ["h"], ["y"])]
    proto = model(nodes, [value("x", ["N", "W"])], [value("y", ["N", "W"])])
    assert refused(lambda: run(proto, W=3)) == [
        "error: output 'y': dimension variable 'W' must have one size in the whole model, but it is 6 here (axis 1) "
        f"and 3 at input 'x' (axis 1, by --dim W=3) [SHP-10]\n{DIFFERENT}"
    ]
    legal = model(nodes, [value("x", ["N", "W"])], [value("y", ["N", "W2"])])
    assert shapes(run(legal, W=3))["y"] == (1, 6)


def test_a_variable_of_inner_values_only() -> None:
    nodes = [node("Concat", ["x", "x"], ["h"], axis=1), node("Concat", ["h", "x"], ["y"], axis=1)]
    proto = model(nodes, outputs=[value("y", [1, "K"])], value_info=[value("h", [1, "K"])])
    assert refused(lambda: run(proto)) == [
        "error: output 'y': dimension variable 'K' must have one size in the whole model, but it is 12 here (axis 1) "
        f"and 8 at value 'h' (axis 1) [SHP-10]\n{DIFFERENT}"
    ]
    proto.graph.value_info[0].type.tensor_type.shape.dim[1].dim_param = "L"
    assert shapes(run(proto)) == {"x": (1, 4), "h": (1, 8), "y": (1, 12)}
    assert shapes(run(proto, K=12, L=8))["y"] == (1, 12)
    assert refused(lambda: run(proto, K=11)) == [
        "error: output 'y': dimension variable 'K' must have one size in the whole model, but it is 12 here (axis 1) "
        f"and 11 at option --dim K=11 [dimensions]\n{DIFFERENT}"
    ]


def test_a_variable_of_frames_that_are_merged() -> None:
    # Reshape puts 4 rows of each frame in the place of the frames
    proto = model(
        [node("Reshape", ["x", "to"], ["y"])],
        [value("x", ["N", 4, 5])],
        [value("y", ["N", 5])],
        {"to": ints(-1, 5)},
    )
    assert refused(lambda: run(proto)) == [
        "error: output 'y': dimension variable 'N' must have one size in the whole model, but it is 4 here (axis 0) "
        f"and 1 at input 'x' (axis 0, the frames) [SHP-10]\n{DIFFERENT}"
    ]


def test_declared_shapes_that_are_wrong() -> None:
    def proto(shape: list[int | str | None]) -> onnx.ModelProto:
        return model(
            [node("Relu", ["x"], ["h"]), node("Neg", ["h"], ["y"])], [value("x", ["N", 4])], [value("y", ["N", 4])],
            value_info=[value("h", shape)],
        )

    remedy = " [shapes]\n  remedy: correct the shape in the model, or leave it out"
    assert refused(lambda: run(proto([8, 4]))) == [
        f"error: value 'h': the declared size of axis 0 must be that of the value, 1, not 8{remedy}"
    ]
    assert refused(lambda: run(proto(["N", 4, 1]))) == [
        f"error: value 'h': the declared shape must have the rank of the value, 2, not 3{remedy}"
    ]
    for legal in (["N", 4], [None, None], [-1, 4], ["?", "?"], ["M", "K"]):
        assert shapes(run(proto(legal)))["h"] == (1, 4)  # type: ignore[arg-type]  # lists of less


def test_frames_are_no_other_axis() -> None:
    proto = model(
        [node("MatMul", ["u", "x"], ["y"])], [value("x", ["N", 4]), value("u", ["M", "N"])], [value("y", ["M", 4])]
    )
    assert refused(lambda: run(proto)) == [
        "error: input 'u': axis 1 must not have dimension variable 'N', which counts the frames of input 'x': they are "
        "processed one at a time [dimensions]\n"
        "  remedy: if the axis has size 1, say so with --dim N=1; else give the two dimensions different names"
    ]
    assert shapes(run(proto, N=1))["y"] == (1, 4)
    # what it would be if N were 1 is no fault of the model
    proto = model(
        [node("MatMul", ["u", "w"], ["y"]), node("Relu", ["x"], ["z"])],
        [value("x", ["N", 4]), value("u", ["M", "N"])],
        [value("y", ["M", 3]), value("z", ["N", 4])],
        {"w": np.ones((5, 3), np.float32)},
    )
    assert [text.partition(":")[0] + text.partition(":")[2][:10] for text in refused(lambda: run(proto))] == [
        "error input 'u'"
    ]


def test_inputs_without_a_tensor_type() -> None:
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, [1])
    proto = model(
        [node("Relu", ["x"], ["y"])],
        [sequence, value("n", None), onnx.ValueInfoProto(name="t"), value("k", [1], 99), value("x", ["N", 4])],
    )
    assert refused(lambda: run(proto)) == [
        "error: input 's': an input must be a tensor, not a sequence [input-type]\n"
        "  remedy: let the host pass the tensors in it",
        "error: input 'n': an input must have a shape, but the model gives none [GRA-19]\n"
        "  remedy: export the model with input shapes",
        "error: input 't': an input must be a tensor, not of no type [GRA-18]\n  remedy: export the model again",
        "error: input 'k': an input must have a known element type, not number 99 [PRO-16]\n"
        "  remedy: export the model again",
    ]


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
    assert [re.match(r"error: (node '\w+')", text)[1] for text in found] == ["node 'mm'", "node 'add'", "node 'seq'"]  # type: ignore[index]
    assert found[0] == (
        "error: node 'mm' (MatMul): the node must fit its operator and its inputs, but: Incompatible dimensions for "
        "matrix multiplication [onnx.shape_inference]\n  remedy: correct the node or what it reads"
    )
    assert found[2] == (
        "error: node 'seq' (SequenceConstruct): output 's' must be a tensor, not a sequence "
        "[supported-operator]\n  remedy: replace the node or leave it out"
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
        "error: node 'odd' (Odd): the shape of output 'a' must be known, but inference leaves it open [shapes]\n"
        "  remedy: give the value a shape in the graph's value_info"
    ]
    assert run(proto(value("a", ["N", 7]))).values["y"].shape == (1, 7)


def test_control_flow_is_refused() -> None:
    body = helper.make_graph([node("Relu", ["x"], ["t"])], "b", [], [value("t", [1, 4])])
    proto = model(
        [node("If", ["c"], ["y"], name="choose", then_branch=body, else_branch=body)],
        [value("x", [1, 4]), value("c", [1], TensorProto.BOOL)],
    )
    assert refused(lambda: run(proto)) == [
        "error: node 'choose' (If): a node must not carry a graph (control flow has no place in a streaming design), "
        "but this one does [subgraphs]\n  remedy: export the model with the branch or loop unrolled"
    ]


def test_a_graph_that_cannot_be_walked_is_refused() -> None:
    proto = model([node("Add", ["x", "lost"], ["a"], name="n"), node("Rellu", ["b"], ["b"], name="loop")])
    assert refused(lambda: run(proto)) == [
        "error: node 'n' (Add): input 'lost' must be a graph input, an initializer or the output of a node, "
        "but nothing makes it [NOD-05]\n  remedy: add what makes 'lost', or read another value",
        "error: node 'loop' (Rellu): the graph must have no cycle, but there is one: 'loop' -> 'loop' [GRA-03]\n"
        "  remedy: break the cycle: no node may read, directly or through others, what it makes",
        "error: node 'loop' (Rellu): the operator must be in version 21 of operator set 'ai.onnx', but 'Rellu' is "
        "not [OPR-01]\n  remedy: did you mean Relu?",
        "error: output 'y': output 'y' must be the output of a node, an input or an initializer, but nothing makes it "
        "[NOD-12]\n  remedy: add what makes 'y', or remove the output",
    ]
