"""EmbedLayerNormalization of onnxruntime: rows of tables for words, places and segments, added and normalized."""

from __future__ import annotations

import onnx

from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined, Use
from hwflow.onnxspec.shapes.dialect_forms import REALS, Form, Operand
from hwflow.operators.record import MICROSOFT, Operator

_WORDS, _SEGMENTS, _WORD_TABLE, _PLACE_TABLE, _SEGMENT_TABLE, _SCALE, _SHIFT, _MASK, _PLACES = range(9)

_NORMS = 17
"""The version of ai.onnx with LayerNormalization."""


def _embedded(use: Use) -> onnx.FunctionProto:
    call = Call.of(use)
    body = DialectWriter(call, _NORMS)
    shape = call.shape(_WORDS)
    if shape is None or len(shape) != 2:
        raise Undefined(f"input_ids must be [frames, length], not {shape}", "correct their shape")
    places = body.argument(_PLACES) or body.integers(range(shape[1]))
    words = body.let(f"Gather ({body.argument(_WORD_TABLE)}, {body.argument(_WORDS)})")
    total = body.let(f"Add ({words}, {body.let(f'Gather ({body.argument(_PLACE_TABLE)}, {places})')})")
    if call.shape(_SEGMENTS) is not None and call.shape(_SEGMENT_TABLE) is not None:
        rows = body.let(f"Gather ({body.argument(_SEGMENT_TABLE)}, {body.argument(_SEGMENTS)})")
        total = body.let(f"Add ({total}, {rows})")
    operands = f"{total}, {body.argument(_SCALE)}, {body.argument(_SHIFT)}"
    result = body.let(f"LayerNormalization <axis = -1, epsilon = {call.real('epsilon', 1e-12):.9e}> ({operands})")
    mask = body.argument(_MASK) or body.let(f"Sub ({body.argument(_WORDS)}, {body.argument(_WORDS)})")
    counts = body.let(f"CumSum ({mask}, {body.number(1, 'int64')})")  # sums of integers, which reductions take not
    lengths = body.let(f"Squeeze ({body.part(counts, shape[1] - 1, shape[1], 1)}, {body.integers([1])})")
    return body.returned(result, lengths, total)


_INDICES = ("int32", "int64")

RECORDS = (
    Operator(
        "EmbedLayerNormalization", domains=MICROSOFT, defined="tables constant; before a quantizer",
        definition=_embedded,
        form=Form(
            (
                Operand("input_ids", _INDICES), Operand("segment_ids", _INDICES, optional=True),
                Operand("word_embedding", REALS), Operand("position_embedding", REALS, like=2),
                Operand("segment_embedding", REALS, optional=True, like=2), Operand("gamma", REALS, like=2),
                Operand("beta", REALS, like=2), Operand("mask", _INDICES, optional=True),
                Operand("position_ids", _INDICES, optional=True),
            ),
            {"epsilon": "real", "mask_index_type": "integer"},
        ),
    ),
)
