"""Phrases that the limits of several operators share."""

from __future__ import annotations

FUNCTION = "before a quantizer, or where its values have a common divisor"
INTEGER = "integer tensors of at most 32 bits"
LOGICAL = "bool tensors"
ALIGNED = "reals whose scales have a common divisor, of shapes that broadcast, or constants"
ORDERED = "reals of at most 65,535 levels in all, or of scales with a common divisor"
COMPARED = f"{ORDERED}, of shapes that broadcast, or constants; {INTEGER}"
BITS = INTEGER
WEIGHTS = "constant quantized weights, of any scales with a common divisor"
CONV = f"1-D to 3-D and more, any group, strides, dilations and pads; {WEIGHTS}"
MATRICES = f"a stream and {WEIGHTS}; or two streams, each with one scale along the summed axis"
PRODUCT = f"{MATRICES}; not along the frame axis"
POOL = "1-D to 3-D and more, any strides, dilations and pads; no window in the padding alone"
MOVED = "within a frame"
AXES = "axes within a frame"
FRONT = "a frame axis of variable length stays in front"
RANKED = f"{AXES}; {ORDERED} along the axis; {INTEGER}"
RESIZED = f"nearest, linear and cubic, constant parameters, {MOVED}; weights with a common denominator of 40 bits"
SCALE = "constant scale, other than 0, and zero point, per tensor or per axis"
TABLE = (
    "constant data (integers, or reals of any scales) with indices known at run time; an index beyond the axis is the "
    "nearest one"
)
