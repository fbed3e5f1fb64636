"""Clauses about the attributes of nodes, and of functions' definitions: their names, types and values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.graphs.form_hits import Complaint, form_hits
from hwflow.onnxspec.clauses.graphs.operators import calls_function, kind_of
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, listed
from hwflow.onnxspec.graphs.node_forms import VALUE_FIELDS, AttributeForm, NodeForm, NodeForms, kind_name
from hwflow.onnxspec.graphs.schemas import known_domains
from hwflow.onnxspec.graphs.scopes import NODES, Scope

_EXPORT = "export the model again"

# Lists and others may lack a value: they are empty then.
_MAY_BE_EMPTY = frozenset({"floats", "ints", "strings", "tensors", "graphs", "sparse_tensors", "type_protos"})
# Writers of proto3 omit a value that is 0 or "": the meaning is clear, though onnx.proto requires the field.
_DEFAULTS = {"f": "0.0", "i": "0", "s": "the empty string"}

# Checks one attribute; the second argument is the node's form, None in a function's definition.
Check = Callable[[AttributeForm, NodeForm | None], Complaint | None]


def _attribute_hits(context: Context, check: Check) -> Iterator[Hit]:
    """Yield the hits of ``check`` on the attributes of all nodes and of the functions' definitions."""
    for scope, forms in context.node_forms:
        if scope.function is not None:
            definitions = context.form_reader.attributes(scope.function.attribute_proto)
            for k, attribute in enumerate(definitions):
                complaint = check(attribute, None)
                if complaint is not None:
                    yield Hit(scope.position, f"attribute {_called(attribute, k)} of {scope.title}", *complaint)
        wrong: dict[Hashable, list[tuple[int, Complaint]]] = {}
        for key, form in forms.by_key.items():
            for k, attribute in enumerate(form.attributes):
                complaint = check(attribute, form)
                if complaint is not None:
                    wrong.setdefault(key, []).append((k, complaint))
        if wrong:
            for index, key in enumerate(forms.keys):
                for k, complaint in wrong.get(key, ()):
                    called = _called(forms.by_key[key].attributes[k], k)
                    where = f"attribute {called} of {scope.where(index)}"
                    yield Hit(scope.at(NODES, index), where, *complaint)


def _called(attribute: AttributeForm, k: int) -> str:
    return show(attribute.name) if attribute.name else str(k)


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for name in names:
        if name in seen and name:
            repeated[name] = None
        seen.add(name)
    return list(repeated)


def repeated_names(context: Context) -> Iterator[Hit]:
    """Yield attribute names that a node, or a function's definition, has more than once; NAM-03 uses it too."""

    def complaint(repeated: list[str]) -> Complaint:
        verb = "is" if len(repeated) == 1 else "are"
        return Complaint(f"attribute names must be distinct, but {listed(repeated)} {verb} there more than once")

    def check(scope: Scope, form: NodeForm) -> Iterator[Complaint]:
        repeated = _repeated(attribute.name for attribute in form.attributes)
        if repeated:
            yield complaint(repeated)

    yield from form_hits(context, check)
    for scope in context.scopes:
        if scope.function is not None:
            repeated = _repeated([*scope.function.attribute, *(a.name for a in scope.function.attribute_proto)])
            if repeated:
                yield Hit(scope.position, scope.title, *complaint(repeated))


def _named_like_values(context: Context) -> Iterator[Hit]:
    """Yield attributes with the name of an input or output of their node or function."""
    for scope, forms in context.node_forms:
        if scope.function is not None:
            names = [*scope.function.attribute, *(a.name for a in scope.function.attribute_proto)]
            values = {*scope.inputs, *scope.outputs}
            for name in dict.fromkeys(names):
                if name and name in values:
                    yield _named_like_value(scope.position, scope.title, name)
        names_of = {
            key: dict.fromkeys(attribute.name for attribute in form.attributes if attribute.name)
            for key, form in forms.by_key.items()
            if form.attributes
        }
        every = frozenset(chain.from_iterable(names_of.values()))
        if not every or not any(_touches(every, scope)):
            continue
        for index, key in enumerate(forms.keys):
            if key in names_of:
                node = scope.nodes[index]
                for name in names_of[key]:
                    if name in node.inputs or name in node.outputs:
                        yield _named_like_value(scope.at(NODES, index), scope.where(index), name)


def _touches(names: frozenset[str], scope: Scope) -> Iterator[bool]:
    yield not names.isdisjoint(chain.from_iterable([node.inputs for node in scope.nodes]))
    yield not names.isdisjoint(scope.computed)


