"""The state that handlers of ONNX nodes share: views of values, new IR nodes, findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from hwflow.display import show
from hwflow.errors import Finding
from hwflow.frontend.approximation_bits import OF_SCALES, Precision
from hwflow.frontend.error_bounds import Bound, bound_of
from hwflow.frontend.facts import Facts
from hwflow.frontend.stream_types import DECLARE, REAL_TYPES
from hwflow.frontend.views import (
    Anchor,
    Constant,
    Functions,
    HostInput,
    HostOutput,
    Integers,
    Masked,
    QuantizedConstant,
    Reals,
    Sum,
    View,
    fractions,
)
from hwflow.ir.graph import Attributes, Fractions, Meaning, Names, Node, Port, Value
from hwflow.ir.node_attributes import ProductAttributes, RequantizeAttributes
from hwflow.numerics.functions.slopes import greatest_slope
from hwflow.numerics.interval import MOST_EXACT_BITS, length
from hwflow.numerics.interval import Interval as RealInterval
from hwflow.numerics.requantizers.short_scales import shortened
from hwflow.numerics.requantizers.stages import QuantizerStage, Stage
from hwflow.onnxspec.resolving.resolved_model import Array, OnnxNode, ResolvedModel
from hwflow.types import Interval


class Refusal(Exception):
    """Raised by a handler: this node cannot be compiled, for the reasons in ``findings``; lowering goes on."""

    def __init__(self, *findings: Finding) -> None:
        self.findings = findings
        super().__init__("\n".join(finding.message for finding in findings))


@dataclass
class Lowering:
    """State of lowering one model. ``deferred``: why nodes at its end are left to the host. ``reach``: upper bounds of
    the magnitude of sums of products and of streams, where known; ``sums``: the terms of values that are sums;
    ``levels``: what integers mean, by the integer tensor that a quantizer makes or that is dequantized.
    ``bounds``: of nodes' results (:mod:`hwflow.frontend.error_bounds`); ``precision``: of the approximations among
    them, which nodes that no quantizer follows (``at_end``) leave to the host; ``evaluated``: streams whose functions
    they are, by these."""

    model: ResolvedModel
    views: dict[str, View] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    inputs: list[Port] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    deferred: list[Finding] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    value_names: Names = field(default_factory=Names)
    reach: dict[Value, int] = field(default_factory=dict)
    sums: dict[Value, Sum] = field(default_factory=dict)
    levels: dict[str, Meaning] = field(default_factory=dict)
    bounds: dict[Value, Bound] = field(default_factory=dict)
    precision: Precision = field(default_factory=Precision)
    facts: Facts = field(default_factory=Facts)
    evaluated: dict[tuple[object, ...], tuple[Reals, Reals]] = field(default_factory=dict)
    approximations: Names = field(default_factory=Names)
    at_end: frozenset[str] = frozenset()

    def view(self, name: str) -> View:
        return self.views[name]

    def frame_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of one frame of a value: without its first dimension; (1,) where nothing is left."""
        return self.model.values[name].shape[1:] or (1,)

    def real_origin(self, source: OnnxNode) -> str:
        """Return the output of ``source`` where it is a real tensor that new integers represent; "" where it is an
        integer tensor, which the next requantization computes, and where approximations are among its operands."""
        name = source.result
        if any(isinstance(v, Reals) and self.bound(v.value).errors for v in map(self.views.get, source.inputs)):
            return ""
        return name if self.model.values[name].dtype in REAL_TYPES else ""

    def add(
        self, source: OnnxNode, inputs: list[Value], attributes: Attributes, before: tuple[str, ...] = (),
        *, origin: str | None = None, meaning: Meaning | None = None, bound: Bound | None = None,
    ) -> Value:
        """Add an IR node that implements the ONNX node ``source`` and the nodes ``before`` it; its output represents
        the ONNX value ``origin``, by default the node's output ("": none). ``bound``: of the output, where more is
        known than follows from the inputs."""
        name = source.result if origin is None else origin
        if isinstance(attributes, ProductAttributes) and inputs[0] is inputs[1] and len(set(attributes.offsets)) == 1:
            attributes = replace(attributes, square=attributes.wrap is None)
        if bound is None:
            bounds = [self.bound(v) for v in inputs]
            if isinstance(attributes, RequantizeAttributes) and bounds[0].errors:
                attributes = self._rounding(source, attributes, bounds[0])
                bounds = [Bound(bounds[0].interval)]
            bound = bound_of(attributes, bounds)
        if bound is None:
            raise approximated(source)
        value = Value(self.value_names.fresh(name or source.result), None, name, meaning)
        self.bounds[value] = bound
        sources = tuple(dict.fromkeys((*before, source.name)))
        self.nodes.append(Node(self.names.fresh(source.name), inputs, [value], attributes, sources))
        return value

    def bound(self, value: Value) -> Bound:
        """Return what is known of the integers of a value; a stand-in's have 32 bits."""
        if value in self.bounds:
            return self.bounds[value]
        return Bound(_STAND_IN if value.type is None else value.type.interval)

    def _rounding(self, source: OnnxNode, attributes: RequantizeAttributes, bound: Bound) -> RequantizeAttributes:
        """Return a quantizer of approximations with its epsilon; record what it needs of them."""
        assert bound.interval is not None, "an approximation's is known"
        slope = moved = Fraction(0)
        lo, hi = bound.interval.lo - bound.error, bound.interval.hi + bound.error
        short: dict[tuple[Stage, ...], tuple[Stage, ...]] = {}
        for stages in dict.fromkeys(attributes.stages):
            (stage, *rest) = stages
            if rest or not isinstance(stage, QuantizerStage):
                raise approximated(source)
            ends = [stage.scale * (end - stage.zero_point) for end in (lo, hi)]
            own = greatest_slope(stage.functions, RealInterval(min(ends), max(ends)))
            if own is None:
                raise approximated(source, "a function that moves steadily")
            slope = max(slope, own * abs(stage.scale) / stage.out_scale)
            stage, error = shortened(stage, max(abs(end - stage.zero_point) for end in (lo, hi)), OF_SCALES)
            short[stages] = (stage,)
            moved = max(moved, error)
        epsilon = self.precision.need(bound.times(slope), moved)
        return replace(attributes, stages=tuple(short[stages] for stages in attributes.stages), epsilon=epsilon)


