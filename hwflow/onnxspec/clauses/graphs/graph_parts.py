"""Clauses about a graph's parts: its name, inputs, outputs, initializers, value_info, annotations, definitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.graphs.soundness import RENAME, double_assignments, double_definitions
from hwflow.onnxspec.clauses.models.functions import repeated_inputs
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, listed
from hwflow.onnxspec.graphs.scopes import ANNOTATIONS, INITIALIZERS, INPUTS, OUTPUTS, VALUE_INFO, Kind, Scope
from hwflow.onnxspec.graphs.sites import TypeRole, TypeSite
from hwflow.onnxspec.graphs.typeforms import TENSORS, LevelKind, TypeForm, read_type
from hwflow.onnxspec.reading.skeleton import clean_form
from hwflow.onnxspec.shapes.inference import contradict

_TRAINING = (Kind.INITIALIZATION, Kind.ALGORITHM)
_ANNOTATION_KEYS = frozenset({"SCALE_TENSOR", "ZERO_POINT_TENSOR"})
# QONNX's library stores its own facts about tensors (as text) in the annotations of every model that it writes.
_QONNX_KEYS = frozenset({"finn_datatype", "tensor_layout", "tensor_sparsity"})


def needs_initializer_inputs(context: Context) -> bool:
    """Tell whether the model has IR version 1, 2 or 3, whose initializers must be graph inputs (onnx.proto)."""
    return 0 < context.ir_version <= 3


# Names


def _graph_names(context: Context) -> Iterator[Hit]:
    for scope, graph in context.graphs:
        if graph.name or (scope.kind in _TRAINING and not graph.ByteSize()):
            continue  # an empty training graph counts as absent (onnx.proto)
        yield Hit(scope.position, scope.title, "every graph must have a name, but this one has none")


def _unnamed(scope: Scope) -> Iterator[Hit]:
    for section, kind, names in ((INPUTS, "input", scope.inputs), (OUTPUTS, "output", scope.outputs)):
        if "" in names:
            for index, name in enumerate(names):
                if not name:
                    message = f"{kind} {index} of the graph must have a name, but it has none"
                    yield Hit(scope.at(section, index), f"{kind} {index}{scope.label}", message)


def _value_names(context: Context) -> Iterator[Hit]:
    for scope, _ in context.graphs:
        if scope.kind is not Kind.SUBGRAPH:
            yield from _unnamed(scope)


def _subgraph_value_names(context: Context) -> Iterator[Hit]:
    for scope, _ in context.graphs:
        if scope.kind is Kind.SUBGRAPH:
            yield from _unnamed(scope)


def _initializer_place(scope: Scope, index: int) -> str:
    assert scope.graph is not None  # a function has no initializers
    kind = "initializer" if index < len(scope.graph.initializer) else "sparse initializer"
    return f"{kind} {show(scope.initializers[index]) if scope.initializers[index] else index}{scope.label}"


def repeated_initializers(scope: Scope) -> Iterator[Hit]:
    """Yield every initializer of the graph, sparse ones included, that repeats an earlier name."""
    if len(scope.held) == len(scope.initializers):
        return
    seen: set[str] = set()
    for index, name in enumerate(scope.initializers):
        if name and name in seen:
            message = f"initializer names must be distinct, but {show(name)} names more than one"
            yield Hit(scope.at(INITIALIZERS, index), _initializer_place(scope, index), message, RENAME)
        seen.add(name)


def _initializer_names(context: Context) -> Iterator[Hit]:
    for scope, _ in context.graphs:
        if "" in scope.held:
            for index, name in enumerate(scope.initializers):
                if not name:
                    message = "an initializer must have a name, but this one has none"
                    yield Hit(
                        scope.at(INITIALIZERS, index), _initializer_place(scope, index), message, "give it a name"
                    )
        yield from repeated_initializers(scope)


# Definitions


def _single_assignment(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        if scope.graph is not None or context.ir_version >= 8:
            yield from (hit for outputs, hit in double_definitions(scope) if outputs)


def _value_namespace(context: Context) -> Iterator[Hit]:
    for scope, graph in context.graphs:
        yield from (hit for _, hit in double_definitions(scope))
        yield from repeated_initializers(scope)
        yield from _repeated_entries(scope, graph)
        yield from _repeated_outputs(scope)
    if context.ir_version >= 8:
        yield from repeated_inputs(context)
        yield from double_assignments(context)


def _repeated_outputs(scope: Scope) -> Iterator[Hit]:
    if len(set(scope.outputs)) == len(scope.outputs):
        return
    seen: set[str] = set()
    for index, name in enumerate(scope.outputs):
        if name and name in seen:
            message = f"outputs should have distinct names, but {show(name)} is listed more than once"
            remedy = "list it once, or add an Identity node that gives the second a value of its own"
            yield Hit(scope.at(OUTPUTS, index), f"output {show(name)}{scope.label}", message, remedy, Severity.WARNING)
        seen.add(name)


# Types and shapes of the main graph's inputs and outputs


def _interface(context: Context) -> Iterator[tuple[TypeSite, TypeForm]]:
    """Yield the types of the main graph's inputs and outputs."""
    for site, form in zip(context.types, context.forms, strict=True):
        if site.scope is context.scopes[0] and site.role in (TypeRole.INPUT, TypeRole.OUTPUT):
            yield site, form


