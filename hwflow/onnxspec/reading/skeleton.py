"""Reduce a model for onnx's checker and inference: small, in their spelling, without parts that other rules check.

Large and external tensors become graph inputs of the same type (so nothing large is copied); ai.onnx is written as "",
an absent opset_import is written out, domains in use are imported. The model's own statements about its values are
removed or cleaned, so that inference depends on the nodes alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final
from weakref import WeakKeyDictionary

import onnx
from onnx import AttributeProto, TensorProto, helper

from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.operator_names import CONSTANT, IDENTITY
from hwflow.onnxspec.graphs.schemas import find_schema, has_body, known_domains
from hwflow.onnxspec.graphs.scopes import Scope, plain_domain
from hwflow.onnxspec.graphs.topology import cycles
from hwflow.onnxspec.graphs.typeforms import TENSORS, Dim, Level, LevelKind, TypeForm, TypeReader, write_type
from hwflow.onnxspec.reading import element_types

# Shapes, axes, pads and scales are small; nothing that inference reads has more elements than this.
MOST_ELEMENTS: Final = 1024
_HIGHEST = 2**31 - 1  # onnx keeps versions in 32 bits
_HIDDEN = 2**16  # a Constant with more elements than that is hidden from inference


def _clean_dim(dim: Dim) -> Dim:
    if isinstance(dim, int):
        return dim if dim >= 0 else None
    return None if dim in ("", "*") else dim


def clean_form(form: TypeForm) -> TypeForm:
    """Return ``form`` without meaningless parts (negative sizes, variables "" and "*"); () for an invalid element
    type."""
    if not form:
        return form
    last = form[-1]
    if last.kind not in TENSORS or last.code not in element_types.BY_CODE:
        return ()
    if last.dims is None or all(_clean_dim(dim) == dim for dim in set(last.dims)):
        return form
    return (*form[:-1], Level(last.kind, last.code, tuple(map(_clean_dim, last.dims))))


def is_large(tensor: TensorProto) -> bool:
    """Tell whether a tensor must not be copied: large, external, or invalid."""
    dims = tensor.dims
    return (
        (len(dims) > 0 and not 0 <= math.prod(dims) <= MOST_ELEMENTS)
        or tensor.data_location == TensorProto.EXTERNAL
        or tensor.data_type not in element_types.BY_CODE
    )


# Cached by graph, for inference and the checker.
_LARGE: WeakKeyDictionary[Scope, dict[int, TensorProto]] = WeakKeyDictionary()


def _large(root: Scope, graph: onnx.GraphProto) -> dict[int, TensorProto]:
    """Return the initializers that must not be copied, by index."""
    large = _LARGE.get(root)
    if large is None:
        large = _LARGE[root] = {index: t for index, t in enumerate(graph.initializer) if is_large(t)}
    return large


def tensor_form(tensor: TensorProto) -> TypeForm:
    """Return the type of a tensor."""
    return clean_form((Level(LevelKind.TENSOR, tensor.data_type, tuple(tensor.dims)),))


def sparse_form(sparse: onnx.SparseTensorProto) -> TypeForm:
    """Return the type of a sparse initializer's value: a plain tensor, because only its storage is sparse
    (onnx.proto)."""
    return clean_form((Level(LevelKind.TENSOR, sparse.values.data_type, tuple(sparse.dims)),))


def _versions(root: Scope, domains: Iterable[str]) -> dict[str, int]:
    """Return the versions of the operator sets, clamped to the range that onnx knows; 1 for those not imported."""
    known = known_domains()
    versions = {**dict.fromkeys(("", *domains), 1), **root.opsets}
    return {domain: min(max(version, 1), known.get(domain, _HIGHEST)) for domain, version in versions.items()}


class Skeleton:
    """The result of :func:`skeleton`. ``variables``: its dimension variables."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.proto = proto
        self.variables: set[str] = set()

    def note(self, form: TypeForm) -> None:
        """Record the variables of a type in it."""
        if form and form[-1].dims:
            self.variables.update(dim for dim in form[-1].dims if isinstance(dim, str))


def _copy_graph(
    graph: onnx.GraphProto, copy: onnx.GraphProto, large: Collection[int], hidden: Mapping[int, onnx.NodeProto]
) -> None:
    """Copy the graph without sparse and ``large`` initializers, replacing the nodes in ``hidden``."""
    if not large and not hidden:
        copy.CopyFrom(graph)
        del copy.sparse_initializer[:]
        return
    copy.name = graph.name
    copy.input.extend(graph.input)
    copy.output.extend(graph.output)
    if hidden:
        copy.node.extend(hidden.get(index, node) for index, node in enumerate(graph.node))
    else:
        copy.node.extend(graph.node)
    copy.initializer.extend(t for index, t in enumerate(graph.initializer) if index not in large)
    copy.value_info.extend(graph.value_info)