_STAND_IN = Interval(1, 1 << 31)
"""Positive, so that a refused node's result is never the fault of a divisor."""

Handler = Callable[[Lowering, OnnxNode], "View | tuple[View, ...]"]
"""Lowers a node: returns the view of its first output, or one view per output."""


def made(value: Value, shape: tuple[int, ...], scale: Fractions, zero_point: Fractions, node: OnnxNode) -> Reals:
    """Return the real result of ``node`` that ``value`` represents by ``scale`` and ``zero_point``."""
    require_short(node, scale, zero_point)
    return Reals(value, shape, scale, zero_point, Anchor(node.result, value, scale, zero_point))


def require_short(node: OnnxNode, *parameters: Fractions) -> None:
    """Refuse a result of ``node`` whose scales or zero points are too long to compute with: each product of two streams
    doubles their length."""
    size = max(length(v) for values in parameters for v in values.reshape(-1))
    if size > MOST_EXACT_BITS:
        raise refuse(
            node, "scale-bits",
            f"scale and zero point of the result must be numbers of at most {MOST_EXACT_BITS} bits, not of {size}",
            f"insert QuantizeLinear and DequantizeLinear before {show(node.name)}",
        )


def moved(view: Reals, node: OnnxNode, value: Value, shape: tuple[int, ...], move: Callable[[Any], Any]) -> Reals:
    """Return ``view`` after a node that only moves elements: ``value`` holds them in their new places, and ``move``
    moves scales, zero points and functions likewise. (Neither hardware nor host pays for a move.)"""
    return replace(
        view, value=value, shape=shape, scale=move(view.scale), zero_point=move(view.zero_point),
        functions=tuple(move(f) for f in view.functions), after=(*view.after, node.name),
    )


def behind(view: Reals, node: OnnxNode, function: Functions) -> Reals:
    """Apply one more function, the work of ``node``, to reals."""
    return replace(
        view, functions=(*view.functions, function), nodes=(*view.nodes, node.name), after=(*view.after, node.name)
    )


def refuse(node: OnnxNode, rule: str, message: str, remedy: str) -> Refusal:
    """Return a refusal of ``node``; the caller raises it."""
    return Refusal(Finding(rule, node.where, message, remedy))


