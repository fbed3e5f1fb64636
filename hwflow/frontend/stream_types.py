"""ONNX element types that the front end takes."""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.types import IntType

INTEGER_TYPES: Mapping[str, IntType] = {
    f"{prefix}int{bits}": IntType(bits, prefix == "") for bits in (2, 4, 8, 16, 32) for prefix in ("", "u")
}
"""ONNX integer element types that can be hardware values, by name."""

STREAM_TYPES: Mapping[str, IntType] = {**INTEGER_TYPES, "bool": IntType(1, False)}
"""Those, and bool: ONNX element types whose values hardware takes as they are."""

COMPUTED_TYPES: Mapping[str, IntType] = {**STREAM_TYPES, "int64": IntType(64, True)}
"""Those, and the type of places (ArgMax): hardware takes no such inputs, but has the few bits of such a result."""

REAL_TYPES = frozenset({"float16", "bfloat16", "float32", "float64"})
"""ONNX element types that stand for real numbers: what an integer's scale makes of it, until the next quantizer."""

KNOWN_TYPES = ", ".join((*sorted(REAL_TYPES), *STREAM_TYPES))
"""All of them, in a message."""

DECLARE = "say what integers a float input carries: --input-type NAME=int8[,SCALE[,ZERO_POINT]]"
"""A remedy where hardware cannot begin at a float input."""
