"""Deviations of onnxruntime (seen in 1.31.1) from the operators' definitions, which a comparison with its results must
expect. Operators' records name them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """A deviation of onnxruntime's CPU kernel from an operator's definition."""

    name: str
    text: str


ROUNDING = Difference(
    "runtime-rounding",
    "the zero point is added before rounding: ties differ where it is odd (of the pool, in the vector kernel only)",
)
SOFTMAX = Difference("runtime-softmax", "levels may be off by one where no tie is near")
SATURATION = Difference(
    "runtime-saturation",
    "on x86 processors without VNNI, sums of two products of uint8 and int8 saturate at 16 bits",
)
RESIZE = Difference("runtime-resize", "means of integers are cut off, not rounded")
FLOAT32 = Difference(
    "runtime-float32",
    "quotients are float32: a level may be off by one where a tie is within a few units in the last place",
)
