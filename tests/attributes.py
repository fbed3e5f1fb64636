"""Attributes of an operator by the operator's name."""

from __future__ import annotations

from typing import Any

from hwflow.cores.registry import OPERATORS
from hwflow.ir.graph import Attributes
from hwflow.ir.node_attributes import Window


def attributes_of(op: str, **values: Any) -> Attributes:
    """Those of operator ``op``; a pool's window is made of kernel, strides, pads and dilations."""
    if "kernel" in values:
        values["window"] = Window(*(values.pop(name) for name in ("kernel", "strides", "pads", "dilations")))
    return OPERATORS[op].attributes(**values)
