"""Count the multiply-accumulates of linear operators from their shapes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from hwflow.frontend.frames.fused_products import order_of
from hwflow.onnxspec.resolving.resolved_model import OnnxNode

Shapes = Callable[[int], tuple[int, ...]]
"""Returns the shape of input ``index``; of output 0 for -1."""


def convolution(weights: int) -> Callable[[OnnxNode, Shapes], int]:
    def count(node: OnnxNode, shape: Shapes) -> int:
        outputs = shape(weights)[0]
        return prod(shape(-1)) * prod(shape(weights)) // outputs if outputs else 0

    return count


def transposed(node: OnnxNode, shape: Shapes) -> int:
    return prod(shape(0)) * prod(shape(1)[1:])


def product(left: int, turned: str = "transA") -> Callable[[OnnxNode, Shapes], int]:
    """Return the counter of a matrix product with left operand ``left``, transposed if the attribute ``turned`` is
    set."""

    def count(node: OnnxNode, shape: Shapes) -> int:
        axis = -2 if node.attributes.get(turned, 0) and len(shape(left)) > 1 else -1
        return prod(shape(-1)) * shape(left)[axis]

    return count


def fused(node: OnnxNode, shape: Shapes) -> int:
    """Count the product of operands whose axes are brought into another order first."""
    own = shape(0)
    return prod(shape(-1)) * own[order_of(node, "A", len(own))[-1]]


def recurrent(node: OnnxNode, shape: Shapes) -> int:
    """Count for X [steps, batch, inputs] (or batch first), W [directions, gates * hidden, inputs], and R likewise,
    which each step multiplies once."""
    steps = prod(shape(0)[:2])
    return steps * (prod(shape(1)) + prod(shape(2)))


def attention(node: OnnxNode, shape: Shapes) -> int:
    """Count each query with each key and each weight with each value; keys are [..., length, size], plus those of the
    past.
    """
    keys = shape(1)[-2] + (shape(4)[-2] if len(node.inputs) > 4 and node.inputs[4] else 0)
    return (prod(shape(0)) + prod(shape(-1))) * keys


def linear_attention(node: OnnxNode, shape: Shapes) -> int:
    """Count each key with its value into the head's state (twice by a delta rule), and each query with the state;
    queries and keys are [..., heads * size], values [..., heads * d]."""
    heads = node.attributes["kv_num_heads"]
    assert isinstance(heads, int)
    keys = prod(shape(1)) * (2 if "delta" in str(node.attributes.get("update_rule", "gated_delta")) else 1)
    return (prod(shape(0)) + keys) * (shape(2)[-1] // heads)
