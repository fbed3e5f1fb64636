"""Infer types and shapes of a model's values with onnx.shape_inference.

One strict run accepts a valid model. Only if it objects is each node run alone, to find every offending node and not
only the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import onnx
import onnx.onnx_cpp2py_export.shape_inference as onnx_inference
from onnx import TensorProto

from hwflow.onnxspec.graphs.operator_facts import OperatorFacts, facts_of
from hwflow.onnxspec.graphs.operator_names import CONSTANT
from hwflow.onnxspec.graphs.schemas import known_domains
from hwflow.onnxspec.graphs.scopes import Kind, Node, Scope
from hwflow.onnxspec.graphs.sites import TypeRole, TypeSite
from hwflow.onnxspec.graphs.typeforms import TypeForm, TypeReader
from hwflow.onnxspec.reading.guard import GaveUp, TimeBudget, guarded
from hwflow.onnxspec.reading.kept_process import guarded_call
from hwflow.onnxspec.reading.skeleton import Skeleton, clean_form, nested_graphs, skeleton, sparse_form, tensor_form
from hwflow.onnxspec.reading.text import one_line
from hwflow.onnxspec.shapes.node_inference import Failure, FailureKind, NodeRun, misfit

# onnx propagates the elements of vectors through some operators, at 70 bytes and 80 ns per element.
_MOST_FOLLOWED = 1 << 22  # elements of all such nodes: above, none is propagated
_TAME_FOLLOWED = 1 << 20
_TAME_RANK = 16
_MOST_RANK = 1024  # the highest rank that inference is run on
_MOST_HERE = 8 << 20  # bytes, without large tensors, of a model that inference runs on in this process, and twice
_MOST_GROWTH, _MOST_GROWN = 8, 32 << 20  # factor and bytes by which the inferred model may be larger
_SECONDS = 0.8  # processor time for a small model
_SECONDS_NODE = 1e-4  # plus this per node


@dataclass(frozen=True, slots=True)
class Trouble:
    """Inference objects to a graph, but to no single node; or it did not finish (``gave_up``)."""

    root: Scope
    message: str
    gave_up: bool = False


@dataclass
class Run:
    """The inferred types of the values of each scope (by its number) in one run of inference.

    ``variables``: dimension variables that the model itself states; any other one is an unknown size, equal throughout
    this run. Values that no node computes (initializers, inputs) are included.
    """

    forms: dict[int, Mapping[str, TypeForm]]
    variables: set[str]


@dataclass
class Inference:
    """``runs``: the results for every root graph; of two runs of a scope the later is more precise. ``failures``: nodes
    that do not fit their operator or inputs."""

    runs: list[Run] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)

    def form(self, scope: int, name: str) -> TypeForm:
        """Return the inferred type of a value, () if unknown."""
        for run in reversed(self.runs):
            form = run.forms.get(scope, {}).get(name, ())
            if form:
                return form
        return ()


class GivenForms(Mapping[str, TypeForm]):
    """Types of a graph's initializers and outer values, computed on demand."""

    def __init__(self, scope: Scope, around: Mapping[str, TypeForm]) -> None:
        graph = scope.graph
        assert graph is not None  # functions have no initializers
        self._around = around
        self._tensors: dict[str, TensorProto | onnx.SparseTensorProto] = dict(
            zip(scope.initializers, (*graph.initializer, *graph.sparse_initializer), strict=True)
        )

    def __getitem__(self, name: str) -> TypeForm:
        tensor = self._tensors.get(name)
        if tensor is None:
            return self._around[name]
        return tensor_form(tensor) if isinstance(tensor, TensorProto) else sparse_form(tensor)

    def __iter__(self) -> Iterator[str]:
        yield from self._tensors
        yield from (name for name in self._around if name not in self._tensors)

    def __len__(self) -> int:
        return len(self._tensors.keys() | self._around.keys())


class InferredForms(Mapping[str, TypeForm]):
    """Types of the values of one inferred graph, read on demand; ``given`` takes precedence."""

    def __init__(self, graph: onnx.GraphProto, given: Mapping[str, TypeForm], reader: TypeReader) -> None:
        self._graph = graph
        self._given = given
        self._reader = reader
        self._ends = {info.name: info for info in (*graph.output, *graph.input)}

    @cached_property
    def _inside(self) -> dict[str, onnx.ValueInfoProto]:
        return {info.name: info for info in self._graph.value_info}

    def __getitem__(self, name: str) -> TypeForm:
        if name in self._given:
            return self._given[name]
        info = self._ends.get(name)
        return self._reader.read((self._inside[name] if info is None else info).type)

    def _names(self) -> dict[str, None]:
        return dict.fromkeys((*self._given, *self._ends, *self._inside))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


