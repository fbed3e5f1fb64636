"""Compare components by all that their hardware depends on, so that equal ones are converted once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib.data import Layout
from amaranth.lib.wiring import Component

DEEPEST = 10  # parts within parts; an attribute may lead back


class NoStructure(Exception):
    """Something in a component is not known to be compared by value."""


def structure_of(component: Component, name: str) -> Hashable:
    """Return what is equal for components with equal hardware but for ``name``, with which files' names begin.

    These are their classes, signatures and attributes. Raises :class:`NoStructure` for an attribute that is neither a
    number, a text, a shape nor made of such.
    """
    return _structure(component, name, DEEPEST)


def _structure(value: object, name: str, depth: int) -> Hashable:
    kind = type(value)
    if not depth:
        raise NoStructure(kind.__name__)
    if isinstance(value, str):
        return kind, value.replace(f"weights/{name}", "weights/")
    if value is None or isinstance(value, int | float | bytes | Fraction | Enum | Shape | type):
        return kind, value
    if isinstance(value, Layout):
        return kind, repr(value)
    if isinstance(value, np.ndarray):
        return kind, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return kind, _structure([pair for item in value.items() for pair in item], name, depth - 1)
    if isinstance(value, tuple | list):
        return kind, tuple([_structure(item, name, depth - 1) for item in value])
    if isinstance(value, set | frozenset):
        return kind, frozenset([_structure(item, name, depth - 1) for item in value])
    if isinstance(value, Component):
        ports = set(value.signature.members)
        own = [(key, item) for key, item in vars(value).items() if key not in ports and not key.startswith(_OTHERS)]
        return kind, repr(value.signature), tuple([(key, _structure(item, name, depth - 1)) for key, item in own])
    if is_dataclass(value) and not isinstance(value, type):
        return kind, tuple([_structure(getattr(value, field.name), name, depth - 1) for field in fields(value)])
    raise NoStructure(kind.__name__)


_OTHERS = ("_Component__", "_MustUse__")  # what Amaranth keeps in a component
