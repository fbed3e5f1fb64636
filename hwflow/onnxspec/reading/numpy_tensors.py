"""Convert tensors and element types between ONNX and numpy arrays with numpy-style names."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hwflow.onnxspec.reading import element_types
from hwflow.onnxspec.resolving.resolved_model import Array

DTYPE_NAMES: dict[int, str] = {element.code: element.name for element in element_types.ALL}
ELEMENT_TYPES: dict[str, int] = {element.name: element.code for element in element_types.ALL}

MOST_DENSE = 1 << 26
"""The most elements of a sparse tensor made dense: a few bytes may claim any number."""

_NARROW_INTEGERS = {"int2": np.int8, "int4": np.int8, "uint2": np.uint8, "uint4": np.uint8}


def to_array(tensor: TensorProto) -> tuple[Array, str]:
    """Return the tensor's elements, read-only and in the types
    :class:`~hwflow.onnxspec.resolving.resolved_model.ResolvedModel` states, and the name of its element type. Raises
    what onnx raises for a malformed tensor (ValueError, TypeError, ...)."""
    return plain(numpy_helper.to_array(tensor), DTYPE_NAMES[tensor.data_type])


def plain(array: Array, dtype: str) -> tuple[Array, str]:
    """Convert ``array`` from ml_dtypes element types to numpy's."""
    if dtype in _NARROW_INTEGERS:
        array = array.astype(_NARROW_INTEGERS[dtype])
    elif dtype != "bool" and dtype != "string" and array.dtype.kind not in "biufc":
        array = array.astype(np.float32)  # exact: all of them are subsets of float32
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array, dtype


def native(array: Array, dtype: str) -> Array:
    """Invert :func:`plain`: convert to the element type that onnx itself uses for ``dtype``."""
    if dtype == "string":
        return array
    return array.astype(helper.tensor_dtype_to_np_dtype(ELEMENT_TYPES[dtype]), copy=False)


def to_tensor(name: str, array: Array, dtype: str) -> TensorProto:
    """Return a TensorProto of element type ``dtype``."""
    return numpy_helper.from_array(native(array, dtype), name)


def from_sparse(sparse: onnx.SparseTensorProto) -> tuple[Array, str]:
    """Convert a sparse tensor to a dense array; its indices are flat, or rows of coordinates.

    Raises MemoryError if the dense array has more than :data:`MOST_DENSE` elements.
    """
    if math.prod(sparse.dims) > MOST_DENSE:
        raise MemoryError(f"a sparse tensor must have at most {MOST_DENSE} elements, not {math.prod(sparse.dims)}")
    values = numpy_helper.to_array(sparse.values)
    indices = numpy_helper.to_array(sparse.indices).astype(np.int64)
    shape = tuple(sparse.dims)
    dense = np.zeros(shape, dtype=values.dtype)
    if indices.ndim == 2:
        dense[tuple(indices.T)] = values
    else:
        dense.reshape(-1)[indices] = values
    return plain(dense, DTYPE_NAMES[sparse.values.data_type])