def _hidden_constants(scope: Scope, version: int) -> dict[int, onnx.NodeProto]:
    """Map Constant nodes with large tensors to nodes of the same type and shape without the data."""
    hidden: dict[int, onnx.NodeProto] = {}
    if version < 11:  # no sparse_value
        return hidden
    for index, node in enumerate(scope.nodes):
        if node.op_type != CONSTANT or node.domain or len(node.attributes) != 1:
            continue
        attribute = node.attributes[0]
        if attribute.type != AttributeProto.TENSOR or attribute.name != "value":
            continue
        tensor = attribute.t
        if len(tensor.dims) > 0 and math.prod(tensor.dims) > _HIDDEN and tensor.data_type in element_types.BY_CODE:
            sparse = onnx.SparseTensorProto(dims=tensor.dims)
            sparse.values.name, sparse.values.data_type = "values", tensor.data_type
            sparse.values.dims.append(0)
            sparse.indices.data_type = TensorProto.INT64
            sparse.indices.dims.append(0)
            proto = onnx.NodeProto(op_type=CONSTANT, name=node.name, output=node.outputs)
            proto.attribute.append(helper.make_attribute("sparse_value", sparse))
            hidden[index] = proto
    return hidden


def _protos_below(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs nested in ``graph``, at any depth."""
    pending = [graph]
    while pending:
        for node in pending.pop().node:
            for attribute in node.attribute:
                below = [attribute.g] if attribute.type == AttributeProto.GRAPH else list(attribute.graphs)
                if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
                    yield from below
                    pending.extend(below)


def skeleton(
    model: onnx.ModelProto,
    root: Scope,
    below: Sequence[Scope],
    reader: TypeReader,
    around: Mapping[str, TypeForm],
    stored: Mapping[tuple[int, str], TensorProto],
    declared: bool,
) -> Skeleton:
    """Return ``root`` (the main graph or a training graph) as a separate model.

    ``below``: its nested scopes. ``around``: types of the outer values that it reads. ``stored``: small external
    tensors with their data, by id of the scope and name. With ``declared`` the types that the model states for its
    values are kept (cleaned); otherwise only those of the inputs and of values that onnx cannot infer.
    """
    graph = root.graph
    assert graph is not None  # a root is a graph
    large = _large(root, graph)
    hidden = _hidden_constants(root, root.opsets.get("", 0))
    proto = onnx.ModelProto(ir_version=min(max(model.ir_version, 3), onnx.IR_VERSION))
    copy = proto.graph
    _copy_graph(graph, copy, large, hidden)
    copy.ClearField("doc_string")
    copy.ClearField("metadata_props")
    copy.ClearField("quantization_annotation")
    result = Skeleton(proto)

    domains = {node.domain for scope in (root, *below) for node in scope.nodes}
    versions = _versions(root, sorted(domains))
    if any(node.proto.domain != node.domain for scope in (root, *below) for node in scope.nodes):
        _plain_domains(copy)
    proto.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in versions.items())
    if any(facts_of(node.domain, node.op_type).needs_defaults for scope in (root, *below) for node in scope.nodes):
        _write_defaults(copy, versions)
    functions = set()
    for function in () if is_recursive(model) else model.functions:
        functions.add((plain_domain(function.domain), function.name))
        added = proto.functions.add()
        added.CopyFrom(function)
        _plain_function(added)
        if added.domain not in versions:
            versions[added.domain] = 1
            proto.opset_import.append(helper.make_opsetid(added.domain, 1))
    if functions:
        complete_calls(proto)

    known = set(root.inputs)
    for info in copy.input:
        _set_type(info, clean_form(reader.read(info.type)), result)
    for tensor in large.values():
        data = stored.get((id(root), tensor.name))
        if data is not None:
            copy.initializer.add().CopyFrom(data)
        elif tensor.name not in known:
            known.add(tensor.name)
            _set_type(copy.input.add(name=tensor.name), tensor_form(tensor), result)
    for sparse in graph.sparse_initializer:
        name = sparse.values.name
        if name and name not in known:  # inference would infer a type that no operator reads
            known.add(name)
            _set_type(copy.input.add(name=name), sparse_form(sparse), result)
    for name, form in around.items():
        if name not in known:
            known.add(name)
            _set_type(copy.input.add(name=name), form, result)
    for scope, nested in nested_graphs(root, below, copy):
        if scope is not root:
            inside = {name: t for (key, name), t in stored.items() if key == id(scope)}
            _hoist(nested, scope, root, copy, known, result, inside)
            for info in nested.input:
                _set_type(info, clean_form(reader.read(info.type)) if declared else (), result)
        _strip(nested, scope, reader, result, declared, versions, functions)
    return result


def write_defaults(node: onnx.NodeProto, version: int) -> None:
    """Write the defaults of absent attributes into the node: onnx 1.23.2 fails on bodies that refer to them
    (MeanVarianceNormalization)."""
    schema = find_schema(node.op_type, version, node.domain)
    if schema is None:
        return
    given = {attribute.name for attribute in node.attribute}
    node.attribute.extend(
        declared.default_value
        for name, declared in schema.attributes.items()
        if name not in given and declared.default_value.type
    )


def complete_calls(proto: onnx.ModelProto) -> None:
    """Add unnamed outputs for omitted trailing ones to calls of the model's functions: onnx 1.23.2 treats an omitted
    output as out of bounds."""
    outputs = {(f.domain, f.name, f.overload): len(f.output) for f in proto.functions}
    nested = [graph for f in proto.functions for node in f.node for _, graph in graphs_of(node)]
    holders = [proto.graph, *proto.functions, *nested]
    holders += [below for graph in (proto.graph, *nested) for below in _protos_below(graph)]
    for holder in holders:
        for node in holder.node:
            missing = outputs.get((node.domain, node.op_type, node.overload), 0) - len(node.output)
            if missing > 0:
                node.output.extend([""] * missing)


def _write_defaults(graph: onnx.GraphProto, versions: Mapping[str, int]) -> None:
    for holder in (graph, *_protos_below(graph)):
        for node in holder.node:
            if facts_of(node.domain, node.op_type).needs_defaults:
                write_defaults(node, versions.get(node.domain, 0))


def _plain_domains(graph: onnx.GraphProto) -> None:
    for holder in (graph, *_protos_below(graph)):
        for node in holder.node:
            if node.domain == "ai.onnx":
                node.domain = ""


def _plain_function(function: onnx.FunctionProto) -> None:
    """Write ai.onnx as "", and remove value_info, whose dimension variables are local to the body."""
    del function.value_info[:]
    function.domain = plain_domain(function.domain)
    for node in function.node:
        node.domain = plain_domain(node.domain)
        for _, nested in graphs_of(node):
            _plain_domains(nested)
    for opset in function.opset_import:
        opset.domain = plain_domain(opset.domain)


def graphs_of(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    """Yield subgraphs as :func:`hwflow.onnxspec.graphs.scopes.subgraphs`, for a protobuf node."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for graph in attribute.graphs:
                yield attribute.name, graph


def is_recursive(model: onnx.ModelProto) -> bool:
    """Tell whether a function local to the model calls itself, directly or not. Overloads count as one."""
    keys = list(dict.fromkeys((plain_domain(function.domain), function.name) for function in model.functions))
    number = {key: index for index, key in enumerate(keys)}
    calls: dict[int, set[int]] = {index: set() for index in number.values()}
    for function in model.functions:
        nested = [graph for node in function.node for _, graph in graphs_of(node)]
        holders = [function, *nested, *(below for graph in nested for below in _protos_below(graph))]
        called = {(plain_domain(node.domain), node.op_type) for holder in holders for node in holder.node}
        local = {number[key] for key in called & number.keys()}
        calls[number[plain_domain(function.domain), function.name]].update(local)
    return bool(cycles(calls))


def _set_type(info: onnx.ValueInfoProto, form: TypeForm, result: Skeleton) -> None:
    result.note(form)
    info.ClearField("type")
    info.type.CopyFrom(write_type(form))


def _strip(
    graph: onnx.GraphProto,
    scope: Scope,
    reader: TypeReader,
    result: Skeleton,
    declared: bool,
    versions: Mapping[str, int],
    functions: Collection[tuple[str, str]],
) -> None:
    """Clean the stated types of the graph's values and outputs with ``declared``, else remove them except for values
    that onnx cannot infer. These get at least an empty type: onnx rejects readers of untyped values."""
    unknown = _unknown_outputs(scope, versions, functions)
    said = {}
    if declared or unknown:
        said = {info.name: clean_form(reader.read(info.type)) for info in (*graph.value_info, *graph.output)}
    del graph.value_info[:]
    outputs = set(scope.outputs)
    entered = set(scope.inputs).union(scope.initializers)
    for name in said if declared else unknown:
        if name not in outputs and name not in entered and said.get(name):
            _set_type(graph.value_info.add(name=name), said[name], result)
    for name in unknown.difference(outputs, (name for name, form in said.items() if form)):
        graph.value_info.add(name=name).type.SetInParent()
    for info in graph.output:
        info.ClearField("type")
        if said.get(info.name) and (declared or info.name in unknown):
            _set_type(info, said[info.name], result)
        elif info.name in unknown:
            info.type.SetInParent()


def _unknown_outputs(scope: Scope, versions: Mapping[str, int], functions: Collection[tuple[str, str]]) -> set[str]:
    """Return the values of operators that inference does not know, whose types only the model states."""
    kinds = {(node.domain, node.op_type) for node in scope.nodes}.difference(functions)
    unknown = {kind for kind in kinds if not _is_inferable(kind[1], versions.get(kind[0], 1), kind[0])}
    if not unknown:
        return set()
    return {name for node in scope.nodes if (node.domain, node.op_type) in unknown for name in node.outputs if name}


@cache
def _is_inferable(op_type: str, version: int, domain: str) -> bool:
    """Tell whether onnx infers the operator's output types; for Gradient, for one, it does not."""
    schema = find_schema(op_type, version, domain)
    return schema is not None and (schema.has_type_and_shape_inference_function or has_body(schema))


def nested_graphs(
    root: Scope, below: Sequence[Scope], graph: onnx.GraphProto
) -> Iterator[tuple[Scope, onnx.GraphProto]]:
    """Yield ``root`` and the scopes ``below`` it, each with its graph in ``graph``, a copy of the root's own; each
    before those nested in it."""
    yield root, graph
    if not below:
        return
    children: dict[int, list[Scope]] = {}
    for scope in below:
        children.setdefault(id(scope.parent), []).append(scope)
    pending = [(root, graph)]
    while pending:
        outer, holder = pending.pop()
        place = 0
        inside = children.get(id(outer), ())
        while place < len(inside):
            for _, nested in graphs_of(holder.node[inside[place].caller]):
                yield inside[place], nested
                pending.append((inside[place], nested))
                place += 1


def _hoist(
    graph: onnx.GraphProto,
    scope: Scope,
    root: Scope,
    main: onnx.GraphProto,
    known: set[str],
    result: Skeleton,
    stored: Mapping[str, TensorProto],
) -> None:
    """Turn large and sparse initializers of a subgraph into inputs of the main graph: a subgraph cannot have its
    own."""
    large = [tensor for tensor in graph.initializer if is_large(tensor)]
    if not large and not graph.sparse_initializer:
        return
    own = {info.name for info in graph.input}
    forms: dict[str, TypeForm] = {}
    for tensor in large:
        if tensor.name in stored:
            tensor.CopyFrom(stored[tensor.name])
        elif tensor.name and tensor.name not in own:
            forms.setdefault(tensor.name, tensor_form(tensor))
    kept = [tensor for tensor in graph.initializer if tensor.name not in forms]
    rest = onnx.GraphProto()
    rest.initializer.extend(kept)
    del graph.initializer[:]
    graph.initializer.extend(rest.initializer)
    for sparse in graph.sparse_initializer:
        if sparse.values.name and sparse.values.name not in own:
            forms.setdefault(sparse.values.name, sparse_form(sparse))
    del graph.sparse_initializer[:]
    renamed: dict[str, str] = {}
    outputs = {info.name for info in graph.output}
    for name, form in forms.items():
        free = name
        # Sibling and outer graphs may have other values of that name; the checker requires an output to be computed
        # in its own graph.
        if name in known or name in root.defined or name in scope.outer or name in outputs:
            free = renamed[name] = f"{name}\0{len(known)}"
        known.add(free)
        _set_type(main.input.add(name=free), form, result)
    if renamed:
        _rename_inputs(graph, renamed)
        for name in outputs.intersection(renamed):  # behind all others: the scope's nodes keep their places
            graph.node.add(op_type=IDENTITY, input=[renamed[name]], output=[name])


def _rename_inputs(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Rename the inputs of nodes in the graph, and in nested ones that do not redefine these names."""
    pending = [(graph, names)]
    while pending:
        holder, new = pending.pop()
        for node in holder.node:
            for place, name in enumerate(node.input):
                if name in new:
                    node.input[place] = new[name]
            for _, nested in graphs_of(node):
                own = {item.name for item in (*nested.input, *nested.initializer)}
                own.update(sparse.values.name for sparse in nested.sparse_initializer)
                left = {name: value for name, value in new.items() if name not in own}
                if left:
                    pending.append((nested, left))
