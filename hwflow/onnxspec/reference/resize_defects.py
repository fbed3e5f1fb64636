"""Defects of the reference evaluator's Resize and Upsample, and their substitutes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_resize import Resize
from onnx.reference.ops.op_upsample import Upsample

from hwflow.onnxspec.reference.defect import AnyArray, Defect, Inputs, Mended, Tell, operator_class
from hwflow.onnxspec.reference.resize_matrices import FIRST_MODES, Line, coordinate, lines, nearest, resize

_FIRST_UPSAMPLE = 7  # operator set; before there was an experimental one


def has_two_inputs(attributes: Mapping[str, Any], inputs: Inputs) -> bool:
    """Match Resize 10."""
    return len(inputs) == 2


def has_negative_axes(attributes: Mapping[str, Any], inputs: Inputs) -> bool:
    return any(axis < 0 for axis in attributes.get("axes") or ())


def smooths_nearest(attributes: Mapping[str, Any], inputs: Inputs) -> bool:
    return attributes.get("mode") == "nearest" and bool(attributes.get("antialias"))


def is_bool(attributes: Mapping[str, Any], inputs: Inputs) -> bool:
    return inputs[0] is not None and inputs[0].dtype == np.bool_


def has_old_transformation(attributes: Mapping[str, Any], inputs: Inputs) -> bool:
    return attributes.get("coordinate_transformation_mode") == "tf_half_pixel_for_nn"


def is_short(attributes: Mapping[str, Any], inputs: Inputs) -> bool:
    """Match a target length of 1 that must be sampled at 0, or one below 1."""
    if has_two_inputs(attributes, inputs):
        return False
    mode, smooth = attributes.get("coordinate_transformation_mode"), attributes.get("mode") == "cubic"
    if mode == "pytorch_half_pixel" and (smooth or attributes.get("antialias")):
        return any(line.length <= 1 < line.size for line in _lines(attributes, inputs))
    return mode in ("pytorch_half_pixel", "tf_crop_and_resize") and any(
        line.length < 1 < line.size for line in _lines(attributes, inputs)
    )


def misses_integers(attributes: Mapping[str, Any], inputs: Inputs) -> bool:
    """Match an element that float64 coordinates miss: a nearest one at a tie, or one at an integer, which a nearby
    coordinate becomes when the padding is added."""
    if has_two_inputs(attributes, inputs) or has_old_transformation(attributes, inputs):
        return False
    mode = str(attributes.get("coordinate_transformation_mode"))
    rounding = str(attributes.get("nearest_mode")) if attributes.get("mode") == "nearest" else ""
    for line in _lines(attributes, inputs):
        if line.stays:
            continue
        padding = _padding(attributes, float(line.scale))
        for place in range(line.output):
            at = _float(line, mode, place)
            if (floor(at) + padding, at.is_integer()) != (floor(at + padding), (at + padding).is_integer()):
                return True
            if rounding:
                ends = [nearest(coordinate(line, mode, place), rounding), _nearest(at, rounding)]
                exact, found = (min(max(end, 0), line.size - 1) for end in ends)
                if exact != found:
                    return True
    return False


def rounds_region(attributes: Mapping[str, Any], inputs: Inputs) -> bool:
    """Match a coordinate whose error exceeds float64 rounding."""
    mode = str(attributes.get("coordinate_transformation_mode"))
    if has_two_inputs(attributes, inputs) or mode != "tf_crop_and_resize" or inputs[1] is None:
        return False
    kind = inputs[1].dtype.type
    return any(
        abs(Fraction(_float(line, mode, place, kind)) - coordinate(line, mode, place)) > Fraction(line.size, 1 << 48)
        for line in _lines(attributes, inputs) if line.length >= 1 for place in range(line.output)
    )


def _padding(attributes: Mapping[str, Any], scale: float) -> int:
    """Return the elements that the evaluator pads at each end of an axis: half of those in a sum."""
    reach = 2 if attributes.get("mode") == "cubic" else 1
    return -floor(-reach / min(scale, 1.0)) if attributes.get("antialias") else reach


def _lines(attributes: Mapping[str, Any], inputs: Inputs) -> list[Line]:
    x, *rest = inputs
    assert x is not None, "the operand is there"
    roi, scales, sizes = (*rest, None, None, None)[:3]
    return lines(x.shape, attributes, roi, scales, sizes)


def _float(line: Line, mode: str, place: int, kind: type = np.float64) -> float:
    """Compute :func:`coordinate` in float64 like the evaluator; for the region of interest in its own type,
    ``kind``."""
    scale, start, end = float(line.scale), kind(float(line.start)), kind(float(line.end))
    length, last = scale * line.size, line.size - 1
    match mode:
        case "asymmetric":
            return place / scale
        case "align_corners":
            return 0.0 if length == 1 else place * last / (length - 1)
        case "tf_crop_and_resize":
            if length == 1:
                return float((end - start) * last / 2 + start * last)
            return float(np.float64(place) * (end - start) * last / (length - 1) + start * last)
        case "half_pixel_symmetric":
            return line.size / 2 * (1 - line.output / length) + (place + 0.5) / scale - 0.5
    return -0.5 if mode == "pytorch_half_pixel" and length == 1 else (place + 0.5) / scale - 0.5


def _nearest(at: float, rounding: str) -> int:
    below = floor(at)
    if rounding in ("floor", "ceil"):
        return below if rounding == "floor" else ceil(at)
    up = at - below > 0.5 if rounding == "round_prefer_floor" else at - below >= 0.5
    return below + up


def is_attribute(attributes: Mapping[str, Any], inputs: Inputs) -> bool:
    """Match Upsample 7."""
    return "scales" in attributes


def is_not_repetition(attributes: Mapping[str, Any], inputs: Inputs) -> bool:
    scales = inputs[1] if len(inputs) > 1 else None
    return scales is not None and (attributes.get("mode") != "nearest" or bool((scales != np.floor(scales)).any()))


def _resize(name: str, version: int, tell: Tell) -> type[OpRun]:
    own: Callable[..., tuple[AnyArray]] = Resize._run

    def run(self: OpRun, x: AnyArray, *inputs: AnyArray | None, **attributes: Any) -> tuple[AnyArray]:
        if tell(attributes, [x, *inputs]):
            roi, scales, sizes = (None, inputs[0], None) if version < FIRST_MODES else (*inputs, None, None, None)[:3]
            return (resize(x, attributes, version, roi, scales, sizes),)
        roi, scales, sizes = (*inputs, None, None, None)[:3]
        absent = [None if array is None or not array.size else array for array in (scales, sizes)]
        policy = attributes.pop("keep_aspect_ratio_policy", "stretch")  # earlier versions have none
        return own(self, x, roi, *absent, keep_aspect_ratio_policy=policy, **attributes)

    return operator_class(name, version, (OpRun,), run)


def _upsample(name: str, version: int, tell: Tell) -> type[OpRun] | None:
    own: Callable[..., tuple[AnyArray]] = Upsample._run

    def run(self: OpRun, x: AnyArray, *inputs: AnyArray | None, **attributes: Any) -> tuple[AnyArray]:
        if tell(attributes, [x, *inputs]):
            scales = inputs[0] if inputs else np.array(attributes["scales"])
            return (resize(x, attributes, version, None, scales),)
        return own(self, x, *inputs, **attributes)

    return operator_class(name, version, (OpRun,), run) if version >= _FIRST_UPSAMPLE else None


RESIZE = Mended(
    (
        Defect("resize-opset", "before operator set 11 it takes scales for roi and fails", has_two_inputs),
        Defect("resize-axes", "with negative axes it fails", has_negative_axes),
        Defect("resize-antialias", "antialias, which nearest has no use for, fails", smooths_nearest),
        Defect("resize-bool", "of bool tensors it fails", is_bool),
        Defect("resize-half-pixel", "tf_half_pixel_for_nn fails", has_old_transformation),
        Defect(
            "resize-single",
            "a result of one element is sampled at -0.5 with pytorch_half_pixel, not at 0, and where its length is "
            "rounded up to 1, as a longer one",
            is_short,
        ),
        Defect(
            "resize-rounding", "float64 coordinates miss a tie, or an element that lies at an integer", misses_integers,
        ),
        Defect("resize-region", "coordinates in a region of interest are rounded to float32", rounds_region),
    ),
    _resize,
)
UPSAMPLE = Mended(
    (
        Defect("upsample-attribute", "with scales as an attribute it fails", is_attribute),
        Defect("upsample-modes", "linear, and scales that are no integers, fail", is_not_repetition),
    ),
    _upsample,
)
