"""An ensemble of decision trees over the last axis."""

from __future__ import annotations

from collections.abc import Sequence

from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.cores.trees.ensemble import evaluate, intervals
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import TreeEnsembleAttributes
from hwflow.types import TensorType


class TreeEnsemble(LogicalOperator[TreeEnsembleAttributes]):
    attributes = TreeEnsembleAttributes
    stages = frozenset({Stage.QUANTIZED})

    def infer(self, attributes: TreeEnsembleAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        shape = (*inputs[0].shape[:-1], attributes.targets)
        return (TensorType.of(shape, intervals(attributes), len(shape) - 1),)

    def evaluate(self, attributes: TreeEnsembleAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        shape = inputs[0].shape
        rows = evaluate(attributes, inputs[0].reshape(-1, shape[-1]))
        return (rows.reshape(*shape[:-1], attributes.targets),)

    def lower(self, node: Node[TreeEnsembleAttributes], context: LoweringContext) -> None:
        context.refuse("lowering", "no core walks trees yet", "leave the ensemble to the host")
