"""When two nodes say the same of their operators: attributes are compared by what they hold."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np

from hwflow.ir.graph import Attributes, Node
from hwflow.ir.node_attributes import RequantizeAttributes

_PLAIN = (bool, int, float, str, bytes, Fraction, Enum, type, type(None))


@dataclass
class Structures:
    """Keys of objects: equal ones for objects that hold the same. An object's key is computed once."""

    _known: dict[int, tuple[object, Hashable]] = field(default_factory=dict)

    def of_node(self, node: Node, attributes: Attributes | None = None) -> Hashable:
        """Return the key of a typed node: of its attributes (or of ``attributes`` in place of them), without those that
        follow from its types, of its shapes, and of which operands are the same."""
        shapes = tuple(value.typed.shape for value in (*node.inputs, *node.outputs))
        same = tuple(node.inputs.index(value) for value in node.inputs)
        return (same, shapes, self.of_attributes(node.attributes if attributes is None else attributes))

    def of_attributes(self, attributes: Attributes) -> Hashable:
        """Return the key of attributes without those that follow from types."""
        return self.of(_own(attributes))

    def of(self, given: Any) -> Hashable:
        """Return the key of any object of plain Python, numpy and dataclasses; another one equals only itself."""
        if isinstance(given, _PLAIN):
            return (type(given), given)
        if id(given) not in self._known:
            self._known[id(given)] = (given, self._made(given))  # what is kept alive keeps its id
        return self._known[id(given)][1]

    def _made(self, given: Any) -> Hashable:
        if isinstance(given, np.ndarray):
            if given.dtype.hasobject:
                return (given.shape, tuple(map(self.of, given.reshape(-1).tolist())))
            return (given.shape, given.dtype.str, sha256(given.tobytes()).digest())
        if isinstance(given, tuple | list):
            return (type(given), tuple(map(self.of, given)))
        if is_dataclass(given) and not isinstance(given, type):
            return (type(given), tuple(self.of(getattr(given, each.name)) for each in fields(given)))
        return (type(given), id(given))


def _own(attributes: Attributes) -> Attributes:
    """Return attributes without derived ones."""
    return replace(attributes, steps=()) if isinstance(attributes, RequantizeAttributes) else attributes
