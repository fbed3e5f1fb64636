"""Where quantizers are placed, and where none is needed: decided by hand for small networks."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from hwflow.quantization.placement import place_quantizers
from tests.quantization.networks import Network

EYE = np.eye(4, dtype=np.float32)


class Chain(Network):
    """Nodes behind each other on [N, 4, 4]; each value is named by the operator that makes it and its number."""

    def __init__(self, opset: int = 20) -> None:
        super().__init__(["N", 4, 4], opset, ir_version=9)
        self.at = "x"

    def then(self, op: str, *operands: object, **attributes: object) -> Chain:
        """Behind the last value; other operands are constants, or names of values."""
        names = [
            o if isinstance(o, str) else self.constant(o, o.dtype if isinstance(o, np.ndarray) else np.float32)
            for o in operands
        ]
        self.at = self.node(op, self.at, *names, result=f"{op}{len(self.nodes)}", **attributes)
        return self

    def quantized(self) -> list[str]:
        """Which values get quantizers; the last one is "y"."""
        proto = onnx.shape_inference.infer_shapes(self.model(self.at, ["N", 4, 4]))
        return list(place_quantizers(proto).quantized)


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        (Chain().then("MatMul", EYE).then("Relu"), "x y"),
        # Affine functions and clips of exact sums need one quantizer, behind all of them.
        (Chain().then("MatMul", EYE).then("Add", [1, 2, 3, 4]).then("Clip", 0.0, 6.0).then("MatMul", EYE), "x Clip2 y"),
        # A function that is not affine is a table of few integers.
        (Chain().then("MatMul", EYE).then("Sigmoid").then("MatMul", EYE), "x MatMul0 Sigmoid1 y"),
        # The last function is the host's.
        (Chain().then("MatMul", EYE).then("Sigmoid"), "x MatMul0"),
        (Chain().then("MatMul", EYE).then("Softmax"), "x MatMul0"),
        # Functions of functions: one table. What is made before the first quantizer is the host's.
        (Chain().then("MatMul", EYE).then("Exp").then("Sqrt").then("MatMul", EYE), "x MatMul0 Sqrt2 y"),
        (Chain().then("Sigmoid").then("Sub", [1, 2, 3, 4]).then("MatMul", EYE), "Sub1 y"),
        # Moves keep integers; a transposition has few bits to move.
        (Chain().then("Reshape", np.array([0, 4, 4])).then("MatMul", EYE).then("Relu")
         .then("Transpose", perm=[0, 2, 1]).then("MatMul", EYE), "x Relu2 y"),
        (Chain().then("MatMul", EYE).then("Transpose", perm=[0, 2, 1]).then("Reshape", np.array([0, 4, 4])),
         "x MatMul0"),
        # So does one factor, but not one per channel (a product of two streams needs one scale).
        (Chain().then("MatMul", EYE).then("Transpose", perm=[0, 2, 1]).then("Mul", 0.5).then("MatMul", "x"),
         "x MatMul0 y"),
        (Chain().then("MatMul", EYE).then("Transpose", perm=[0, 2, 1]).then("Mul", [1, 2, 3, 4]).then("MatMul", "x"),
         "x MatMul0 Mul2 y"),
        # Norms: input and output, and no constant of theirs.
        (Chain().then("Add", "x").then("MatMul", EYE).then("LayerNormalization", [1, 2, 3, 4], [1, 2, 3, 4])
         .then("MatMul", EYE), "Add0 MatMul1 LayerNormalization2 y"),
        # Sums of two streams: both operands, and the sum where somebody needs integers of few bits.
        (Chain().then("MatMul", EYE).then("Add", "x").then("Relu").then("MatMul", EYE), "x MatMul0 Relu2 y"),
    ],
)
def test_chains(chain, expected):
    assert " ".join(chain.quantized()) == expected


def test_functions_of_the_same_integers_meet_without_quantizers():
    """SiLU, written out; and GELU, with the constants that exporters write."""
    chain = Chain().then("MatMul", EYE)
    gate = chain.at
    chain.then("Sigmoid").then("Mul", gate)
    chain.then("MatMul", EYE)
    assert chain.quantized() == ["x", "MatMul0", "Mul2", "y"]
    chain = Chain().then("MatMul", EYE).then("Add", [1, 2, 3, 4])
    value = chain.at
    chain.then("Div", 2**0.5).then("Erf").then("Add", 1.0).then("Mul", value).then("Mul", 0.5).then("MatMul", EYE)
    assert chain.quantized() == ["x", "Add1", "Mul6", "y"]
    # Of other integers: both factors are quantized.
    chain = Chain().then("MatMul", EYE).then("Sigmoid").then("Mul", "x").then("MatMul", EYE)
    assert chain.quantized() == ["x", "MatMul0", "Sigmoid1", "Mul2", "y"]


def test_attention():
    """Both operands of both products, Softmax's input behind the factor and its output; heads are moved as integers."""
    chain = Chain()
    turned = {"perm": [0, 2, 1, 3]}

    def heads(name: str, *perm: int) -> str:
        projected = chain.node("MatMul", "x", chain.constant(EYE), result=name)
        parts = chain.node("Reshape", projected, chain.constant([0, 4, 2, 2], np.int64))
        return chain.node("Transpose", parts, perm=perm)

    query, key, value = heads("q", 0, 2, 1, 3), heads("k", 0, 2, 3, 1), heads("v", 0, 2, 1, 3)
    scores = chain.node("Mul", chain.node("MatMul", query, key, result="scores"), chain.constant(0.7), result="scaled")
    shares = chain.node("Softmax", scores, axis=-1, result="shares")
    mixed = chain.node("Transpose", chain.node("MatMul", shares, value, result="mixed"), **turned)
    chain.at = chain.node("Reshape", mixed, chain.constant(np.array([0, 4, 4]), np.int64))
    chain.then("MatMul", EYE)
    assert chain.quantized() == ["x", "q", "k", "v", "scaled", "shares", "mixed", "y"]


