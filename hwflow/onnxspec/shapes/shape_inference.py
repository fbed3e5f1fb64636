"""Shape and element type inference, one node at a time.

This supports operators without a schema, relates every finding to its node, lets no wrong node hide the next, and never
copies large initializers. All sizes are known beforehand, so constant folding on the way
(:mod:`hwflow.onnxspec.resolving.constant_folding`) is all the data propagation needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import onnx
from onnx import helper, shape_inference

from hwflow.display import show
from hwflow.onnxspec.graphs.attribute_values import python_attributes
from hwflow.onnxspec.graphs.operator_facts import OperatorFacts, facts_of
from hwflow.onnxspec.graphs.schemas import has_body
from hwflow.onnxspec.reading.guard import GaveUp, TimeBudget
from hwflow.onnxspec.reading.kept_process import guarded_call
from hwflow.onnxspec.reading.numpy_tensors import DTYPE_NAMES, ELEMENT_TYPES, to_tensor
from hwflow.onnxspec.reading.skeleton import write_defaults
from hwflow.onnxspec.resolving.resolved_model import Array, Attribute, ValueInfo
from hwflow.onnxspec.shapes.dialect_forms import objections
from hwflow.onnxspec.shapes.dialects import ResultRule, ShapeError

# Shapes, axes, pads and scales are small; nothing that inference reads has more elements than this.
_MAX_DATA = 1024
_MOST_FOLLOWED = 1 << 12  # elements of a vector, each of which costs onnx time and memory at each node of a body
_SECONDS = 0.6  # processor time for all inference that is not tame


_Infer: TypeAlias = Callable[..., dict[str, onnx.TypeProto]]  # of a schema, and other arguments


class InferenceFailure(Exception):
    """Inference rejects the node; the text says why. Never leaves this package."""


class NoTensor(InferenceFailure):
    """The node's result is legal but no tensor, so hwflow cannot use it."""


def type_proto(info: ValueInfo) -> onnx.TypeProto:
    """Return the type of a value in onnx's form."""
    return helper.make_tensor_type_proto(ELEMENT_TYPES[info.dtype], info.shape)


def _output_info(name: str, kind: onnx.TypeProto | None) -> ValueInfo | None:
    if kind is None or kind.WhichOneof("value") is None:
        return None
    if not kind.HasField("tensor_type"):
        found = str(kind.WhichOneof("value")).removesuffix("_type").replace("_", " ")
        raise NoTensor(f"output {show(name)} must be a tensor, not a {found}")
    dtype = DTYPE_NAMES.get(kind.tensor_type.elem_type)
    if dtype is None or not kind.tensor_type.HasField("shape"):
        return None
    dims = kind.tensor_type.shape.dim
    if not all(d.HasField("dim_value") for d in dims):
        return None
    return ValueInfo(name, tuple(d.dim_value for d in dims), dtype)


def _clean(error: Exception) -> str:
    text = " ".join(str(error).split())
    for prefix in ("[ShapeInferenceError]", "[TypeInferenceError]"):
        text = text.removeprefix(prefix).strip()
    return text or type(error).__name__


def _infer_function(
    schema: onnx.defs.OpSchema,
    node: onnx.NodeProto,
    types: Mapping[str, onnx.TypeProto],
    data: Mapping[str, onnx.TensorProto],
    opsets: Sequence[onnx.OperatorSetIdProto],
    ir_version: int,
) -> dict[str, onnx.TypeProto]:
    """Infer through the body of an operator that is defined by a function, which onnx only does for a whole model."""
    call = onnx.NodeProto()
    call.CopyFrom(node)
    write_defaults(call, schema.since_version)
    graph = helper.make_graph(
        [call],
        "node",
        [helper.make_value_info(name, kind) for name, kind in types.items()],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
        list(data.values()),
    )
    model = helper.make_model(graph, opset_imports=list(opsets), ir_version=ir_version)
    shapes = [kind.tensor_type.shape.dim for kind in types.values()]
    follow = all(len(shape) != 1 or shape[0].dim_value <= _MOST_FOLLOWED for shape in shapes)
    inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=follow)
    return {info.name: info.type for info in inferred.graph.output}


def _infer_node(
    schema: onnx.defs.OpSchema,
    node: onnx.NodeProto,
    types: dict[str, onnx.TypeProto],
    data: dict[str, onnx.TensorProto],
    opsets: Sequence[onnx.OperatorSetIdProto],
    ir_version: int,
) -> dict[str, onnx.TypeProto]:
    return shape_inference.infer_node_outputs(
        schema, node, types, data, opset_imports=list(opsets), ir_version=ir_version
    )


def _packed(infer: _Infer, schema: tuple[str, int, str], *rest: Any) -> dict[str, bytes] | str:
    """Return the types as bytes, or the objection of inference, to pass between processes; ``schema``: operator,
    version and domain, for a schema cannot be passed."""
    found = onnx.defs.get_schema(*schema)
    try:
        return {name: kind.SerializeToString() for name, kind in infer(found, *rest).items()}
    except MemoryError:
        raise
    except Exception as error:  # onnx raises ValidationError, InferenceError, RuntimeError, ...
        return _clean(error)


