"""Constant folding by the ONNX reference evaluator.

A few bytes of a model can demand unbounded work: an image of 2**31 pixels, a regular expression that takes forever. So
folding is limited, and everything but small, plain nodes runs guarded.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import onnx
from onnx import helper

from hwflow.onnxspec.graphs.attribute_values import has_subgraph
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.operator_names import CAST, IDENTITY, SHAPE, SIZE
from hwflow.onnxspec.reading.guard import MEMORY, GaveUp, TimeBudget, guarded
from hwflow.onnxspec.reading.numpy_tensors import ELEMENT_TYPES, from_sparse, native, plain, to_array
from hwflow.onnxspec.resolving.resolved_model import Array, Attribute, ValueInfo
from hwflow.onnxspec.shapes.dialects import DIALECT_DOMAINS

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun

T = TypeVar("T")

# A computed constant (ConstantOfShape, Expand, Tile, ...) with more elements stays a node.
_MAX_ELEMENTS = 1 << 26
_MOST_MADE = 1 << 20  # computed elements, plus four times those stored
_SECONDS, _SECONDS_ELEMENT = 0.6, 1e-7  # processor time for all of that; more per stored element
_BYTES_ELEMENT = 64  # memory per element
_MOST_HERE = 1 << 14  # elements that a proportional operator reads and writes in this process


def constant_value(node: onnx.NodeProto) -> tuple[Array, str] | None:
    """Return value and element type name of a Constant node, None if it has no value attribute."""
    for attribute in node.attribute:
        if attribute.name == "value":
            return to_array(attribute.t)
        if attribute.name == "sparse_value":
            return from_sparse(attribute.sparse_tensor)
        if attribute.name in ("value_float", "value_floats"):
            floats = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            return plain(np.array(floats, dtype=np.float32), "float32")
        if attribute.name in ("value_int", "value_ints"):
            ints = attribute.i if attribute.name == "value_int" else list(attribute.ints)
            return plain(np.array(ints, dtype=np.int64), "int64")
        if attribute.name in ("value_string", "value_strings"):
            strings = attribute.s if attribute.name == "value_string" else list(attribute.strings)
            return plain(np.array(strings, dtype=object), "string")
    return None


def shape_value(node: onnx.NodeProto, shape: tuple[int, ...], attributes: Mapping[str, Attribute]) -> Array | None:
    """Return the value of a Shape or Size node whose input has ``shape``, None for another operator."""
    if node.op_type == SIZE:
        return plain(np.array(math.prod(shape), dtype=np.int64), "int64")[0]
    if node.op_type != SHAPE:
        return None
    start, end = attributes.get("start", 0), attributes.get("end")
    assert isinstance(start, int) and (end is None or isinstance(end, int))  # inference checked the attributes
    return plain(np.array(shape[start:end], dtype=np.int64), "int64")[0]


def of_shape(node: onnx.NodeProto, values: Mapping[str, ValueInfo]) -> dict[str, Array] | None:
    """Return substitute inputs for a node whose value depends on their shapes alone; None for another operator."""
    if not facts_of(node.domain, node.op_type).of_shapes:
        return None
    found = {}
    for name in filter(None, node.input):
        zero = np.zeros((), helper.tensor_dtype_to_np_dtype(ELEMENT_TYPES[values[name].dtype]))
        found[name] = np.broadcast_to(plain(zero, values[name].dtype)[0], values[name].shape)
    return found


def cast_of(node: onnx.NodeProto, dtype: str) -> onnx.NodeProto:
    """Return the Cast equivalent to a CastLike node to ``dtype``."""
    cast = helper.make_node(CAST, node.input[:1], node.output, to=ELEMENT_TYPES[dtype])
    cast.attribute.extend(node.attribute)
    return cast


def is_foldable(node: onnx.NodeProto, constants: Mapping[str, Array]) -> bool:
    """Tell whether the node's value is the same for every frame and may be computed now."""
    return (
        node.domain not in DIALECT_DOMAINS
        and facts_of(node.domain, node.op_type).foldable
        and not has_subgraph(node)
        and all(name in constants for name in node.input if name)
    )


