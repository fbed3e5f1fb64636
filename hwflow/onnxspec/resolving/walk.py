"""What replacing a node needs of the walk over the model: its values so far, constants, names, refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import onnx
from onnx import helper

from hwflow.onnxspec.graphs.bodies import Body
from hwflow.onnxspec.graphs.inline import Imports, Inliner, Item
from hwflow.onnxspec.graphs.operator_names import UNSQUEEZE
from hwflow.onnxspec.resolving.resolved_model import Array, ValueInfo

_AXES_AS_INPUT = 13  # version of Unsqueeze and Squeeze


class Walk(Protocol):
    """The walk over a model. ``sequences``: the tensors (or sequences) in each sequence; ``optionals``: the value in
    each optional, "" if there is none. Both are known when a model is compiled, so they are names only."""

    constants: dict[str, Array]
    values: dict[str, ValueInfo]
    sequences: dict[str, tuple[str, ...]]
    optionals: dict[str, str]

    @property
    def inliner(self) -> Inliner: ...

    def constant(self, stem: str, array: Array, dtype: str) -> str:
        """Add a constant to the model and return its name."""

    def body(self, graph: onnx.GraphProto, prefix: str, imports: Imports) -> Body:
        """Return a graph to be instantiated, and read its initializers."""

    def refuse(self, item: Item, rule: str, message: str, remedy: str, reads: Sequence[str] = ()) -> None:
        """Record a node that cannot be replaced, with a finding; an empty message for none. ``reads``: values that it
        reads beside its own."""

    def known(self, name: str) -> bool:
        """Tell whether a value is a tensor of known shape, a sequence or an optional."""


def made(
    walk: Walk, item: Item, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
) -> Item:
    """Return a node of ai.onnx that replaces ``item``, at its place."""
    return made_as(walk, item, item.imports, helper.make_node(op_type, inputs, outputs, **attributes))


def made_as(walk: Walk, item: Item, imports: Imports, node: onnx.NodeProto) -> Item:
    """Return ``node``, of the versions ``imports``, in place of ``item``."""
    return Item(node, walk.inliner.node_name(f"{item.name}/{node.op_type}"), imports, item.context)


def integers(walk: Walk, stem: str, values: int | Sequence[int]) -> str:
    """Add an int64 constant and return its name."""
    return walk.constant(stem, np.array(values, np.int64), "int64")


def unsqueezed(walk: Walk, item: Item, name: str, axis: int, result: str, op_type: str = UNSQUEEZE) -> Item:
    """Return the node that adds ``axis`` to a value, or with Squeeze as ``op_type`` removes it."""
    if item.imports[""] < _AXES_AS_INPUT:
        return made(walk, item, op_type, [name], [result], axes=[axis])
    return made(walk, item, op_type, [name, integers(walk, f"{result}/axes", [axis])], [result])


def attribute_ints(attributes: Mapping[str, onnx.AttributeProto], name: str, count: int) -> list[int]:
    """Return a list attribute of ``count`` integers, by default zeros."""
    return list(attributes[name].ints) if name in attributes and attributes[name].ints else [0] * count
