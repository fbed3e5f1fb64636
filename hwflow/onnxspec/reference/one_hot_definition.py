"""OneHot by its specification, and the defects of the reference evaluator's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hwflow.onnxspec.dialect_operators.call_arguments import need
from hwflow.onnxspec.reference.defect import AnyArray, Attributes, Defect, Inputs, Mended, exactly


def one_hot(indices: AnyArray, depth: AnyArray, values: AnyArray, axis: int) -> AnyArray:
    """Return ``values[1]`` where the position along the new ``axis``, of size ``depth``, is the index, else
    ``values[0]`` (ONNX operator OneHot 11); indices of other types are cast to int64, negative ones count from the
    end."""
    count = int(np.asarray(depth).reshape(-1)[0])
    whole: npt.NDArray[np.int64] = np.expand_dims(indices.astype(np.int64), axis)
    places = np.arange(count).reshape([-1 if place == axis % whole.ndim else 1 for place in range(whole.ndim)])
    result: AnyArray = np.where((whole == places) | (whole == places - count), values[1], values[0])
    return result.astype(values.dtype)


def _fractions(attributes: Attributes, inputs: Inputs) -> bool:
    indices = inputs[0]
    return indices is not None and indices.dtype.kind == "f" and bool((indices != np.trunc(indices)).any())


def _uneven(attributes: Attributes, inputs: Inputs) -> bool:
    """Tell whether the second value differs from the first plus their difference."""
    values = inputs[2]
    if values is None or values.dtype.kind != "f":
        return values is not None and values.dtype.kind == "b"
    return bool(values[0] + (values[1] - values[0]) != values[1])


def _spread(inputs: Inputs, attributes: Attributes) -> AnyArray:
    indices, depth, values = (need(inputs, index) for index in range(3))
    return one_hot(indices, depth, values, int(attributes.get("axis", -1)))


ONE_HOT = Mended(
    (
        Defect("onehot-fractions", "indices that are no integers are not cast to such", _fractions),
        Defect("onehot-values", "values come of their difference: of bool it fails, of floats it rounds", _uneven),
    ),
    exactly(_spread),
)
