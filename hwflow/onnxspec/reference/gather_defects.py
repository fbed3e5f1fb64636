"""Defects of the reference evaluator's GatherElements, and the operator without them."""

from __future__ import annotations

import numpy as np

from hwflow.onnxspec.dialect_operators.call_arguments import need
from hwflow.onnxspec.reference.defect import AnyArray, Attributes, Defect, Inputs, Mended, exactly

_MOST_CHOICES = 63  # the limit of numpy's choose


def _from_behind(attributes: Attributes, inputs: Inputs) -> bool:
    data, indices = inputs
    assert data is not None and indices is not None
    return int(attributes.get("axis", 0)) == -1 and indices.shape != data.shape


def _long(attributes: Attributes, inputs: Inputs) -> bool:
    data = inputs[0]
    return data is not None and data.shape[int(attributes.get("axis", 0))] > _MOST_CHOICES


def _fewer(attributes: Attributes, inputs: Inputs) -> bool:
    data, indices = inputs
    assert data is not None and indices is not None
    axis = int(attributes.get("axis", 0)) % data.ndim
    return any(a != axis and n != size for a, (n, size) in enumerate(zip(indices.shape, data.shape, strict=True)))


def gather_elements(data: AnyArray, indices: AnyArray, axis: int) -> AnyArray:
    """Compute GatherElements by its formula, which reads only the part of ``data`` covered by the indices' shape."""
    axis %= data.ndim
    part = tuple(slice(None) if a == axis else slice(count) for a, count in enumerate(indices.shape))
    if indices.ndim != data.ndim or data[part].shape[:axis] != indices.shape[:axis]:
        raise ValueError(f"indices of shape {indices.shape} do not fit data of shape {data.shape}")
    size = data.shape[axis]
    if indices.size and (indices.min() < -size or indices.max() >= size):
        raise ValueError(f"indices must lie in [{-size}, {size - 1}]")
    result: AnyArray = np.take_along_axis(data[part], indices.astype(np.int64) % max(size, 1), axis)
    return result


def _gathered(inputs: Inputs, attributes: Attributes) -> AnyArray:
    return gather_elements(need(inputs, 0), need(inputs, 1), int(attributes.get("axis") or 0))


GATHER_ELEMENTS = Mended(
    (
        Defect(
            "gatherelements-axis", "along the axis -1 it fails unless there are as many indices as elements",
            _from_behind,
        ),
        Defect(
            "gatherelements-length",
            f"along an axis of more than {_MOST_CHOICES} elements it fails, or gathers others", _long,
        ),
        Defect("gatherelements-part", "with fewer indices than elements along other axes it fails", _fewer),
    ),
    exactly(_gathered),
)
