"""Constants whose data are kept from inference, and sparse ones on their way through branches."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hwflow.onnxspec import validate
from tests.onnxspec.build import model, node, refused, texts, value
from tests.onnxspec.resolving.resolved import resolve

LONG = 70_000


def joined(size: int) -> onnx.ModelProto:
    """x [1, 4] and a Constant [1, 70000]; y is said to have ``size`` elements."""
    made = node("Constant", [], ["c"], value=numpy_helper.from_array(np.zeros((1, LONG), np.float32), "c"))
    return model([made, node("Concat", ["x", "c"], ["y"], name="join", axis=1)], outputs=[value("y", [1, size])])


def test_inference_knows_a_large_constant_by_its_shape() -> None:
    assert validate(joined(LONG + 4)) == []
    (finding,) = texts(validate(joined(LONG + 5)))
    assert str(LONG + 4) in finding and str(LONG + 5) in finding
    assert resolve(joined(LONG + 4), {}).values["y"].shape == (1, LONG + 4)


def sparse(*dims: int) -> onnx.SparseTensorProto:
    """5 at the second place, called w."""
    values, indices = numpy_helper.from_array(np.float32([5]), "w"), numpy_helper.from_array(np.array([1]), "")
    return helper.make_sparse_tensor(values, indices, dims)


def test_a_sparse_tensor_of_a_branch() -> None:
    """The branch that a constant chooses."""
    taken = helper.make_graph([node("Add", ["x", "w"], ["t"])], "then", [], [value("t", [1, 4])])
    taken.sparse_initializer.append(sparse(1, 4))
    other = helper.make_graph([node("Identity", ["x"], ["e"])], "else", [], [value("e", [1, 4])])
    proto = model([node("If", ["yes"], ["y"], then_branch=taken, else_branch=other)], constants={"yes": np.bool_(True)})
    resolved = resolve(proto, {})
    assert [n.op_type for n in resolved.nodes] == ["Add"]
    assert [resolved.constants[name].tolist() for name in resolved.nodes[0].inputs[1:]] == [[[0, 5, 0, 0]]]


def test_a_sparse_tensor_that_is_too_large() -> None:
    proto = model(
        [node("Gather", ["w", "i"], ["g"], axis=1), node("Add", ["x", "g"], ["y"])], constants={"i": np.arange(4)},
        sparse_initializer=[sparse(1, 1 << 40)],
    )
    (finding,) = refused(lambda: resolve(proto, {}))
    assert "initializer 'w'" in finding and "store it as a dense tensor" in finding
