"""Clauses about operators: which exist, and their attributes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.graphs.form_hits import Complaint, form_hits
from hwflow.onnxspec.clauses.models.calls import wrong_types
from hwflow.onnxspec.clauses.models.opsets import unknown_versions
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, listed
from hwflow.onnxspec.graphs.node_forms import KINDS, AttributeForm, NodeForm, kind_name
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.operator_names import CONSTANT
from hwflow.onnxspec.graphs.schemas import Operator, find_operator, first_versions, known_domains
from hwflow.onnxspec.graphs.scopes import NODES, Scope
from hwflow.onnxspec.shapes.dialects import DIALECT_DOMAINS


def calls_function(context: Context, form: NodeForm) -> bool:
    """Tell whether nodes of that form call a function local to the model."""
    return (form.domain, form.op_type, form.overload) in context.functions


def operator_of(context: Context, scope: Scope, form: NodeForm) -> Operator | None:
    """Return the operator of nodes of that form; None where other rules report it, for a function, and in a domain
    without schemas."""
    version = scope.opsets.get(form.domain)
    if version is None or calls_function(context, form):
        return None
    operator = find_operator(form.op_type, version, form.domain)
    return None if operator is None or operator.deprecated else operator


class _Guesses:
    """Suggest similar names; for the first few only, as a hostile file may have very many or very long ones."""

    def __init__(self) -> None:
        self._left = 20

    def near(self, name: str, names: Iterable[str]) -> str | None:
        if self._left == 0 or len(name) > 60:
            return None
        self._left -= 1
        return next(iter(difflib.get_close_matches(name, names, n=1)), None)


def _set_name(domain: str) -> str:
    return show(domain or "ai.onnx")


def _known_operators(context: Context) -> Iterator[Hit]:
    guesses = _Guesses()

    def check(scope: Scope, form: NodeForm) -> Iterator[Complaint]:
        domain, op_type = form.domain, form.op_type
        version = scope.opsets.get(domain)
        highest = known_domains().get(domain)
        if version is None or highest is None or not 1 <= version <= highest or calls_function(context, form):
            return
        operator = find_operator(op_type, version, domain)
        shown = f"version {version} of operator set {_set_name(domain)}"
        if operator is not None and operator.deprecated:
            message = f"the operator must not be deprecated, but {op_type} is in {shown}"
            yield Complaint(message, "export the model with the operator that replaces it")
        elif operator is None:
            since = first_versions(domain)
            if op_type in since:
                message = f"the operator must be in {shown}, but {op_type} came with version {since[op_type]}"
                yield Complaint(message, f"export the model with opset {since[op_type]} or higher")
            else:
                near = guesses.near(op_type, since)
                message = f"the operator must be in {shown}, but {show(op_type)} is not"
                yield Complaint(message, f"did you mean {near}?" if near else None)

    yield from unknown_versions(context)
    yield from form_hits(context, check)
    yield from _operator_sets(context)


def _operator_sets(context: Context) -> Iterator[Hit]:
    """Yield unknown operator sets, and unknown versions of known ones, once per graph."""
    known = known_domains()
    for scope, forms in context.node_forms:

        def is_odd(form: NodeForm, scope: Scope = scope) -> bool:
            version = scope.opsets.get(form.domain)
            if version is None or form.domain in DIALECT_DOMAINS or calls_function(context, form):
                return False
            # unknown_versions reports ai.onnx itself.
            return form.domain != "" and not 1 <= version <= known.get(form.domain, 0)

        odd = {key: form for key, form in forms.by_key.items() if is_odd(form)}
        if not odd:
            continue
        op_types: dict[str, set[str]] = {}
        for form in odd.values():
            op_types.setdefault(form.domain, set()).add(form.op_type)
        first: dict[str, int] = {}
        for index, key in enumerate(forms.keys):
            if key in odd:
                first.setdefault(odd[key].domain, index)
        for domain, index in first.items():
            position, where = scope.at(NODES, index), scope.where(index)
            used, highest = listed(sorted(op_types[domain])), known.get(domain)
            if highest is None:
                yield Hit(
                    position,
                    where,
                    f"the operators that a graph uses must be declared by the operator sets it imports, but set "
                    f"{show(domain)} is not known ({used}): its nodes cannot be checked",
                    "replace the nodes by operators of a known set, or add functions for them to the model",
                    Severity.WARNING,
                )
            else:
                yield Hit(
                    position,
                    where,
                    f"operator set {show(domain)} must be of a version from 1 to {highest}, not {scope.opsets[domain]} "
                    f"({used})",
                    f"export the model with version {highest} or lower of {show(domain)}",
                )


def _attribute_set(context: Context) -> Iterator[Hit]:
    guesses = _Guesses()

    def check(scope: Scope, form: NodeForm) -> Iterator[Complaint]:
        operator = operator_of(context, scope, form)
        if operator is None:
            return
        for attribute in dict.fromkeys(form.attributes):
            name = attribute.name
            if name in operator.attributes or not name:  # ATT-05 reports a missing name
                continue
            near = guesses.near(name, operator.attributes)
            every = f"one of {listed(sorted(operator.attributes), 20)}" if operator.attributes else "absent"
            yield Complaint(
                f"an attribute of {operator} must be {every}, not {show(name)}",
                f"did you mean {near}?" if near else "remove the attribute",
                # onnx reserves these names for internal use, and accepts them.
                Severity.WARNING if name.startswith("__") or facts_of(form.domain, form.op_type).unchecked else None,
            )
        given = {attribute.name for attribute in form.attributes}
        for name in operator.required:
            if name not in given:
                yield Complaint(
                    f"{operator} must have attribute {show(name)}, but it is missing", f"add attribute {show(name)}"
                )
        if (form.domain, form.op_type) == ("", CONSTANT) and not operator.required:
            values = sorted(given.intersection(operator.attributes))
            if len(values) != 1:
                found = listed(values) if values else "none"
                yield Complaint(
                    f"{operator} must have exactly one of the attributes {listed(sorted(operator.attributes), 20)}, "
                    f"not {found}",
                    "remove all but one of them" if values else "give the value in one of them",
                )

    return form_hits(context, check)


def kind_of(attribute: AttributeForm, ir_version: int) -> int:
    """Return AttributeProto.type; before IR version 2, which introduced it, the type of the value. 0 if unknown."""
    if attribute.kind == 0 and ir_version < 2 and len(attribute.fields) == 1:
        return KINDS[attribute.fields[0]]
    return attribute.kind


def _attribute_types(context: Context) -> Iterator[Hit]:
    def check(scope: Scope, form: NodeForm) -> Iterator[Complaint]:
        operator = operator_of(context, scope, form)
        if operator is None:
            return
        for attribute in dict.fromkeys(form.attributes):
            declared = operator.attributes.get(attribute.name)
            kind = kind_of(attribute, context.ir_version)
            if declared is not None and kind not in (0, declared):  # ATT-06 reports a missing type
                yield Complaint(
                    f"attribute {show(attribute.name)} of {operator} must be of type {kind_name(declared)}, "
                    f"not {kind_name(kind)}"
                )

    yield from form_hits(context, check)
    yield from wrong_types(context)


RULES = (
    Rule("OPR-01", "MUST", _known_operators, "replace the node by operators of a known set"),
    Rule("NOD-33", "MUST", _attribute_set, "remove the attribute"),
    Rule("NOD-34", "MUST", _attribute_types, "give the attribute the type that the operator says"),
)
