"""Attributes of an operator by the operator's name."""

from __future__ import annotations

from typing import Any, get_args

from hwflow.cores.registry import OPERATORS
from hwflow.ir.graph import Attributes
from hwflow.ir.node_attributes import Window


def attributes_of(op: str, **values: Any) -> Attributes:
    """Those of operator ``op``; a pool's window is made of kernel, strides, pads and dilations."""
    (kind,) = {
        argument
        for kind in type(OPERATORS[op]).__mro__ for base in getattr(kind, "__orig_bases__", ())
        for argument in get_args(base) if isinstance(argument, type)
    }
    if "kernel" in values:
        values["window"] = Window(*(values.pop(name) for name in ("kernel", "strides", "pads", "dilations")))
    made: Attributes = kind(**values)
    return made
