"""Elementwise functions that may stand between a quantized value and the next quantizer, in any order and number.

The activation functions are in :mod:`hwflow.numerics.functions.smooth`.
"""

from __future__ import annotations

from hwflow.numerics.functions.combination import Combination, combination
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.piecewise import (
    Abs,
    Affine,
    Clip,
    HardSigmoid,
    LeakyRelu,
    QuantizeDequantize,
    Ranked,
    Relu,
    Round,
    Sign,
    Steps,
    ThresholdedRelu,
)
from hwflow.numerics.functions.power import Pow, Reciprocal, RootMultiply, Sqrt

__all__ = [
    "Abs",
    "Affine",
    "Clip",
    "Combination",
    "Elementwise",
    "HardSigmoid",
    "LeakyRelu",
    "Pow",
    "QuantizeDequantize",
    "Ranked",
    "Reciprocal",
    "Relu",
    "RootMultiply",
    "Round",
    "Sign",
    "Sqrt",
    "Steps",
    "ThresholdedRelu",
    "combination",
]
