"""Inlining: functions replace their calls, branches replace an If.

Everything works on copies; names defined in a body are renamed to be unique in the model. Nothing here recurses.

By hand, because findings name the function and the branch that a node comes from, and a function may import another
version of an operator set than the model: onnx.inliner (1.23) keeps no origin, leaves such calls as they are, and knows
no branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import AttributeProto, helper

from hwflow.display import show
from hwflow.onnxspec.graphs.operator_names import CONSTANT
from hwflow.onnxspec.graphs.schemas import find_schema, known_domains
from hwflow.onnxspec.graphs.scopes import (
    Scope,
    function_name,
    main_scopes,
    model_opsets,
    node_names,
    opset_map,
    plain_domain,
    read_nodes,
)

VERSIONS_DOMAIN = "hwflow.versions"
"""The domain of functions that wrap a node of another version than the model's: only functions have own imports."""

_LONGEST_PREFIX = 200  # characters; calls may nest deeply


class Imports:
    """The operator sets that nodes use: versions by domain, ai.onnx as ""."""

    def __init__(self, versions: Mapping[str, int]) -> None:
        self.versions = dict(versions)
        self.protos = [helper.make_opsetid(domain, version) for domain, version in self.versions.items()]
        self.key = tuple(sorted(self.versions.items()))

    def __getitem__(self, domain: str) -> int:
        return self.versions.get(domain, 1)  # a dialect that is used but not imported


@dataclass(slots=True)
class Item:
    """One node to be resolved. ``context`` follows its place in findings: " in function '...'"."""

    proto: onnx.NodeProto
    name: str
    imports: Imports
    context: str = ""

    @property
    def where(self) -> str:
        """The ``where`` of findings about the node."""
        return f"node {show(self.name)} ({self.proto.op_type}){self.context}"


class Names:
    """Generates unused names."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._count: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        """Return ``stem``, with a number appended if it is taken."""
        name, number = stem, self._count.get(stem, 2)
        while name in self._taken:
            name, number = f"{stem}_{number}", number + 1
        self._count[stem] = number
        self._taken.add(name)
        return name


def value_names(scopes: Sequence[Scope]) -> set[str]:
    """Return every value name in the scopes."""
    return {name for scope in scopes for name in (*scope.defined, *scope.outputs)}


def graphs_of(attribute: AttributeProto) -> Sequence[onnx.GraphProto]:
    """Return the graphs of an attribute."""
    if attribute.type == AttributeProto.GRAPH:
        return (attribute.g,)
    return attribute.graphs if attribute.type == AttributeProto.GRAPHS else ()


def inner_reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yield every name that the subgraphs of a node read, including their own values."""
    pending = [graph for attribute in node.attribute for graph in graphs_of(attribute)]
    while pending:
        graph = pending.pop()
        yield from (output.name for output in graph.output if output.name)
        for inner in graph.node:
            yield from (name for name in inner.input if name)
            pending.extend(sub for attribute in inner.attribute for sub in graphs_of(attribute))


def _defined(graph: onnx.GraphProto) -> set[str]:
    names = {name for node in graph.node for name in node.output}
    names.update(value.name for value in graph.input)
    names.update(tensor.name for tensor in graph.initializer)
    names.update(sparse.values.name for sparse in graph.sparse_initializer)
    return names


def instantiate(
    node: onnx.NodeProto, names: Mapping[str, str], bindings: Mapping[str, AttributeProto] | None, called: str = ""
) -> onnx.NodeProto:
    """Copy ``node`` (under the name ``called``, if given), renaming values by ``names`` (others keep their name) down
    through its subgraphs, and replacing references to attributes of the enclosing function by ``bindings``; an unbound
    one is removed. None: there is no enclosing function.
    """
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name = called or copy.name
    copy.output[:] = [names.get(name, name) for name in node.output]
    pending: list[tuple[onnx.NodeProto, Mapping[str, str]]] = [(copy, names)]
    while pending:
        current, known = pending.pop()
        current.input[:] = [known.get(name, name) for name in current.input]
        for index in reversed(range(len(current.attribute))):
            attribute = current.attribute[index]
            if bindings is not None and attribute.ref_attr_name:
                value = bindings.get(attribute.ref_attr_name)
                if value is None:
                    del current.attribute[index]
                else:  # its subgraphs see the caller's values
                    name = attribute.name
                    attribute.CopyFrom(value)
                    attribute.name = name
                continue
            for graph in graphs_of(attribute):
                own = _defined(graph)
                outer = {old: new for old, new in known.items() if old not in own}
                for output in graph.output:
                    output.name = outer.get(output.name, output.name)
                pending.extend((inner, outer) for inner in graph.node)
    return copy


