"""The ONNX element types that the front end accepts."""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.types import IntType

INTEGER_TYPES: Mapping[str, IntType] = {
    f"{prefix}int{bits}": IntType(bits, prefix == "") for bits in (2, 4, 8, 16, 32) for prefix in ("", "u")
}
"""ONNX integer element types that can be hardware values, by name."""

STREAM_TYPES: Mapping[str, IntType] = {**INTEGER_TYPES, "bool": IntType(1, False)}
"""Those, and bool: ONNX element types whose values are hardware integers directly."""

COMPUTED_TYPES: Mapping[str, IntType] = {**STREAM_TYPES, "int64": IntType(64, True)}
"""Those, and the type of indices (ArgMax): not an input type of hardware, but results need few bits."""

REAL_TYPES = frozenset({"float16", "bfloat16", "float32", "float64"})
"""ONNX element types of real numbers: scaled integers, up to the next quantizer."""

HOST_TYPES = frozenset({"int64", "uint64", "string"})
"""ONNX element types of inputs that the host alone reads, and operators that make integers of them."""

KNOWN_TYPES = ", ".join((*sorted(REAL_TYPES), *STREAM_TYPES))
"""All of them, for messages."""

DECLARE = "declare the integers of a float input: --input-type NAME=int8[,SCALE[,ZERO_POINT]]"
"""A remedy where hardware cannot begin at a float input."""
