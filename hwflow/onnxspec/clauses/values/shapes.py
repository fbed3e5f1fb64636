"""Clauses about shapes and dimension variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, at_node, listed
from hwflow.onnxspec.graphs.scopes import Scope
from hwflow.onnxspec.graphs.sequences import sequence_contents
from hwflow.onnxspec.graphs.sites import TypeRole
from hwflow.onnxspec.graphs.typeforms import Dim, LevelKind, TypeForm, dims_text
from hwflow.onnxspec.shapes.agreement import DifferenceKind

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RENAME_VARIABLES = "rename the dimension variables"
_UNSET = "leave the dimension unset if its size is unknown"


def _dims(form: TypeForm) -> tuple[Dim, ...]:
    return (form[-1].dims or ()) if form else ()


def _with(context: Context, wrong: Callable[[Dim], bool]) -> set[int]:
    """Return the ids of the types with a wrong dimension; each distinct type is checked once."""
    different = {id(form): form for form in context.forms}
    return {key for key, form in different.items() if any(map(wrong, set(_dims(form))))}


def _hits(context: Context, wrong: Callable[[Dim], bool], message: Callable[[int, Dim], str]) -> Iterator[Hit]:
    """Yield one hit per type with a wrong dimension, about the first."""
    bad = _with(context, wrong)
    if not bad:
        return
    for site, form in zip(context.types, context.forms, strict=True):
        if id(form) in bad:
            axis, dim = next((axis, dim) for axis, dim in enumerate(_dims(form)) if wrong(dim))
            yield Hit(site.position, site.where, message(axis, dim))


def _negative(context: Context) -> Iterator[Hit]:
    def wrong(dim: Dim) -> bool:
        return isinstance(dim, int) and dim < 0

    bad = _with(context, wrong)
    if not bad:
        return
    for site, form in zip(context.types, context.forms, strict=True):
        if id(form) not in bad:
            continue
        negative = [(dim, axis) for axis, dim in enumerate(_dims(form)) if isinstance(dim, int) and dim < 0]
        size, axis = min(negative)
        if size < -1:
            yield Hit(site.position, site.where, f"the size of axis {axis} must not be negative, not {size}")
        else:
            message = f"the size of axis {axis} must not be negative, not -1, which is read as unknown"
            yield Hit(site.position, site.where, message, severity=Severity.WARNING)


def wrong_variables(context: Context) -> Iterator[Hit]:
    """Yield dimension variables that are no C identifiers, once per graph."""
    bad = {
        id(form): names
        for form in {id(form): form for form in context.forms}.values()
        if (names := [d for d in dict.fromkeys(_dims(form)) if isinstance(d, str) and _is_wrong_name(d)])
    }
    if not bad:
        return
    seen: dict[int, dict[str, None]] = {}
    first: dict[int, Scope] = {}
    for site, form in zip(context.types, context.forms, strict=True):
        if id(form) in bad:
            first.setdefault(id(site.scope), site.scope)
            seen.setdefault(id(site.scope), {}).update(dict.fromkeys(bad[id(form)]))
    for key, variables in seen.items():
        scope = first[key]
        verb = "is not" if len(variables) == 1 else "are not"
        message = f"dimension variables must be C identifiers, but {listed(variables)} {verb}"
        yield Hit(scope.position, scope.title, message)


def _is_wrong_name(dim: str) -> bool:
    # "" and "*" have their own clauses.
    return dim not in ("", "*") and _IDENTIFIER.fullmatch(dim) is None


def _empty(context: Context) -> Iterator[Hit]:
    def message(axis: int, dim: Dim) -> str:
        return f"the dimension variable of axis {axis} must have a name, but it is empty, which is read as unknown"

    yield from _hits(context, lambda dim: dim == "", message)


def _star(context: Context) -> Iterator[Hit]:
    def message(axis: int, dim: Dim) -> str:
        return f"axis {axis} must be one dimension, not '*' for any number of them, which is read as unknown"

    yield from _hits(context, lambda dim: dim == "*", message)


def _differences(context: Context, kind: DifferenceKind) -> Iterator[Hit]:
    for difference in context.agreement.differences:
        if difference.kind is kind:
            yield Hit(difference.site.position, difference.site.where, difference.message)


def _sizes(context: Context) -> Iterator[Hit]:
    """Yield sizes that contradict each other whatever the variables are. A batch of 0 frames is legal but useless, so a
    contradiction that only size 0 avoids is a warning."""
    yield from _differences(context, DifferenceKind.SIZE)
    yield from _contradictions(context, solved=True)
    for difference in context.contradictions[1]:
        if difference.kind is DifferenceKind.SIZE:
            yield Hit(difference.site.position, difference.site.where, difference.message)


def _contradictions(context: Context, solved: bool) -> Iterator[Hit]:
    for found in context.contradictions[0]:
        if found.solved is solved:
            scope, index = context.scopes[found.place[0]], found.place[1]
            severity: Severity | None = Severity.WARNING if found.empty else None
            yield at_node(scope, index, found.message, severity=severity)


def _operator_sizes(context: Context) -> Iterator[Hit]:
    """Yield violations of operators' demands on known sizes that inference does not report."""
    yield from _contradictions(context, solved=False)


