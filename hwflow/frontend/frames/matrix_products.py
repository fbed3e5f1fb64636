"""The batching rules of matrix products, see :mod:`hwflow.frontend.frames.axes`."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

from hwflow.frontend.frames import following
from hwflow.frontend.frames.axes import BatchingRule, NodeRewrite
from hwflow.frontend.frames.frame_model import Build
from hwflow.onnxspec.graphs.operator_names import ADD, CAST, MAT_MUL, MAT_MUL_INTEGER, MUL, QUANTIZE_LINEAR, TRANSPOSE
from hwflow.onnxspec.reading.numpy_tensors import ELEMENT_TYPES
from hwflow.onnxspec.resolving.resolved_model import Array, OnnxNode


def matmul(left: int, right: int, columns: Container[int] = ()) -> BatchingRule:
    """Return the rule of the product of inputs ``left`` and ``right``, as numpy's matmul. ``columns``: places of the
    parameters that may be per column; others are scalars."""
    follow = following.multiplied if (left, right) == (0, 1) and not columns else None
    return BatchingRule(
        _matmul_independent(left, right, columns), _matmul_batched(left, right, columns), follow=follow
    )


def _matmul_independent(left: int, right: int, columns: Container[int]) -> NodeRewrite:
    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        rank = len(build.shape(node.result))
        for place, other in ((left, right), (right, left)):
            name, axes = node.inputs[place], len(build.shape(node.inputs[place]))
            # A vector on the other side removes an axis. The rows of a right operand would be summed over.
            kept = rank + (len(build.shape(node.inputs[other])) == 1)
            if not build.is_fixed(name) and not axes == kept >= (2 if place == left else 3):
                return False
            if build.is_fixed(name) and axes == rank > 2:
                first = build.first(name)
                if first is None:
                    return False
                copy.input[place] = first
        return _parameters(build, node, (left, right), columns)

    return independent


def _matmul_batched(left: int, right: int, columns: Container[int]) -> NodeRewrite:
    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        ranks = {place: len(build.shape(node.inputs[place])) for place in (left, right)}
        most = max(*ranks.values(), 2)
        promoted = False
        for place in (left, right):
            name, rank, other = node.inputs[place], ranks[place], right if place == left else left
            if build.is_fixed(name):
                if rank == most > 2:
                    copy.input[place] = build.with_leading_axis(name)
            elif rank == 1 and (place == right or ranks[other] > 2 or not build.is_fixed(node.inputs[other])):
                # A vector is one row or one column; the new axis must be neither.
                ones = (1,) * (most - 2)
                inner = (1, *build.shape(name)) if place == left else (*build.shape(name), 1)
                copy.input[place] = build.reshaped(name, (-1, *ones, *inner))
                promoted = True
            elif 1 < rank < most:  # the new axis must be none of a batch of matrices on the other side
                copy.input[place] = build.reshaped(name, (-1, *(1,) * (most - rank), *build.shape(name)))
        if promoted:
            build.result_in(copy, 0, (-1, *build.shape(node.result)))
        return _parameters(build, node, (left, right), columns)

    return batched


def _parameters(build: Build, node: OnnxNode, matrices: tuple[int, int], columns: Container[int]) -> bool:
    """Tell whether scales, zero points and biases are fixed, and scalars (those in ``columns`` may be per column): the
    left operand's rows are frames, or get an axis in front."""
    others = {place: name for place, name in enumerate(node.inputs) if place not in matrices}
    vectors = [name for place, name in others.items() if place in columns and name]
    return all(build.is_fixed(name) and len(build.shape(name)) < 2 for name in vectors) and build.single(
        name for place, name in others.items() if place not in columns
    )


def gemm_independent(a: int, b: int, c: int) -> NodeRewrite:
    """Return the ``independent`` of alpha * A' * B' + beta * C, inputs at these places: the rows of A are frames."""

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        if build.is_fixed(node.inputs[a]) or node.integer("transA"):
            return False
        rows = [node.inputs[a]]
        if len(node.inputs) > c and node.inputs[c] and len(build.shape(node.inputs[c])) == 2:
            if build.is_fixed(node.inputs[c]):
                first = build.first(node.inputs[c])
                if first is None:
                    return False
                copy.input[c] = first
            else:
                rows.append(node.inputs[c])
        single = range(a + 1, b)  # A's scale and zero point
        return build.streams(node.inputs) == rows and build.single(node.inputs[i] for i in single)

    return independent


