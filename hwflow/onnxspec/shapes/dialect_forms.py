"""The legal operands and attributes of the quantized dialects' nodes, by operator.

They have no ONNX schema. A node that passes has all required operands, with consistent types and shapes, and attributes
of the right kind; all code on such nodes relies on that.
Sources: the QONNX operator definitions; the contrib operator documentation of onnxruntime.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hwflow.display import show
from hwflow.onnxspec.resolving.resolved_model import Attribute, ValueInfo
from hwflow.onnxspec.shapes.dialects import Inputs

REALS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = tuple(f"{sign}int{bits}" for bits in (2, 4, 8, 16, 32) for sign in ("", "u"))
NUMBERS = (*REALS, *INTEGERS, "int64", "uint64")

_ANY, _ONE, _ROW, _OVER = "any", "one", "row", "over"


@dataclass(frozen=True)
class Operand:
    """``types``: the legal element types. ``like``: index of the operand whose type it must have.

    ``shape``: "any"; "one" for one element; "row" for at most one axis with more than one; "over" for one element, or
    what broadcasts over operand 0 without making it larger.
    """

    name: str
    types: tuple[str, ...]
    shape: str = _ANY
    optional: bool = False
    like: int | None = None


@dataclass(frozen=True)
class Form:
    """``attributes``: the kinds of known attributes by name. The last ``repeated`` operands may be repeated as a
    group."""

    operands: tuple[Operand, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    repeated: int = 0


_KINDS: Mapping[str, tuple[str, Callable[[Attribute], bool]]] = {
    "integer": ("an integer", lambda v: isinstance(v, int)),
    "real": ("a finite number", lambda v: isinstance(v, int | float) and math.isfinite(v)),
    "integers": (
        "a list of integers", lambda v: isinstance(v, tuple) and all(isinstance(item, int) for item in v),
    ),
    "text": ("a text", lambda v: isinstance(v, str)),
}
"""The name of each kind of attribute, and the test for a value of it."""


def _scale(name: str, shape: str = _ONE, optional: bool = False) -> Operand:
    return Operand(name, REALS, shape, optional)


def _zero(name: str, like: int, shape: str = _ONE, optional: bool = True) -> Operand:
    return Operand(name, INTEGERS, shape, optional, like)


def unary(**attributes: str) -> Form:
    """Return the form of a tensor, its scale and zero point, scale and zero point of the result. ``attributes``: their
    kinds."""
    operands = (
        Operand("X", INTEGERS), _scale("X_scale"), _zero("X_zero_point", 0), _scale("Y_scale"),
        _zero("Y_zero_point", 0),
    )  # fmt: skip
    return Form(operands, attributes)


def normalization(required: Sequence[str], optional: Sequence[str], **attributes: str) -> Form:
    """Return the form of real operands of the first one's type."""
    first, *others = required
    return Form(
        (
            Operand(first, REALS), *(Operand(name, REALS, like=0) for name in others),
            *(Operand(name, REALS, optional=True, like=0) for name in optional),
        ),
        attributes,
    )  # fmt: skip


# com.microsoft.
BINARY = Form((
    Operand("A", INTEGERS), _scale("A_scale"), _zero("A_zero_point", 0),
    Operand("B", INTEGERS, like=0), _scale("B_scale"), _zero("B_zero_point", 0),
    _scale("C_scale"), _zero("C_zero_point", 0),
))  # fmt: skip
QUANTIZE = Form(
    (Operand("x", REALS), _scale("y_scale", _ANY), Operand("y_zero_point", INTEGERS, optional=True)),
    {"axis": "integer", "block_size": "integer"},
)
DEQUANTIZE = Form(
    (Operand("x", INTEGERS), _scale("x_scale", _ANY), _zero("x_zero_point", 0, _ANY)),
    {"axis": "integer", "block_size": "integer"},
)
AVERAGE_POOL = unary(
    auto_pad="text", ceil_mode="integer", channels_last="integer", count_include_pad="integer",
    kernel_shape="integers", pads="integers", strides="integers",
)  # fmt: skip
MAX_POOL = Form((Operand("x", ("int8", "uint8")),), {
    "auto_pad": "text", "ceil_mode": "integer", "dilations": "integers", "kernel_shape": "integers",
    "pads": "integers", "strides": "integers",
})  # fmt: skip
FUSED = Form(
    (Operand("A", REALS), Operand("B", REALS, like=0)),
    {"alpha": "real", "transA": "integer", "transB": "integer", "transBatchA": "integer", "transBatchB": "integer"},
)
CONCAT = Form(
    (
        _scale("Y_scale"), Operand("Y_zero_point", INTEGERS, _ONE),
        Operand("X", INTEGERS), _scale("X_scale"), _zero("X_zero_point", 2),
    ),
    {"axis": "integer"},
    repeated=3,
)  # fmt: skip
WHERE = Form((
    Operand("condition", ("bool",)),
    Operand("X", INTEGERS), _scale("X_scale"), _zero("X_zero_point", 1),
    Operand("Y", INTEGERS, like=1), _scale("Y_scale"), _zero("Y_zero_point", 1),
    _scale("Z_scale"), _zero("Z_zero_point", 1),
))  # fmt: skip
GEMM = Form(
    (
        Operand("A", INTEGERS), _scale("a_scale"), _zero("a_zero_point", 0),
        Operand("B", INTEGERS), _scale("b_scale", _ROW), _zero("b_zero_point", 3, _ROW),
        Operand("C", ("int32",), optional=True), _scale("y_scale", optional=True),
        Operand("y_zero_point", INTEGERS, _ONE, optional=True),
    ),
    {"transA": "integer", "transB": "integer", "alpha": "real"},
)  # fmt: skip
MATRIX_PRODUCT = Form((
    Operand("A", INTEGERS), Operand("B", INTEGERS), _scale("a_scale", _ANY), _scale("b_scale", _ANY),
    _zero("a_zero_point", 0, _ANY), _zero("b_zero_point", 1, _ANY), Operand("bias", REALS, optional=True),
))  # fmt: skip