def _highest_rank(scopes: Sequence[Scope], forms: Sequence[TypeForm]) -> int:
    """Return the highest rank of the model's stated types and tensors."""
    ranks = [len(form[-1].dims or ()) for form in forms if form]
    ranks += [len(tensor.dims) for scope in scopes for tensor in _tensors(scope)]
    return max(ranks, default=0)


def _tame(scopes: Sequence[Scope], forms: Sequence[tuple[str, TypeForm]]) -> bool:
    """Tell whether inference over these graphs is safe in this process. ``forms``: the types that the model states,
    with the names of their values."""
    domains = known_domains()
    operators = {(node.domain, node.op_type) for scope in scopes for node in scope.nodes}
    used = [facts_of(domain, op_type) for domain, op_type in operators if domain in domains]
    if not all(facts.tame or facts.elementwise for facts in used):
        return False
    if any(facts.shape_input is not None for facts in used) and not _short_shapes(scopes):
        return False
    if not any(facts.followed for facts in used):
        return True
    # No operator may return a vector longer than those that the model states.
    if any(facts.long_vectors for facts in used) and any(
        _facts(node).long_vectors and len(node.outputs) > 1 for scope in scopes for node in scope.nodes
    ):
        return False
    return not any(facts.matrices for facts in used) or _no_vector_products(scopes, forms)


def _facts(node: Node) -> OperatorFacts:
    return facts_of(node.domain, node.op_type)


def _followed(scopes: Sequence[Scope], forms: Sequence[tuple[str, TypeForm]]) -> int:
    """Return a bound of the vector elements that onnx propagates: those of the longest stated vector, times the nodes
    that propagate them."""
    shapes = {form[-1].dims for _, form in forms if form}
    sizes = [shape[0] for shape in shapes if shape is not None and len(shape) == 1]
    sizes += [tensor.dims[0] for scope in scopes for tensor in _tensors(scope) if len(tensor.dims) == 1]
    longest = max((size for size in sizes if isinstance(size, int)), default=0)
    return longest * sum(_facts(node).followed for scope in scopes for node in scope.nodes)


def _no_vector_products(scopes: Sequence[Scope], forms: Sequence[tuple[str, TypeForm]]) -> bool:
    """Tell whether no matrix product reads a vector: its result would be one, as long as the matrix is wide."""
    low = {name for name, form in forms if form and form[-1].dims is not None and len(form[-1].dims) < 2}
    low.update(name for scope in scopes for name in scope.initializers)
    for scope in scopes:
        if scope.graph is not None:
            low.difference_update(tensor.name for tensor in scope.graph.initializer if len(tensor.dims) > 1)
    for scope in scopes:
        for node in scope.nodes:
            matrices = _facts(node).matrices
            if matrices is not None:
                if any(place < len(node.inputs) and node.inputs[place] in low for place in matrices):
                    return False
            elif low.issuperset(node.inputs):
                low.update(node.outputs)
    return True


def _short_shapes(scopes: Sequence[Scope]) -> bool:
    """Tell whether every shape input is a short initializer, and not the shape of a vector."""
    short = {
        tensor.name
        for scope in scopes
        if scope.graph is not None
        for tensor in scope.graph.initializer
        if len(tensor.dims) == 1 and 1 < tensor.dims[0] <= _TAME_RANK
    }
    shaped = ((node, _facts(node).shape_input) for scope in scopes for node in scope.nodes)
    return all(len(node.inputs) > place and node.inputs[place] in short for node, place in shaped if place is not None)


def _tensors(scope: Scope) -> Iterator[TensorProto]:
    """Yield the tensors that define the shape of a value."""
    if scope.graph is not None:
        yield from scope.graph.initializer
    for node in scope.nodes:
        if node.op_type == CONSTANT:
            yield from (attribute.t for attribute in node.attributes)


def _infer(data: bytes, follow: bool, strict: bool) -> bytes | str:
    """Return the inferred model, or the objection of inference. ``follow``: propagate values of shapes too."""
    try:
        inferred = onnx_inference.infer_shapes(data, True, strict, follow)
    except MemoryError:
        raise
    except Exception as error:  # InferenceError, ValidationError, ValueError, RuntimeError, ...
        return one_line(error)
    if len(inferred) > _MOST_GROWTH * len(data) + _MOST_GROWN:
        raise MemoryError
    return bytes(inferred)