def test_tables_and_joined_streams():
    """Embeddings: the table is quantized, what is selected keeps its integers; constants between streams, too."""
    network = Network(["N", 4], opset=20, kind=onnx.TensorProto.INT64)
    table, extra = network.constant(np.ones((9, 4)), name="table"), network.constant(np.ones((1, 1, 4)), name="extra")
    rows = network.node("Gather", table, "x")
    sum_ = network.node("MatMul", rows, network.constant(EYE), result="sum")
    y = network.node("Concat", sum_, rows, network.node("Expand", extra, network.constant([2, 1, 4], np.int64)), axis=1)
    proto = onnx.shape_inference.infer_shapes(network.model(y, ["N", 9, 4]))
    assert set(place_quantizers(proto).quantized) >= {"table", "sum"} and "v0" not in place_quantizers(proto).quantized
    # Parts of one quantized value, joined again, keep its scale.
    chain = Chain().then("MatMul", EYE)
    first, second = (
        chain.node("Slice", "MatMul0", *(chain.constant([v], np.int64) for v in (start, start + 2, 2)))
        for start in (0, 2)
    )
    chain.at = chain.node("MatMul", chain.node("Concat", second, first, axis=2), chain.constant(EYE))
    assert chain.quantized() == ["x", "MatMul0", "y"]


def test_values_with_other_readers():
    chain = Chain().then("MatMul", EYE)
    product = chain.at
    chain.then("Relu").then("Add", product).then("MatMul", EYE)  # a function of the product's integers
    assert chain.quantized() == ["x", "MatMul0", "Add2", "y"]
    # Two sums that each need their own operands.
    chain = Chain().then("MatMul", EYE)
    product = chain.at
    chain.then("Relu").then("Add", "x").then("Add", product).then("MatMul", EYE)
    assert chain.quantized() == ["x", "MatMul0", "Relu1", "Add2", "Add3", "y"]


def test_integers_and_graph_attributes_are_left_alone():
    branch = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["x"], ["b"])], "branch", [],
        [onnx.helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, ["N", 4, 4])],
    )
    chain = Chain()
    chosen = chain.node("If", chain.constant(True, np.bool_), then_branch=branch, else_branch=branch)
    chain.at = chain.node("MatMul", chosen, chain.constant(EYE))
    assert chain.quantized() == [chosen, "y"]
    network = Network(["N", 4], kind=onnx.TensorProto.INT64)
    y = network.node("Cast", network.node("Add", "x", "x"), to=onnx.TensorProto.FLOAT)
    proto = onnx.shape_inference.infer_shapes(network.model(y, ["N", 4]))
    assert place_quantizers(proto).quantized == ()


def magnitude(*, after: str = "Sqrt", scaled: bool = False, epsilon: bool = False) -> list[str]:
    """Squares of two halves of a product's columns, and a function of their sum, before another product."""
    chain = Chain().then("MatMul", np.ones((4, 8), np.float32))
    first, second = (
        chain.node("Slice", "MatMul0", *(chain.constant([v], np.int64) for v in (start, start + 4, 2)))
        for start in (0, 4)
    )
    if scaled:
        second = chain.node("Mul", second, chain.constant(0.3), result="scaled")
    squares = (
        chain.node("Pow", first, chain.constant(2.0), result="first"),
        chain.node("Mul", second, second, result="second"),
    )
    chain.at = chain.node("Add", *squares, result="sum")
    if epsilon:
        chain.at = chain.node("Add", chain.at, chain.constant(1e-6), result="more")
    chain.at = chain.node(after, chain.at, result="after")
    return chain.then("MatMul", EYE).quantized()


def test_squares_of_one_scale_add_up_without_quantizers():
    """The magnitude of a spectrum: the next quantizer's levels are a step function of an exact sum."""
    assert magnitude() == ["x", "MatMul0", "after", "y"]
    assert magnitude(epsilon=True) == ["x", "MatMul0", "after", "y"]
    # A table of few integers is needed for what is computed of no wide ones.
    assert magnitude(after="Sigmoid") == ["x", "MatMul0", "sum", "after", "y"]
    # Squares of two scales have a long common divisor.
    assert magnitude(scaled=True) == ["x", "MatMul0", "first", "second", "sum", "after", "y"]


@pytest.mark.parametrize("square", ["Mul", "Pow"])
def test_a_mean_of_squares_needs_no_quantizer(square):
    """Eight bits of the squares would be four of the norm. Before its square, a product needs one."""
    chain = Chain().then("MatMul", EYE)
    other = chain.constant(2.0) if square == "Pow" else chain.at
    squares = chain.node(square, chain.at, other, result="squares")
    mean = chain.node("ReduceMean", squares, chain.constant([1], np.int64), result="mean")
    norm = chain.node("Sqrt", chain.node("Add", mean, chain.constant(1e-6), result="spread"), result="norm")
    chain.at = chain.node("Div", chain.at, norm, result="divided")
    assert chain.then("MatMul", EYE).quantized() == ["x", "MatMul0", "divided", "y"]
