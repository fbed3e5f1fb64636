"""Error bounds of Resize and Upsample."""

from __future__ import annotations

import numpy as np

from hwflow.onnxspec.reference.resize_matrices import FIRST_MODES, bound, resize
from hwflow.operators.float_errors.step_errors import INFLATION, Errors, Step, is_integer, magnitude


def resized(step: Step) -> Errors:
    """Bound Resize: the same weighted means of the errors, by the weights' magnitudes; the error of float64 weights;
    and one rounding to the result's type, unless elements are only copied. Means of integers are rounded to integers,
    which change where a rounding boundary lies within reach."""
    step.exact(*range(1, len(step.inputs)))
    version, x = step.region.version, step.value(0)
    inputs = [step.inputs[index] if step.has(index) else None for index in range(1, 4)]
    attributes = {name: v.decode() if isinstance(v, bytes) else v for name, v in step.attributes.items()}
    if "scales" in attributes:  # of Upsample, before operator set 9
        inputs = [np.array(attributes["scales"])]
    roi, scales, sizes = (*inputs, None, None)[:3] if version >= FIRST_MODES else (None, inputs[0], None)
    if attributes.get("mode", "nearest") == "nearest":
        return bound(step.error(0), np.zeros(x.shape), attributes, version, roi, scales, sizes)
    if not is_integer(step.output):
        error = bound(step.error(0), magnitude(x), attributes, version, roi, scales, sizes)
        rounded: Errors = error + step.rounded()
        return rounded
    step.exact(0)
    step.quotient = bound(step.error(0), magnitude(x), attributes, version, roi, scales, sizes)
    mean, reach = resize(x.astype(np.float64), attributes, version, roi, scales, sizes), step.quotient * INFLATION
    moved: Errors = np.rint(mean + reach) - np.rint(mean - reach)
    return moved