def _guarded(infer: _Infer, schema: onnx.defs.OpSchema, *rest: Any, budget: TimeBudget) -> dict[str, onnx.TypeProto]:
    """Return what ``infer`` makes of a schema and the ``rest`` of its arguments."""
    arguments = infer, (schema.name, schema.since_version, schema.domain), *rest
    try:
        result = guarded_call(_packed, arguments, budget)
    except GaveUp as reason:
        raise InferenceFailure(f"onnx.shape_inference comes to no end: {reason}") from reason
    if isinstance(result, str):
        raise InferenceFailure(result)
    return {name: onnx.TypeProto.FromString(kind) for name, kind in result.items()}


def infer_standard(
    schema: onnx.defs.OpSchema,
    node: onnx.NodeProto,
    values: Mapping[str, ValueInfo],
    constants: Mapping[str, Array],
    opsets: Sequence[onnx.OperatorSetIdProto],
    ir_version: int,
    budget: TimeBudget,
) -> dict[str, ValueInfo]:
    """Infer the output values of a node with a schema, without those whose shape stays open.

    ``budget``: for guarded runs. Raises InferenceFailure if the node does not fit its schema or its inputs do not fit
    each other.
    """
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    operator = facts_of(node.domain, node.op_type)
    by_value = node.domain != "" or not operator.by_type
    for name in node.input:
        if name and name not in types:
            info = values[name]
            types[name] = type_proto(info)
            array = constants.get(name) if by_value else None
            if array is not None and array.size <= _MAX_DATA and info.dtype != "string":
                data[name] = to_tensor(name, array, info.dtype)
    try:
        arguments = schema, node, types, data, list(opsets), ir_version
        # Some operators of other domains than ai.onnx are wild, too.
        wild = node.domain != "" or operator.wild
        inferred = _guarded(_infer_node, *arguments, budget=budget) if wild else _infer_node(*arguments)
        outputs = {name: _output_info(name, inferred.get(name)) for name in node.output if name}
        if None in outputs.values() and has_body(schema):
            inferred = _guarded(_infer_function, *arguments, budget=budget)
            outputs = {name: _output_info(name, inferred.get(name)) for name in node.output if name}
    except InferenceFailure:
        raise
    except Exception as error:  # onnx raises ValidationError, InferenceError, RuntimeError, ...
        raise InferenceFailure(_clean(error)) from error
    found = {name: info for name, info in outputs.items() if info is not None}
    if found:
        return found
    if operator.results is not None:
        return _stated_by_rule(operator.results, schema, node, values)
    return _stated_by_input(node, operator, values, constants) or _stated(node, operator, values, constants)


def _stated_by_rule(
    rule: ResultRule, schema: onnx.defs.OpSchema, node: onnx.NodeProto, values: Mapping[str, ValueInfo]
) -> dict[str, ValueInfo]:
    """Return the results of a node whose record states the types of all of them."""
    inputs = [values[name] if name else None for name in node.input]
    try:
        results = rule(inputs, python_attributes(node, schema))
    except ShapeError as error:
        raise InferenceFailure(str(error)) from error
    return {name: ValueInfo(name, *known) for name, known in zip(node.output, results, strict=False) if name}


def _stated(
    node: onnx.NodeProto, operator: OperatorFacts, values: Mapping[str, ValueInfo], constants: Mapping[str, Array]
) -> dict[str, ValueInfo]:
    """Return the result of a node of constants whose record states its shape; its elements are of the first input's
    type."""
    if operator.stated_shape is None or not all(name in constants for name in node.input):
        return {}
    shape, name = operator.stated_shape([constants[name] for name in node.input]), node.output[0]
    return {} if shape is None else {name: ValueInfo(name, shape, values[node.input[0]].dtype)}


def _stated_by_input(
    node: onnx.NodeProto, operator: OperatorFacts, values: Mapping[str, ValueInfo], constants: Mapping[str, Array]
) -> dict[str, ValueInfo]:
    """Return the result of a node whose shape inference leaves open: that of the first input, or a constant input; its
    elements are of the first input's type."""
    if operator.same_shape:
        first = values[node.input[0]]
        return {node.output[0]: ValueInfo(node.output[0], first.shape, first.dtype)}
    place = operator.shape_input
    shape = constants.get(node.input[place]) if place is not None and place < len(node.input) else None
    sizes = () if shape is None or shape.ndim != 1 or shape.size > _MAX_DATA else tuple(int(size) for size in shape)
    name = node.output[0]
    return {name: ValueInfo(name, sizes, values[node.input[0]].dtype)} if name and min(sizes, default=0) > 0 else {}