class Inliner:
    """Inlines bodies into one model."""

    def __init__(self, values: set[str], nodes: set[str]) -> None:
        self._values = Names(values)
        self._nodes = Names(nodes)
        self._imports: dict[tuple[tuple[str, int], ...], Imports] = {}
        self._inner_names: dict[int, tuple[onnx.FunctionProto, tuple[str, ...]]] = {}

    def prefix(self, name: str, kind: str) -> str:
        """Return what begins the names of what replaces a node: its name, or its kind if that is long."""
        return name if len(name) <= _LONGEST_PREFIX else kind

    def value_name(self, stem: str) -> str:
        """Return an unused name of a value, ``stem`` if possible."""
        return self._values.fresh(stem)

    def node_name(self, stem: str) -> str:
        """Return an unused name of a node, ``stem`` if possible."""
        return self._nodes.fresh(stem)

    def imports(self, versions: Mapping[str, int]) -> Imports:
        """Return the same object for equal versions."""
        key = tuple(sorted(versions.items()))
        if key not in self._imports:
            self._imports[key] = Imports(versions)
        return self._imports[key]

    def function(
        self, item: Item, function: onnx.FunctionProto, bindings: Mapping[str, AttributeProto], context: str = ""
    ) -> list[Item]:
        """Return the nodes of ``function`` that replace the call ``item``; ``bindings``: its attributes by name.

        The names of the function's inputs and outputs must be distinct, its nodes sorted, every value defined once.
        """
        call, prefix = item.proto, self.prefix(item.name, function.name)
        names = {formal: call.input[i] if i < len(call.input) else "" for i, formal in enumerate(function.input)}
        for formal, actual in zip(function.output, call.output, strict=False):
            if actual:
                names[formal] = actual
        for node in function.node:
            for name in node.output:
                if name and name not in names:
                    names[name] = self._values.fresh(f"{prefix}/{name}")
        if id(function) not in self._inner_names:  # the function is kept alive so that its id stays unique
            self._inner_names[id(function)] = (function, node_names(read_nodes(function.node)))
        imports = self.imports(opset_map(function.opset_import))
        context = context or f" in function {show(function_name(function))}"
        places = [self._nodes.fresh(f"{prefix}/{inner}") for inner in self._inner_names[id(function)][1]]
        if function.domain == VERSIONS_DOMAIN:  # the node again that was wrapped
            places, context = [item.name], item.context
        return [
            Item(instantiate(node, names, bindings, place), place, imports, context)
            for node, place in zip(function.node, places, strict=True)
        ]


def call_bindings(call: onnx.NodeProto, function: onnx.FunctionProto) -> dict[str, AttributeProto]:
    """Return the attributes of a call by name: the call's own, and defaults."""
    return {a.name: a for a in (*function.attribute_proto, *call.attribute)}


def standard_body(
    schema: onnx.defs.OpSchema, node: onnx.NodeProto, version: int, types: Sequence[onnx.TypeProto | None]
) -> tuple[onnx.FunctionProto, dict[str, AttributeProto]] | None:
    """Return the function that defines a standard operator in ``version`` of its set, with the node's attributes and
    the schema's defaults; None if there is none. ``types``: of the inputs, None for an absent one.

    It is the newest body up to ``version``: a body is written in operators of its own version.
    """
    stated: Any = schema  # onnx's stubs lack the function attributes of schemas
    bodies = [v for v in stated.function_opset_versions if v <= version]
    dependent = [v for v in stated.context_dependent_function_opset_versions if v <= version]
    try:
        if bodies:
            data = stated.get_function_with_opset_version(max(bodies))
        elif dependent:
            given = [(t or onnx.TypeProto()).SerializeToString() for t in types]
            data = stated.get_context_dependent_function_with_opset_version(
                max(dependent), node.SerializeToString(), given
            )
        elif (later := _with_axes_input(schema)) is not None:
            function, schema = _by_attribute(later, node), later
            return (function, _bound(schema, node)) if function.node else None
        else:
            return None
        function = onnx.FunctionProto.FromString(data)
    except Exception:  # a body that cannot be built for this node
        return None
    return (function, _bound(schema, node)) if function.node else None


def _bound(schema: onnx.defs.OpSchema, node: onnx.NodeProto) -> dict[str, AttributeProto]:
    """Return the attributes of a node, and the schema's defaults."""
    bindings = {
        name: declared.default_value for name, declared in schema.attributes.items() if declared.default_value.type
    }
    bindings.update((attribute.name, attribute) for attribute in node.attribute)
    return bindings


_AXES = "axes"


def _with_axes_input(schema: onnx.defs.OpSchema) -> onnx.defs.OpSchema | None:
    """Return the operator's newest version, which has a body, if it is the same but for axes that were an attribute and
    became an input (reductions in operator set 18)."""
    later: Any = find_schema(schema.name, known_domains()[schema.domain], schema.domain)
    own, theirs = ([each.name for each in stated.inputs] for stated in (schema, later))
    moved = _AXES in schema.attributes and theirs == [*own, _AXES] and later.function_opset_versions
    return later if moved else None


