"""Einsum: against ONNX's reference evaluator, ONNX's node tests in RTL, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from hwflow.api.checking import check
from hwflow.errors import ModelRefused
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.operators.linear.einsum import Equation
from hwflow.verify import golden
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import node_tests_of, passes_in_rtl
from tests.reference_agreement import agree_with_reference


def contracted(b: Builder, x: str, **attributes: Any) -> str:
    return b.node("Einsum", x, b.weights(np.random.default_rng(7).integers(-9, 10, (3, 5)), 0.25), **attributes)


HONOURED = [("Einsum", contracted, {"equation": "bcij, ik -> bkcj"})]


def nothing(size: int, rank: int) -> list[tuple[Any, str]]:
    return []


NODES = [("Einsum", nothing, lambda rank: {"equation": "...->..."})]


@pytest.mark.parametrize("name", [name for name in node_tests_of("Einsum") if "bfloat16" not in name])
def test_node_tests_in_rtl(name: str, tmp_path: Path) -> None:
    """Those on bfloat16 are the same on another type. Of a scalar as it is nothing is left for hardware."""
    if name == "test_einsum_scalar":
        with pytest.raises(ModelRefused, match="at least one operator must be left for hardware"):
            passes_in_rtl(name, tmp_path)
    else:
        passes_in_rtl(name, tmp_path)


def test_all_node_tests_are_run() -> None:
    assert len(node_tests_of("Einsum")) == 9


EQUATIONS: list[tuple[str, list[list[int]], list[list[int]]]] = [
    # Shapes of streams, without frames, and of the constants behind them.
    ("bij->bji", [[2, 3]], []),
    ("bij->bj", [[2, 3]], []),
    ("bij->b", [[2, 3]], []),
    ("bijk", [[2, 3, 2]], []),
    ("bii->bi", [[3, 3]], []),
    ("bii->b", [[3, 3]], []),
    ("biji->bj", [[2, 3, 2]], []),
    ("b...ii->b...i", [[2, 4, 3, 3]], []),
    ("...->...", [[2, 3]], []),
    ("b...->b", [[2, 3]], []),
    ("bij, jk -> bik", [[2, 3]], [[3, 4]]),
    ("b i j , k j -> b k i", [[2, 3]], [[4, 3]]),
    ("bij,i->bj", [[2, 3]], [[2]]),
    ("bij,ij->b", [[2, 3]], [[2, 3]]),
    ("bij,ij->bij", [[2, 3]], [[2, 3]]),
    ("bij,j->bji", [[2, 3]], [[3]]),
    ("bi,j->bij", [[3]], [[2]]),
    ("b,j->bj", [[]], [[3]]),
    ("bhqd,hde->bhqe", [[2, 3, 4]], [[2, 4, 2]]),
    ("bhd,hd->bh", [[2, 3]], [[2, 3]]),
    ("bijk,jkl->bil", [[2, 3, 2]], [[3, 2, 4]]),
    ("bijk,kjl->bli", [[2, 3, 2]], [[2, 3, 4]]),
    ("b...i,ij->b...j", [[2, 2, 3]], [[3, 4]]),
    ("...i,...ij->...j", [[2, 3]], [[1, 2, 3, 4]]),
    ("bij,jk,kl->bil", [[2, 3]], [[3, 2], [2, 4]]),
    ("bij,jkk->bi", [[2, 3]], [[3, 2, 2]]),
    ("bij,jk->bi", [[2, 3]], [[3, 4]]),
    ("bij,kl->bi", [[2, 3]], [[2, 2]]),
    ("bij,->bij", [[2, 3]], [[]]),
    ("bij,bjk->bik", [[2, 1]], [[1, 3, 4]]),
    ("bij,jk->bik", [[2, 3]], [[1, 4]]),
    ("bij,ij->bij", [[2, 3]], [[2, 1]]),
    ("bij,bjk->bik", [[2, 3], [3, 2]], []),
    ("bi,bi->b", [[4], [4]], []),
    ("bi,bi->bi", [[4], [4]], []),
    ("bi,bj->bij", [[2], [3]], []),
    ("bij,bj->bi", [[2, 3], [3]], []),
    ("b...i,b...i->b...", [[2, 3], [2, 3]], []),
    ("bij,bij->bji", [[2, 3], [1, 3]], []),
    ("bi,bj,ij->b", [[2], [3]], [[2, 3]]),
    ("bi,bj,ijk->bk", [[2], [3]], [[2, 3, 2]]),
    ("bi,bi,bi->b", [[3], [3], [3]], []),
    ("bA,bA,aA->ba", [[2], [2]], [[3, 2]]),
]


def model_of(
    equation: str, streams: list[list[int]], constants: list[list[int]], rng: np.random.Generator, *,
    channels: bool = False, zero: int = 3, relu: bool = False, kind: str = "float",
) -> Builder:
    b = Builder(21, 10)
    operands = []
    for number, shape in enumerate(streams):
        x = b.input(f"x{number}", ["N", *shape], kind)
        if kind == "float":
            more: dict[str, Any] = {"scale": 0.5, "zero_point": zero}
            if channels and shape:
                axis = int(rng.integers(len(shape)))
                count = shape[axis]
                scale, own = 2.0 ** (np.arange(count) % 3 - 2), np.arange(count) % 5
                more = {"scale": scale, "zero_point": own, "axis": axis + 1}
            x = b.requantize(x, kind="int8", **more)
            x = b.node("Relu", x) if relu else x
        operands.append(x)
    for shape in constants:
        values = rng.integers(-5, 6, shape)
        operands.append(b.weights(values, 0.5, 1) if kind == "float" else b.constant(values, kind))
    y = b.node("Einsum", *operands, equation=equation)
    b.output(b.requantize(y, 0.375, 7, "int16") if kind == "float" else b.node("Max", y, y))
    return b


@pytest.mark.parametrize(("equation", "streams", "constants"), EQUATIONS)
def test_equations(equation: str, streams: list[list[int]], constants: list[list[int]]) -> None:
    rng = np.random.default_rng(3)
    for more in ({}, {"channels": True}, {"relu": True, "zero": -4}):
        agree_with_reference(model_of(equation, streams, constants, rng, **more), step=0.5, reach=12)
    for kind in ("int8", "uint16", "int32"):
        agree_with_reference(model_of(equation, streams, constants, rng, kind=kind))


@pytest.mark.parametrize(
    ("equation", "streams", "constants"),
    [
        ("nij,nj,j->ni", [[2, 3], [3]], [[3]]),
        ("nij,nj,jK->niK", [[2, 3], [3]], [[3, 2]]),
        ("nbij,nbj,bj->nbi", [[2, 2, 3], [2, 3]], [[2, 3]]),
    ],
)
def test_a_product_of_streams_with_scales_of_their_own(
    equation: str, streams: list[list[int]], constants: list[list[int]]
) -> None:
    """The constant waits for the product, whose scales may differ along both its rows and the axis that is summed."""
    for seed in range(6):  # the axes of the scales
        builder = model_of(equation, streams, constants, np.random.default_rng(seed), channels=True)
        agree_with_reference(builder, step=0.5, reach=6)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_equation(data: st.DataObject) -> None:
    sizes = {name: data.draw(st.integers(1, 3)) for name in "ijKl"}
    names = st.lists(st.sampled_from(sorted(sizes)), max_size=3)
    streams = [data.draw(names) for _ in range(data.draw(st.integers(1, 2)))]
    constants = [data.draw(names) for _ in range(data.draw(st.integers(0, 2)))]
    there = sorted({name for term in streams + constants for name in term})
    result = data.draw(st.permutations(there))[: data.draw(st.integers(0, len(there)))]
    equation = ",".join(["n" + "".join(term) for term in streams] + ["".join(term) for term in constants])
    shapes = [[[sizes[name] for name in term] for term in terms] for terms in (streams, constants)]
    kind = data.draw(st.sampled_from(["float", "float", "int8", "uint32"]))
    more = {name: data.draw(st.booleans()) for name in ("channels", "relu")}
    more["zero"] = data.draw(st.integers(-3, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    builder = model_of(f"{equation}->n{''.join(result)}", *shapes, rng, kind=kind, **more)
    agree_with_reference(builder, step=0.5, reach=6)


def dequantized(b: Builder, name: str, shape: list[int | str]) -> str:
    return b.requantize(b.input(name, shape), 0.5, 3, "int8")


@pytest.mark.parametrize(
    ("equation", "shapes", "frames"),
    [
        ("bij->bji", [[4, 2, 3]], True),
        ("bi,bi->b", [[4, 3], [4, 3]], True),
        ("...i->...", [[4, 2, 3]], True),
        ("ij->ji", [[4, 3]], False),
        ("ij->", [[4, 3]], False),
        ("i,j->ij", [[4], [3]], False),
        ("i,i", [[4], [4]], False),
        ("...ij->...ji", [[4, 3]], False),
        ("A...->...A", [[4, 3, 2]], False),
        ("->", [[]], False),
    ],
)
def test_first_axes_of_numbers(equation: str, shapes: list[list[int]], frames: bool, tmp_path: Path) -> None:
    """Frames where the first axis stays in front of all, else all inputs are one frame."""
    b = Builder(21, 10)
    y = b.node("Einsum", *(dequantized(b, f"x{i}", [*shape]) for i, shape in enumerate(shapes)), equation=equation)
    b.output(b.requantize(y, 4.0, 1, "int8"))
    model = b.load(tmp_path)
    if shapes != [[]]:  # whatever a scalar is called
        assert (model.quantized.inputs[0].shape == tuple(shapes[0][1:])) == frames
    rng = np.random.default_rng(1)
    x = {f"x{i}": (rng.integers(-9, 9, shape) / 2).astype(np.float32) for i, shape in enumerate(shapes)}
    (expected,) = ReferenceEvaluator(model.proto).run(None, x)
    arrays = {name: array.reshape(-1, *model.resolved.values[name].shape[1:]) for name, array in x.items()}
    (found,) = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays).values()
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def test_a_batch_with_a_constant_that_repeats(tmp_path: Path) -> None:
    for same in (True, False):
        b = Builder(21, 10)
        w = np.tile(np.arange(6).reshape(1, 3, 2), (4, 1, 1)) + (0 if same else np.arange(4).reshape(4, 1, 1))
        y = b.node("Einsum", dequantized(b, "x", [4, 3]), b.constant(w), equation="bi,bij->bj")
        b.output(b.requantize(y, 0.5, 1, "int8"))
        model = b.load(tmp_path)
        assert (model.quantized.inputs[0].shape == (3,)) == same
        x = (np.random.default_rng(1).integers(-9, 9, (4, 3)) / 2).astype(np.float32)
        (expected,) = ReferenceEvaluator(model.proto).run(None, {"x": x})
        arrays = {"x": x.reshape(-1, *model.resolved.values["x"].shape[1:])}
        (found,) = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays).values()
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("text", "ranks", "expected"),
    [
        ("ij , jk -> ik", (2, 2), ((("i", "j"), ("j", "k")), ("i", "k"))),
        ("ba", (2,), ((("b", "a"),), ("a", "b"))),
        ("aB", (2,), ((("a", "B"),), ("B", "a"))),
        ("ii", (2,), ((("i", "i"),), ())),
        ("i...,j...", (3, 2), ((("i", "...2", "...1"), ("j", "...1")), ("...2", "...1", "i", "j"))),
        ("...->", (2,), ((("...2", "...1"),), ())),
        ("->", (0,), (((),), ())),
        ("i->...i", (1,), ((("i",),), ("i",))),
        ("i->ii", (1,), None),
        ("i->j", (1,), None),
        ("i->i->i", (1,), None),
        ("ij", (1,), None),
        ("i", (2,), None),
        ("i,j", (1,), None),
        ("i.j", (2,), None),
        ("i1", (2,), None),
        ("...i...", (2,), None),
        ("i->...i...", (1,), None),
    ],
)
def test_equations_are_read(text: str, ranks: tuple[int, ...], expected: Any) -> None:
    found = Equation.of(text, ranks)
    assert (None if found is None else (found.terms, found.result)) == expected


def refused(
    equation: str, *shapes: list[int], constants: list[Any] | None = None, result: list[int] | None = None
) -> Builder:
    b = Builder(21, 10)
    operands = [dequantized(b, f"x{number}", ["N", *shape]) for number, shape in enumerate(shapes)]
    operands += [b.constant(values) for values in constants or []]
    y = b.declare(b.node("Einsum", *operands, equation=equation, name="n"), ["N", *(result or [2])])
    b.output(b.requantize(y, 0.5))
    return b


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (
            refused("bi->bii", [2], result=[2, 2]),
            "the equation must have a term of letters, and at most one ellipsis, for all axes of each operand, and a "
            "result of letters of these, each once, not be 'bi->bii' [einsum-equation]\n"
            "  remedy: correct the attribute",
        ),
        (
            refused("ib->bi", [2]),
            "the result must keep the frame axis first, not have shape [2, 1] [frame-axis]\n"
            "  remedy: reshape to (frames, ...)",
        ),
        (
            refused("bi,ci->bc", [2], [2]),
            "the first axis of input 'dequantizelinear3', that of frames, must be the result's first one, and stand "
            "nowhere else, not be 'c' where the result has 'b' [frame-axis]\n"
            "  remedy: name it so in all operands that are computed at run time",
        ),
        (
            refused("bij,jk->bk", [2, 3], constants=[[[0.1, 0.2], [0.3, 0.7], [0.11, 0.13]]]),
            "weights 'c4' must be quantized (by a DequantizeLinear or a Quant), not float [quantized-weights]\n"
            "  remedy: quantize the weights too",
        ),
    ],
)
def test_refused(model: Builder, text: str, tmp_path: Path) -> None:
    findings = [str(f) for f in check(model.save(tmp_path)) if "n' (Einsum)" in f.where]
    assert findings == [f"unsupported: node 'n' (Einsum): {text}"]


def test_products_that_are_too_large(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = [dequantized(b, f"x{number}", ["N", 1024, 1024]) for number in range(2)]
    b.output(b.requantize(b.node("Einsum", *x, equation="bij,bij->bi", name="n"), 0.5))
    (finding,) = check(b.save(tmp_path))
    assert finding.rule == "contraction-size"


def test_integers_whose_sums_are_too_long(tmp_path: Path) -> None:
    b = Builder(21, 10)
    w = b.constant(np.full((4, 2), -(1 << 31)), "int32")
    y = b.node("Einsum", b.input("x", ["N", 4], "int32"), w, equation="bi,ij->bj", name="n")
    b.output(b.node("Neg", y))
    (finding,) = check(b.save(tmp_path))
    assert finding.rule == "contraction-bits"
