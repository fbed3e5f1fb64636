"""Values of attributes and tensors as plain Python, of kinds that models seldom have."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from hwflow.onnxspec.dialect_operators.call_arguments import need
from hwflow.onnxspec.graphs.attribute_values import python_value
from hwflow.onnxspec.reading.numpy_tensors import MOST_DENSE, from_sparse, native
from hwflow.onnxspec.training.training_graphs import combined
from hwflow.onnxspec.training.training_model import _described, _misfit


def sparse(*dims: int) -> onnx.SparseTensorProto:
    """5 at the second place."""
    values, indices = numpy_helper.from_array(np.float32([5]), "v"), numpy_helper.from_array(np.array([1]), "i")
    return helper.make_sparse_tensor(values, indices, dims)


def test_tensors_of_attributes() -> None:
    tensors = [numpy_helper.from_array(np.array([n, 7])) for n in (1, 2)]
    found: Any = python_value(helper.make_attribute("t", tensors))
    assert [array.tolist() for array in found] == [[1, 7], [2, 7]]
    dense: Any = python_value(helper.make_attribute("s", sparse(3)))
    assert dense.tolist() == [0, 5, 0]
    assert python_value(AttributeProto(name="g", type=AttributeProto.GRAPH)) is None


def test_sparse_tensors_that_are_too_large() -> None:
    with pytest.raises(MemoryError, match=f"must have at most {MOST_DENSE} elements, not {1 << 60}"):
        from_sparse(sparse(1 << 60))


def test_strings_stay_as_they_are() -> None:
    array = np.array(["a"], dtype=object)
    assert native(array, "string") is array


def test_inputs_that_are_needed() -> None:
    for inputs in ([], [None]):
        with pytest.raises(ValueError, match="input 0 must be present, but it is absent"):
            need(inputs, 0)


def test_what_a_training_step_is_given() -> None:
    wanted = helper.make_tensor_type_proto(TensorProto.FLOAT, None).tensor_type
    assert _misfit(np.zeros((3, 1), np.float32), wanted, "x", {}) is None
    days = np.array(["2020-01-01"], dtype="datetime64[D]")
    assert _misfit(days, wanted, "x", {}) == "must be of type float32, not datetime64[D]"
    assert _described(np.float32(1)) == "float32 []" and _described(datetime.date.today()) == "no tensor (date)"


def test_outputs_of_both_graphs_once() -> None:
    """An algorithm may give back an output of the main graph by its name."""
    def graph(name: str, *outputs: str) -> onnx.GraphProto:
        infos = [helper.make_tensor_value_info(output, TensorProto.FLOAT, [1]) for output in outputs]
        return helper.make_graph([], name, [], infos)

    whole = combined(graph("main", "a", "b"), graph("algorithm", "b", "c"))
    assert [output.name for output in whole.output] == ["a", "b", "c"]
