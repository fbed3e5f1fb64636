"""Folding: a node whose inputs are all constants becomes constants, as the ONNX reference evaluator computes them.

A few bytes of a model can ask for any work: an image of 2**31 pixels, a regular expression that takes for ever. So what
the graph makes of its constants has limits, and whatever is not small and plain runs guarded.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import onnx
from onnx import helper

from hwflow.onnxspec.graphs.attribute_values import has_subgraph
from hwflow.onnxspec.reading.guard import MEMORY, Budget, GaveUp, guarded
from hwflow.onnxspec.reading.numpy_tensors import ELEMENT_TYPES, from_sparse, native, plain, to_array
from hwflow.onnxspec.resolving.resolved_model import Array, Attribute, ValueInfo
from hwflow.onnxspec.shapes.dialects import DIALECT_DOMAINS

T = TypeVar("T")

# Quantizers stay: the front end reads scale and zero point from them.
_KEPT = frozenset({"QuantizeLinear", "DequantizeLinear"})
# Different at each run.
_RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
# A constant made by the graph (ConstantOfShape, Expand, Tile, ...) above this many elements stays a node.
_MAX_ELEMENTS = 1 << 26
_MOST_MADE = 1 << 20  # elements that the graph makes of its constants; and four times those that it has
_SECONDS, _SECONDS_ELEMENT = 0.6, 1e-7  # of processor time for all of that; more for each element that the model has
_BYTES_ELEMENT = 64  # of memory, for each element
# Operators whose work is in proportion to the elements that they read and make.
_PLAIN = frozenset((
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Concat", "ConstantOfShape", "Div", "Equal", "Expand", "Flatten",
    "Floor", "Gather", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max", "Min", "Mul", "Neg",
    "Not", "Or", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Relu", "Reshape", "Round", "Slice", "Split",
    "Sqrt", "Squeeze", "Sub", "Tile", "Transpose", "Unsqueeze", "Where",
))  # fmt: skip
_MOST_HERE = 1 << 14  # elements that a plain operator reads and makes in this process


def constant_value(node: onnx.NodeProto) -> tuple[Array, str] | None:
    """Value and element type name of a Constant node, None if it has no value attribute."""
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
    """The value of a Shape or Size node whose input has ``shape``, None for another operator."""
    if node.op_type == "Size":
        return plain(np.array(math.prod(shape), dtype=np.int64), "int64")[0]
    if node.op_type != "Shape":
        return None
    start, end = attributes.get("start", 0), attributes.get("end")
    assert isinstance(start, int) and (end is None or isinstance(end, int))  # inference checked the attributes
    return plain(np.array(shape[start:end], dtype=np.int64), "int64")[0]


def cast_of(node: onnx.NodeProto, dtype: str) -> onnx.NodeProto:
    """The Cast that a CastLike node to ``dtype`` is."""
    cast = helper.make_node("Cast", node.input[:1], node.output, to=ELEMENT_TYPES[dtype])
    cast.attribute.extend(node.attribute)
    return cast


def is_foldable(node: onnx.NodeProto, constants: Mapping[str, Array]) -> bool:
    """Whether the node's value is the same for every frame and may be computed now."""
    return (
        node.domain not in DIALECT_DOMAINS
        and node.op_type not in _KEPT
        and node.op_type not in _RANDOM
        and not has_subgraph(node)
        and all(name in constants for name in node.input if name)
    )


class Folder:
    """Folding in one model, within limits for the whole of it.

    ``stored``: elements of the tensors that the model has. :class:`~hwflow.onnxspec.reading.guard.GaveUp` is raised
    where a limit is reached; its text names it.
    """

    def __init__(self, stored: int) -> None:
        self._most = self._left = _MOST_MADE + 4 * stored
        self._budget = Budget(_SECONDS + _SECONDS_ELEMENT * stored)
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
        """The node's outputs; ``values`` has their types already, and the result agrees with them.

        None if the reference evaluator cannot compute the node, or gives another shape or type than inference: then it
        stays a node, and what reads it decides.
        """
        outputs = [name for name in node.output if name]
        if any(name not in values or math.prod(values[name].shape) > _MAX_ELEMENTS for name in outputs):
            return None
        made = sum(math.prod(values[name].shape) for name in outputs)
        read = sum(constants[name].size for name in node.input if name)
        text = any(values[name].dtype == "string" for name in (*node.input, *node.output) if name)
        self.take(made)
        work = partial(_evaluate, node, values, constants, opsets, ir_version)
        if node.domain == "" and node.op_type in _PLAIN and made + read <= _MOST_HERE and not text:
            return work()
        return self.guarded(work)

    def take(self, elements: int) -> None:
        """Count ``elements`` that are made."""
        if elements > self._left:
            raise GaveUp(f"the graph makes more than {self._most} elements of its constants")
        self._left -= elements

    def guarded(self, work: Callable[[], T]) -> T:
        """``work()`` with what is left of time and memory."""
        import hwflow.onnxspec.reference.evaluator_defects  # noqa: F401  # once, and not in each of the processes

        if self._gave_up:
            raise GaveUp(self._gave_up)
        try:
            return guarded(work, self._budget, self._memory)
        except GaveUp as reason:
            self._gave_up = str(reason)
            raise


def _evaluate(
    node: onnx.NodeProto,
    values: Mapping[str, ValueInfo],
    constants: Mapping[str, Array],
    opsets: Sequence[onnx.OperatorSetIdProto],
    ir_version: int,
) -> dict[str, Array] | None:
    from onnx.reference import ReferenceEvaluator  # most models have nothing to fold

    from hwflow.onnxspec.graphs.scopes import opset_map
    from hwflow.onnxspec.reference.evaluator_defects import substitutes

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
            around = substitutes(opset_map(opsets).get("", 1), lambda defect: None)
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