def _ranks(context: Context) -> Iterator[Hit]:
    yield from _differences(context, DifferenceKind.RANK)


def _sequences(context: Context) -> Iterator[tuple[Hit, bool]]:
    """Yield sequence types that state a size or rank that varies among their tensors, and whether the ranks vary."""
    nested = (form for form in context.forms if len(form) > 1)
    forms = {id(form) for form in nested if form[0].kind is LevelKind.SEQUENCE and form[1].dims}
    if not forms:
        return
    for site, form in zip(context.types, context.forms, strict=True):
        if id(form) not in forms or site.role is TypeRole.ATTRIBUTE or len(form) != 2:
            continue
        every = sequence_contents(context.scopes, context.inference, context.agreement.unifier, site.scope, site.name)
        shapes = [shape for shape in every if shape is not None]
        stated = form[1].dims or ()
        if len({len(shape) for shape in shapes}) > 1:
            ranks = sorted({len(shape) for shape in shapes})
            message = (
                f"the type must not state a shape, for the tensors in the sequence have "
                f"{', '.join(map(str, ranks[:-1]))} and {ranks[-1]} dimensions, but it states {dims_text(stated)}"
            )
            yield Hit(site.position, site.where, message), True
            continue
        for axis, dim in enumerate(stated):
            sizes = sorted({s for shape in shapes if axis < len(shape) and isinstance(s := shape[axis], int)})
            if dim is not None and len(sizes) > 1:
                text = show(dim) if isinstance(dim, str) else str(dim)
                message = (
                    f"the type must not state the size of axis {axis}, for the tensors in the sequence have sizes "
                    f"{', '.join(map(str, sizes[:5]))}, but it states {text}"
                )
                yield Hit(site.position, site.where, message), False


def _sequence_sizes(context: Context) -> Iterator[Hit]:
    yield from (hit for hit, ranks in _sequences(context) if not ranks)


def _sequence_ranks(context: Context) -> Iterator[Hit]:
    yield from (hit for hit, ranks in _sequences(context) if ranks)


RULES = (
    Rule("SHP-06", "MAY", _negative, _UNSET),
    # Pedantic: only hwflow's own option needs the name, and any text will do.
    Rule("SHP-08", "MUST", wrong_variables, RENAME_VARIABLES, severity=Severity.WARNING, pedantic=True),
    Rule("SHP-14", "definition", _empty, _UNSET, severity=Severity.WARNING),
    Rule("SHP-15", "definition", _star, "leave the shape out if the rank is unknown", severity=Severity.WARNING),
    Rule("SHP-10", "MUST", _sizes, "correct the size that is wrong, or give different sizes different variables"),
    Rule("operator-sizes", "own", _operator_sizes, "correct the size or the attribute that is wrong"),
    Rule("SHP-11", "MUST", _sequence_sizes, "leave the dimension unset"),
    Rule("SHP-12", "MUST", _sequence_ranks, "leave the shape out"),
    Rule("SHP-16", "MUST", _ranks, "correct the shape that the model states"),
)
