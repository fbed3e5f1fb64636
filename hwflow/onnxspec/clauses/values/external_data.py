"""Clauses about tensors with data in external files."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hwflow.errors import Severity
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, listed
from hwflow.onnxspec.graphs.scopes import INITIALIZERS, Scope

_PAGE = 4096  # bytes: the granularity of memory mapping


def _reference(clause: str) -> Callable[[Context], Iterator[Hit]]:
    """Return the check of a clause that :func:`hwflow.onnxspec.reading.external_files.verify` decides."""

    def check(context: Context) -> Iterator[Hit]:
        for stored, problems in context.external:
            for problem in problems:
                if problem.clause == clause:
                    yield Hit(stored.position, stored.where, problem.message, problem.remedy, problem.severity)

    return check


def _value_fields(context: Context) -> Iterator[Hit]:
    for stored, _ in context.external:
        if stored.fields:
            names = " and ".join(stored.fields)
            message = f"a tensor with external data must not use the value fields, but this one uses {names}"
            yield Hit(stored.position, stored.where, message)


def _strings(context: Context) -> Iterator[Hit]:
    for stored, _ in context.external:
        if stored.element is not None and stored.element.name == "string":
            yield Hit(stored.position, stored.where, "external data must have elements of fixed width, not strings")


def _alignment(context: Context) -> Iterator[Hit]:
    # One finding per graph: a file is aligned either as a whole or not at all.
    tensors: dict[Scope, list[str]] = {}
    for stored, _ in context.external:
        if stored.reference is not None and stored.reference.offset is not None and stored.reference.offset % _PAGE:
            name = stored.site.attribute or stored.tensor.name
            tensors.setdefault(stored.site.scope, []).append(name)
    for scope, names in tensors.items():
        message = (
            f"offsets of external data should be multiples of {_PAGE} (they can be mapped into memory then), "
            f"but that of {listed(names)} is not"
        )
        yield Hit(scope.at(INITIALIZERS), scope.title, message)


_AGAIN = "save the model again with its external data"

RULES: tuple[Rule, ...] = (
    Rule("EXT-02", "MUST", _reference("EXT-02"), _AGAIN),
    Rule("EXT-03", "MUST", _value_fields, "leave out the data in the model or the reference to the file"),
    Rule("EXT-04", "MAY", _reference("EXT-04"), _AGAIN),
    Rule("EXT-05", "MAY", _reference("EXT-05"), _AGAIN),
    Rule("EXT-07", "MUST", _strings, "store the strings in string_data"),
    Rule("EXT-08", "SHOULD", _alignment, "nothing, unless the file is to be mapped into memory", Severity.WARNING),
)
