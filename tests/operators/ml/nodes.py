"""Models of one node of ai.onnx.ml, and what its definition gives."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from hwflow.onnxspec import resolve_with_graph
from hwflow.onnxspec.reference.evaluation import RegionEvaluator
from hwflow.onnxspec.reference.evaluator_defects import substitutes
from hwflow.operators.onnx_operators import KEPT

ML = "ai.onnx.ml"
Array = npt.NDArray[Any]


def kind(array: Array) -> int:
    return TensorProto.STRING if array.dtype.kind in "OSU" else helper.np_dtype_to_tensor_dtype(array.dtype)


def model_of(
    op: str, inputs: Mapping[str, Array], outputs: int = 1, *, version: int = 5, opset: int | None = 20,
    constants: Mapping[str, Array] | None = None, **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node whose inputs are frames of any number. ``opset``: of ai.onnx; None: not imported."""
    constants = constants or {}
    results = [f"y{k}" for k in range(outputs)]
    order = sorted([*inputs, *constants])
    node = helper.make_node(op, order, results, name="node", domain=ML, **attributes)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(name, kind(a), ["N", *a.shape[1:]]) for name, a in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in results],
        [numpy_helper.from_array(a, name) for name, a in constants.items()],
    )
    opsets = [helper.make_opsetid(ML, version)] + ([] if opset is None else [helper.make_opsetid("", opset)])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def defined(op: str, inputs: Mapping[str, Array], outputs: int = 1, **options: Any) -> list[Array]:
    """The results of a node's definition, frames first."""
    flat = flat_of(op, inputs, outputs, **options)
    assert all(node.domain != ML for node in flat.graph.node), "there is a definition"
    found = RegionEvaluator(flat).run([f"y{k}" for k in range(outputs)], inputs)
    return [np.asarray(found[f"y{k}"]) for k in range(outputs)]


def flat_of(op: str, inputs: Mapping[str, Array], outputs: int = 1, **options: Any) -> onnx.ModelProto:
    return resolve_with_graph(model_of(op, inputs, outputs, **options), {}, KEPT)[1]


def rows(rng: np.random.Generator, frames: int, features: int, dtype: Any = np.float32) -> Array:
    """Features, with a zero and equal ones among them."""
    found = (rng.normal(size=(frames, features)) * 3).astype(dtype)
    found[0] = 0
    found[-1] = found[-1][0]
    return found


def floats(rng: np.random.Generator, count: int) -> list[float]:
    return [float(v) for v in rng.normal(size=count).astype(np.float32)]


def close(found: Sequence[Any] | Array, expected: Sequence[Any] | Array, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(
        np.asarray(found, float), np.asarray(expected, float), rtol=tolerance, atol=tolerance, equal_nan=True
    )


def defects(op: str, inputs: Mapping[str, Array], outputs: int = 1, **options: Any) -> tuple[Any, list[Any], set[str]]:
    """What the installed evaluator gives for a node (its error as text, where it fails), what the substitute gives, and
    the defects that it names."""
    model, names = model_of(op, inputs, outputs, **options), set[str]()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            theirs: Any = ReferenceEvaluator(model).run(None, {**inputs})
        except Exception as error:
            theirs = str(error)
        evaluator = ReferenceEvaluator(model, new_ops=substitutes({ML: options.get("version", 5)}, names.add))
        return theirs, [*map(np.asarray, evaluator.run(None, {**inputs}))], names
