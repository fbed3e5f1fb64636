"""Calls of functions local to the model, and the types of the attributes passed through them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hwflow.display import show
from hwflow.onnxspec.clauses.rules import Context, Hit, at_node
from hwflow.onnxspec.graphs.node_forms import kind_name
from hwflow.onnxspec.graphs.schemas import find_operator
from hwflow.onnxspec.graphs.scopes import Kind, Scope, function_name


def with_function(context: Context) -> Iterator[tuple[Scope, Scope | None]]:
    """Yield every scope and the function's body that it is or lies in; parents precede nested scopes."""
    inside: dict[int, Scope | None] = {}
    for scope in context.scopes:
        function = inside[id(scope.parent)] if scope.parent is not None else None
        inside[id(scope)] = scope if scope.kind is Kind.FUNCTION else function
        yield scope, inside[id(scope)]


def calls(context: Context) -> Iterator[tuple[Scope, int, Scope | None, Scope]]:
    """Yield every call of a local function: its scope and index, the enclosing function, the called function."""
    functions = context.functions
    if not functions:
        return
    names = {name for _, name, _ in functions}
    for scope, inside in with_function(context):
        for index, node in enumerate(scope.nodes):
            if node.op_type in names:
                called = functions.get((node.domain, node.op_type, node.proto.overload))
                if called is not None:
                    yield scope, index, inside, called


class _Demand(NamedTuple):
    """The type that an attribute of a function must have, and the reader that requires it."""

    kind: int
    reader: str


_Attribute = tuple[int, str]  # id of the function's scope, name


def _demands(context: Context) -> dict[_Attribute, list[_Demand]]:
    """Return the types that operators require of each attribute of a function, directly or through calls, with the
    first reader of each type; without readers the type of its default."""
    demands: dict[_Attribute, list[_Demand]] = {}
    handed: dict[_Attribute, list[_Attribute]] = {}  # the sources of a called function's attribute
    for scope, inside in with_function(context):
        if inside is None:
            continue
        for index, attribute in scope.references:
            node, source = scope.nodes[index], (id(inside), attribute.ref_attr_name)
            called = context.functions.get((node.domain, node.op_type, node.proto.overload))
            if called is not None:
                handed.setdefault((id(called), attribute.name), []).append(source)
                continue
            operator = find_operator(node.op_type, scope.opsets.get(node.domain, 0), node.domain)
            kind = attribute.type if operator is None else operator.attributes.get(attribute.name, 0)
            if kind:
                demand = _Demand(kind, f"attribute {show(attribute.name)} of {scope.where(index)}")
                demands.setdefault(source, []).append(demand)
    pending = [(read, demand) for read, found in demands.items() for demand in found]
    seen = {(read, demand.kind) for read, demand in pending}
    for read, demand in pending:  # grows while it is walked
        for source in handed.get(read, ()):
            if (source, demand.kind) not in seen:
                seen.add((source, demand.kind))
                demands.setdefault(source, []).append(demand)
                pending.append((source, demand))
    for scope in context.functions.values():
        assert scope.function is not None
        for default in scope.function.attribute_proto:
            if default.type and (id(scope), default.name) not in demands:
                demands[id(scope), default.name] = [_Demand(default.type, "its default")]
    return demands


def wrong_types(context: Context) -> Iterator[Hit]:
    """Yield attributes of functions, in a default or in a call, of another type than an operator in the function takes.
    Types propagate through nested calls."""
    if not context.functions:
        return
    demands = _demands(context)
    for scope in context.functions.values():
        assert scope.function is not None
        for default in scope.function.attribute_proto:
            demand = _broken(demands, (id(scope), default.name), default.type)
            if demand is not None:
                message = f"the default must be of type {kind_name(demand.kind)}, as {demand.reader} is"
                where = f"attribute {show(default.name)} of {scope.title}"
                yield Hit(scope.position, where, f"{message}, not {kind_name(default.type)}", _CORRECT)
    for scope, index, _, called in calls(context):
        assert called.function is not None
        for attribute in scope.nodes[index].attributes:
            demand = _broken(demands, (id(called), attribute.name), attribute.type)
            if demand is not None:
                name = f"attribute {show(attribute.name)} of function {show(function_name(called.function))}"
                reason = f"{kind_name(demand.kind)}, as {demand.reader} is"
                message = f"{name} must be of type {reason}, not {kind_name(attribute.type)}"
                yield at_node(scope, index, message, _CORRECT)


def _broken(demands: dict[_Attribute, list[_Demand]], attribute: _Attribute, kind: int) -> _Demand | None:
    """Return the first demand that an attribute of that type does not meet; ATT-06 reports a missing type."""
    return next((demand for demand in demands.get(attribute, ()) if kind not in (0, demand.kind)), None)


_CORRECT = "give the attribute the type that the operator says"
