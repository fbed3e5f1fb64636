"""An ensemble of decision trees over the last axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hdl_lib.arithmetic.multiplier import ProductForm
from hwflow.cores.operator import Device, Folding, Implementation, ImplementedOperator, LogicalOperator, LoweringContext
from hwflow.cores.trees.ensemble import evaluate, intervals
from hwflow.cores.trees.list_walk import ListWalks
from hwflow.cores.trees.parallel import ParallelDecisions
from hwflow.cores.trees.tree_walks import TreeWalks
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import TreeEnsembleAttributes
from hwflow.types import TensorType


class TreeEnsemble(LogicalOperator[TreeEnsembleAttributes], ImplementedOperator[TreeEnsembleAttributes]):
    """Of streams, a pixel is a row of features, and of targets."""

    attributes = TreeEnsembleAttributes
    stages = frozenset({Stage.QUANTIZED, Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: TreeEnsembleAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        shape = (*inputs[0].shape[:-1], attributes.targets)
        return (TensorType.of(shape, intervals(attributes), len(shape) - 1),)

    def evaluate(self, attributes: TreeEnsembleAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        shape = inputs[0].shape
        rows = evaluate(attributes, inputs[0].reshape(-1, shape[-1]))
        return (rows.reshape(*shape[:-1], attributes.targets),)

    def lower(self, node: Node[TreeEnsembleAttributes], context: LoweringContext) -> None:
        """Take the features of a row in the order in which the stream brings them, if that is one for all rows."""
        stream, order = context.stream(node.inputs[0])
        features = node.inputs[0].typed.shape[-1]
        rows, column = np.divmod(order.reshape(-1, features), features)
        if stream.typed.shape[1] != features or (rows != rows[:, :1]).any() or (column != column[0]).any():
            stream = context.arranged(stream, order, np.arange(order.size), features)
            rows, column = np.divmod(np.arange(order.size).reshape(-1, features), features)
        place = np.argsort(column[0])
        given = node.attributes
        attributes = replace(given, feature=place[given.feature], missing_rank=given.missing_rank[column[0]])
        result = context.add("", [stream], attributes)
        context.bind(node.outputs[0], result, (rows[:, :1] * given.targets + np.arange(given.targets)).reshape(-1))

    def foldings(self, node: Node[TreeEnsembleAttributes], device: Device) -> Sequence[Folding]:
        return [*TreeWalks.foldings(node), *ListWalks.foldings(node), *ParallelDecisions.foldings(node)]

    def implementation(
        self, node: Node[TreeEnsembleAttributes], folding: Folding
    ) -> Implementation[TreeEnsembleAttributes]:
        if not folding.units:
            return ParallelDecisions(node, folding)
        return (ListWalks if folding.multiplier == ProductForm.TABLE else TreeWalks)(node, folding)
