"""Detect float models, and the operators in them that would prevent compilation once quantized. Imports little, so that
`check` is quick on large float models."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.frontend.refused_operators import unsupported, whole_operator
from hwflow.frontend.stream_types import DECLARE, KNOWN_TYPES, REAL_TYPES, STREAM_TYPES
from hwflow.onnxspec import ModelProto
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.operator_names import IDENTITY, IF
from hwflow.onnxspec.graphs.schemas import find_schema, has_body
from hwflow.onnxspec.graphs.scopes import Scope
from hwflow.onnxspec.reading.numpy_tensors import DTYPE_NAMES, ELEMENT_TYPES
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.onnxspec.shapes.dialects import DIALECT_DOMAINS, ML_DOMAIN
from hwflow.operators.onnx_operators import DEFINED, HEAVY, NAMES, REASONS, STANDARD_QUANTIZERS, record_of

_QUANTIZE = (
    "quantize the model first, for example with 'hwflow quantize' and calibration data, or, where its weights are "
    f"integers already, {DECLARE}"
)


def is_dialect(operator: tuple[str, str]) -> bool:
    """Tell whether an operator belongs to a dialect of quantized models (or is a function, whose body may)."""
    if operator[0] == ML_DOMAIN:
        record = record_of(*operator)
        return record is not None and record.quantized
    return bool(operator[0]) or operator[1] in STANDARD_QUANTIZERS or facts_of(*operator).dequantizes


def refuse_unquantized(model: ModelProto, scopes: Sequence[Scope], declared: Container[str] = ()) -> None:
    """Raise :class:`ModelRefused` for a float model, with the findings of :func:`hwflow.frontend.lower.lower`.

    ``scopes``: those of the model (:func:`hwflow.onnxspec.graphs.scopes.scopes`); ``declared``: the names of inputs
    whose integers the user declares. Resolving a large float model would take much longer than this.
    """
    main = scopes[0]
    operators = {(node.op_type, node.domain) for scope in scopes for node in scope.nodes}
    if any(is_dialect((domain, op_type)) for op_type, domain in operators):
        return
    integer_types = {ELEMENT_TYPES[name] for name in STREAM_TYPES}
    initializers = {*main.initializers}
    reals = {ELEMENT_TYPES[name] for name in REAL_TYPES}
    given = [info for info in model.graph.input if info.name not in initializers]
    inputs = [info.type.tensor_type.elem_type for info in given if info.name not in declared]
    begins = len(inputs) < len(given) or not integer_types.isdisjoint(inputs)
    if not given or (begins and reals.isdisjoint(inputs)):
        return
    types = [
        input_type(info.name, DTYPE_NAMES[number])
        for info in model.graph.input
        if info.name not in initializers
        and (number := info.type.tensor_type.elem_type) in DTYPE_NAMES
        and DTYPE_NAMES[number] not in (*STREAM_TYPES, *REAL_TYPES)
    ]
    raise ModelRefused([unquantized(model.graph.name), *types, *obstacles(scopes)])


def obstacles(scopes: Sequence[Scope], said: Container[str] = ()) -> list[Finding]:
    """Apply :func:`in_the_way` to a model's main graph, the first of its scopes, as stored in the file, and to its
    nodes' subgraphs. ``said``: places that already have a finding."""
    main = scopes[0]
    owners: dict[int, int] = {}  # from a graph at any depth to its node of the main graph
    holders: set[tuple[int, int]] = set()  # nodes with heavy operators in their subgraphs
    for scope in scopes[1:]:
        parent = scope.parent
        if parent is main or id(parent) in owners:  # else in a function
            owners[id(scope)] = scope.caller if parent is main else owners[id(parent)]
            if any(node.op_type in HEAVY for node in scope.nodes):
                _add_holders(holders, scope)
    sites = _sites(main, holders)
    inputs = {*main.inputs} - {*main.initializers}
    if owners:
        computed = {*inputs}
        _streams(sites, computed)
        inside: dict[int, list[tuple[Site, bool]]] = {}
        apart: set[str] = set()  # nodes of subgraphs between heavy operators
        for scope in scopes[1:]:  # each after the one around it
            if id(scope) in owners:
                computed.update({*scope.inputs} - {*scope.initializers})
                inner = _streams(_sites(scope, holders), computed)
                assert scope.parent is not None
                if scope.parent.where(scope.caller) in apart:
                    apart.update(site.where for site, _ in inner)
                apart.update(site.where for site, surrounded in _between(inner).items() if surrounded)
                found = [(site, site.where in apart) for site, _ in inner if not site.taken]
                inside.setdefault(owners[id(scope)], []).extend(found)
        for index, there in inside.items():
            sites[index] = replace(sites[index], inside=tuple(there))
    return in_the_way(sites, inputs, said)


def _add_holders(holders: set[tuple[int, int]], scope: Scope) -> None:
    """Add the node that owns a graph, and the owners of the graphs around it."""
    around: Scope | None = scope
    while around is not None and around.parent is not None and (id(around.parent), around.caller) not in holders:
        holders.add((id(around.parent), around.caller))
        around = around.parent