def adds(said: TypeForm, inferred: TypeForm, variables: set[str]) -> bool:
    """Tell whether ``said`` is more precise than ``inferred``."""
    if not said:
        return False
    if not inferred:
        return True
    here, there = said[-1].dims, inferred[-1].dims
    if here is None:
        return False
    if there is None:
        return True
    return any(
        a is not None and (b is None or (isinstance(b, str) and b not in variables))
        for a, b in zip(here, there, strict=False)
    )


class _Root:
    """Inference over one root graph and its nested graphs."""

    def __init__(
        self,
        model: onnx.ModelProto,
        scopes: Sequence[tuple[int, Scope]],
        declared: Mapping[int, Mapping[str, TypeForm]],
        around: Mapping[str, TypeForm],
        stored: Mapping[tuple[int, str], TensorProto],
        skip: Callable[[], frozenset[tuple[int, int]]],
        reader: TypeReader,
        budget: TimeBudget,
    ) -> None:
        self.budget = budget
        self.model = model
        self.scopes = scopes
        self.numbers = {id(scope): number for number, scope in scopes}
        self.root = scopes[0][1]
        self.declared = declared
        self.around = around
        self.stored = stored
        self.skip = skip
        self.reader = reader
        self.runs: list[Run] = []
        self.failures: list[Failure] = []
        self.trouble: Trouble | None = None
        self.given = {number: GivenForms(scope, {}) for number, scope in scopes}
        self.given[scopes[0][0]] = GivenForms(self.root, around)
        every = [scope for _, scope in scopes]
        self.below = every[1:]
        forms = [*around.items()]
        for number, _ in scopes:
            forms += declared.get(number, {}).items()
        self.rank = _highest_rank(every, [form for _, form in forms])
        self.tame = self.rank <= _TAME_RANK and not model.functions and _tame(every, forms)
        followed = _followed(every, forms)
        self.follow = followed <= _MOST_FOLLOWED
        self.tame = self.tame and not _TAME_FOLLOWED < followed <= _MOST_FOLLOWED

    def run(self) -> None:
        """Fill ``runs``, ``failures`` and ``trouble``."""
        try:
            if self.rank > _MOST_RANK:
                raise GaveUp(f"a tensor has {self.rank} dimensions, more than {_MOST_RANK}")
            self._run()
        except GaveUp as reason:
            self.trouble = Trouble(self.root, str(reason), gave_up=True)
        except MemoryError:
            self.trouble = Trouble(self.root, "it takes more memory than there is", gave_up=True)

    def _run(self) -> None:
        plain = self._skeleton(declared=False)
        large = plain.proto.ByteSize() > _MOST_HERE
        self.tame = self.tame and not large
        answer = self._inferred(plain)
        known: Run | None = None
        if isinstance(answer, bytes):
            known = self._read(answer, plain.variables)
            self.runs.append(known)
            if large or not self._wants_more(known):
                return
        # The model states more than inference finds, or inference fails without the model's statements.
        full = self._skeleton(declared=True)
        second = self._inferred(full)
        if isinstance(second, bytes):
            self.runs.append(self._read(second, full.variables))
            return
        if known is None:
            lenient = self._inferred(plain, strict=False)
            known_forms = self._read(lenient, plain.variables).forms if isinstance(lenient, bytes) else {}
        else:
            known_forms = {}
        nodes = NodeRun(self.scopes, full.proto, known_forms, self.given, self._cleaned(), self.skip())
        results = nodes.run() if self.tame else guarded(nodes.run, self.budget)
        forms: dict[int, Mapping[str, TypeForm]] = {
            number: {**self.given[number], **results.forms.get(number, {})} for number, _ in self.scopes
        }
        self.runs.append(Run(forms, full.variables))
        self.failures = results.failures
        if not self.failures:
            self._locate(full, second)

    def _locate(self, full: Skeleton, message: str) -> None:
        """Find the node that fails only when constants are propagated from node to node."""
        for scope, graph in nested_graphs(self.root, self.below, full.proto.graph):
            for index, node in enumerate(graph.node):
                node.name = f"{self.numbers[id(scope)]}/{index}"
        named = self._inferred(full)
        places = _PLACE.findall(named) if isinstance(named, str) else []
        if not places:
            self.trouble = Trouble(self.root, message)
            return
        number, index = map(int, places[-1])  # the innermost
        reason = _PLACE.split(str(named))[-1].strip()
        if self.skip().isdisjoint((int(scope), int(node)) for scope, node in places):  # else it follows from that
            self.failures.append(Failure(number, index, FailureKind.SHAPE, misfit(reason)))

    def _inferred(self, skeleton: Skeleton, strict: bool = True) -> bytes | str:
        arguments = skeleton.proto.SerializeToString(), self.follow, strict
        return _infer(*arguments) if self.tame else guarded_call(_infer, arguments, self.budget)

    def _cleaned(self) -> dict[int, dict[str, TypeForm]]:
        return {
            number: {name: clean_form(form) for name, form in self.declared.get(number, {}).items()}
            for number, _ in self.scopes
        }

    def _skeleton(self, declared: bool) -> Skeleton:
        return skeleton(self.model, self.root, self.below, self.reader, self.around, self.stored, declared)

    def _read(self, data: bytes, variables: set[str]) -> Run:
        forms: dict[int, Mapping[str, TypeForm]] = {}
        graph = onnx.load_model_from_string(data).graph
        for scope, nested in nested_graphs(self.root, self.below, graph):
            number = self.numbers[id(scope)]
            forms[number] = InferredForms(nested, self.given[number], self.reader)
        return Run(forms, variables)

    def _wants_more(self, run: Run) -> bool:
        """Tell whether the model states more about its values than inference finds, without contradiction."""
        more = False
        for number, _ in self.scopes:
            forms = run.forms.get(number, {})
            for name, said in self.declared.get(number, {}).items():
                clean, inferred = clean_form(said), forms.get(name, ())
                if contradict(clean, inferred):
                    return False
                more = more or adds(clean, inferred, run.variables)
        return more


