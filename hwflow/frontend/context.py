"""What handlers of ONNX nodes work with: views of values, new IR nodes, findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from hwflow.errors import Finding
from hwflow.frontend.views import (
    Constant,
    Fractions,
    HostInput,
    Integers,
    QuantizedConstant,
    Reals,
    View,
    fractions,
    uniform,
)
from hwflow.ir.graph import Names, Node, Port, Value
from hwflow.onnxspec.model import OnnxNode, ResolvedModel
from hwflow.types import IntType

INTEGER_TYPES: Mapping[str, IntType] = {
    f"{prefix}int{bits}": IntType(bits, prefix == "") for bits in (2, 4, 8, 16, 32) for prefix in ("", "u")
}
"""ONNX integer element types that can be hardware values, by name."""

REAL_TYPES = frozenset({"float16", "bfloat16", "float32", "float64"})
"""ONNX element types that stand for real numbers: what an integer's scale makes of it, until the next quantizer."""


class Refusal(Exception):
    """Raised by a handler: this node cannot be compiled, for the reason in ``finding``; lowering goes on."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.message)


@dataclass
class Lowering:
    """State of lowering one model."""

    model: ResolvedModel
    views: dict[str, View] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    inputs: list[Port] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    value_names: Names = field(default_factory=Names)

    def view(self, name: str) -> View:
        return self.views[name]

    def frame_shape(self, name: str) -> tuple[int, ...]:
        """The shape of one frame of a value: without its first dimension; (1,) where nothing is left."""
        return self.model.values[name].shape[1:] or (1,)

    def add(
        self, op: str, source: OnnxNode, inputs: list[Value], attributes: dict[str, Any], before: tuple[str, ...] = ()
    ) -> Value:
        """A new IR node that does the work of ONNX node ``source``, and of the nodes ``before`` it; its output, named
        after the ONNX output."""
        value = Value(self.value_names.fresh(source.outputs[0]), None, source.outputs[0])
        sources = (*before, source.name)
        self.nodes.append(Node(self.names.fresh(source.name), op, inputs, [value], attributes, sources))
        return value


Handler = Callable[[Lowering, OnnxNode], View]


def refuse(node: OnnxNode, rule: str, message: str, remedy: str) -> Refusal:
    """A refusal of ``node``; the caller raises it."""
    return Refusal(Finding(rule, node.where, message, remedy))


def constant(state: Lowering, node: OnnxNode, index: int, what: str) -> Constant:
    """Input ``index`` as a plain constant."""
    view = state.view(node.inputs[index])
    if not isinstance(view, Constant):
        raise _not_constant(node, index, what)
    return view


def exact_constant(state: Lowering, node: OnnxNode, index: int, what: str) -> Fractions:
    """Input ``index``, a constant of any kind, as exact reals."""
    view = state.view(node.inputs[index])
    if isinstance(view, QuantizedConstant):
        return view.real()
    if not isinstance(view, Constant):
        raise _not_constant(node, index, what)
    array = view.array
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        found = array[~np.isfinite(array)].reshape(-1)[0]
        raise refuse(
            node, "finite-constant", f"{what} '{node.inputs[index]}' must be finite, not {found}",
            "export the model again",
        )
    return fractions(array)


def finite(node: OnnxNode, name: str, default: float) -> Fraction:
    """Float attribute ``name``, exactly."""
    value = node.attributes.get(name, default)
    assert isinstance(value, int | float)
    if not isfinite(value):
        raise refuse(node, "finite-constant", f"{name} must be finite, not {value}", "export the model again")
    return Fraction(value)


def _not_constant(node: OnnxNode, index: int, what: str) -> Refusal:
    return refuse(
        node, "constant-parameter", f"{what} '{node.inputs[index]}' must be a constant, not computed at run time",
        "make it an initializer",
    )


def reals(state: Lowering, node: OnnxNode, index: int) -> Reals:
    """Input ``index`` as a real tensor that integers carry."""
    view = state.view(node.inputs[index])
    if isinstance(view, Reals):
        return view
    found = {
        Constant: "a constant",
        QuantizedConstant: "a constant",
        Integers: "an integer tensor without a scale",
        HostInput: "a float graph input",
    }[type(view)]
    raise refuse(
        node, "quantized-operand",
        f"input '{node.inputs[index]}' must be the result of DequantizeLinear (or of operators behind it), "
        f"not {found}",
        "quantize the model so that QuantizeLinear and DequantizeLinear stand before this node",
    )


def plain_reals(state: Lowering, node: OnnxNode, index: int) -> Reals:
    """Input ``index`` as a real tensor that is one scale and zero point away from integers, both the same everywhere
    and the zero point an integer."""
    view = reals(state, node, index)
    name = node.inputs[index]
    if view.functions:
        kinds = ", ".join(type(f).__name__ for f in view.functions)
        raise refuse(
            node, "quantized-operand", f"input '{name}' must be quantized after {kinds}, not left in float",
            f"insert QuantizeLinear and DequantizeLinear on '{name}'",
        )
    scale, zero_point = uniform(view.scale), uniform(view.zero_point)
    if scale is None or zero_point is None or zero_point.denominator != 1:
        raise refuse(
            node, "quantized-operand",
            f"input '{name}' must have one scale and one integer zero point, not several or a fraction",
            f"insert QuantizeLinear and DequantizeLinear with a scalar scale on '{name}'",
        )
    return view
