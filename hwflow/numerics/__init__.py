"""Exact arithmetic of quantized networks: rounding, staircases, requantizers, accumulators.

Plain ints and :class:`fractions.Fraction` in the interfaces; no float anywhere.
"""

from hwflow.numerics.accumulator import bounds, width_of
from hwflow.numerics.bound import Bound
from hwflow.numerics.elementwise import Affine, Clip, Elementwise, QuantizeDequantize, Relu
from hwflow.numerics.multiply_add_shift import (
    MultiplyAddShift,
    find_multiply_add_shift,
    find_rounding_multiply_add_shift,
)
from hwflow.numerics.requantizer import Form, LookupForm, ThresholdForm, cost, proves, realise
from hwflow.numerics.rounding import Quantizer, Rounding, quantize, round_half_even
from hwflow.numerics.staircase import Staircase, quantizer_staircase, real_value

__all__ = [
    "Affine",
    "Bound",
    "Clip",
    "Elementwise",
    "Form",
    "LookupForm",
    "MultiplyAddShift",
    "QuantizeDequantize",
    "Quantizer",
    "Relu",
    "Rounding",
    "Staircase",
    "ThresholdForm",
    "bounds",
    "cost",
    "find_multiply_add_shift",
    "find_rounding_multiply_add_shift",
    "proves",
    "quantize",
    "quantizer_staircase",
    "real_value",
    "realise",
    "round_half_even",
    "width_of",
]
