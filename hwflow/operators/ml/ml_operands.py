"""One node of ai.onnx.ml that is to be defined in operators of ai.onnx: what it reads, and its numbers as reals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined
from hwflow.onnxspec.reading.numpy_tensors import ELEMENT_TYPES

STRING, FLOAT, DOUBLE, INT64 = "string", "float32", "float64", "int64"


def integer_kind(kind: str) -> bool:
    """Tell whether an element type is an integer type."""
    return "int" in kind


def real_kind(call: Call) -> str:
    """Return the type in which real results of the first input are computed: double for that, float for all others, as
    onnxruntime does."""
    return DOUBLE if call.kind(0) == DOUBLE else FLOAT


def cast(body: DialectWriter, value: str, kind: str, to: str) -> str:
    """Return ``value``, of element type ``kind``, as another one."""
    return value if kind == to else body.let(f"Cast <to = {ELEMENT_TYPES[to]}> ({value})")


def as_reals(body: DialectWriter, call: Call, place: int = 0) -> str:
    """Return an input in :func:`real_kind`."""
    return cast(body, body.argument(place), call.kind(place), real_kind(call))


def as_float(body: DialectWriter, call: Call, value: str) -> str:
    """Return a result in :func:`real_kind` as float, which real results of ai.onnx.ml are."""
    return cast(body, value, real_kind(call), FLOAT)


def columns(call: Call) -> int:
    """Return the number of features of the first input, which must be [frames, features]."""
    shape = call.shape(0)
    if shape is None or len(shape) != 2:
        raise Undefined(f"the input must be [frames, features], not {_said(shape)}", "reshape it")
    return shape[1]


def last_axis(call: Call) -> int:
    """Return the size of the first input's last axis; it must have one."""
    shape = call.shape(0)
    if not shape:
        raise Undefined(f"the input must have an axis, not be {_said(shape)}", "reshape it")
    return shape[-1]


def _said(shape: tuple[int, ...] | None) -> str:
    return "absent" if shape is None else str([*shape])


def reals(call: Call, name: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return an attribute of floats; empty if absent."""
    return np.array(call.attribute(name, None) or [], np.float32)


def integers(call: Call, name: str) -> list[int]:
    """Return an attribute of integers; empty if absent."""
    return [int(value) for value in call.attribute(name, None) or []]


def strings(call: Call, name: str) -> list[str]:
    """Return an attribute of strings; empty if absent."""
    return [str(value) for value in call.attribute(name, None) or []]


def require_length(name: str, values: Sequence[object] | np.ndarray[tuple[int], np.dtype[np.float32]], *allowed: int
) -> None:
    """Refuse an attribute whose length is none of those ``allowed``."""
    if len(values) not in allowed:
        said = " or ".join(str(length) for length in dict.fromkeys(allowed))
        raise Undefined(f"{name} must have {said} elements, not {len(values)}", "correct the attribute")


def within(name: str, values: Sequence[int], kind: str) -> list[int]:
    """Return integers that must be of element type ``kind``."""
    limits = np.iinfo(kind)
    beyond = next((value for value in values if not limits.min <= value <= limits.max), None)
    if beyond is not None:
        raise Undefined(f"{name} must be within {kind}, not {beyond}", "correct the attribute")
    return [*values]


_AXES_OF_MAXIMA = 18
"""Version of ai.onnx from which ReduceMax takes axes as an input."""


def greatest_of_rows(body: DialectWriter, value: str) -> str:
    """Return the greatest element along the last axis, which stays."""
    if body.version < _AXES_OF_MAXIMA:
        return body.let(f"ReduceMax <axes = [-1], keepdims = 1> ({value})")
    return body.let(f"ReduceMax <keepdims = 1> ({value}, {body.integers([-1])})")