def _by_attribute(later: Any, node: onnx.NodeProto) -> onnx.FunctionProto:
    """Return the body of a later version, of the axes that the node has as an attribute."""
    function = onnx.FunctionProto()
    function.ParseFromString(later.get_function_with_opset_version(max(later.function_opset_versions)))
    function.input.remove(_AXES)
    axes = next((attribute.ints for attribute in node.attribute if attribute.name == _AXES), None)
    if axes is not None:
        function.node.insert(0, helper.make_node(CONSTANT, [], [_AXES], value_ints=axes))
        return function
    for inner in function.node:
        for place, name in enumerate(inner.input):
            if name == _AXES:
                inner.input[place] = ""
    return function


def function_table(model: onnx.ModelProto) -> dict[tuple[str, str, str], onnx.FunctionProto]:
    """Return the model's functions by domain (ai.onnx as ""), name and overload."""
    return {(plain_domain(f.domain), f.name, f.overload): f for f in model.functions}


def versioned_call(item: Item, model: onnx.ModelProto) -> onnx.NodeProto:
    """Wrap the node of ``item`` with its imports in a function of ``model``, one more; return the call.

    The node is copied once: it may hold a large ensemble of trees.
    """
    # The evaluator interprets OPERATOR_NUMBER as a version of an operator.
    name = f"node_{len(model.functions)}_{item.proto.op_type}"
    return wrapped(item.proto, item.name, model.functions.add(), name, item.imports.protos)


def wrapped(
    proto: onnx.NodeProto, node_name: str, function: onnx.FunctionProto, name: str,
    imports: Iterable[onnx.OperatorSetIdProto],
) -> onnx.NodeProto:
    """Make an empty ``function``, called ``name``, one around a node; return the call, called ``node_name``."""
    node = function.node.add()
    node.CopyFrom(proto)
    inputs = list(dict.fromkeys(name for name in node.input if name))
    outputs = [name for name in node.output if name]
    formal = {name: f"value_{index}" for index, name in enumerate([*inputs, *outputs])}
    node.input[:] = [formal.get(name, "") for name in node.input]
    node.output[:] = [formal.get(name, "") for name in node.output]
    function.name, function.domain = name, VERSIONS_DOMAIN
    function.input.extend(formal[value] for value in inputs)
    function.output.extend(formal[value] for value in outputs)
    function.opset_import.extend(imports)
    return helper.make_node(name, inputs, outputs, node_name, domain=VERSIONS_DOMAIN)


def called_node(call: onnx.NodeProto, function: onnx.FunctionProto) -> onnx.NodeProto:
    """Return the node that :func:`versioned_call` wrapped in a function."""
    names = dict(zip([*function.input, *function.output], [*call.input, *call.output], strict=True))
    return instantiate(function.node[0], names, None)


class FlatNodes:
    """Collects nodes into the graph of ``model``; a node of another operator version than the model's import becomes a
    call of a function (:func:`versioned_call`). Domains that only functions import become imports."""

    def __init__(self, model: onnx.ModelProto, versions: dict[str, int]) -> None:
        self._model, self._versions = model, versions

    def add(self, nodes: list[onnx.NodeProto], item: Item) -> None:
        """Append the node of ``item`` to ``nodes``."""
        domain, op_type = plain_domain(item.proto.domain), item.proto.op_type
        own = item.imports[domain]
        there = self._versions.setdefault(domain, own)
        if own != there:
            schema, other = find_schema(op_type, own, domain), find_schema(op_type, there, domain)
            if schema is not None and (other is None or schema.since_version != other.since_version):
                nodes.append(versioned_call(item, self._model))
                self._versions[VERSIONS_DOMAIN] = 1
                return
        nodes.append(item.proto)

    def finish(self) -> None:
        """Write the imports."""
        del self._model.opset_import[:]
        self._model.opset_import.extend(helper.make_opsetid(*entry) for entry in self._versions.items())


def inline_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of ``model`` with functions inlined, in subgraphs too (not in training graphs).

    The rules about functions must hold (:func:`hwflow.onnxspec.validate`).
    """
    functions = function_table(model)
    scopes = main_scopes(model)
    inliner = Inliner(value_names(scopes), {name for scope in scopes for name in scope.names})
    flat = onnx.ModelProto()
    flat.CopyFrom(model)
    del flat.functions[:]
    versions = model_opsets(model)
    imports = inliner.imports(versions)
    into = FlatNodes(flat, versions)
    graphs = [flat.graph]
    while graphs:
        graph = graphs.pop()
        scanned = read_nodes(graph.node)
        pending = [Item(n.proto, name, imports) for n, name in zip(scanned, node_names(scanned), strict=True)][::-1]
        nodes: list[onnx.NodeProto] = []
        while pending:
            item = pending.pop()
            node = item.proto
            function = functions.get((plain_domain(node.domain), node.op_type, node.overload))
            if function is None:
                into.add(nodes, item)
            else:
                pending.extend(inliner.function(item, function, call_bindings(node, function))[::-1])
        del graph.node[:]
        graph.node.extend(nodes)
        graphs.extend(inner for node in graph.node for attribute in node.attribute for inner in graphs_of(attribute))
    into.finish()
    return flat
