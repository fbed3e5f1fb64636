"""Normalizations of onnxruntime's transformers: without a mean, and of the sum with what skips a block."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from hwflow.frontend.context import Handler, Lowering, exact_constant, finite, given, reals, refuse
from hwflow.frontend.frames import axes
from hwflow.frontend.frames.frame_model import Build
from hwflow.frontend.views import Integers, Reals, View, fractions
from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Use
from hwflow.onnxspec.dialect_operators import norm_operators
from hwflow.onnxspec.reference import framewise
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.onnxspec.shapes import dialect_forms, dialects
from hwflow.operators.elementwise.arithmetic import affine, combined, sum_of
from hwflow.operators.float_errors import norm_errors
from hwflow.operators.moves.moves import broadcast
from hwflow.operators.norms.normalizations import LIMITS, finished, from_axis, normalized, scaled, statistics
from hwflow.operators.record import MICROSOFT, Operator, attributes

_BECOMES = ("product", "quotient", "root", "scaled_add", "sum_pool2d")


def _sum(state: Lowering, node: OnnxNode, bias: int) -> Reals:
    """Return input 0 plus input 1 plus the constant ``bias``, where that is given."""
    left, right = reals(state, node, 0), reals(state, node, 1)
    if left.value is right.value and left.shape == right.shape:
        total = combined(node, "add", left, right)
    else:
        target = state.model.values[node.inputs[0]].shape
        whole = state.model.values[node.inputs[1]].shape
        if len(whole) != len(target):
            raise refuse(
                node, "skip-rank",
                f"the second input must have as many axes as the first, {len(target)}, not {len(whole)}",
                "reshape it to (frames, ...)",
            )
        total = sum_of(state, node, left, broadcast(state, node, right, whole, target))
    if not given(node, bias):
        return total
    return affine(total, node, fractions(1), exact_constant(state, node, bias, "bias"))


def _skipping(*, centred: bool) -> Handler:
    """Return the handler of a sum, its normalization along the last axis, and a constant scale."""
    places = (2, 3 if centred else None)

    def handler(state: Lowering, node: OnnxNode) -> View | tuple[View, ...]:
        total = _sum(state, node, 4 if centred else 3)
        epsilon = finite(node, "epsilon", float(np.float32(1e-12)))
        rows = (len(total.shape) - 1,)
        result, spread = normalized(state, node, total, rows, epsilon, centred=centred)
        results = [scaled(state, node, result, places, ()), total, total, total]
        if any(node.outputs[1:3]):
            results[1:3] = statistics(state, node, total, rows, spread)
        return tuple(finished(node, total, each) for each in results[: len(node.outputs)])

    return handler


def _by_layer_normalization(use: Use) -> onnx.FunctionProto:
    """Define the norm for the quantizer: ai.onnx has it, too."""
    call = Call.of(use)
    body = DialectWriter(call, 17)
    total = body.let(f"Add ({body.argument(0)}, {body.argument(1)})")
    if call.shape(4) is not None:
        total = body.let(f"Add ({total}, {body.argument(4)})")
    operands = ", ".join(name for name in (total, body.argument(2), body.argument(3)) if name)
    epsilon = f"{call.real('epsilon', 1e-12):.9e}"
    results = body.several(f"LayerNormalization <axis = -1, epsilon = {epsilon}> ({operands})", 3)
    return body.returned(*results, total)


def _by_mean_of_squares(use: Use) -> onnx.FunctionProto:
    """Define the norm without a mean for the quantizer: onnxruntime has it in ai.onnx, where this is no operator."""
    call = Call.of(use)
    body, rank = DialectWriter(call, 18), len(call.shape(0) or ())
    x, scale = body.argument(0), body.argument(1)
    rows = body.integers(range(call.integer("axis", -1) % rank, rank))
    mean = body.let(f"ReduceMean ({body.let(f'Mul ({x}, {x})')}, {rows})")
    spread = body.let(f"Add ({mean}, {body.number(call.real('epsilon', 1e-5), call.kind(0))})")
    norm = body.let(f"Sqrt ({spread})")
    result = body.let(f"Mul ({body.let(f'Div ({x}, {norm})')}, {scale})")
    return body.returned(result, body.let(f"Reciprocal ({norm})"))


def _independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    rule = axes.elementwise(0, 1)
    return _rows_alone(build, node) and rule.independent(build, _summands(node), copy)


def _batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    rule = axes.elementwise(0, 1).batched
    return _parameters(build, node) and rule is not None and rule(build, _summands(node), copy)


def _rows_alone(build: Build, node: OnnxNode) -> bool:
    return len(build.shape(node.inputs[0])) > 1 and _parameters(build, node)


def _parameters(build: Build, node: OnnxNode) -> bool:
    return not build.streams(node.inputs[2:])


def _summands(node: OnnxNode) -> OnnxNode:
    return replace(node, inputs=node.inputs[:2])


def _record(name: str, lower: Handler, **facts: Any) -> Operator:
    return Operator(
        name, lower=lower, domains=MICROSOFT, limits=LIMITS, becomes=_BECOMES, needs=(Integers, Reals),
        approximates=True, shape=dialects.same, **facts,
    )


_SKIP = axes.BatchingRule(_independent, _batched)

RECORDS = (
    _record(
        "SimplifiedLayerNormalization", from_axis(centred=False),
        honours=attributes("axis", "epsilon", "stash_type"), frames=axes.along(-1), framewise=framewise.inner_axis,
        error=norm_errors.normalization(norm_errors.from_axis, centred=False), in_default_domain=True,
        form=dialect_forms.normalization(("X", "scale"), (), axis="integer", epsilon="real", stash_type="integer"),
        definition=_by_mean_of_squares, evaluate=norm_operators.simplified_layer_normalization,
    ),
    _record(
        "SkipLayerNormalization", _skipping(centred=True), honours=attributes("epsilon"), frames=_SKIP,
        framewise=framewise.data(0, 1), error=norm_errors.skipped(), alike=(3,),
        form=dialect_forms.normalization(("input", "skip", "gamma"), ("beta", "bias"), epsilon="real"),
        definition=_by_layer_normalization, evaluate=norm_operators.skip_layer_normalization,
    ),
    _record(
        "SkipSimplifiedLayerNormalization", _skipping(centred=False), honours=attributes("epsilon"), frames=_SKIP,
        framewise=framewise.data(0, 1), error=norm_errors.skipped(centred=False), alike=(3,),
        form=dialect_forms.normalization(("input", "skip", "gamma"), ("bias",), epsilon="real"),
        evaluate=norm_operators.skip_simplified_layer_normalization,
    ),
)
