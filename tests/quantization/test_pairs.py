"""Which quantizers between an operator and affine functions are removed, and which must stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from hwflow.quantization.quantizer_pairs import join_affine_functions
from tests.quantization.networks import Network


class Chain(Network):
    """Nodes behind each other; ``pair`` quantizes and dequantizes."""

    def __init__(self) -> None:
        super().__init__(["N", 2])
        self.scale, self.zero = self.constant(0.5), self.constant(3, np.uint8)
        self.at = "x"

    def pair(self) -> Chain:
        self.at = self.node("QuantizeLinear", self.at, self.scale, self.zero)
        self.at = self.node("DequantizeLinear", self.at, self.scale, self.zero)
        return self

    def then(self, op: str, *constants: object) -> Chain:
        self.at = self.node(op, self.at, *(self.constant(c) for c in constants))
        return self

    def build(self) -> onnx.ModelProto:
        return self.model(self.at, ["N", 2])


def path(model: onnx.ModelProto) -> str:
    short = {"QuantizeLinear": "q", "DequantizeLinear": "d"}
    onnx.checker.check_model(model)
    return " ".join(short.get(n.op_type, n.op_type) for n in model.graph.node)


EYE = np.eye(2)


@pytest.mark.parametrize(
    ("chain", "removed", "expected"),
    [
        (Chain().pair().then("MatMul", EYE).pair().then("Relu").pair(), 1, "q d MatMul Relu q d"),
        # Behind an affine function, too, and all of several.
        (
            Chain().pair().then("MatMul", EYE).pair().then("Add", [1, 2]).pair().then("Clip", 0.0, 6.0).pair(), 2,
            "q d MatMul Add Clip q d",
        ),
        # No linear operator before: a pair that quantizes the input.
        (Chain().pair().then("Relu").pair(), 0, "q d Relu q d"),
        # A function that is not affine keeps its small table.
        (Chain().pair().then("MatMul", EYE).pair().then("Sigmoid").pair(), 0, "q d MatMul q d Sigmoid q d"),
        # The function's result is not quantized: the pair is all that makes integers.
        (Chain().pair().then("MatMul", EYE).pair().then("Relu"), 0, "q d MatMul q d Relu"),
        # Chains of quantizers mean what they say.
        (Chain().pair().then("MatMul", EYE).pair().pair(), 0, "q d MatMul q d q d"),
        # A pool is no linear operator.
        (Chain().pair().then("Identity").pair().then("Relu").pair(), 0, "q d Identity q d Relu q d"),
    ],
)
def test_chains(chain, removed, expected):
    model = chain.build()
    assert join_affine_functions(model) == removed
    assert path(model) == expected


def test_values_with_other_readers_stay():
    chain = Chain().pair().then("MatMul", EYE).pair()
    integers = chain.at
    relu = chain.node("Relu", integers)
    chain.at = chain.node("Add", relu, integers)  # the dequantized value has two readers
    model = chain.pair().build()
    assert join_affine_functions(model) == 0
    chain = Chain().pair().then("MatMul", EYE)
    product = chain.at
    chain.pair().then("Relu").pair()
    chain.at = chain.node("Add", chain.at, product)  # so has what is quantized
    model = chain.pair().build()
    assert join_affine_functions(model) == 0


def test_models_with_subgraphs_are_left_alone():
    chain = Chain().pair().then("MatMul", EYE).pair().then("Relu").pair()
    quantized = chain.at
    empty = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["x"], ["b"])], "branch", [],
        [onnx.helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, ["N", 2])],
    )
    chosen = chain.node("If", chain.constant(True, np.bool_), then_branch=empty, else_branch=empty)
    chain.at = chain.node("Add", quantized, chosen)
    assert join_affine_functions(chain.build()) == 0
