"""Gelu of onnxruntime, with a bias and approximated: functions of one number.

Source: the contrib operators' documentation of onnxruntime, and the digits of its kernels' constants.
"""

from __future__ import annotations

import math

import onnx

from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Use
from hwflow.onnxspec.shapes.dialect_forms import REALS, Form, Operand
from hwflow.operators.record import MICROSOFT, Operator

_GELU = 20
"""The version of ai.onnx that has both."""

_CUBE, _LINE = 0.035677408136300125, 0.7978845608028654


def _sum(body: DialectWriter) -> str:
    x = body.argument(0)
    return body.let(f"Add ({x}, {body.argument(1)})") if body.call.shape(1) is not None else x


def _gelu(use: Use) -> onnx.FunctionProto:
    """Return x * (1 + erf(x / root of 2)) / 2."""
    call = Call.of(use)
    body = DialectWriter(call)
    x = _sum(body)
    if call.version >= _GELU:
        return body.returned(body.let(f"Gelu ({x})"))
    curve = body.let(f"Erf ({body.let(f'Mul ({x}, {body.number(math.sqrt(0.5))})')})")
    upper = body.let(f"Add ({curve}, {body.number(1.0)})")
    return body.returned(body.let(f"Mul ({body.let(f'Mul ({x}, {upper})')}, {body.number(0.5)})"))


def _fast_gelu(use: Use) -> onnx.FunctionProto:
    """Return x * (1 + tanh(a x + b x ** 3)) / 2."""
    call = Call.of(use)
    body = DialectWriter(call)
    x = _sum(body)
    if call.version >= _GELU:
        return body.returned(body.let(f'Gelu <approximate = "tanh"> ({x})'))
    square = body.let(f"Mul ({x}, {x})")
    slope = body.let(f"Add ({body.let(f'Mul ({square}, {body.number(_CUBE)})')}, {body.number(_LINE)})")
    curve = body.let(f"Tanh ({body.let(f'Mul ({x}, {slope})')})")
    upper = body.let(f"Add ({curve}, {body.number(1.0)})")
    return body.returned(body.let(f"Mul ({body.let(f'Mul ({x}, {upper})')}, {body.number(0.5)})"))


def _quick_gelu(use: Use) -> onnx.FunctionProto:
    """Return x * sigmoid(alpha * x)."""
    call = Call.of(use)
    body = DialectWriter(call)
    x = body.argument(0)
    scaled = body.let(f"Mul ({x}, {body.number(call.real('alpha', 1.702))})")
    return body.returned(body.let(f"Mul ({x}, {body.let(f'Sigmoid ({scaled})')})"))


_X, _BIAS = Operand("X", REALS), Operand("bias", REALS, like=0)
_DEFINED = "before a quantizer"

RECORDS = (
    Operator(
        "BiasGelu", domains=MICROSOFT, defined=_DEFINED, form=Form((_X, _BIAS)), definition=_gelu
    ),
    Operator(
        "FastGelu", domains=MICROSOFT, defined=_DEFINED, definition=_fast_gelu,
        form=Form((_X, Operand("bias", REALS, optional=True, like=0))),
    ),
    Operator(
        "QuickGelu", domains=MICROSOFT, defined=_DEFINED, form=Form((_X,), {"alpha": "real"}), definition=_quick_gelu
    ),
)
