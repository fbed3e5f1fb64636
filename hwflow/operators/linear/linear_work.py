"""Multiply-accumulates of linear operators: what the shapes say."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from hwflow.onnxspec.resolving.resolved_model import OnnxNode

Shapes = Callable[[int], tuple[int, ...]]
"""The shape of input ``index``; of output 0 for -1."""


def convolution(weights: int) -> Callable[[OnnxNode, Shapes], int]:
    def count(node: OnnxNode, shape: Shapes) -> int:
        outputs = shape(weights)[0]
        return prod(shape(-1)) * prod(shape(weights)) // outputs if outputs else 0

    return count


def transposed(node: OnnxNode, shape: Shapes) -> int:
    return prod(shape(0)) * prod(shape(1)[1:])


def product(left: int, turned: str = "transA") -> Callable[[OnnxNode, Shapes], int]:
    """Of a matrix product whose left operand is input ``left``, transposed where the attribute ``turned`` says so."""

    def count(node: OnnxNode, shape: Shapes) -> int:
        axis = -2 if node.attributes.get(turned, 0) and len(shape(left)) > 1 else -1
        return prod(shape(-1)) * shape(left)[axis]

    return count


def einsum(node: OnnxNode, shape: Shapes) -> int:
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


def recurrent(node: OnnxNode, shape: Shapes) -> int:
    """X [steps, batch, inputs] (or batch first), W [directions, gates * hidden, inputs], R likewise: by the last of
    which every step multiplies once."""
    steps = prod(shape(0)[:2])
    return steps * (prod(shape(1)) + prod(shape(2)))


def attention(node: OnnxNode, shape: Shapes) -> int:
    """Each query with each key, and each weight with each value; keys [..., length, size] (and those of the past)."""
    keys = shape(1)[-2] + (shape(4)[-2] if len(node.inputs) > 4 and node.inputs[4] else 0)
    return (prod(shape(0)) + prod(shape(-1))) * keys


def linear_attention(node: OnnxNode, shape: Shapes) -> int:
    """Each key with its value into the head's state (where that is a delta rule, once more out of it), and each query
    with the state; queries and keys [..., heads * size], values [..., heads * d]."""
    heads = node.attributes["kv_num_heads"]
    assert isinstance(heads, int)
    keys = prod(shape(1)) * (2 if "delta" in str(node.attributes.get("update_rule", "gated_delta")) else 1)
    return (prod(shape(0)) + keys) * (shape(2)[-1] // heads)