# QONNX.
_X = Operand("X", NUMBERS)
_X_SCALE, _X_ZERO = Operand("scale", NUMBERS, _OVER), Operand("zeropt", NUMBERS, _OVER)


def _bits(name: str) -> Operand:
    return Operand(name, NUMBERS, _OVER)


_LEVELS = {"signed": "integer", "narrow": "integer", "rounding_mode": "text"}
LEVELS = Form((_X, _X_SCALE, _X_ZERO, _bits("bitwidth")), _LEVELS)
SIGNS = Form((_X, _X_SCALE))
# Version 1; version 2 has an output scale before the last operand; there was one with an output zeropt as well.
CUT_OFF = Form(
    (_X, _X_SCALE, _X_ZERO, _bits("in_bitwidth"), _bits("out_bitwidth or output scale"),
     replace(_bits("out_bitwidth"), optional=True), replace(_bits("out_bitwidth"), optional=True)),
    _LEVELS,
)  # fmt: skip
THRESHOLDS = Form(
    (_X, Operand("thresholds", NUMBERS)),
    {"out_dtype": "text", "data_layout": "text", "out_scale": "real", "out_bias": "real"},
)


def objections(form: Form, inputs: Inputs, attributes: Mapping[str, Attribute]) -> Iterator[str]:
    """Yield the faults of a node of that form as sentences "X must be Y, not Z".

    ``inputs``: the node's inputs, None for an absent operand.
    """
    end = len(inputs)
    while end and inputs[end - 1] is None:
        end -= 1
    operands = _operands(form, end)
    if end > len(operands):
        yield f"the operator must have at most {len(operands)} inputs, not {end}"
    for index, operand in enumerate(operands):
        info = inputs[index] if index < len(inputs) else None
        if info is None:
            if not operand.optional:
                yield f"input {index} ({operand.name}) must be present, but it is absent"
        else:
            problem = _operand_problem(operand, info, inputs)
            if problem:
                yield f"input {index} ({operand.name}) must {problem}"
    for name, kind in form.attributes.items():
        text, fits = _KINDS[kind]
        if name in attributes and not fits(attributes[name]):
            yield f"attribute {show(name)} must be {text}, not {_shown(attributes[name])}"


def _operands(form: Form, given: int) -> tuple[Operand, ...]:
    """Return the operands of a node with ``given`` ones, repeating the last group."""
    if not form.repeated:
        return form.operands
    fixed, group = len(form.operands) - form.repeated, form.operands[-form.repeated :]
    operands = list(form.operands)
    while len(operands) < given:
        shift = len(operands) - fixed
        operands += [replace(o, like=None if o.like is None else o.like + shift) for o in group]
    return tuple(operands)


def _operand_problem(operand: Operand, info: ValueInfo, inputs: Inputs) -> str:
    """Return the rest of the sentence "the operand must ..."; empty if the operand is legal."""
    other = inputs[operand.like] if operand.like is not None and operand.like < len(inputs) else None
    if info.dtype not in operand.types:
        return f"be of element type {_listed(operand.types)}, not {info.dtype}"
    if other is not None and other.dtype != info.dtype and other.dtype in operand.types:
        return f"be {other.dtype} as input {operand.like} is, not {info.dtype}"
    if math.prod(info.shape) == 0:
        return f"hold at least one element, not have shape {_dimensions(info.shape)}"
    several = sum(size != 1 for size in info.shape)
    if operand.shape == _ONE and several:
        return f"have one element, not shape {_dimensions(info.shape)}"
    if operand.shape == _ROW and several > 1:
        return f"have one axis, not shape {_dimensions(info.shape)}"
    whole = inputs[0]
    if operand.shape == _OVER and several and whole is not None and not _broadcasts(info.shape, whole.shape):
        return f"broadcast over shape {_dimensions(whole.shape)}, not have shape {_dimensions(info.shape)}"
    return ""


def _broadcasts(shape: Sequence[int], over: Sequence[int]) -> bool:
    try:
        return np.broadcast_shapes(tuple(shape), tuple(over)) == tuple(over)
    except ValueError:  # they do not fit, or have more axes than numpy broadcasts
        return False


_SHOWN = 60  # characters of a value in a message


def _shown(value: Attribute) -> str:
    if isinstance(value, np.ndarray):
        return f"a tensor of shape {_dimensions(value.shape)}"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _dimensions(shape: Sequence[int]) -> str:
    text = str(list(shape))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"