def gemm_batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Rewrite Gemm as a MatMul, a Mul by alpha and an Add of beta * C, which take any number of axes."""
    a, b, *c = (*node.inputs[:2], *(name for name in node.inputs[2:] if name))
    alpha, beta = _factor(node, "alpha"), _factor(node, "beta")
    if not build.streams((a, b)) or node.version < 7:
        return False
    if c and not build.is_fixed(c[0]):
        c = [_addend(build, node, c[0], beta)]
    elif c and beta != 1:
        if not build.is_constant(c[0]):
            return False
        wide = build.constant(c[0]).astype(np.float64) * beta.astype(np.float64)  # exact: 48 bits
        if (wide.astype(np.float32) != wide).any():
            return False
        c = [build.add(c[0], wide.astype(np.float32), build.resolved.values[c[0]].dtype)]
    a, b = _turned(build, node, a, "transA"), _turned(build, node, b, "transB")
    copy.op_type = MAT_MUL
    del copy.attribute[:], copy.input[:]
    copy.input.extend([a, b])
    kind = build.resolved.values[node.result].dtype
    factors = [] if alpha == 1 else [build.add(node.result, alpha, kind)]
    _chain(build, copy, [*(_Step(MUL, [name]) for name in factors), *(_Step(ADD, [name]) for name in c)])
    return True


def qgemm_batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Rewrite QGemm as a MatMulInteger, an Add of C, products with the scales and alpha, and a quantizer."""
    a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero = (*node.inputs, *("",) * (9 - len(node.inputs)))
    if build.streams(node.inputs) not in ([a], [b], [a, b]) or not build.single((a_scale, a_zero, y_scale, y_zero)):
        return False
    if any(len(build.shape(name)) > 1 for name in (b_scale, b_zero) if name):
        return False
    kind = build.resolved.values[a_scale].dtype
    alpha = _factor(node, "alpha")
    a, b = _turned(build, node, a, "transA"), _turned(build, node, b, "transB")
    copy.op_type, copy.domain = MAT_MUL_INTEGER, ""
    del copy.attribute[:], copy.input[:]
    copy.input.extend([a, b, a_zero, b_zero])
    steps = [_Step(ADD, [c])] * bool(c)
    steps += [_Step(CAST, [], {"to": ELEMENT_TYPES[kind]}), _Step(MUL, [a_scale]), _Step(MUL, [b_scale])]
    if alpha != 1:
        steps.append(_Step(MUL, [build.add(node.result, alpha, kind)]))
    if y_scale:
        steps.append(_Step(QUANTIZE_LINEAR, [y_scale, y_zero] if y_zero else [y_scale]))
    _chain(build, copy, steps)
    return True


def _addend(build: Build, node: OnnxNode, name: str, beta: Array) -> str:
    """Return beta times a stream, as matrices of one row for each frame if it is a vector."""
    shape = build.shape(name)
    if len(shape) < 2:
        name = build.reshaped(name, (-1, *(1,) * (2 - len(shape)), *shape))
    if beta == 1:
        return name
    factor, result = build.add(node.result, beta, build.resolved.values[node.result].dtype), build.fresh(name)
    build.before.append(helper.make_node(MUL, [name, factor], [result]))
    return result


def _factor(node: OnnxNode, name: str) -> Array:
    """Return a float attribute, by default 1."""
    value = node.attributes.get(name, 1.0)
    assert isinstance(value, int | float)
    return np.array(value, dtype=np.float32)


def _turned(build: Build, node: OnnxNode, name: str, attribute: str) -> str:
    """Return a matrix operand, transposed if the attribute says so."""
    if not node.integer(attribute):
        return name
    result = build.fresh(name)
    perm = [1, 0] if build.is_fixed(name) else [0, 2, 1]
    build.before.append(helper.make_node(TRANSPOSE, [name], [result], perm=perm))
    return result


class _Step(NamedTuple):
    """An operator of the previous result and other operands."""

    op_type: str
    operands: Sequence[str]
    attributes: Mapping[str, Any] = {}


def _chain(build: Build, copy: onnx.NodeProto, steps: Sequence[_Step]) -> None:
    """Append operators one after the other; the last result replaces the node's."""
    result = copy.output[0]
    for op_type, operands, attributes in steps:
        build.after.append(helper.make_node(op_type, [result, *operands], [result], **attributes))
    last = copy
    for node in build.after[len(build.after) - len(steps) :]:
        last.output[0] = node.input[0] = build.fresh(result)
        last = node
