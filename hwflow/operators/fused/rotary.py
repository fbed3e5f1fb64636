"""RotaryEmbedding of ai.onnx, and of onnxruntime: pairs of elements turned by angles that depend on their places."""

from __future__ import annotations

import onnx

from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined, Use
from hwflow.onnxspec.shapes.dialect_forms import REALS, Form, Operand
from hwflow.operators.fused.heads import require_divisible
from hwflow.operators.record import MICROSOFT, Operator

_INPUT, _PLACES, _COSINES, _SINES = range(4)


def _rotated(use: Use) -> onnx.FunctionProto:
    """Return the function for [frames, length, heads * size] or [frames, heads, length, size]."""
    call = Call.of(use)
    if call.real("scale", 1.0) != 1.0:
        raise Undefined(
            f"scale must be 1, not {call.real('scale', 1.0):g}: onnxruntime does not apply it", "scale the input"
        )
    if call.integer("is_packed_batching"):
        raise Undefined("is_packed_batching must be 0, not 1: frames have one length", "pad the frames")
    shape, cache = call.shape(_INPUT), call.shape(_COSINES)
    if shape is None or len(shape) not in (3, 4) or cache is None or len(cache) != 2 or cache != call.shape(_SINES):
        raise Undefined(
            "the input must be [frames, length, size] or [frames, heads, length, size], and the tables [places, size / "
            f"2], not {shape}, {cache} and {call.shape(_SINES)}", "correct the shapes",
        )
    turned, partial = 2 * cache[1], call.integer("rotary_embedding_dim")
    if len(shape) == 3:  # without rotary_embedding_dim, the tables tell the size of a head
        heads = call.integer("num_heads") if partial else max(1, shape[2] // max(1, turned))
        require_divisible("the input's last axis", shape[2], heads)
        size = shape[2] // heads
    else:
        heads, size = shape[1], shape[3]
    if not 0 < turned <= size or partial not in (0, turned):
        raise Undefined(
            f"the tables must have a column for each two of rotary_embedding_dim elements, at most {size}, not "
            f"{cache[1]}", "correct the tables",
        )
    body = DialectWriter(call)
    length = shape[-2]
    # [frames, length, heads, size] or [frames, heads, length, size]
    x = body.argument(_INPUT) if len(shape) == 4 else body.reshape(body.argument(_INPUT), [0, length, heads, size])
    rows = [_rows(call, body, table, length, spread=2 if len(shape) == 3 else 1) for table in (_COSINES, _SINES)]
    result = _turned(body, x, rows, [shape[1], length] if len(shape) == 4 else [length, heads], size, turned)
    return body.returned(result if len(shape) == 4 else body.reshape(result, [0, length, shape[2]]))


def _rows(call: Call, body: DialectWriter, table: int, length: int, *, spread: int) -> str:
    """Return the table's rows for all places, with an axis of one element, for heads, at ``spread``."""
    places, shape = body.argument(_PLACES), call.shape(_PLACES)
    if shape in ((), (1,)):  # of the first element
        kind = call.kind(_PLACES)
        places = body.let(f"Add ({body.reshape(places, [1, 1])}, {body.number([range(length)], kind)})")
    elif shape is None or shape[1:] != (length,):
        raise Undefined(f"position_ids must be [1] or [frames, {length}], not {shape}", "correct their shape")
    rows = body.let(f"Gather <axis = 0> ({body.argument(table)}, {places})")
    return body.let(f"Unsqueeze ({rows}, {body.integers([spread])})")


def _turned(body: DialectWriter, x: str, rows: list[str], axes: list[int], size: int, turned: int) -> str:
    """Turn the pairs among the first ``turned`` elements of each head; ``axes``: between frames and elements."""
    cosine, sine = rows
    first = body.part(x, 0, turned, 3) if turned < size else x
    interleaved = bool(body.call.integer("interleaved"))
    half = turned // 2
    if interleaved:
        pairs = body.reshape(first, [0, *axes, half, 2])
        parts = [body.reshape(body.part(pairs, k, k + 1, 4), [0, *axes, half]) for k in range(2)]
    else:
        parts = [body.part(first, begin, begin + half, 3) for begin in (0, half)]
    along, across = ([body.let(f"Mul ({part}, {row})") for part in parts] for row in (cosine, sine))
    real = body.let(f"Sub ({along[0]}, {across[1]})")
    imaginary = body.let(f"Add ({along[1]}, {across[0]})")
    if interleaved:
        last = body.integers([4])
        columns = ", ".join(body.let(f"Unsqueeze ({part}, {last})") for part in (real, imaginary))
        result = body.reshape(body.let(f"Concat <axis = 4> ({columns})"), [0, *axes, turned])
    else:
        result = body.let(f"Concat <axis = 3> ({real}, {imaginary})")
    if turned == size:
        return result
    return body.let(f"Concat <axis = 3> ({result}, {body.part(x, turned, size, 3)})")


RECORDS = (
    Operator(
        "RotaryEmbedding", defined="all attributes; caches and positions constant or streams; before a quantizer",
        composed=True,
    ),
    Operator(
        "RotaryEmbedding", domains=MICROSOFT, definition=_rotated,
        defined="positions constant or streams; scale 1, no packed batches; before a quantizer",
        form=Form(
            (
                Operand("input", REALS), Operand("position_ids", ("int32", "int64")),
                Operand("cos_cache", REALS, like=0), Operand("sin_cache", REALS, like=0),
            ),
            {
                "interleaved": "integer", "is_packed_batching": "integer", "num_heads": "integer",
                "rotary_embedding_dim": "integer", "scale": "real",
            },
        ),
    ),
)
