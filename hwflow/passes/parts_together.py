"""Find in which order the outputs of a matrix product come best: parts of them that meet again, side by side.

The gates of a recurrent cell are one product, which is split and then multiplied element by element. If one gate came
after the other, all but the last would wait in queues as long as a gate. With element 0 of every gate first, then
element 1 of every gate, they meet as they come. Weights are constants, so this order costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hwflow.ir.graph import Graph, IntArray, Node, Value
from hwflow.ir.node_attributes import (
    DenseAttributes,
    ElementwiseAttributes,
    LoopAttributes,
    ProductAttributes,
    ReindexAttributes,
    RequantizeAttributes,
    ReshapeAttributes,
    ScaledAddAttributes,
    TransposeAttributes,
)

Part: TypeAlias = tuple[int, int]
"""First index and length, along the last axis."""

_JOIN = (ElementwiseAttributes, ProductAttributes, ScaledAddAttributes)


@dataclass(frozen=True)
class _Readers:
    """What reads a value. ``parts``: those that it is split into along its last axis; None where something needs
    another order. ``meets``: its elements meet those of another value, one by one."""

    parts: frozenset[Part] | None = frozenset()
    meets: bool = False


_OTHERS = _Readers(None)


def orders_of_parts(graph: Graph) -> Mapping[Value, IntArray]:
    """Return, for each value of a quantized graph that is split into equal parts of its last axis which meet again, the
    indices along that axis in the order in which the parts come together. Takes each node once."""
    found = {}
    for value, readers in _all_readers(graph).items():
        order = _order(readers.parts, value.typed.shape[-1]) if value.typed.shape else None
        if order is not None:
            found[value] = order
    return found


def _all_readers(graph: Graph) -> dict[Value, _Readers]:
    read: dict[Value, _Readers] = {port.value: _OTHERS for port in graph.outputs}
    for node in reversed(graph.nodes):
        if isinstance(node.attributes, LoopAttributes):
            wanted = _of_loop(node.attributes)
        else:
            wanted = [_through(node, value, read) for value in node.inputs]
        for value, readers in zip(node.inputs, wanted, strict=True):
            read[value] = _both(read.get(value, _Readers()), readers)
    return read


def _of_loop(loop: LoopAttributes) -> list[_Readers]:
    """Return how a loop's body reads each operand: the rows that it takes, and the loop's others."""
    read = _all_readers(loop.body)
    rows = [read.get(port.value, _OTHERS) if port.shape else _OTHERS for port in loop.body.inputs[: loop.scanned]]
    given = sum(first is None for first in loop.first) + len(loop.body.inputs) - loop.scanned - len(loop.first)
    return rows + [_OTHERS] * given


def _both(some: _Readers, others: _Readers) -> _Readers:
    parts = None if some.parts is None or others.parts is None else some.parts | others.parts
    return _Readers(parts, some.meets or others.meets)


def _through(node: Node, value: Value, read: Mapping[Value, _Readers]) -> _Readers:
    """Return what a node, and what reads its result, wants of one of its operands."""
    given = node.attributes
    if isinstance(given, DenseAttributes):
        return _Readers()  # permutes its weights
    behind = read.get(node.outputs[0], _Readers())
    result, source = (each.typed.shape for each in (node.outputs[0], value))
    if isinstance(given, _JOIN) and result == source:
        return _Readers(behind.parts or None, True)
    if isinstance(given, RequantizeAttributes):
        return behind
    if isinstance(given, ReshapeAttributes) and result[-1:] == source[-1:]:
        return behind
    if isinstance(given, TransposeAttributes) and given.perm[-1] == len(source) - 1:
        return behind
    if isinstance(given, ReindexAttributes) and source:
        return _sliced(given.index, source[-1], behind)
    return _OTHERS


def _sliced(index: IntArray, length: int, behind: _Readers) -> _Readers:
    """Return what is wanted of rows of ``length`` elements by what reads some consecutive ones of each."""
    if not index.ndim or (index < 0).any():
        return _OTHERS
    columns = (index % length).reshape(-1, index.shape[-1])
    first, count = int(columns[0, 0]), columns.shape[1]
    if (columns != np.arange(first, first + count)).any():
        return _OTHERS
    if count == length:
        return behind
    if behind.parts:
        return _Readers(frozenset((first + start, size) for start, size in behind.parts), behind.meets)
    return _Readers(frozenset({(first, count)})) if behind.meets else _OTHERS


def _order(parts: frozenset[Part] | None, length: int) -> IntArray | None:
    """Return the indices of all parts' first elements, then of their second ones, and so on; None where they are not
    equally long and all there is."""
    if not parts:
        return None
    each = length // len(parts)
    if parts != {(start, each) for start in range(0, length, each)} or each * len(parts) != length:
        return None
    return np.arange(length).reshape(len(parts), each).T.reshape(-1)
