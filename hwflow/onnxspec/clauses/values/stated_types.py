"""Clauses about the types that a model states, and about types of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from onnx import TensorProto

from hwflow.errors import Severity
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule
from hwflow.onnxspec.graphs.operator_names import (
    CONCAT_FROM_SEQUENCE,
    SEQUENCE_CONSTRUCT,
    SEQUENCE_INSERT,
    SEQUENCE_MAP,
)
from hwflow.onnxspec.graphs.scopes import NODES
from hwflow.onnxspec.graphs.typeforms import TENSORS, Level, LevelKind, TypeForm
from hwflow.onnxspec.reading import element_types
from hwflow.onnxspec.shapes.agreement import DifferenceKind
from hwflow.onnxspec.shapes.node_inference import FailureKind

_EXPORT = "export the model again"
_KEY_TYPES = frozenset(
    {
        TensorProto.INT8,
        TensorProto.INT16,
        TensorProto.INT32,
        TensorProto.INT64,
        TensorProto.UINT8,
        TensorProto.UINT16,
        TensorProto.UINT32,
        TensorProto.UINT64,
        TensorProto.STRING,
    }
)
_SEQUENCE_OPERATORS = frozenset({SEQUENCE_CONSTRUCT, SEQUENCE_INSERT, SEQUENCE_MAP, CONCAT_FROM_SEQUENCE})
# The IR versions that introduced the kinds of types.
_KIND_SINCE = {LevelKind.SEQUENCE: 6, LevelKind.MAP: 6, LevelKind.OPTIONAL: 8}


def _messages(context: Context, judge: Callable[[TypeForm], str | None]) -> Iterator[Hit]:
    """Yield a hit for every type that ``judge`` objects to; each distinct type is judged once."""
    objections = {id(form): judge(form) for form in {id(form): form for form in context.forms}.values()}
    if not any(objections.values()):
        return
    for site, form in zip(context.types, context.forms, strict=True):
        message = objections[id(form)]
        if message is not None:
            yield Hit(site.position, site.where, message)


def _inside(form: TypeForm, place: int) -> str:
    return f" in the {form[place - 1].kind}" if place else ""


def _element_type(form: TypeForm) -> str | None:
    for place, level in enumerate(form):
        if level.kind in TENSORS and level.code not in element_types.BY_CODE:
            found = element_types.describe(level.code)
            return f"the element type of the tensors{_inside(form, place)} must be a known one, not {found}"
    if form and form[-1].kind is LevelKind.SEQUENCE:
        return f"the sequence{_inside(form, len(form) - 1)} must state its element type, but it does not"
    return None


def _map_type(form: TypeForm) -> str | None:
    for place, level in enumerate(form):
        if level.kind is LevelKind.MAP and level.code not in _KEY_TYPES:
            found = element_types.describe(level.code)
            return f"the keys of the map{_inside(form, place)} must be integers or strings, not {found}"
    if form and form[-1].kind is LevelKind.MAP:
        return f"the map{_inside(form, len(form) - 1)} must state its value type, but it does not"
    return None


def _optional_type(form: TypeForm) -> str | None:
    for place, level in enumerate(form):
        if level.kind is not LevelKind.OPTIONAL:
            continue
        if place + 1 == len(form):
            return f"the optional{_inside(form, place)} must state its element type, but it does not"
        found = {LevelKind.OPTIONAL: "another optional", LevelKind.OPAQUE: "an opaque type"}.get(form[place + 1].kind)
        if found is not None:
            allowed = "a tensor, a sparse tensor, a sequence or a map"
            return f"the optional{_inside(form, place)} must hold {allowed}, not {found}"
    return None


def _element_types(context: Context) -> Iterator[Hit]:
    yield from _messages(context, _element_type)


def _map_types(context: Context) -> Iterator[Hit]:
    yield from _messages(context, _map_type)


def _optional_types(context: Context) -> Iterator[Hit]:
    yield from _messages(context, _optional_type)


def _kinds_known(context: Context) -> Iterator[Hit]:
    version = context.ir_version
    if not 1 <= version < max(_KIND_SINCE.values()):
        return

    def judge(form: TypeForm) -> str | None:
        for level in form:
            since = _KIND_SINCE.get(level.kind, 0)
            if version < since:
                return f"{level.kind} types need IR version {since} or later, but the model has {version}"
        return None

    yield from _messages(context, judge)


_NEWEST = max(element.since_ir for element in element_types.ALL)


def _code_known(code: int, version: int) -> str | None:
    element = element_types.BY_CODE.get(code)
    if element is None or element.since_ir <= version:
        return None
    return f"element type {element.name} needs IR version {element.since_ir} or later, but the model has {version}"


def _codes_known(context: Context) -> Iterator[Hit]:
    version = context.ir_version
    if not 1 <= version < _NEWEST:
        return

    def of_level(level: Level) -> str | None:
        return _code_known(level.code, version)

    yield from _messages(context, lambda form: next(filter(None, map(of_level, form)), None))
    late = {element.code for element in element_types.ALL if element.since_ir > version}
    if late.isdisjoint([site.tensor.data_type for site in context.tensors]):
        return
    for site in context.tensors:
        message = _code_known(site.tensor.data_type, version)
        if message is not None:
            yield Hit(site.position, site.where, message)


def _node_types(context: Context) -> Iterator[Hit]:
    for failure in context.inference.failures:
        if failure.kind is FailureKind.TYPE:
            scope = context.scopes[failure.scope]
            yield Hit(scope.at(NODES, failure.node), scope.where(failure.node), failure.message)
    for difference in context.agreement.differences:
        if difference.kind is DifferenceKind.TYPE:
            yield Hit(difference.site.position, difference.site.where, difference.message)


def _one_element_type(context: Context) -> Iterator[Hit]:
    for failure in context.inference.failures:
        scope = context.scopes[failure.scope]
        node = scope.nodes[failure.node]
        if failure.kind is FailureKind.TYPE and node.domain == "" and node.op_type in _SEQUENCE_OPERATORS:
            yield Hit(scope.at(NODES, failure.node), scope.where(failure.node), failure.message)


_TYPES_FIT = "correct the node or the types of what it reads"

RULES = (
    Rule("PRO-16", "MUST", _element_types, _EXPORT),
    Rule("PRO-17", "MUST", _map_types, _EXPORT),
    Rule("PRO-19", "MUST", _optional_types, _EXPORT),
    # Warnings: the meaning of such a type is clear in any version.
    Rule("TYP-15", "definition", _kinds_known, "export the model with a newer IR version", severity=Severity.WARNING),
    Rule("TYP-16", "definition", _codes_known, "export the model with a newer IR version", severity=Severity.WARNING),
    Rule("TYP-11", "definition", _one_element_type, _TYPES_FIT),
    Rule("NOD-32", "MUST", _node_types, _TYPES_FIT),
)
