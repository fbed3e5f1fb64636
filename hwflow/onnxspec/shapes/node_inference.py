"""Inference node by node: slow, but finds every node that does not fit, not only the first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import onnx
import onnx.onnx_cpp2py_export.shape_inference as onnx_inference
from onnx import AttributeProto, TensorProto, shape_inference

from hwflow.display import show
from hwflow.onnxspec.graphs.operator_names import CONSTANT, SEQUENCE_INSERT
from hwflow.onnxspec.graphs.schemas import has_body
from hwflow.onnxspec.graphs.scopes import Node, Scope
from hwflow.onnxspec.graphs.typeforms import LevelKind, TypeForm, read_type, type_text, write_type
from hwflow.onnxspec.reading import element_types
from hwflow.onnxspec.reading.skeleton import complete_calls, is_large, write_defaults
from hwflow.onnxspec.reading.text import one_line

_SHOWN = 6  # element types that a message lists
_MOST_RANK = 256  # the highest rank of an inferred type that is propagated


class FailureKind(Enum):
    """What inference found wrong."""

    TYPE = "type"
    SHAPE = "shape"


@dataclass(frozen=True, slots=True)
class Failure:
    """Node ``node`` of scope number ``scope`` does not fit: its types ("type"), or its shapes."""

    scope: int
    node: int
    kind: FailureKind
    message: str


@dataclass
class NodeResults:
    """``forms``: the inferred types of each scope's values, as far as the nodes fit."""

    forms: dict[int, dict[str, TypeForm]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)


def onnx_text(form: TypeForm) -> str:
    """Format a type like operator schemas: "seq(tensor(float))"; empty if they have no spelling."""
    text = ""
    for level in reversed(form):
        element = element_types.BY_CODE.get(level.code)
        name = "" if element is None else element.onnx_name.lower()
        if level.kind is LevelKind.TENSOR:
            text = f"tensor({name})"
        elif level.kind is LevelKind.SPARSE:
            text = f"sparse_tensor({name})"
        elif level.kind is LevelKind.MAP:
            text = f"map({name},{text})"
        elif level.kind is LevelKind.OPAQUE:
            return ""
        else:
            text = f"{'seq' if level.kind is LevelKind.SEQUENCE else 'optional'}({text})"
    return text


_NAMES = {element.onnx_name.lower(): element.name for element in element_types.ALL}


def _plain(text: str) -> str:
    """Convert a schema's type to hwflow's name if it is a plain tensor."""
    inner = text.removeprefix("tensor(").removesuffix(")")
    return _NAMES.get(inner, text)