def contradict(said: TypeForm, inferred: TypeForm) -> bool:
    """Tell whether two types cannot belong to one value, variables aside."""
    if not said or not inferred:
        return False
    if [(level.kind, level.code) for level in said] != [(level.kind, level.code) for level in inferred]:
        return True
    here, there = said[-1].dims, inferred[-1].dims
    if here is None or there is None:
        return False
    return len(here) != len(there) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(here, there, strict=True)
    )


_PLACE = re.compile(r"\(op_type:[^(),]*, node name: ([0-9]+)/([0-9]+)\):")


def roots(scopes: Sequence[Scope]) -> Iterator[tuple[Scope, Sequence[Scope]]]:
    """Yield the main graph and the training graphs, each with its nested graphs."""
    starts = [number for number, scope in enumerate(scopes) if scope.parent is None]
    if not starts:
        return
    for start, end in zip(starts, [*starts[1:], len(scopes)], strict=True):
        if scopes[start].kind is not Kind.FUNCTION:
            yield scopes[start], scopes[start + 1 : end]


def free_names(root: Scope) -> list[str]:
    """Return the values of the main graph that a training graph reads."""
    if not root.outer:
        return []
    read = {name for node in root.nodes for name in node.reads}.union(root.outputs)
    return sorted(name for name in read - root.defined if name in root.outer)


def infer(
    model: onnx.ModelProto,
    scopes: Sequence[Scope],
    declared: Iterable[tuple[TypeSite, TypeForm]],
    reader: TypeReader,
    stored: Mapping[tuple[int, str], TensorProto],
    skip: Callable[[], frozenset[tuple[int, int]]],
) -> Inference:
    """Run inference over the main graph and the training graphs.

    ``declared``: the types that the model states. ``stored``: small external tensors with their data, by id of the
    scope and name. ``skip``: nodes (number of the scope, index) about which there are
    errors already. Nothing is raised.
    """
    numbers = {id(scope): number for number, scope in enumerate(scopes)}
    tables: dict[int, dict[str, TypeForm]] = {}
    for site, form in declared:
        if site.role is not TypeRole.ATTRIBUTE and form:
            tables.setdefault(numbers[id(site.scope)], {}).setdefault(site.name, form)
    result = Inference()
    budget = TimeBudget(_SECONDS + _SECONDS_NODE * sum(len(scope.nodes) for scope in scopes))
    for root, below in roots(scopes):
        around = {name: result.form(0, name) for name in free_names(root)}
        numbered = [(numbers[id(scope)], scope) for scope in (root, *below)]
        one = _Root(model, numbered, tables, around, stored, skip, reader, budget)
        one.run()
        result.runs += one.runs
        result.failures += one.failures
        if one.trouble is not None:
            result.troubles.append(one.trouble)
            if one.trouble.gave_up:
                break  # the budget is exhausted
    return result
