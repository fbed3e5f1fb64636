"""Clauses about functions local to the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

import onnx

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.graphs.soundness import (
    RENAME,
    disorder,
    double_assignments,
    shortened,
    undefined_inputs,
)
from hwflow.onnxspec.clauses.models.calls import calls, with_function, wrong_types
from hwflow.onnxspec.clauses.rules import Context, FunctionKey, Hit, Rule, at_node, listed
from hwflow.onnxspec.graphs.scopes import MODEL, Kind, Scope, function_name, plain_domain
from hwflow.onnxspec.graphs.topology import components, cycles

KEEP_ONE = "keep one of the imports"
_OVERLOADS_FROM = 10  # IR version
MAX_INLINED = 100_000
"""The greatest number of nodes that inlined functions and branches may add to a model."""
# The value fields of an attribute, which a reference must not use.
_NO_VALUE = frozenset({"name", "ref_attr_name", "doc_string", "type"})


def _key(function: onnx.FunctionProto) -> FunctionKey:
    return plain_domain(function.domain), function.name, function.overload


def _title(scope: Scope) -> str:
    """Return the name of the scope's function, for a message."""
    assert scope.function is not None
    return show(function_name(scope.function))


def _twice(names: Iterable[str]) -> list[str]:
    """Return the duplicates among ``names``."""
    return [name for name, count in Counter(names).items() if count > 1]


def _bodies(context: Context) -> Iterator[tuple[Scope, onnx.FunctionProto]]:
    """Yield the functions' bodies, without nested scopes."""
    if context.model.functions:
        for scope in context.scopes:
            if scope.kind is Kind.FUNCTION and scope.function is not None:
                yield scope, scope.function


def repeated_functions(context: Context) -> Iterator[Hit]:
    """Yield functions with the name and overload of an earlier one."""
    seen: set[FunctionKey] = set()
    for scope, function in _bodies(context):
        domain, name, overload = _key(function)
        # A reader of an earlier version does not know the field and sees two functions of one name.
        key = (domain, name, overload if context.ir_version >= _OVERLOADS_FROM else "")
        if key in seen:
            before = "" if context.ir_version >= _OVERLOADS_FROM else f" (overloads came with IR {_OVERLOADS_FROM})"
            message = (
                "functions must differ in domain, name or overload, "
                f"but there is {_title(scope)} twice{before}"
            )
            yield Hit(scope.position, scope.title, message)
        seen.add(key)


def _call_graph(context: Context) -> tuple[list[Scope], dict[int, Counter[int]], Counter[int]]:
    """Return the functions' bodies, how often each calls which others, by their places, and the calls from outside."""
    bodies = list(context.functions.values())
    place = {id(scope): index for index, scope in enumerate(bodies)}
    callees: dict[int, Counter[int]] = {index: Counter() for index in range(len(bodies))}
    outside: Counter[int] = Counter()
    for _, _, inside, called in calls(context):
        if inside is None:
            outside[place[id(called)]] += 1
        elif id(inside) in place:
            callees[place[id(inside)]][place[id(called)]] += 1
    return bodies, callees, outside


def _no_recursion(context: Context) -> Iterator[Hit]:
    bodies, callees, _ = _call_graph(context)
    direct = [[index] for index, called in callees.items() if called.pop(index, 0)]
    for cycle in (*direct, *cycles(callees)):
        around = shortened([_title(bodies[index]) for index in (*cycle, cycle[0])])
        message = f"a function must not call itself, directly or through others, but this one does: {around}"
        yield Hit(bodies[cycle[0]].position, bodies[cycle[0]].title, message)


def several_versions(context: Context) -> Iterator[Hit]:
    """Yield functions that import more than one version of an operator set."""
    for scope, function in _bodies(context):
        versions: dict[str, set[int]] = {}
        for opset in function.opset_import:
            versions.setdefault(plain_domain(opset.domain), set()).add(opset.version)
        for domain, found in versions.items():
            if len(found) > 1:
                several = " and ".join(map(str, sorted(found)[:5]))
                operator_set = show(domain or "ai.onnx")
                message = f"a function must import one version of operator set {operator_set}, not {several}"
                yield Hit(scope.position, scope.title, message)


@cache
def _binding(op_type: str, version: int, domain: str) -> int | None:
    """Return the version of the operator set that introduced the operator's schema in ``version``, None if none."""
    try:
        return int(onnx.defs.get_schema(op_type, version, domain).since_version)
    except Exception:  # no such operator (reported elsewhere), or a version beyond 32 bits
        return None


def _same_schemas(context: Context) -> Iterator[Hit]:
    if not context.model.functions or not context.scopes:  # no scopes: there is no graph
        return
    model = context.scopes[0].opsets
    for scope, function in with_function(context):
        if function is None:
            continue
        differing = {d for d, version in scope.opsets.items() if model.get(d, version) != version}
        if not differing:
            continue
        reported: set[tuple[str, str]] = set()
        for index, node in enumerate(scope.nodes):
            key = (node.domain, node.op_type)
            if node.domain not in differing or key in reported:
                continue
            own, other = scope.opsets[node.domain], model[node.domain]
            bound = _binding(node.op_type, own, node.domain)
            if bound is None or bound == _binding(node.op_type, other, node.domain):
                continue
            reported.add(key)
            yield at_node(
                scope, index,
                f"the operator should be the same in the function's import of {show(node.domain or 'ai.onnx')} "
                f"(version {own}) and in the model's ({other}), but {node.op_type} changed in between",
            )


