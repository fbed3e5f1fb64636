"""Multiply-accumulates of a node."""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.onnxspec.resolving.resolved_model import OnnxNode, ValueInfo
from hwflow.operators.onnx_operators import WORK


def macs(node: OnnxNode, values: Mapping[str, ValueInfo]) -> int:
    """Return the multiply-accumulates of one frame; 0 for operators that do not multiply by weights or matrices.

    Every product in the operator's definition counts, including those with padding.
    """
    count = WORK.get(node.op_type)

    def shape(index: int) -> tuple[int, ...]:
        return values[node.outputs[0] if index < 0 else node.inputs[index]].shape

    # The first output may be absent: that of recurrent operators, whose count does not need it.
    return 0 if count is None or not node.inputs else count(node, shape)
