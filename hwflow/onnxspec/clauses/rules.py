"""Rules: one clause of the specification (or one of hwflow's own) as a function of a model.

A rule checks whole graphs with set operations and explains only violations: on a valid model of ten thousand nodes it
takes a millisecond or two.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import onnx

from hwflow.display import show
from hwflow.errors import Finding, Severity
from hwflow.onnxspec.graphs.node_forms import FormReader, NodeForms
from hwflow.onnxspec.graphs.scopes import NODES, Kind, Position, Scope, plain_domain, scopes
from hwflow.onnxspec.graphs.sites import TensorRole, TensorSite, TypeSite, tensor_sites, type_sites
from hwflow.onnxspec.graphs.typeforms import TypeForm, TypeReader
from hwflow.onnxspec.reading.external_files import ExternalFiles, Problem
from hwflow.onnxspec.reading.skeleton import MOST_ELEMENTS
from hwflow.onnxspec.reading.stored import StoredTensor, stored_tensors
from hwflow.onnxspec.shapes.agreement import Agreement, Difference, agree
from hwflow.onnxspec.shapes.inference import Inference, infer
from hwflow.onnxspec.shapes.sizes import Contradiction, contradictions

Level = Literal["MUST", "SHOULD", "MAY", "definition", "own"]  # "own": a rule of hwflow's, or of onnx's checker
FunctionKey = tuple[str, str, str]  # domain (ai.onnx as ""), name, overload


@dataclass(frozen=True)
class Options:
    """User options of the validation.

    ``trusted``: folders besides the model's own that may hold external data, and through which links may lead.
    """

    trusted: tuple[Path, ...] = ()


class Context:
    """The model under test, the facts that rules share, and the findings of earlier rules."""

    def __init__(
        self,
        model: onnx.ModelProto,
        path: str | os.PathLike[str] | None = None,
        options: Options | None = None,
    ) -> None:
        self.model = model
        self.ir_version: int = model.ir_version
        self.path = None if path is None else Path(path)
        self.options = options or Options()
        self.found: list[tuple[Position, Finding]] = []

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        """See :func:`hwflow.onnxspec.graphs.scopes.scopes`; the main graph is the first. Empty for a model without a
        graph."""
        return tuple(scopes(self.model)) if self.model.HasField("graph") else ()

    @cached_property
    def graphs(self) -> tuple[tuple[Scope, onnx.GraphProto], ...]:
        """The scopes that are graphs (all except functions' bodies), with their protobuf objects."""
        return tuple((scope, scope.graph) for scope in self.scopes if scope.graph is not None)

    @cached_property
    def functions(self) -> dict[FunctionKey, Scope]:
        """The bodies of the functions local to the model; the first of equal keys. Empty below IR version 8, where no
        node can call them (MOD-13)."""
        table: dict[FunctionKey, Scope] = {}
        if 1 <= self.ir_version < 8:
            return table
        for scope in self.scopes:
            if scope.kind is Kind.FUNCTION and scope.function is not None:
                f = scope.function
                table.setdefault((f.domain if f.domain != "ai.onnx" else "", f.name, f.overload), scope)
        return table

    @cached_property
    def form_reader(self) -> FormReader:
        """The reader of attribute forms."""
        return FormReader()

    @cached_property
    def node_forms(self) -> tuple[tuple[Scope, NodeForms], ...]:
        """The scopes with the distinct forms of their nodes."""
        # Only functions have overloads.
        overload = (lambda node: str(node.proto.overload)) if self.functions else None
        return tuple((scope, self.form_reader.nodes(scope.nodes, overload)) for scope in self.scopes)

    @cached_property
    def tensors(self) -> tuple[TensorSite, ...]:
        """Every tensor of the model: initializers, parts of sparse tensors, attribute values; functions and training
        graphs included."""
        return tuple(tensor_sites(self.scopes))

    @cached_property
    def stored(self) -> tuple[StoredTensor, ...]:
        """The tensors whose length of raw data alone does not prove them correct."""
        return tuple(stored_tensors(self.tensors))

    @cached_property
    def files(self) -> ExternalFiles:
        """The files that may hold external data."""
        return ExternalFiles(None if self.path is None else self.path.parent, self.options.trusted)

    @cached_property
    def external(self) -> tuple[tuple[StoredTensor, Sequence[Problem]], ...]:
        """The tensors with external data, and its problems."""
        tensors = [stored for stored in self.stored if stored.reference is not None]
        return tuple((stored, stored.external_problems(self.files)) for stored in tensors)

    @cached_property
    def small_external(self) -> dict[tuple[int, str], onnx.TensorProto]:
        """Initializers of a few integers with external data, loaded, by id of the scope and name."""
        small = {}
        for stored, problems in self.external:
            if (
                stored.site.role is not TensorRole.INITIALIZER
                or stored.code not in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
                or stored.count is None
                or stored.count > MOST_ELEMENTS
                or any(problem.severity == Severity.ERROR for problem in problems)
            ):
                continue
            data, tensor = stored.raw(self.files), stored.tensor
            if data is not None:
                small[id(stored.site.scope), tensor.name] = onnx.TensorProto(
                    name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=data
                )
        return small

    @cached_property
    def types(self) -> tuple[TypeSite, ...]:
        """Every type that the model states: inputs, outputs, value_info, type attributes."""
        return tuple(type_sites(self.scopes))

    @cached_property
    def type_reader(self) -> TypeReader:
        """Reads the model's types."""
        return TypeReader()

    @cached_property
    def forms(self) -> tuple[TypeForm, ...]:
        """``types`` as plain Python; equal ones are one object."""
        read = self.type_reader.read
        return tuple([read(site.type) for site in self.types])

    @cached_property
    def inference(self) -> Inference:
        """The types of values inferred from the nodes; see :mod:`hwflow.onnxspec.shapes.inference`."""
        declared = zip(self.types, self.forms, strict=True)
        return infer(
            self.model, self.scopes, declared, self.type_reader, self.small_external, self._refused_nodes
        )

    @cached_property
    def agreement(self) -> Agreement:
        """The comparison of stated and inferred types; see :mod:`hwflow.onnxspec.shapes.agreement`."""
        return agree(zip(self.types, self.forms, strict=True), self.scopes, self.inference)

    @cached_property
    def contradictions(self) -> tuple[list[Contradiction], list[Difference]]:
        """Contradictions between the sizes that nodes demand and the model states; see
        :mod:`hwflow.onnxspec.shapes.sizes`."""
        declared = list(zip(self.types, self.forms, strict=True))
        refused = self._refused_nodes()
        return contradictions(
            self.model, self.scopes, declared, self.small_external, self.inference, self.agreement, refused
        )

    def _refused_nodes(self) -> frozenset[tuple[int, int]]:
        """Return the nodes with an error, as (number of the scope, index)."""
        places = {
            scope.at(NODES, index): (number, index)
            for number, scope in enumerate(self.scopes)
            for index in range(len(scope.nodes))
        }
        errors = {position for position, finding in self.found if finding.severity == Severity.ERROR}
        refused = {places[position] for position in errors if position in places}
        return frozenset(refused | self._refused_calls(errors))

    def _refused_calls(self, errors: set[Position]) -> set[tuple[int, int]]:
        """Return the nodes that call a function with errors, directly or through others."""
        if not errors or not self.functions:
            return set()
        # Overloads count as one: of two functions with one name, the second has the error.
        bodies = {
            scope.position: (plain_domain(scope.function.domain), scope.function.name)
            for scope in self.scopes
            if scope.kind is Kind.FUNCTION and scope.function is not None
        }
        names = set(bodies.values())
        deep = len(next(iter(bodies)))
        wrong = {bodies[position[:deep]] for position in errors if position[:deep] in bodies}
        calls: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for number, scope in enumerate(self.scopes):
            for index, node in enumerate(scope.nodes):
                key = (node.domain, node.op_type)
                if key in names:
                    calls.setdefault(key, []).append((number, index))
        pending, refused = list(wrong), set()
        while pending:
            for number, index in calls.get(pending.pop(), ()):
                refused.add((number, index))
                caller = bodies.get(self.scopes[number].position[:deep])
                if caller is not None and caller not in wrong:
                    wrong.add(caller)
                    pending.append(caller)
        return refused

    @property
    def has_errors(self) -> bool:
        """Tell whether an earlier rule has found an error."""
        return any(finding.severity == Severity.ERROR for _, finding in self.found)


@dataclass(frozen=True)
class Hit:
    """One violation: :class:`hwflow.errors.Finding` without the rule, with the position that orders it.

    ``remedy`` and ``severity`` are the rule's own unless given.
    """

    position: Position
    where: str
    message: str
    remedy: str | None = None
    severity: Severity | None = None


def at_node(
    scope: Scope, index: int, message: str, remedy: str | None = None, severity: Severity | None = None
) -> Hit:
    """Return a violation by a node."""
    return Hit(scope.at(NODES, index), scope.where(index), message, remedy, severity)


@dataclass(frozen=True)
class Rule:
    """``id`` is a clause id of the specification or the name of a rule of hwflow's own; ``level`` the clause's.

    ``severity``: an error leaves a model's meaning undefined or must not be accepted by any reader; what many exporters
    violate without harm is a warning, whatever the clause's level. The rule holds from IR version ``since_ir``. A
    ``pedantic`` rule concerns form, which nearly every exporter violates without harm: it is shown only on request.
    """

    id: str
    level: Level
    check: Callable[[Context], Iterable[Hit]]
    remedy: str
    severity: Severity = Severity.ERROR
    since_ir: int = 0
    pedantic: bool = False


def run_rules(rules: Iterable[Rule], context: Context) -> list[Finding]:
    """Return all findings of ``rules``, in the order of the graph; at the same position in the order of the rules."""
    for rule in rules:
        if max(context.ir_version, 0) < rule.since_ir:
            continue
        for hit in list(rule.check(context)):
            remedy = rule.remedy if hit.remedy is None else hit.remedy
            finding = Finding(rule.id, hit.where, hit.message, remedy, hit.severity or rule.severity)
            context.found.append((hit.position, finding))
    return [finding for _, finding in sorted(context.found, key=lambda item: item[0])]


def listed(names: Iterable[str], most: int = 5) -> str:
    """Quote at most ``most`` of ``names`` and join them by commas, for a message."""
    every = list(names)
    text = ", ".join(show(name) for name in every[:most])
    return text if len(every) <= most else f"{text} and {len(every) - most} more"