def _attribute_lists(context: Context) -> Iterator[Hit]:
    for scope, function in _bodies(context):
        required = list(function.attribute)
        defaults = [attribute.name for attribute in function.attribute_proto]
        if len({*required, *defaults}) == len(required) + len(defaults):
            continue
        for names, kind in ((required, "attribute"), (defaults, "attribute_proto")):
            twice = _twice(names)
            if twice:
                message = f"the names in {kind} must be distinct, but there is {listed(twice)} more than once"
                yield Hit(scope.position, scope.title, message, RENAME)
        both = sorted(set(required).intersection(defaults))
        if both:
            message = (
                "an attribute must be in attribute (without a default) or in attribute_proto (with one), "
                f"but {listed(both)} is in both"
            )
            yield Hit(scope.position, scope.title, message)


def _in_functions_only(context: Context) -> Iterator[Hit]:
    for scope, function in with_function(context):
        if function is not None:
            continue
        for index, attribute in scope.references:
            yield at_node(
                scope, index,
                f"attribute {show(attribute.name)} must have a value of its own, but it refers to attribute "
                f"{show(attribute.ref_attr_name)} of a function, and the node is in none",
            )


def _no_value(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        for index, attribute in scope.references:
            found = [field.name for field, _ in attribute.ListFields() if field.name not in _NO_VALUE]
            if found:
                yield at_node(
                    scope, index,
                    f"attribute {show(attribute.name)} refers to attribute {show(attribute.ref_attr_name)} of the "
                    f"function and must hold no value, but it has one in {' and '.join(found)}",
                )


def _repeated(scope: Scope, kind: str, name: str) -> Hit:
    message = f"{kind}s must have distinct names, but {show(name)} is there more than once"
    return Hit(scope.position, scope.title, message, RENAME)


def repeated_inputs(context: Context) -> Iterator[Hit]:
    """Yield inputs of functions that repeat an earlier name."""
    for scope, _ in _bodies(context):
        for name, count in Counter(filter(None, scope.inputs)).items():
            yield from [_repeated(scope, "input", name)] * (count - 1)


def _signature(context: Context) -> Iterator[Hit]:
    for scope, _ in _bodies(context):
        for names, kind in ((scope.inputs, "input"), (scope.outputs, "output")):
            seen: set[str] = set()
            for index, name in enumerate(names):
                if not name:
                    message = f"{kind} {index} must have a name, but it has none"
                    yield Hit(scope.position, scope.title, message, "give it a name")
                elif name in seen:
                    yield _repeated(scope, kind, name)
                seen.add(name)
        inputs = set(scope.inputs)
        for name in dict.fromkeys(scope.outputs):
            if not name or name in scope.computed:
                continue
            if name in inputs:
                message = f"output {show(name)} must be computed by a node of the function, but it is an input"
                yield Hit(scope.position, scope.title, message, "put an Identity node in between")
            else:
                message = f"output {show(name)} must be computed by a node of the function, but nothing computes it"
                remedy = f"add the node that computes {show(name)}, or remove the output"
                yield Hit(scope.position, scope.title, message, remedy)


def _own_values(context: Context) -> Iterator[Hit]:
    if not context.model.functions:
        return
    for scope, function in with_function(context):
        for index, name in undefined_inputs(scope) if function is not None else ():
            message = f"input {show(name)} must be an input of the function or the output of a node in it, "
            remedy = f"make {show(name)} an input of the function, or add the node that computes it"
            yield at_node(scope, index, message + "but it is neither", remedy)


def _named(context: Context) -> Iterator[Hit]:
    for index, (scope, function) in enumerate(_bodies(context)):
        if not function.name:
            message = "a function must have a name, but this one has none"
            yield Hit(scope.position, f"function {index}", message, "give it a name")
        if not function.HasField("domain"):
            where = scope.title if function.name else f"function {index}"
            yield Hit(scope.position, where, "a function must have a domain, but this one has none", "give it a domain")


def _value_info(context: Context) -> Iterator[Hit]:
    for scope, function in _bodies(context):
        names = [info.name for info in function.value_info]
        if not names:
            continue
        twice = _twice(names)
        if twice:
            message = f"the names in value_info must be distinct, but there is {listed(twice)} more than once"
            yield Hit(scope.position, scope.title, message, "keep one of the entries")
        unknown = [name for name in dict.fromkeys(names) if name not in scope.defined]
        if unknown:
            message = f"value_info must name values of the function, but there is no {listed(unknown)}"
            yield Hit(scope.position, scope.title, message, "remove the entries")


def _body(context: Context) -> Iterator[Hit]:
    """Check that the body is sorted, acyclic, and defines every value once."""
    yield from double_assignments(context)
    for scope, _ in _bodies(context):
        yield from disorder(scope)


def _call_attributes(context: Context) -> Iterator[Hit]:
    for scope, index, _, called in calls(context):
        function = called.function
        assert function is not None
        given = {attribute.name for attribute in scope.nodes[index].attributes}
        if not given and not function.attribute:
            continue
        required = set(function.attribute)
        declared = required.union(attribute.name for attribute in function.attribute_proto)
        missing = [name for name in dict.fromkeys(function.attribute) if name not in given]
        title = _title(called)
        if missing:
            absent = listed(missing)
            message = f"the call must give the attributes of {title} that have no default, but {absent} is absent"
            yield at_node(scope, index, message, "give the node the attribute")
        unknown = sorted(given - declared)
        if unknown:
            known = f"declares {listed(sorted(declared))}" if declared else "declares none"
            message = f"the call must give only attributes that {title} declares, not {listed(unknown)}; it {known}"
            yield at_node(scope, index, message, "correct the name, or remove the attribute")
    yield from wrong_types(context)
    if not context.model.functions:
        return
    for scope, inside in with_function(context):
        references = scope.references if inside is not None else []
        if not references or inside is None or inside.function is None:
            continue
        declared = set(inside.function.attribute)
        declared.update(attribute.name for attribute in inside.function.attribute_proto)
        for index, attribute in references:
            if attribute.ref_attr_name not in declared:
                known = f"declares {listed(sorted(declared))}" if declared else "declares none"
                yield at_node(
                    scope, index,
                    f"attribute {show(attribute.name)} must refer to an attribute that the function declares, "
                    f"not to {show(attribute.ref_attr_name)}; it {known}",
                    "correct the name, or declare the attribute",
                )


def _size(context: Context) -> Iterator[Hit]:
    """Limit the number of inlined nodes: nested calls may expand without bound, as in onnx's shape inference."""
    bodies, callees, outside = _call_graph(context)
    place = {id(scope): index for index, scope in enumerate(bodies)}
    sizes = dict.fromkeys(callees, 0)
    for scope, inside in with_function(context) if bodies else ():
        if inside is not None and id(inside) in place:
            sizes[place[id(inside)]] += len(scope.nodes)
    endless: set[int] = set()  # the recursive ones and what calls them
    for component in components(callees):
        index = component[0]
        called = callees[index]
        if len(component) > 1 or index in called or not endless.isdisjoint(called):
            endless.update(component)
            continue
        sizes[index] = min(sizes[index] + sum(n * sizes[callee] for callee, n in called.items()), 2 * MAX_INLINED)
        if sizes[index] > MAX_INLINED and all(sizes[callee] <= MAX_INLINED for callee in called):
            message = (
                f"a function must stand for at most {MAX_INLINED} nodes, those of the functions it calls included, "
                "but this one stands for more"
            )
            yield Hit(bodies[index].position, bodies[index].title, message)
    total = sum(count * sizes[index] for index, count in outside.items())
    if total > MAX_INLINED and max(sizes.values()) <= MAX_INLINED:
        message = f"calls of functions must stand for at most {MAX_INLINED} nodes, not {total}"
        yield Hit((MODEL,), "model", message)


_DECLARE = "declare each attribute once"

RULES = (
    Rule("FUN-01", "MUST", repeated_functions, RENAME, since_ir=8),
    Rule(
        "FUN-02", "MUST", _no_recursion, "write the function without recursion, for example with Loop",
        since_ir=8,
    ),
    Rule("FUN-03", "MUST", several_versions, KEEP_ONE, since_ir=8),
    # A warning: the function's own import defines the node.
    Rule(
        "FUN-04", "SHOULD", _same_schemas, "import the same version in function and model",
        severity=Severity.WARNING, since_ir=8,
    ),
    # attribute_proto came with IR 9; even if written earlier, it contradicts attribute.
    Rule("FUN-05", "MUST", _attribute_lists, _DECLARE, since_ir=8),
    Rule("FUN-06", "MUST", _in_functions_only, "give the attribute a value"),
    Rule("FUN-07", "MUST", _no_value, "keep the reference or the value"),
    Rule("FUN-08", "MUST", _signature, RENAME, since_ir=8),
    Rule("FUN-09", "MUST", _own_values, "make the value an input of the function", since_ir=8),
    Rule("FUN-10", "MUST", _named, "give it a name", since_ir=8),
    # A warning: the entries define nothing.
    Rule("FUN-11", "MUST", _value_info, "correct the list", severity=Severity.WARNING, since_ir=10),
    Rule(
        "FUN-12", "MUST", _body, "sort the nodes so that each one follows those it reads from",
        since_ir=8,
    ),
    Rule("FUN-13", "MUST", _call_attributes, "correct the call", since_ir=8),
    Rule("inlined-size", "own", _size, "write the model with fewer calls"),
)
