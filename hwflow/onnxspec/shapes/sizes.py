"""Solve dimension variables through the operators' demands, and find contradictions.

Facts about nodes (:mod:`hwflow.onnxspec.shapes.size_facts`) bind variables, both named ones and fresh ones for unnamed
sizes. Then inference runs again with variables replaced by their sizes, to collect its own objections. Bindings by
nodes of a subgraph hold only there: a branch may never run.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import onnx

from hwflow.display import show
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.scopes import Node, Scope
from hwflow.onnxspec.graphs.sites import TypeSite
from hwflow.onnxspec.graphs.typeforms import Level, TypeForm, TypeReader, dims_text
from hwflow.onnxspec.shapes.agreement import (
    LOCAL,
    Agreement,
    Difference,
    DifferenceKind,
    agree,
    conflict_text,
    variable,
)
from hwflow.onnxspec.shapes.inference import Inference, Run, infer, roots
from hwflow.onnxspec.shapes.size_facts import (
    AtLeastOne,
    Equal,
    Fact,
    Multiple,
    OneOrEqual,
    SameElements,
    Size,
    Term,
    facts,
    integer_root,
)
from hwflow.onnxspec.shapes.unify import Unifier

_MOST_TERMS = 64  # terms of a fact that is re-evaluated
Place = tuple[int, int]  # number of the scope, index of the node


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A node contradicts its sizes. ``solved``: some come from variables, not only from numbers. ``empty``: only size 0
    would satisfy it."""

    place: Place
    message: str
    solved: bool
    empty: bool = False


