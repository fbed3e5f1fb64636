"""Count the parameters of a model.

A parameter is an element of a constant that live nodes read as data: weights, biases, normalisation statistics, tables.
Scales and zero points, scalars, and int64 tensors (shapes, axes, indices) do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.resolving.resolved_model import Array, OnnxNode, ValueInfo


def count_parameters(nodes: Iterable[OnnxNode], constants: Mapping[str, Array], values: Mapping[str, ValueInfo]) -> int:
    """Count the elements of the constants that the nodes read as data; a constant read twice counts once."""
    names: set[str] = set()
    for node in nodes:
        data = facts_of(node.domain, node.op_type).data
        positions = range(len(node.inputs)) if data is None else data
        names.update(node.inputs[i] for i in positions if i < len(node.inputs) and node.inputs[i] in constants)
    return sum(constants[n].size for n in names if constants[n].ndim and values[n].dtype not in ("int64", "string"))
