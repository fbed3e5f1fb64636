"""Compare the types that a model states with those inferred from its nodes, and unify dimension variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from hwflow.display import show
from hwflow.onnxspec.graphs.scopes import Scope
from hwflow.onnxspec.graphs.sites import TypeRole, TypeSite
from hwflow.onnxspec.graphs.typeforms import Dim, LevelKind, TypeForm, dims_text, type_text
from hwflow.onnxspec.reading.skeleton import clean_form
from hwflow.onnxspec.shapes.inference import Inference, Run
from hwflow.onnxspec.shapes.unify import Conflict, SizeBinding, Unifier

# Prefix of unnamed unknown sizes; no name in a model can begin with it.
LOCAL = "\0"


class DifferenceKind(Enum):
    """What differs between a stated and an inferred type."""

    TYPE = "type"
    RANK = "rank"
    SIZE = "size"


@dataclass(frozen=True, slots=True)
class Difference:
    """The type at ``site`` contradicts the rest of the model: its kind or element type, its rank, or a size.
    ``message`` says what it must be."""

    kind: DifferenceKind
    site: TypeSite
    message: str


@dataclass
class Agreement:
    """``unifier`` has the sizes of all dimension variables, as far as the model binds them."""

    differences: list[Difference] = field(default_factory=list)
    unifier: Unifier = field(default_factory=Unifier)


def agree(declared: Iterable[tuple[TypeSite, TypeForm]], scopes: Sequence[Scope], inference: Inference) -> Agreement:
    """Compare the types that the model states, except in functions' bodies, which only have a meaning in a call, with
    the inferred ones."""
    return _Comparison(scopes, inference).run(declared)


def _kinds(form: TypeForm) -> list[tuple[str, int]]:
    # The specification does not define the declared type of a sparse initializer.
    return [(LevelKind.TENSOR if level.kind is LevelKind.SPARSE else level.kind, level.code) for level in form]


def _bound_text(bound: SizeBinding) -> str:
    return f"{bound.size} ({bound.place})"


def variable(place: int, run: Run, dim: Dim) -> Dim:
    """Return a size of an inferred type of ``run``, number ``place``, with a fresh name if it has none in the model."""
    return f"{LOCAL}{place}{LOCAL}{dim}" if isinstance(dim, str) and dim not in run.variables else dim


def conflict_text(conflict: Conflict, what: str) -> str:
    """Describe a conflict of sizes; ``what``: their description if they have no name."""
    first, second = conflict.first, conflict.second
    names = list(dict.fromkeys(b.variable for b in (first, second) if b.variable and b.variable[0] != LOCAL))
    sizes = f"{_bound_text(first)} and {_bound_text(second)}"
    if len(names) == 2:
        return (
            f"dimension variables {show(names[0])} and {show(names[1])} must have one size, because the model makes "
            f"them equal, but they are {sizes}"
        )
    if names:
        return f"dimension variable {show(names[0])} must have one size in the whole model, but it is {sizes}"
    return f"{what} must have one size, but it is {sizes}"


class _Comparison:
    def __init__(self, scopes: Sequence[Scope], inference: Inference) -> None:
        self.numbers = {id(scope): number for number, scope in enumerate(scopes)}
        self.inference = inference
        self.result = Agreement()
        self.conflicts: set[frozenset[tuple[str | None, int]]] = set()

    def run(self, declared: Iterable[tuple[TypeSite, TypeForm]]) -> Agreement:
        runs: dict[int, list[tuple[int, Run]]] = {}
        for place, run in enumerate(self.inference.runs):
            for number in run.forms:
                runs.setdefault(number, []).append((place, run))
        for site, form in declared:
            if site.role is TypeRole.ATTRIBUTE or not form:
                continue
            number = self.numbers[id(site.scope)]
            said = clean_form(form)
            for place, run in runs.get(number, ()):
                inferred = run.forms[number].get(site.name, ())
                if inferred is not said and said and inferred and not self._same(site, said, inferred, place, run):
                    break  # one finding about it is enough
        return self.result

    def _same(self, site: TypeSite, said: TypeForm, inferred: TypeForm, place: int, run: Run) -> bool:
        """Tell whether the two have the same kind and rank; unify their sizes."""
        if _kinds(said) != _kinds(inferred):
            message = f"the type must be {type_text(inferred)}, which {self._source(site)}, not {type_text(said)}"
            self.result.differences.append(Difference(DifferenceKind.TYPE, site, message))
            return False
        here, there = said[-1].dims, inferred[-1].dims
        if here is None or there is None or here == there:
            return True
        if len(here) != len(there):
            rank = f"{len(there)} dimension{'s' if len(there) != 1 else ''}"
            message = f"the shape must have {rank}, which {self._source(site)}, not {len(here)}: {dims_text(here)}"
            self.result.differences.append(Difference(DifferenceKind.RANK, site, message))
            return False
        for axis, (a, b) in enumerate(zip(here, there, strict=True)):
            other = variable(place, run, b)
            if other != b and len(said) > 1:  # the tensors of a sequence may differ
                other = None
            if a is not None and other is not None and a != other:
                self._unite(site, axis, a, other)
        return True

    def _unite(self, site: TypeSite, axis: int, a: int | str, b: int | str) -> None:
        conflict = self.result.unifier.add_equal(a, b, f"{site.where}, axis {axis}")
        if conflict is None:
            return
        if isinstance(a, int) and isinstance(b, int):
            message = f"the size of axis {axis} must be {b}, which {self._source(site)}, not {a}"
        else:
            key = frozenset((bound.variable, bound.size) for bound in (conflict.first, conflict.second))
            if key in self.conflicts:
                return
            self.conflicts.add(key)
            message = conflict_text(conflict, f"axis {axis}")
        self.result.differences.append(Difference(DifferenceKind.SIZE, site, message))

    def _source(self, site: TypeSite) -> str:
        """Describe the origin of the inferred type: "node 'relu' (Relu) gives it"."""
        scope = site.scope
        if site.name in scope.initializers:
            return "its initializer has"
        producer = scope.producers.get(site.name)
        if producer is not None:
            return f"{scope.where(producer)} gives it"
        return "the node that carries the graph gives it" if scope.parent is not None else "follows from the graph"