def _sites(scope: Scope, holders: Container[tuple[int, int]]) -> list[Site]:
    return [
        Site(
            node.domain, node.op_type, scope.opsets.get(node.domain, 1), node.inputs, node.outputs,
            scope.where(index), frozenset(node.captured), (id(scope), index) in holders,
        )
        for index, node in enumerate(scope.nodes)
    ]


@dataclass(frozen=True, eq=False)
class Site:
    """A node of a float model. ``where``: its name in findings; ``captured``: the outer values that its subgraphs read;
    ``holds``: whether these contain heavy operators; ``inside``: the unsupported nodes in them, and whether they lie
    between heavy operators."""

    domain: str
    op_type: str
    version: int
    inputs: Sequence[str]
    outputs: Sequence[str]
    where: str
    captured: AbstractSet[str] = frozenset()
    holds: bool = False
    inside: tuple[tuple[Site, bool], ...] = ()

    @classmethod
    def of(cls, node: OnnxNode) -> Site:
        """Return the site of a node of a resolved model; for a node in an operator's definition, that of the
        operator."""
        where, op_type = whole_operator(node.where) or (node.where, node.op_type)
        return cls(node.domain, op_type, node.version, node.inputs, node.outputs, where)

    @property
    def begins(self) -> bool:
        """Whether hardware begins here, or would in a quantized model."""
        if self.holds or self.op_type in HEAVY:
            return True
        operator = self.domain, self.op_type
        return is_dialect(operator) and not facts_of(*operator).dequantizes

    @property
    def taken(self) -> bool:
        """Whether its operator, or those in its place, are supported."""
        if self.domain:  # unknown for domains other than ONNX's own and the dialects': perhaps a function
            if self.domain == ML_DOMAIN:
                return self.op_type in DEFINED or self.op_type in NAMES
            return self.domain not in DIALECT_DOMAINS or self.op_type in NAMES
        if self.op_type in DEFINED:
            return True
        if self.op_type in REASONS:
            return False
        schema = find_schema(self.op_type, self.version, "")
        return self.op_type in NAMES or (schema is not None and has_body(schema))


def in_the_way(sites: Sequence[Site], inputs: Iterable[str], said: Container[str] = ()) -> list[Finding]:
    """Return a finding per operator that would be refused once the model was quantized: unsupported operators between
    heavy ones. (The host runs those before the first and after the last heavy operator. In a model without any, every
    operator of classical machine learning counts.)

    ``sites``: the nodes in topological order; ``inputs``: of the model, without initializers; ``said``: places to skip.
    """
    computed = {*inputs}
    streams = _streams(sites, computed)
    if any(site.holds or site.op_type in HEAVY for site in sites):
        middle = _between(streams)
    else:
        middle = {site: True for site, _ in streams if site.domain == ML_DOMAIN}
    found: dict[tuple[str, str], dict[str, None]] = {}  # the places of each operator
    for outer, surrounded in middle.items():
        for site in (outer, *(site for site, between in outer.inside if surrounded or between)):
            if site.where in said:
                continue
            if not site.taken:
                found.setdefault((site.domain, site.op_type), {})[site.where] = None
    return [
        unsupported(_places(places), op_type, f"{domain}.{op_type}" if domain else "")
        for (domain, op_type), places in found.items()
    ]


def _streams(sites: Iterable[Site], computed: set[str]) -> list[tuple[Site, bool]]:
    """Return the nodes that depend on values in ``computed``, to which their outputs are added, and whether each comes
    after a heavy operator."""
    behind: set[str] = set()
    streams: list[tuple[Site, bool]] = []
    for site in sites:
        read = computed.intersection((*site.inputs, *site.captured))
        if read and not facts_of(site.domain, site.op_type).of_shapes:
            made = {name for name in site.outputs if name}
            computed |= made
            chosen = site.op_type == IF and computed.isdisjoint(site.inputs)  # at compile time
            streams.append((replace(site, op_type=IDENTITY) if chosen else site, not read.isdisjoint(behind)))
            if site.begins or streams[-1][1]:
                behind |= made
    return streams


def _between(streams: Sequence[tuple[Site, bool]]) -> dict[Site, bool]:
    """Return the nodes between heavy operators (True), or with heavy operators in their subgraphs."""
    ahead: set[str] = set()
    result: dict[Site, bool] = {}
    for site, follows in reversed(streams):
        surrounded = follows and not ahead.isdisjoint(site.outputs)
        if site.holds or surrounded:
            result[site] = surrounded
        if site.holds or site.op_type in HEAVY or not ahead.isdisjoint(site.outputs):
            ahead.update(name for name in (*site.inputs, *site.captured) if name)
    return dict(reversed(result.items()))


def _places(places: Iterable[str]) -> str:
    first, *others = places
    return f"{first} and {len(others)} more" if others else first


def unquantized(name: str) -> Finding:
    return Finding(
        "quantized-model", f"model {show(name)}",
        "the model must be quantized (QDQ, QOperator or QONNX), not hold float operators only", _QUANTIZE,
    )


def input_type(name: str, dtype: str) -> Finding:
    return Finding(
        "input-type", f"input {show(name)}", f"element type must be one of {KNOWN_TYPES}, not {dtype}",
        "convert the input on the host",
    )
