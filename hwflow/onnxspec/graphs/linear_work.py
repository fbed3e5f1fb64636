"""Multiply-accumulates of a node: what its shapes say, for every linear operator of the standard and the dialects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from hwflow.onnxspec.resolving.resolved_model import OnnxNode, ValueInfo

Shapes = Callable[[int], tuple[int, ...]]
"""The shape of input ``index``; of output 0 for -1."""


def macs(node: OnnxNode, values: Mapping[str, ValueInfo]) -> int:
    """Multiply-accumulates of one frame; 0 for operators that do not multiply by weights or matrices.

    Every product that the operator's definition sums counts, also one with padding.
    """
    count = LINEAR.get(node.op_type)

    def shape(index: int) -> tuple[int, ...]:
        return values[node.outputs[0] if index < 0 else node.inputs[index]].shape

    # The first output may be left out: that of recurrent operators, whose count does not need it.
    return 0 if count is None or not node.inputs else count(node, shape)


def _convolution(weights: int) -> Callable[[OnnxNode, Shapes], int]:
    def count(node: OnnxNode, shape: Shapes) -> int:
        outputs = shape(weights)[0]
        return prod(shape(-1)) * prod(shape(weights)) // outputs if outputs else 0

    return count


def _transposed(node: OnnxNode, shape: Shapes) -> int:
    return prod(shape(0)) * prod(shape(1)[1:])


def _product(left: int, turned: str = "transA") -> Callable[[OnnxNode, Shapes], int]:
    """Of a matrix product whose left operand is input ``left``, transposed where the attribute ``turned`` says so."""

    def count(node: OnnxNode, shape: Shapes) -> int:
        axis = -2 if node.attributes.get(turned, 0) and len(shape(left)) > 1 else -1
        return prod(shape(-1)) * shape(left)[axis]

    return count


def _einsum(node: OnnxNode, shape: Shapes) -> int:
    terms = str(node.attributes["equation"]).replace(" ", "").partition("->")[0].split(",")
    if len(terms) < 2:
        return 0
    sizes: dict[str, int] = {}
    for index, term in enumerate(terms):
        front, dots, back = term.partition("...")
        own = shape(index)
        others = len(own) - len(front) - len(back)
        names = [*front, *(f"...{others - i}" for i in range(others if dots else 0)), *back]
        for name, size in zip(names, own, strict=False):
            sizes[name] = max(size, sizes.get(name, 1))
    return prod(sizes.values())


def _recurrent(node: OnnxNode, shape: Shapes) -> int:
    """X [steps, batch, inputs] (or batch first), W [directions, gates * hidden, inputs], R likewise: by the last of
    which every step multiplies once."""
    steps = prod(shape(0)[:2])
    return steps * (prod(shape(1)) + prod(shape(2)))


def _attention(node: OnnxNode, shape: Shapes) -> int:
    """Each query with each key, and each weight with each value; keys [..., length, size] (and those of the past)."""
    keys = shape(1)[-2] + (shape(4)[-2] if len(node.inputs) > 4 and node.inputs[4] else 0)
    return (prod(shape(0)) + prod(shape(-1))) * keys


def _linear_attention(node: OnnxNode, shape: Shapes) -> int:
    """Each key with its value into the head's state (where that is a delta rule, once more out of it), and each query
    with the state; queries and keys [..., heads * size], values [..., heads * d]."""
    heads = node.attributes["kv_num_heads"]
    assert isinstance(heads, int)
    keys = prod(shape(1)) * (2 if "delta" in str(node.attributes.get("update_rule", "gated_delta")) else 1)
    return (prod(shape(0)) + keys) * (shape(2)[-1] // heads)


LINEAR: Mapping[str, Callable[[OnnxNode, Shapes], int]] = {
    "Attention": _attention,
    "CausalConvWithState": _convolution(1),
    "Conv": _convolution(1),
    "ConvInteger": _convolution(1),
    "ConvTranspose": _transposed,
    "DeformConv": _convolution(1),
    "DynamicQuantizeMatMul": _product(0),
    "Einsum": _einsum,
    "FusedMatMul": _product(0),
    "GRU": _recurrent,
    "Gemm": _product(0),
    "LSTM": _recurrent,
    "LinearAttention": _linear_attention,
    "MatMul": _product(0),
    "MatMulInteger": _product(0),
    "MatMulIntegerToFloat": _product(0),
    "QGemm": _product(0),
    "QLinearConv": _convolution(3),
    "QLinearMatMul": _product(0),
    "RNN": _recurrent,
}
"""By operator, of whatever domain."""