def _lack(form: TypeForm) -> str | None:
    """Return what the type leaves undefined, or None; looks into sequences, optionals and maps."""
    for level in form:
        if level.kind in TENSORS:
            return None if level.code else "its elem_type is UNDEFINED"
        if level.kind is LevelKind.MAP and not level.code:
            return "the key_type of its map is UNDEFINED"
    return None if form and form[-1].kind is LevelKind.OPAQUE else "it has none"


def _types_given(context: Context) -> Iterator[Hit]:
    for site, form in _interface(context):
        lack = _lack(form)
        if lack is not None:
            inside = "for what it holds " if form and form[0].kind not in TENSORS else ""
            yield Hit(site.position, site.where, f"{site.where} must have a type, but {inside}{lack}")


def _shapes_given(context: Context) -> Iterator[Hit]:
    for site, form in _interface(context):
        if form and form[0].kind in TENSORS and form[0].dims is None:
            message = f"{site.where} must have a shape (at least its rank), but it has none"
            yield Hit(site.position, site.where, message)


# Initializers as inputs


def _initializers_are_inputs(context: Context) -> Iterator[Hit]:
    if not needs_initializer_inputs(context) or not context.scopes:
        return
    for inner in context.scopes:
        if inner.kind is Kind.SUBGRAPH:
            yield from unlisted_initializers(inner, context.ir_version)
    scope = context.scopes[0]
    absent = scope.held.difference(scope.inputs, ("",))
    if absent:
        constants = [name for name in dict.fromkeys(scope.initializers) if name in absent]
        index = scope.initializers.index(constants[0])
        yield Hit(
            scope.at(INITIALIZERS, index),
            scope.title,
            f"in IR version {context.ir_version} every initializer must be a graph input too, but "
            f"{_are(constants, 'is', 'are')} not",
        )


def _are(names: Iterable[str], one: str, more: str) -> str:
    every = list(names)
    return f"{listed(every)} {one if len(every) == 1 else more}"


def unlisted_initializers(scope: Scope, ir_version: int) -> Iterator[Hit]:
    """Yield initializers of a subgraph that are not its inputs, before IR version 4."""
    absent = scope.held.difference(scope.inputs) - {""}
    if absent:
        names = [name for name in dict.fromkeys(scope.initializers) if name in absent]
        yield Hit(
            scope.at(INITIALIZERS, scope.initializers.index(names[0])),
            scope.title,
            f"in IR version {ir_version} every initializer of a subgraph must be one of its inputs too, but "
            f"{_are(names, 'is', 'are')} not",
            "list the initializers as inputs, after the others, or export the model with IR version 4 or higher",
        )


# value_info


def _entries_apply(context: Context) -> Iterator[Hit]:
    for scope, _ in context.graphs:
        names = frozenset(scope.described)
        if not names:
            continue
        nothing = names - scope.visible
        for matter, wrong, one, more in (
            ("values that are not inputs", names.intersection(scope.inputs), "is one", "are some"),
            ("values that are not outputs", names.intersection(scope.outputs) - nothing, "is one", "are some"),
            ("values of the graph", nothing, "is none", "are none"),
        ):
            if wrong:
                places = {name: index for index, name in reversed(list(enumerate(scope.described))) if name in wrong}
                found = sorted(wrong, key=places.__getitem__)
                message = f"value_info must name {matter}, but {_are(found, one, more)}"
                yield Hit(scope.at(VALUE_INFO, places[found[0]]), scope.title, message)


_AGAINST_INFERENCE = ("NOD-32", "SHP-10", "SHP-16")


def _entries_agree(context: Context) -> Iterator[Hit]:
    """Collect the findings of clauses about types and shapes on entries of value_info."""
    for position, finding in list(context.found):
        if finding.rule in _AGAINST_INFERENCE and position[-2:-1] == (VALUE_INFO,):
            yield Hit(position, finding.where, finding.message, finding.remedy, Severity.ERROR)