def type_violation(schema: onnx.defs.OpSchema, node: Node, form_of: Mapping[str, TypeForm]) -> str | None:
    """Describe the fault of the node's input types, "input 1 ('b') must be float32 as input 0 is, not int64".

    ``form_of``: types by value name; those missing are unknown.
    """
    variables = {constraint.type_param_str for constraint in schema.type_constraints}
    bound: dict[str, tuple[str, int]] = {}
    parameters = schema.inputs
    for index, name in enumerate(node.inputs):
        form = form_of.get(name, ()) if name else ()
        if not form or not parameters:
            continue
        parameter = parameters[min(index, len(parameters) - 1)]
        text = onnx_text(form)
        what = f"input {index} ({show(name)})"
        allowed = parameter.types
        if text not in allowed:
            listed = sorted(_plain(t) for t in allowed)
            shown = ", ".join(listed[:_SHOWN]) + (f" or {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else "")
            one_of = "" if len(listed) == 1 else "one of "
            return f"{what} must be {one_of}{shown}, not {type_text(form)}"
        variable = parameter.type_str
        if variable not in variables or not parameter.is_homogeneous:
            continue
        first, place = bound.setdefault(variable, (text, index))
        if first != text:
            other = f"input {place} ({show(node.inputs[place])})"
            return f"{what} must be {_plain(first)} as {other} is, not {type_text(form)}"
    return _element_violation(node, form_of)


def _element_violation(node: Node, form_of: Mapping[str, TypeForm]) -> str | None:
    """Describe the fault of a SequenceInsert, whose schema does not require the tensor to have the elements' type."""
    if node.op_type != SEQUENCE_INSERT or node.domain or len(node.inputs) < 2:
        return None
    sequence, tensor = (form_of.get(name, ()) for name in node.inputs[:2])
    if len(sequence) != 2 or not tensor or sequence[1].code == tensor[0].code:
        return None
    return (
        f"input 1 ({show(node.inputs[1])}) must be {type_text(sequence[1:])} as the elements of input 0 "
        f"({show(node.inputs[0])}) are, not {type_text(tensor)}"
    )


def _constant(node: Node) -> TensorProto | None:
    """Return the small tensor of a Constant node."""
    if node.op_type == CONSTANT and not node.domain:
        for attribute in node.attributes:
            if attribute.type == AttributeProto.TENSOR and not is_large(attribute.t):
                return attribute.t
    return None


class NodeRun:
    """One run over a graph and its nested graphs.

    ``scopes``: with their numbers, the root first; ``known``: the result of inference over the whole, where it
    succeeds; ``declared``: the types that the model states, used where nothing else is known; ``skip``: nodes (scope,
    index) with an error already.
    """

    def __init__(
        self,
        scopes: Sequence[tuple[int, Scope]],
        proto: onnx.ModelProto,
        known: Mapping[int, Mapping[str, TypeForm]],
        given: Mapping[int, Mapping[str, TypeForm]],
        declared: Mapping[int, Mapping[str, TypeForm]],
        skip: frozenset[tuple[int, int]],
    ) -> None:
        self.scopes = scopes
        self.number = {id(scope): number for number, scope in scopes}
        self.proto = proto
        self.known = known
        self.given = given
        self.declared = declared
        self.skip = skip
        self.opsets = {opset.domain: opset.version for opset in proto.opset_import}
        self.functions = {(f.domain, f.name, f.overload) for f in proto.functions}
        self.results = NodeResults()
        self.values: dict[int, dict[str, TypeForm]] = {}  # assumed types, by scope
        self.constants: dict[int, dict[str, TensorProto]] = {}

    def run(self) -> NodeResults:
        """Infer all nodes: plain ones in order, then those with subgraphs, inner ones first."""
        for number, scope in self.scopes:
            self._start(number, scope)
            for index, node in enumerate(scope.nodes):
                self._visit(number, scope, index, node)
        failing = {failure.scope for failure in self.results.failures}
        for number, scope in reversed(self.scopes):  # the inner graphs first
            if scope.parent is None or id(scope.parent) not in self.number:
                continue
            outer, caller = self.number[id(scope.parent)], scope.caller
            node = scope.parent.nodes[caller]
            if number in failing:
                failing.add(outer)  # enclosing graphs fail, too
            elif (outer, caller) not in self.skip and self._missing(outer, node):
                self._alone(outer, scope.parent, caller, node)
        return self.results

    def _start(self, number: int, scope: Scope) -> None:
        values = dict(self.given.get(number, {}))
        known = self.known.get(number, {})
        declared = self.declared.get(number, {})
        for name in scope.inputs:
            values[name] = values.get(name) or known.get(name, ()) or declared.get(name, ())
        self.values[number] = values
        self.results.forms[number] = {}
        constants = {}
        graph = self.proto.graph if scope is self.scopes[0][1] else scope.graph
        if graph is not None:
            constants = {tensor.name: tensor for tensor in graph.initializer if not is_large(tensor)}
        self.constants[number] = constants

    def _lookup(self, scope: Scope, name: str) -> tuple[TypeForm, TensorProto | None]:
        inside: Scope | None = scope
        while inside is not None:
            number = self.number[id(inside)]
            if name in self.values[number]:
                return self.values[number][name], self.constants[number].get(name)
            inside = inside.parent
        return (), None

    def _missing(self, number: int, node: Node) -> bool:
        known = self.known.get(number, {})
        return any(name and not known.get(name, ()) for name in node.outputs)

    def _take(self, number: int, node: Node, inferred: Mapping[str, TypeForm]) -> None:
        declared = self.declared.get(number, {})
        for name in node.outputs:
            if not name:
                continue
            form = inferred.get(name, ())
            if form and form[-1].dims is not None and len(form[-1].dims) > _MOST_RANK:
                form = ()
            self.results.forms[number][name] = form
            said = declared.get(name, ())
            unshaped = not form or (form[-1].dims is None and said and said[-1].code == form[-1].code)
            self.values[number][name] = said if said and unshaped else form

    def _visit(self, number: int, scope: Scope, index: int, node: Node) -> None:
        known = self.known.get(number, {})
        if not self._missing(number, node):
            self._take(number, node, {name: known[name] for name in node.outputs if name})
            constant = _constant(node)
            if constant is not None and node.outputs:
                self.constants[number][node.outputs[0]] = constant
            return
        version = self.opsets.get(node.domain, 0)
        if (node.domain, node.op_type, node.proto.overload) in self.functions:
            inferred = self._alone(number, scope, index, node) if (number, index) not in self.skip else {}
            self._take(number, node, inferred)
            return
        try:
            schema = onnx.defs.get_schema(node.op_type, version, node.domain)
        except onnx.defs.SchemaError:
            self._take(number, node, {})
            return
        forms = {name: self._lookup(scope, name)[0] for name in node.inputs if name}
        violation = type_violation(schema, node, forms)
        if violation is not None:
            self.results.failures.append(Failure(number, index, FailureKind.TYPE, violation))
            self._take(number, node, {})
            return
        if node.captured or any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attributes):
            self._take(number, node, {})
            return
        if (number, index) in self.skip:
            self._take(number, node, {})
        elif has_body(schema):
            self._take(number, node, self._alone(number, scope, index, node))
        else:
            self._take(number, node, self._one(schema, number, scope, index, node))

    def _plain_proto(self, node: Node) -> onnx.NodeProto:
        if node.proto.domain == node.domain:
            return node.proto
        proto = onnx.NodeProto()
        proto.CopyFrom(node.proto)
        proto.domain = node.domain
        return proto

    def _one(
        self, schema: onnx.defs.OpSchema, number: int, scope: Scope, index: int, node: Node
    ) -> dict[str, TypeForm]:
        """Infer a plain node."""
        types: dict[str, onnx.TypeProto] = {}
        data: dict[str, TensorProto] = {}
        for name in node.inputs:
            if name:
                form, constant = self._lookup(scope, name)
                types[name] = write_type(form)
                if constant is not None:
                    data[name] = constant
        try:
            inferred = shape_inference.infer_node_outputs(
                schema,
                self._plain_proto(node),
                types,
                data,
                opset_imports=list(self.proto.opset_import),
                ir_version=self.proto.ir_version,
            )
        except Exception as error:  # onnx raises ValidationError, InferenceError, RuntimeError, ...
            self._fail(number, index, error, all(self._lookup(scope, n)[0] for n in node.inputs if n))
            return {}
        return {name: read_type(kind) for name, kind in inferred.items()}

    def _alone(self, number: int, scope: Scope, index: int, node: Node) -> dict[str, TypeForm]:
        """Infer a node in a separate model: calls, operators defined by a function, nodes with subgraphs."""
        proto = onnx.ModelProto(ir_version=self.proto.ir_version)
        proto.opset_import.extend(self.proto.opset_import)
        proto.functions.extend(self.proto.functions)
        proto.graph.name = "node"
        complete = True
        for name in dict.fromkeys(node.reads):
            form, constant = self._lookup(scope, name)
            complete = complete and bool(form)
            if constant is not None:
                proto.graph.initializer.add().CopyFrom(constant)
            else:
                proto.graph.input.add(name=name).type.CopyFrom(write_type(form))
        call = proto.graph.node.add()
        call.CopyFrom(self._plain_proto(node))
        write_defaults(call, self.opsets.get(call.domain, 0))  # its body may need them
        if proto.functions:
            complete_calls(proto)
        proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.outputs if name)
        try:
            data = onnx_inference.infer_shapes(proto.SerializeToString(), True, True, True)
            inferred = onnx.load_model_from_string(data)
        except Exception as error:
            self._fail(number, index, error, complete)
            return {}
        return {info.name: read_type(info.type) for info in inferred.graph.output}

    def _fail(self, number: int, index: int, error: Exception, complete: bool) -> None:
        if isinstance(error, MemoryError) or not complete:  # unknown inputs may be the reason
            return
        text = re.sub(r"\(op_type:[^()]*\)", "", str(error))
        # onnx reports some faults of attributes as type errors, too.
        about_types = re.search(r"\b(types?|typestr)\b", text) and not text.startswith("[ShapeInferenceError]")
        about_types = about_types or "inconsistent type" in text or "unsupported type" in text
        kind = FailureKind.TYPE if about_types else FailureKind.SHAPE
        self.results.failures.append(Failure(number, index, kind, misfit(one_line(error))))


def misfit(reason: str) -> str:
    """Return the message about a node that onnx rejects."""
    return f"the node must fit what it reads, but onnx.shape_inference says: {reason}"
