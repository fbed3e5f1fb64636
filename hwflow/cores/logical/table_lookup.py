"""Rows of a constant table, whose numbers are the elements of a frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.cores.streams.table_rows import TableRowsAttributes, columns_within
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.integer_functions import MAXIMUM, MINIMUM
from hwflow.ir.node_attributes import ElementwiseAttributes, TableLookupAttributes
from hwflow.types import Interval, TensorType


class TableLookup(LogicalOperator[TableLookupAttributes]):
    attributes = TableLookupAttributes
    stages = frozenset({Stage.QUANTIZED})

    def infer(self, attributes: TableLookupAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        rows, shape = len(attributes.table), inputs[0].shape
        least, most = (min(max(end, -rows), rows - 1) for end in (inputs[0].interval.lo, inputs[0].interval.hi))
        columns = columns_within(attributes.table, Interval(least, most))
        return (TensorType.of((*shape, len(columns)), columns, len(shape)),)

    def evaluate(self, attributes: TableLookupAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        rows = len(attributes.table)
        return (attributes.table[np.clip(inputs[0], -rows, rows - 1)],)

    def lower(self, node: Node[TableLookupAttributes], context: LoweringContext) -> None:
        stream, order = context.stream(node.inputs[0])
        rows, columns = node.attributes.table.shape
        if stream.typed.interval.lo < -rows:
            stream = context.add("least", [stream], ElementwiseAttributes(MAXIMUM, (None, -rows), None))
        if stream.typed.interval.hi >= rows:
            stream = context.add("most", [stream], ElementwiseAttributes(MINIMUM, (None, rows - 1), None))
        result = context.add("", [stream], TableRowsAttributes(node.attributes.table))
        context.bind(node.outputs[0], result, (order[:, np.newaxis] * columns + np.arange(columns)).reshape(-1))