# Shape and element type of each output, None where inference leaves it open.
_Result: TypeAlias = tuple[tuple[tuple[int, ...], str] | None, ...]
_MAX_KEY = 4096  # bytes of attributes; longer ones are not worth remembering


class MemoizedInference:
    """Memoized :func:`infer_standard`: deep networks repeat their layers.

    The key holds everything that inference depends on except names: operator, imports, attributes, the present outputs,
    the inputs' types, and the data of the small constants among them.
    """

    def __init__(self, values: Mapping[str, ValueInfo], constants: Mapping[str, Array], ir_version: int) -> None:
        self._values, self._constants, self._ir_version = values, constants, ir_version
        self._budget = TimeBudget(_SECONDS)
        self._results: dict[Hashable, _Result] = {}
        self._inputs: dict[str, Hashable] = {}

    def _input(self, name: str) -> Hashable:
        key = self._inputs.get(name)
        if key is None:
            info, array = self._values[name], self._constants.get(name)
            data = None
            if array is not None and array.size <= _MAX_DATA and info.dtype != "string":
                data = array.tobytes()
            key = self._inputs[name] = (info.dtype, info.shape, data)
        return key

    def forget(self, name: str) -> None:
        """Forget a value that is redefined."""
        self._inputs.pop(name, None)

    def key(self, node: onnx.NodeProto, attributes: Hashable, imports: Hashable) -> Hashable:
        """Return a key that is equal for nodes with equal inference. ``attributes``: the node's, as bytes."""
        if node.domain == "" and facts_of(node.domain, node.op_type).by_type:
            infos = [self._values[name] if name else None for name in node.input]
            inputs: Hashable = tuple([None if info is None else (info.dtype, info.shape) for info in infos])
        else:
            inputs = tuple([self._input(name) if name else None for name in node.input])
        outputs = tuple([bool(name) for name in node.output])
        return node.op_type, node.domain, attributes, imports, inputs, outputs

    def infer(
        self,
        schema: onnx.defs.OpSchema,
        node: onnx.NodeProto,
        key: Hashable | None,
        opsets: Sequence[onnx.OperatorSetIdProto],
    ) -> dict[str, ValueInfo]:
        """Infer as :func:`infer_standard`; a ``key`` of None is not memoized."""
        result = None if key is None else self._results.get(key)
        if result is None:
            found = infer_standard(schema, node, self._values, self._constants, opsets, self._ir_version, self._budget)
            infos = [found.get(name) for name in node.output]
            result = tuple(None if info is None else (info.shape, info.dtype) for info in infos)
            if key is not None:
                self._results[key] = result
        return {
            name: ValueInfo(name, *known) for name, known in zip(node.output, result, strict=True) if known and name
        }


    def infer_graphs(
        self,
        schema: onnx.defs.OpSchema,
        node: onnx.NodeProto,
        visible: Iterable[str],
        opsets: Sequence[onnx.OperatorSetIdProto],
    ) -> list[onnx.ValueInfoProto]:
        """Infer the outputs of a node with subgraphs, which read ``visible`` values; sizes may be variables that the
        subgraphs declare. Empty where inference fails."""
        types = {name: type_proto(self._values[name]) for name in visible}
        try:
            inferred = _guarded(
                _infer_node, schema, node, types, {}, list(opsets), self._ir_version, budget=self._budget
            )
        except InferenceFailure:
            return []
        return [helper.make_value_info(name, kind) for name, kind in inferred.items() if name]


def attribute_bytes(node: onnx.NodeProto) -> Hashable | None:
    """Return the node's attributes as bytes, None if they are long."""
    if not node.attribute:
        return b""
    if len(node.attribute) == 1 and node.attribute[0].ByteSize() > _MAX_KEY:
        return None
    data = tuple([attribute.SerializeToString() for attribute in node.attribute])
    return data if sum(map(len, data)) <= _MAX_KEY else None


def infer_dialect(
    node: onnx.NodeProto, values: Mapping[str, ValueInfo], attributes: Mapping[str, Attribute]
) -> dict[str, ValueInfo]:
    """Infer as :func:`infer_standard`, for an operator of a dialect; empty if its record has no rule. Raises
    InferenceFailure for a node that is not as :mod:`hwflow.onnxspec.shapes.dialect_forms` says."""
    operator = facts_of(node.domain, node.op_type)
    rule, form = operator.shape, operator.form
    inputs = [values[name] if name else None for name in node.input]
    wrong = "; ".join(objections(form, inputs, attributes)) if form is not None else ""
    if wrong:
        raise InferenceFailure(wrong)
    if rule is None or not node.output:
        return {}
    try:
        shape, dtype = rule(inputs, attributes)
    except ShapeError as error:
        raise InferenceFailure(str(error)) from error
    alike = [node.output[place] for place in (0, *operator.alike) if place < len(node.output) and node.output[place]]
    return {name: ValueInfo(name, shape, dtype) for name in alike}