def _named_like_value(position: tuple[int, ...], where: str, name: str) -> Hit:
    return Hit(
        position,
        where,
        f"an attribute must not have the name of an input or output beside it, but {show(name)} is both",
        "rename the value",
        Severity.WARNING,  # nothing looks up attributes and values in one table
    )


def _unique_names(context: Context) -> Iterator[Hit]:
    yield from repeated_names(context)
    yield from _named_like_values(context)


def _type_tells_field(context: Context) -> Iterator[Hit]:
    def check(attribute: AttributeForm, form: NodeForm | None) -> Complaint | None:
        field = VALUE_FIELDS.get(attribute.kind)
        if field is None or not attribute.fields or field in attribute.fields:
            return None
        return Complaint(
            f"the value must be in field {field}, as type {kind_name(attribute.kind)} says, "
            f"not in {' and '.join(attribute.fields)}"
        )

    return _attribute_hits(context, check)


def _utf8(context: Context) -> Iterator[Hit]:
    known = known_domains()

    def check(attribute: AttributeForm, form: NodeForm | None) -> Complaint | None:
        if attribute.utf8:
            return None
        # Other operator sets may define text otherwise: some store compiled programs in it.
        standard = form is not None and form.domain in known and not calls_function(context, form)
        severity = Severity.ERROR if standard else Severity.WARNING
        return Complaint("text must be UTF-8, but this is not", severity=severity)

    return _attribute_hits(context, check)


def _names(context: Context) -> Iterator[Hit]:
    def check(attribute: AttributeForm, form: NodeForm | None) -> Complaint | None:
        return None if attribute.name else Complaint("an attribute must have a name, but this one has none")

    return _attribute_hits(context, check)


def _types(context: Context) -> Iterator[Hit]:
    def check(attribute: AttributeForm, form: NodeForm | None) -> Complaint | None:
        if attribute.kind:
            return None
        if attribute.unknown_kind is not None:
            return Complaint(f"an attribute must have one of the types 1 to 14, not {attribute.unknown_kind}")
        return Complaint("an attribute must have a type, but this one has none")

    return _attribute_hits(context, check)


def _undocumented(context: Context, scope: Scope, forms: NodeForms) -> Iterator[str]:
    if scope.function is not None:
        for k, attribute in enumerate(context.form_reader.attributes(scope.function.attribute_proto)):
            if not attribute.documented:
                yield f"{_called(attribute, k)} of {scope.title}"
    bare = {
        key: [_called(attribute, k) for k, attribute in enumerate(form.attributes) if not attribute.documented]
        for key, form in forms.by_key.items()
    }
    if any(bare.values()):
        for index, key in enumerate(forms.keys):
            for called in bare[key]:
                yield f"{called} of {scope.where(index)}"


def _doc_strings(context: Context) -> Iterator[Hit]:
    for scope, forms in context.node_forms:
        bare = list(_undocumented(context, scope, forms))
        if bare:
            more = f" and {len(bare) - 3} more" if len(bare) > 3 else ""
            verb = "has" if len(bare) == 1 else "have"
            message = f"attributes should have a doc_string, but {', '.join(bare[:3])}{more} {verb} none"
            yield Hit(scope.position, scope.title, message)


def _one_value(context: Context) -> Iterator[Hit]:
    def check(attribute: AttributeForm, form: NodeForm | None) -> Complaint | None:
        if len(attribute.fields) > 1:
            return Complaint(
                f"an attribute must have one value, but this one has {len(attribute.fields)}: "
                f"in fields {' and '.join(attribute.fields)}",
                "keep the one that the type names",
            )
        if attribute.fields or attribute.reference:
            return None
        field = VALUE_FIELDS.get(kind_of(attribute, context.ir_version))
        if field in _MAY_BE_EMPTY:
            return None
        if field is None:
            return Complaint("an attribute must have a value, but this one has none")
        message = f"an attribute must have a value, in field {field} as its type says, but this one has none"
        if field in _DEFAULTS:
            return Complaint(f"{message}: {_DEFAULTS[field]} is taken", severity=Severity.WARNING)
        return Complaint(message)

    return _attribute_hits(context, check)


RULES = (
    Rule("ATT-02", "MUST", _unique_names, "remove all but one of them"),
    Rule("ATT-03", "definition", _type_tells_field, "correct the type, or the value", since_ir=2),
    Rule("ATT-04", "definition", _utf8, "write the text as UTF-8, or keep the bytes in a tensor"),
    Rule("ATT-05", "MUST", _names, "give it the name that its operator says"),
    Rule("ATT-06", "MUST", _types, "give it the type of its value", since_ir=2),
    Rule("ATT-07", "SHOULD", _doc_strings, "add a doc_string", severity=Severity.WARNING, pedantic=True),
    Rule("ATT-08", "MUST", _one_value, _EXPORT),
)
