"""Dimension variables and declared shapes, on hand-made models with values worked out by hand."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.onnxspec.build import FLOAT, model, node, refused, value
from tests.onnxspec.resolving.resolved import ints, run, shapes

pytestmark = pytest.mark.usefixtures("measured")


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