class Solver:
    """Facts of nodes over the variables of a unifier, each re-evaluated when one of its sizes becomes known."""

    def __init__(self, unifier: Unifier, where: Callable[[Place], str]) -> None:
        self.unifier = unifier
        self.found: list[Contradiction] = []
        self.empty: dict[Place, Contradiction] = {}
        """Contradictions that only empty tensors avoid, as far as known."""
        self._where = where
        self._queue: deque[tuple[Place, Fact]] = deque()
        self._waiting: dict[str, list[tuple[Place, Fact]]] = {}  # by root
        self._waits = 0

    def add(self, place: Place, fact: Fact) -> None:
        """Add a fact about a node."""
        self._queue.append((place, fact))
        while self._queue:
            self._take(*self._queue.popleft())

    def add_all(self, place: Place, facts: Iterable[Fact]) -> bool:
        """Add all facts about a node; return whether they now hold, so that the same facts of another node are
        redundant."""
        before = len(self.found), self._waits
        for fact in facts:
            self.add(place, fact)
        return (len(self.found), self._waits) == before

    def _take(self, place: Place, fact: Fact) -> None:
        if isinstance(fact, AtLeastOne):
            if fact.value < 1:
                message = f"attribute {show(fact.name)} must be at least 1, not {fact.value}"
                self.found.append(Contradiction(place, message, False))
        elif isinstance(fact, SameElements):
            self._elements(place, fact)
        elif isinstance(fact, Equal):
            if len(fact.right) == 1 and fact.factor == 1:
                self._unite(place, fact.left, fact.right[0])
            else:
                self._linear(place, fact)
        elif isinstance(fact, OneOrEqual):
            size = self._size(fact.right.size)
            if size is None:
                self._wait(place, fact, [fact.right.size])
            elif size != 1:
                self._unite(place, fact.left, fact.right)
        else:
            self._multiple(place, fact)

    def _size(self, size: Size) -> int | None:
        return self.unifier.size(size) if isinstance(size, str) else size

    def _wait(self, place: Place, fact: Fact, sizes: Sequence[Size]) -> None:
        self._waits += 1
        for root in {self.unifier.root(size) for size in sizes if isinstance(size, str)}:
            self._waiting.setdefault(root, []).append((place, fact))

    def _unite(self, place: Place, left: Term, right: Term) -> None:
        if left.size is None or right.size is None:
            return
        if isinstance(left.size, int) and isinstance(right.size, int):
            if left.size != right.size:
                message = f"{left.text} must be {right.size}, as {right.text} is, not {left.size}"
                self.found.append(Contradiction(place, message, False))
            return
        before = [self.unifier.root(size) for size in (left.size, right.size) if isinstance(size, str)]
        conflict = self.unifier.add_equal(left.size, right.size, self._where(place))
        if conflict is not None:
            named = left.text if isinstance(left.size, str) else right.text
            self.found.append(Contradiction(place, conflict_text(conflict, named), True))
        for root in before:
            self._queue.extend(self._waiting.pop(root, ()))

    def _bind(self, place: Place, root: str, size: int, sizes: Iterable[Size]) -> None:
        """Bind a root to its size; ``sizes`` contains the model's variable for it."""
        same = [name for name in sizes if isinstance(name, str) and self.unifier.root(name) == root]
        self.unifier.add_equal(min(same, key=lambda name: name.startswith(LOCAL)), size, self._where(place))
        self._queue.extend(self._waiting.pop(root, ()))

    def _said(self, term: Term) -> str:
        """Return "axis 1 of 'x' ('N': 3, input 'y', axis 0)"."""
        if not isinstance(term.size, str):
            return term.text
        bound = self.unifier.bound(term.size)
        name = "" if term.size.startswith(LOCAL) else show(term.size)
        size = "" if bound is None else f"{bound.size}, {bound.place}"
        inside = ": ".join(part for part in (name, size) if part)
        return f"{term.text} ({inside})" if inside else term.text

    def _linear(self, place: Place, fact: Equal) -> None:
        """Evaluate ``left - factor * sum(right) = 0`` with the known sizes."""
        rest, open_sizes = 0, Counter[str]()
        for coefficient, term in ((1, fact.left), *((-fact.factor, term) for term in fact.right)):
            size = self._size(term.size)
            if size is not None:
                rest += coefficient * size
            elif isinstance(term.size, str):
                open_sizes[self.unifier.root(term.size)] += coefficient
        unknown = {root: c for root, c in open_sizes.items() if c}
        signs = {c > 0 for c in unknown.values()}
        wrong = rest != 0 and (not unknown or signs == {rest > 0})  # a sum of sizes is not negative
        if len(unknown) == 1 and not wrong:
            ((root, coefficient),) = unknown.items()
            size, remainder = divmod(-rest, coefficient)
            wrong = remainder != 0
            if not wrong:
                self._bind(place, root, size, (term.size for term in (fact.left, *fact.right)))
        elif len(unknown) > 1 and not wrong:
            if len(unknown) <= _MOST_TERMS:
                self._wait(place, fact, list(unknown))
            return
        if wrong:
            terms = " and ".join(self._said(term) for term in fact.right)
            what = f"the sum of {terms}" if len(fact.right) > 1 else f"{fact.factor} times {terms}"
            sizes = [self._size(term.size) for term in fact.right]
            total = fact.factor * sum(size for size in sizes if size is not None)
            must = f"{total}, {what}" if None not in sizes else what
            left = self._size(fact.left.size)
            have = "" if left is None else f", not {left}"
            solved = any(isinstance(term.size, str) for term in (fact.left, *fact.right))
            self.found.append(Contradiction(place, f"{self._said(fact.left)} must be {must}{have}", solved))

    def _multiple(self, place: Place, fact: Multiple) -> None:
        size = self._size(fact.left.size)
        if size is None:
            self._wait(place, fact, [fact.left.size])
        elif size % fact.divisor:
            message = f"{self._said(fact.left)} must be a multiple of {fact.divisor} ({fact.text}), not {size}"
            self.found.append(Contradiction(place, message, isinstance(fact.left.size, str)))

    def _elements(self, place: Place, fact: SameElements) -> None:
        self.empty.pop(place, None)
        known, unknown = [1, 1], [Counter[str](), Counter[str]()]
        for side, sizes in enumerate((fact.left, fact.right)):
            for name in sizes:
                size = self._size(name)
                if size is not None:
                    known[side] *= size
                elif isinstance(name, str):
                    unknown[side][self.unifier.root(name)] += 1
        left, right = unknown[0] - unknown[1], unknown[1] - unknown[0]
        if 0 in known and (left or right):
            return  # any size will do
        wrong = False
        if not left and not right:
            wrong = known[0] != known[1]
        elif len(left) + len(right) == 1:
            (root, power), own, other = next(iter((left or right).items())), *(known if left else known[::-1])
            size = integer_root(other // own, power) if other % own == 0 else None
            wrong = size is None
            if size is not None:
                self._bind(place, root, size, (*fact.left, *fact.right))
        elif len(left) + len(right) <= _MOST_TERMS:
            self._wait(place, fact, [*left, *right])
        both = list((unknown[0] & unknown[1]).keys())
        if wrong:
            x, y = (f"{show(n)} {self._shape(s)}" for n, s in zip(fact.names, (fact.left, fact.right), strict=True))
            if both:
                zero = {
                    f"axis {axis} of {show(fact.names[0])}" if name.startswith(LOCAL) else show(name): None
                    for axis, name in enumerate(fact.left)
                    if isinstance(name, str) and self.unifier.root(name) in both
                }
                message = f"{y} should have as many elements as {x}, but has so only where {' or '.join(zero)} is 0"
                self.empty[place] = Contradiction(place, message, True, True)
                self._wait(place, fact, both)
                return
            if unknown[0] or unknown[1]:
                message = f"{y} must have as many elements as {x}, which no size of its variables gives"
            else:
                known_sizes = self._bounds((*fact.left, *fact.right))
                message = f"{y} must have {known[0]} elements, as {x} has, not {known[1]}{known_sizes}"
            solved = any(isinstance(size, str) for size in (*fact.left, *fact.right))
            self.found.append(Contradiction(place, message, solved))

    def _bounds(self, sizes: Iterable[Size]) -> str:
        """Return " ('N': 3, input 'y', axis 0)" for the named variables among ``sizes``."""
        names = [name for name in dict.fromkeys(sizes) if isinstance(name, str) and not name.startswith(LOCAL)]
        bounds = [(name, self.unifier.bound(name)) for name in names]
        texts = [f"{show(name)}: {bound.size}, {bound.place}" for name, bound in bounds if bound is not None]
        return f" ({'; '.join(texts)})" if texts else ""

    def _shape(self, sizes: Sequence[Size]) -> str:
        known = [size if self._size(size) is None else self._size(size) for size in sizes]
        return dims_text(None if isinstance(size, str) and size.startswith(LOCAL) else size for size in known)


def solve(
    scopes: Sequence[Scope], inference: Inference, agreement: Agreement, skip: frozenset[Place]
) -> list[Contradiction]:
    """Return contradictions between the nodes' demands; binds variables of ``agreement``'s unifier.

    ``skip``: nodes that already have a finding.
    """
    solver = Solver(agreement.unifier, lambda place: scopes[place[0]].where(place[1]))
    skip = skip.union((failure.scope, failure.node) for failure in inference.failures)
    numbers = {id(scope): number for number, scope in enumerate(scopes)}
    for root, _ in roots(scopes):
        number = numbers[id(root)]
        _solve_graph(solver, number, root, _shapes(inference, number), skip)
    return [*solver.found, *solver.empty.values()]


def _solve_graph(solver: Solver, number: int, scope: Scope, shapes: _Shapes, skip: frozenset[Place]) -> None:
    """Solve the facts about the nodes of one graph."""
    version = scope.opsets.get("", 0)
    settled: set[Hashable] = set()
    for index, node in enumerate(scope.nodes):
        rule = facts_of(node.domain, node.op_type).sizes
        if rule is not None and (number, index) not in skip:
            key = _alike(node, shapes)
            if key not in settled and solver.add_all((number, index), facts(rule, node, version, shapes.__getitem__)):
                settled.add(key)


def solve_below(
    scopes: Sequence[Scope], inference: Inference, unifier: Unifier, skip: frozenset[Place]
) -> list[Contradiction]:
    """Return contradictions inside subgraphs, given the outer sizes; bindings inside do not hold outside."""
    skip = skip.union((failure.scope, failure.node) for failure in inference.failures)
    numbers = {id(scope): number for number, scope in enumerate(scopes)}
    inside: dict[int, list[Scope]] = {}
    for _, below in roots(scopes):
        for scope in below:
            inside.setdefault(id(scope.parent), []).append(scope)
    found: list[Contradiction] = []
    for root, below in roots(scopes):
        if not below:
            continue
        # The enclosing graphs, outermost first: their remaining subgraphs, their sizes, and the undo of their bindings.
        around = [(iter(inside[id(root)]), _shapes(inference, numbers[id(root)]), ExitStack())]
        while around:
            left, shapes, trial = around[-1]
            inner = next(left, None)
            if inner is None:
                trial.close()
                around.pop()
                continue
            number, trial = numbers[id(inner)], ExitStack()
            trial.enter_context(unifier.trial())
            solver = Solver(unifier, lambda place: scopes[place[0]].where(place[1]))
            shapes = _shapes(inference, number, shapes)
            _solve_graph(solver, number, inner, shapes, skip)
            found.extend((*solver.found, *solver.empty.values()))
            around.append((iter(inside.get(id(inner), ())), shapes, trial))
    return found


def _shapes(inference: Inference, number: int, around: _Shapes | None = None) -> _Shapes:
    runs = [(place, run, run.forms[number]) for place, run in enumerate(inference.runs) if number in run.forms]
    return _Shapes(runs[::-1], around)


def _alike(node: Node, shapes: _Shapes) -> Hashable:
    """Return a key that is equal for nodes with facts about the same sizes: deep networks repeat their layers."""
    rule = facts_of(node.domain, node.op_type).sizes
    names = (*node.inputs, *node.outputs) if rule is not None and rule.of_results else node.inputs
    attributes = [attribute.SerializeToString() for attribute in node.attributes]
    return (node.op_type, *attributes, *[shapes[name] if name else None for name in names])


class _Shapes(dict[str, "tuple[Size, ...] | None"]):
    """The sizes of each tensor by the most precise run, the first of ``runs``; None if its rank is unknown. Computed on
    demand. ``around``: those of the enclosing graph."""

    def __init__(
        self, runs: Sequence[tuple[int, Run, Mapping[str, TypeForm]]], around: _Shapes | None = None
    ) -> None:
        super().__init__()
        self._runs, self._around = runs, around

    def __missing__(self, name: str) -> tuple[Size, ...] | None:
        self[name] = shape = self._shape(name)
        return shape

    def _shape(self, name: str) -> tuple[Size, ...] | None:
        shapes: _Shapes | None = self
        while shapes is not None:
            if name in shapes:
                return shapes[name]
            if (found := shapes._own(name)) is not None:
                return found
            shapes = shapes._around
        return None

    def _own(self, name: str) -> tuple[Size, ...] | None:
        for place, run, forms in self._runs:
            form = forms.get(name, ())
            if len(form) == 1 and (dims := form[0].dims) is not None:
                if all(isinstance(d, int) or d in run.variables for d in dims):
                    return dims
                return tuple(
                    [f"{LOCAL}{name}{LOCAL}{k}" if d is None else variable(place, run, d) for k, d in enumerate(dims)]
                )
        return None


class _SolvedReader(TypeReader):
    """Reads types with variables replaced by their sizes."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__()
        self._sizes = sizes

    def read(self, proto: onnx.TypeProto) -> TypeForm:
        return self.solved(super().read(proto))

    def solved(self, form: TypeForm) -> TypeForm:
        """Replace the variables of ``form`` by their sizes."""
        if not form or not form[-1].dims or self._sizes.keys().isdisjoint(form[-1].dims):
            return form
        dims = tuple([self._sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in form[-1].dims])
        return (*form[:-1], Level(form[-1].kind, form[-1].code, dims))


def contradictions(
    model: onnx.ModelProto,
    scopes: Sequence[Scope],
    declared: Sequence[tuple[TypeSite, TypeForm]],
    stored: Mapping[tuple[int, str], onnx.TensorProto],
    inference: Inference,
    agreement: Agreement,
    skip: frozenset[Place],
) -> tuple[list[Contradiction], list[Difference]]:
    """Return contradictions between the nodes' demands, and between the stated sizes and those inferred with all bound
    variables replaced.

    ``inference``, ``agreement``: of the model as it is; the other arguments are those of
    :func:`hwflow.onnxspec.shapes.inference.infer`.
    """
    found = solve(scopes, inference, agreement, skip)
    below = solve_below(scopes, inference, agreement.unifier, skip)
    differ = any(difference.kind is DifferenceKind.SIZE for difference in agreement.differences)
    if differ or any(one.solved and not one.empty for one in found):
        return found + below, []  # the variables are undetermined
    found += below
    sizes = _input_sizes(inference, agreement.unifier)
    if not sizes:
        return found, []
    reader = _SolvedReader(sizes)
    said = skip.union(_around(scopes, (one.place for one in found)), ((f.scope, f.node) for f in inference.failures))
    known_types = [(site, reader.solved(form)) for site, form in declared]
    solved = infer(model, scopes, known_types, reader, stored, lambda: said)
    for failure in solved.failures:
        place = (failure.scope, failure.node)
        if place not in said:
            known = _known(scopes[place[0]], place, inference, agreement.unifier, sizes)
            found.append(Contradiction(place, f"{known}{failure.message}", True))
    again = agree(known_types, scopes, solved)
    found += solve(scopes, solved, again, said.union(one.place for one in found))
    before = {(id(difference.site), difference.kind) for difference in agreement.differences}
    return found, [d for d in again.differences if (id(d.site), d.kind) not in before]


def _around(scopes: Sequence[Scope], places: Iterable[Place]) -> Iterator[Place]:
    """Yield the places, and the nodes whose subgraphs contain them."""
    numbers = {id(scope): number for number, scope in enumerate(scopes)}
    for number, index in places:
        yield number, index
        scope = scopes[number]
        while scope.parent is not None:
            yield numbers[id(scope.parent)], scope.caller
            scope = scope.parent


def _input_sizes(inference: Inference, unifier: Unifier) -> dict[str, int]:
    """Return the sizes of the variables that inference does not replace by itself."""
    sizes: dict[str, int] = {}
    seen: set[int] = set()
    for run in inference.runs:
        if seen.isdisjoint(run.forms):  # the first of a root graph
            seen.update(run.forms)
            for name in run.variables:
                size = unifier.size(name)
                if size is not None:
                    sizes[name] = size
    return sizes


def _known(scope: Scope, place: Place, inference: Inference, unifier: Unifier, sizes: Mapping[str, int]) -> str:
    """Return "with 'N' = 3 (input 'x', axis 0), " for the inputs of a node."""
    forms = [inference.form(place[0], name) for name in scope.nodes[place[1]].reads]
    names = dict.fromkeys(dim for form in forms if form for dim in form[-1].dims or () if dim in sizes)
    bounds = [(name, unifier.bound(name)) for name in names if isinstance(name, str)]
    texts = [f"{show(name)} = {bound.size} ({bound.place})" for name, bound in bounds if bound is not None]
    return f"with {' and '.join(texts)}, " if texts else ""