def _described_values(context: Context) -> Iterator[Hit]:
    yield from _entries_apply(context)
    yield from _entries_agree(context)


def _repeated_entries(scope: Scope, graph: onnx.GraphProto) -> Iterator[Hit]:
    if len(set(scope.described)) == len(scope.described):
        return
    first: dict[str, int] = {}
    for index, name in enumerate(scope.described):
        if name not in first:
            first[name] = index
            continue
        types = (clean_form(read_type(graph.value_info[place].type)) for place in (first[name], index))
        agree = not contradict(*types)
        yield Hit(
            scope.at(VALUE_INFO, index),
            f"value {show(name)}{scope.label}",
            f"names in value_info must be distinct, but {show(name)} is there more than once"
            + ("" if agree else ", with types that contradict each other"),
            "remove one of the entries",
            # Consistent entries are harmless.
            Severity.WARNING if agree else Severity.ERROR,
        )


def _value_info_names(context: Context) -> Iterator[Hit]:
    for scope, graph in context.graphs:
        yield from _repeated_entries(scope, graph)


# Quantization annotations


def _annotations(context: Context) -> Iterator[Hit]:
    for scope, graph in context.graphs:
        seen: set[tuple[str, str]] = set()
        foreign: list[int] = []
        for index, annotation in enumerate(graph.quantization_annotation):
            keys = {entry.key for entry in annotation.quant_parameter_tensor_names}
            if keys and keys <= _QONNX_KEYS:  # their values are not names of tensors
                foreign.append(index)
                continue
            position, name = scope.at(ANNOTATIONS, index), annotation.tensor_name
            where = f"quantization annotation of {show(name)}{scope.label}"
            if name not in scope.visible:
                message = f"tensor_name must name a value of the graph, but {show(name)} is none"
                yield Hit(position, where, message, "remove the annotation")
            for entry in annotation.quant_parameter_tensor_names:
                if entry.key in _QONNX_KEYS:
                    continue
                if entry.key not in _ANNOTATION_KEYS:
                    message = f"the key must be 'SCALE_TENSOR' or 'ZERO_POINT_TENSOR', not {show(entry.key)}"
                    yield Hit(position, where, message, "remove the entry, or correct its key")
                elif (name, entry.key) in seen:
                    message = f"the tensor must have one {entry.key}, but it has more"
                    yield Hit(position, where, message, "remove one of the entries")
                seen.add((name, entry.key))
                if entry.value not in scope.visible:
                    message = f"{show(entry.key)} must name a value of the graph, but {show(entry.value)} is none"
                    yield Hit(position, where, message, f"add the tensor {show(entry.value)}, or remove the annotation")
        if foreign:
            count, name = len(foreign), graph.quantization_annotation[foreign[0]].tensor_name
            yield Hit(
                scope.at(ANNOTATIONS, foreign[0]), f"quantization annotation of {show(name)}{scope.label}",
                "the key must be 'SCALE_TENSOR' or 'ZERO_POINT_TENSOR', not one of QONNX's"
                + (f" (as in {count - 1} more annotations)" if count > 1 else ""),
                "remove the annotation; hwflow does not read it",
                Severity.WARNING,
            )


RULES = (
    Rule("GRA-22", "MUST", _graph_names, "give the graph a name"),
    Rule("GRA-17", "MUST", _value_names, "give it a name"),
    Rule("GRA-20", "MUST", _subgraph_value_names, "give it a name"),
    Rule("GRA-18", "MUST", _types_given, "give it a type"),
    Rule("GRA-19", "MUST", _shapes_given, "give it a shape, with the dimensions left open that are not known"),
    Rule("PRO-05", "MUST", _initializer_names, RENAME),
    Rule(
        "GRA-11",
        "definition",
        _initializers_are_inputs,
        "list the initializers as inputs, or export the model with IR version 4 or higher",
    ),
    Rule("GRA-23", "MUST", _single_assignment, RENAME),
    Rule("NAM-04", "MUST", _value_namespace, RENAME),
    Rule("PRO-06", "MUST", _value_info_names, "remove one of the entries"),
    Rule("PRO-23", "MUST", _annotations, "remove the annotation", since_ir=5),
)

# Run after the clauses about types and shapes, whose findings they collect.
LATE_RULES = (
    # A warning: tools that rewrite a graph leave stale entries, which nothing reads.
    Rule("GRA-15", "definition", _described_values, "remove the entries", severity=Severity.WARNING),
)