def require_behind(state: Lowering, node: OnnxNode, rule: str, message: str, remedy: str) -> None:
    """Refuse a node that must approximate, but has no quantizer behind it that says how precisely: the host runs it."""
    if node.name in state.at_end:
        raise refuse(node, rule, message, remedy)


def approximated(node: OnnxNode, what: str = "a sum, a product or a quantizer") -> Refusal:
    """Return the refusal of a node with an approximated operand."""
    return refuse(
        node, "approximated-operand",
        f"behind quotients, roots and exponentials of streams, which are approximated, there must be {what}, not "
        f"{node.op_type}", f"insert QuantizeLinear and DequantizeLinear before {show(node.name)}",
    )


def given(node: OnnxNode, index: int) -> bool:
    """Tell whether the node has input ``index``."""
    return len(node.inputs) > index and node.inputs[index] != ""


def constant(state: Lowering, node: OnnxNode, index: int, what: str) -> Constant:
    """Return input ``index`` as a plain constant, or refuse the node."""
    view = state.view(node.inputs[index])
    if not isinstance(view, Constant):
        raise _not_constant(node, index, what)
    return view


def constant_integers(state: Lowering, node: OnnxNode, index: int, what: str) -> tuple[int, ...]:
    """Return the integers of input ``index``, a plain constant, or refuse the node."""
    return tuple(int(v) for v in constant(state, node, index, what).array.reshape(-1))


def exact_constant(state: Lowering, node: OnnxNode, index: int, what: str) -> Fractions:
    """Return input ``index``, a constant of any kind, as exact reals, or refuse the node."""
    view = state.view(node.inputs[index])
    if isinstance(view, QuantizedConstant):
        return view.real()
    if not isinstance(view, Constant):
        raise _not_constant(node, index, what)
    require_finite(node, index, what, view.array)
    return fractions(view.array)


def require_finite(node: OnnxNode, index: int, what: str, array: Array) -> None:
    """Refuse a constant, input ``index``, with an infinity or a NaN."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        found = array[~np.isfinite(array)].reshape(-1)[0]
        raise refuse(
            node, "finite-constant", f"{what} {show(node.inputs[index])} must be finite, not {found}",
            "use a finite number (for an infinity, one that saturates the next quantizer)",
        )


def finite(node: OnnxNode, name: str, default: float) -> Fraction:
    """Return float attribute ``name``, exactly; refuse a value that is not finite."""
    value = node.attributes.get(name, default)
    assert isinstance(value, int | float)
    if not isfinite(value):
        raise refuse(node, "finite-constant", f"{name} must be finite, not {value}", "give it a finite number")
    return Fraction(value)


def _not_constant(node: OnnxNode, index: int, what: str) -> Refusal:
    return refuse(
        node, "constant-parameter", f"{what} {show(node.inputs[index])} must be a constant, not computed at run time",
        "make it an initializer, or leave the node to the host, before the first or after the last quantizer",
    )


def reals(state: Lowering, node: OnnxNode, index: int) -> Reals:
    """Return input ``index`` as a real tensor that integers represent, or refuse the node."""
    view = state.view(node.inputs[index])
    if isinstance(view, Reals):
        return view
    if isinstance(view, Constant | QuantizedConstant):
        raise refuse(
            node, "stream-operand", f"input {show(node.inputs[index])} must be computed at run time, not be a constant",
            "fold the node, or swap its operands if it has several (those of a matrix product transposed)",
        )
    found = {
        Integers: "an integer tensor without a scale",
        Masked: "one with elements that a mask has made minus infinity or the like",
        HostInput: "a float graph input" if node.inputs[index] in state.model.inputs else "a float tensor",
        HostOutput: "a result of the host, after the last quantizer",
    }[type(view)]
    remedy = "quantize the model so that QuantizeLinear and DequantizeLinear precede this node"
    if isinstance(view, Masked):
        remedy = "put a Softmax or a quantizer right behind the mask"
    if isinstance(view, HostInput):
        remedy += f", or {DECLARE}"
    raise refuse(
        node, "quantized-operand",
        f"input {show(node.inputs[index])} must be the result of DequantizeLinear (or of operators after it), "
        f"not {found}", remedy,
    )