class Folder:
    """Folds constants of one model, within limits for all of it.

    ``stored``: elements of the model's tensors. Raises :class:`~hwflow.onnxspec.reading.guard.GaveUp`, with the limit
    in its text, where one is reached.
    """

    def __init__(self, stored: int) -> None:
        self._most = self._left = _MOST_MADE + 4 * stored
        self._budget = TimeBudget(_SECONDS + _SECONDS_ELEMENT * stored)
        self._memory = MEMORY + _BYTES_ELEMENT * stored
        self._gave_up = ""  # the first reason

    def fold(
        self,
        node: onnx.NodeProto,
        values: Mapping[str, ValueInfo],
        constants: Mapping[str, Array],
        opsets: Sequence[onnx.OperatorSetIdProto],
        ir_version: int,
    ) -> dict[str, Array] | None:
        """Return the node's outputs, which agree with their types in ``values``.

        None if the reference evaluator cannot compute the node, or its shape or type differs from inference: then it
        stays a node, and its readers decide.
        """
        outputs = [name for name in node.output if name]
        if any(name not in values or math.prod(values[name].shape) > _MAX_ELEMENTS for name in outputs):
            return None
        if node.op_type == IDENTITY and node.domain == "":
            return {outputs[0]: constants[node.input[0]]}
        computed = sum(math.prod(values[name].shape) for name in outputs)
        read = sum(constants[name].size for name in node.input if name)
        text = any(values[name].dtype == "string" for name in (*node.input, *node.output) if name)
        self.take(computed)
        work = partial(_evaluate, node, values, constants, opsets, ir_version)
        operator = facts_of(node.domain, node.op_type)
        bounded = node.domain == "" and (operator.proportional or operator.elementwise)
        if bounded and computed + read <= _MOST_HERE and not text:
            return work()
        return self.guarded(work)

    def take(self, elements: int) -> None:
        """Count computed ``elements``."""
        if elements > self._left:
            raise GaveUp(f"the graph computes more than {self._most} elements of its constants")
        self._left -= elements

    def guarded(self, work: Callable[[], T]) -> T:
        """Run ``work()`` with the rest of time and memory."""
        import hwflow.onnxspec.reference.evaluator_defects  # noqa: F401  # once, and not in each of the processes

        if self._gave_up:
            raise GaveUp(self._gave_up)
        try:
            return guarded(work, self._budget, self._memory)
        except GaveUp as reason:
            self._gave_up = str(reason)
            raise


@cache
def _substitutes(version: int) -> list[type[OpRun]]:
    """Return the reference evaluator's mended operators, which take a while to make."""
    from hwflow.onnxspec.reference.evaluator_defects import substitutes

    return list(substitutes({"": version}, lambda defect: None))


def _evaluate(
    node: onnx.NodeProto,
    values: Mapping[str, ValueInfo],
    constants: Mapping[str, Array],
    opsets: Sequence[onnx.OperatorSetIdProto],
    ir_version: int,
) -> dict[str, Array] | None:
    from onnx.reference import ReferenceEvaluator  # most models have nothing to fold

    from hwflow.onnxspec.graphs.scopes import opset_map
    outputs = [name for name in node.output if name]

    def describe(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, ELEMENT_TYPES[values[name].dtype], values[name].shape)

    inputs = dict.fromkeys(name for name in node.input if name)
    graph = helper.make_graph([node], "fold", [describe(n) for n in inputs], [describe(n) for n in outputs])
    model = helper.make_model(graph, opset_imports=list(opsets), ir_version=ir_version)
    feeds = {name: native(constants[name], values[name].dtype) for name in inputs}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            around = _substitutes(opset_map(opsets).get("", 1))
            results = ReferenceEvaluator(model, new_ops=around).run(None, feeds)
    except MemoryError:
        raise
    except Exception:  # whatever the evaluator cannot do
        return None
    folded: dict[str, Array] = {}
    for name, result in zip(outputs, results, strict=True):
        info = values[name]
        if not isinstance(result, np.ndarray | np.generic) or tuple(np.shape(result)) != info.shape:
            return None
        array = np.asarray(result)
        if info.dtype != "string" and array.dtype != helper.tensor_dtype_to_np_dtype(ELEMENT_TYPES[info.dtype]):
            return None
        folded[name] = plain(array.copy(), info.dtype)[0]
    return folded
