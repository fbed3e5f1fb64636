"""Attention of ai.onnx and of onnxruntime, which projects one input to queries, keys and values; QAttention, which does
so with quantized weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import onnx

from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined, Use
from hwflow.onnxspec.shapes.dialect_forms import INTEGERS, REALS, Form, Operand
from hwflow.operators.fused.heads import Attention, require_divisible, scale_of
from hwflow.operators.linear import linear_work
from hwflow.operators.record import MICROSOFT, Operator

_INDICES = ("int32", "int64")
_SHARED = "past_present_share_buffer"


def _require_own_buffer(call: Call) -> None:
    if call.integer(_SHARED):
        raise Undefined(
            f"{_SHARED} must be 0, not 1: keys would be written at places that are known at run time only",
            "export the model with past and present states of their own",
        )


def _attention(use: Use) -> onnx.FunctionProto:
    call = Call.of(use)
    body = DialectWriter(call)
    return _attended(call, body, body.argument(0), body.argument(1), mask=3, past=4, bias=5)


def _quantized(use: Use) -> onnx.FunctionProto:
    call = Call.of(use)
    body = DialectWriter(call)
    x, weights, x_scale, weights_scale, x_zero, weights_zero = (body.argument(k) for k in (0, 1, 3, 4, 6, 7))
    real = body.let(f"DequantizeLinear ({_operands(x, x_scale, x_zero)})")
    matrix = body.let(f"DequantizeLinear <axis = 1> ({_operands(weights, weights_scale, weights_zero)})")
    return _attended(call, body, real, matrix, mask=5, past=8, bias=None)


def _operands(*names: str) -> str:
    return ", ".join(name for name in names if name)


def _attended(
    call: Call, body: DialectWriter, x: str, weights: str, *, mask: int, past: int, bias: int | None
) -> onnx.FunctionProto:
    """Return the function of a projection and attention; numbers are places of inputs."""
    _require_own_buffer(call)
    if call.integer("do_rotary"):
        raise Undefined(
            "do_rotary must be 0, not 1: which angles it means is not documented",
            "fuse the model with RotaryEmbedding in front of MultiHeadAttention",
        )
    shape, matrix = call.shape(0), call.shape(1)
    if shape is None or matrix is None or len(shape) != 3 or len(matrix) != 2 or shape[2] != matrix[0]:
        raise Undefined(
            "input and weights must be [frames, length, size] and [size, sizes of queries, keys and values], not "
            f"{shape} and {matrix}", "correct the shapes",
        )
    _, length, _ = shape
    columns, heads = matrix[1], call.integer("num_heads")
    sizes: list[int] = call.attribute("qkv_hidden_sizes", []) or [columns // 3] * 3
    if len(sizes) != 3 or sum(sizes) != columns or sizes[0] != sizes[1]:
        raise Undefined(
            f"sizes of queries, keys and values must be 3 whose sum is the weights' {columns} columns, the first two "
            f"equal, not {sizes}", "correct qkv_hidden_sizes",
        )
    for size in sizes:
        require_divisible("sizes of queries, keys and values", size, heads)
    before = call.shape(past)
    earlier = 0 if before is None else _past_length(before, heads, sizes)
    attention = Attention(call, body, heads, length, length + earlier, earlier, mask)
    query, key, value = (
        attention.split(part, length, size // heads)
        for part, size in zip(_projected(call, body, x, weights, sizes), sizes, strict=True)
    )
    states = []
    for place, state in enumerate((key, value)):
        if before is not None:
            old = body.part(body.argument(past), place, place + 1, 0)
            old = body.reshape(old, [-1, heads, earlier, sizes[0] // heads])
            state = body.let(f"Concat <axis = 2> ({old}, {state})")
        states.append(state)
    added = "" if bias is None else body.argument(bias)
    scores = attention.scores(query, states[0], scale_of(call, sizes[0] // heads), added)
    result = attention.result(scores, states[1], sizes[2] // heads)
    if call.outputs == 1:
        return body.returned(result)
    if sizes[2] != sizes[0]:
        raise Undefined("keys and values of a state must have one size, not several", "leave out the second output")
    axes = body.integers([0])
    both = (body.let(f"Unsqueeze ({state}, {axes})") for state in states)
    return body.returned(result, body.let(f"Concat <axis = 0> ({', '.join(both)})"))


def _projected(call: Call, body: DialectWriter, x: str, weights: str, sizes: Sequence[int]) -> Iterator[str]:
    """Yield queries, keys and values: by matrices of their own, where these are constants, so that each may have a
    quantizer of its own; else as parts of one product."""
    bias = body.argument(2)
    ends = [0, *accumulate(sizes)]
    apart = call.constant(1) and (not bias or call.constant(2))
    projected = ""
    if not apart:
        projected = body.let(f"MatMul ({x}, {weights})")
        projected = body.let(f"Add ({projected}, {bias})") if bias else projected
    for begin, end in pairwise(ends):
        if not apart:
            yield body.part(projected, begin, end, 2)
            continue
        part = body.let(f"MatMul ({x}, {body.part(weights, begin, end, 1)})")
        yield body.let(f"Add ({part}, {body.part(bias, begin, end, 0)})") if bias else part


def _past_length(shape: tuple[int, ...], heads: int, sizes: list[int]) -> int:
    if len(shape) != 5 or (shape[0], shape[2], shape[4]) != (2, heads, sizes[0] // heads) or sizes[0] != sizes[2]:
        raise Undefined(
            f"the past state must be [2, frames, {heads}, length, {sizes[0] // heads}], not {[*shape]}",
            "correct its shape",
        )
    return shape[3]


_ATTRIBUTES = {
    "num_heads": "integer", "unidirectional": "integer", "do_rotary": "integer", "scale": "real",
    "mask_filter_value": "real", _SHARED: "integer",
}

_FORM = Form(
    (
        Operand("input", REALS), Operand("weights", REALS, like=0), Operand("bias", REALS, optional=True, like=0),
        Operand("mask_index", _INDICES, optional=True), Operand("past", REALS, optional=True, like=0),
        Operand("attention_bias", REALS, optional=True, like=0),
        Operand("past_sequence_length", _INDICES, optional=True),
    ),
    {**_ATTRIBUTES, "qkv_hidden_sizes": "integers", "rotary_embedding_dim": "integer"},
)  # fmt: skip

_QUANTIZED_FORM = Form(
    (
        Operand("input", INTEGERS), Operand("weight", INTEGERS), Operand("bias", REALS),
        Operand("input_scale", REALS, "one"), Operand("weight_scale", REALS, "row"),
        Operand("mask_index", _INDICES, optional=True), Operand("input_zero_point", INTEGERS, "one", True, 0),
        Operand("weight_zero_point", INTEGERS, "row", True, 1), Operand("past", REALS, optional=True, like=2),
    ),
    _ATTRIBUTES,
)  # fmt: skip

_MASKS = "masks of any documented form, ends and starts of keys constant; no shared buffer, no do_rotary"

RECORDS = (
    Operator(
        "Attention", defined="all attributes and outputs; operands and results quantized, nothing between; lengths of "
        "keys (nonpad_kv_seqlen) constant; masks as in front of Softmax", work=linear_work.attention, composed=True
    ),
    Operator("Attention", domains=MICROSOFT, defined=_MASKS, form=_FORM, definition=_attention),
    Operator(
        "QAttention", domains=MICROSOFT, defined=_MASKS, form=_QUANTIZED_FORM, definition=_quantized, quantized=True
    ),
)
