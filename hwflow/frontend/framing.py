"""Decide which tensors of a model are its frames; where the inputs' first sizes leave it open (see
:mod:`hwflow.frontend.frames`), the choice is the one that can be compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hwflow.errors import Finding, ModelRefused
from hwflow.frontend.frames.batches import batch_size, first_sizes, keeps_frames, of_frames, with_frame_axis
from hwflow.frontend.frames.interleaved import interleaved
from hwflow.frontend.frames.moved_frames import with_frames_first
from hwflow.frontend.input_types import InputType
from hwflow.frontend.lower import findings_of_rest, lower, unsupported_operator
from hwflow.frontend.states.ties import UNTIED, Ties
from hwflow.frontend.unquantized import obstacles
from hwflow.ir.graph import Graph
from hwflow.onnxspec import ModelProto, OnnxNode, ResolvedModel, resolve_with_graph
from hwflow.onnxspec.graphs.scopes import main_scopes
from hwflow.onnxspec.resolving.resolver import Unresolved
from hwflow.operators.onnx_operators import KEPT


@dataclass(frozen=True, eq=False)
class Framed:
    """A resolved model with frames along the first axis of every value. ``flat``: as of
    :func:`hwflow.onnxspec.resolve_with_graph`; ``whole``: the inputs are whole tensors, with one axis more than in the
    model; ``graph``: the result of :func:`hwflow.frontend.lower.lower`, where it was needed."""

    resolved: ResolvedModel
    flat: ModelProto
    whole: bool = False
    graph: Graph | None = None


def framed(
    proto: ModelProto, dimensions: Mapping[str, int], input_types: Mapping[str, InputType] | None = None,
    ties: Ties = UNTIED, interleave: int = 1,
) -> Framed:
    """Find the frames of ``proto``, which :func:`hwflow.onnxspec.validate` accepts. ``dimensions`` binds its variables,
    ``input_types`` declares the integers of its float inputs, ``ties`` are its states. ``interleave``: so many frames
    of the model are one.

    Raises :class:`ModelRefused` with all findings if the model cannot be resolved or has no frames, including those of
    operators that cannot be compiled whatever their shapes; :class:`UsageError` if ``interleave`` is more than 1 and no
    variable counts frames.
    """
    if interleave > 1:
        proto = interleaved(proto, dimensions, interleave)
    try:
        return _framed(proto, dimensions, input_types, ties, whole_only=interleave > 1)
    except ModelRefused as refused:
        findings = [*refused.findings]
        said = {finding.where for finding in findings}
        if isinstance(refused, Unresolved) and _has_frames(proto, dimensions, refused):
            findings += findings_of_rest(refused, input_types)
            said.update(finding.where for finding in findings)
        raise ModelRefused([*findings, *obstacles(main_scopes(proto), said)]) from None


def _has_frames(proto: ModelProto, dimensions: Mapping[str, int], unresolved: Unresolved) -> bool:
    """Tell whether frames lie along the first axis of every value, as far as known."""
    sizes = set(first_sizes(proto, dimensions).values())
    return not sizes or (sizes == {1} and keeps_frames(unresolved.rest, unresolved.opaque))


def _framed(
    proto: ModelProto, dimensions: Mapping[str, int], input_types: Mapping[str, InputType] | None, ties: Ties, *,
    whole_only: bool = False,
) -> Framed:
    def anew(made: ModelProto | Sequence[OnnxNode], before: ResolvedModel, *, whole: bool = False) -> Framed:
        """Resolve a model that was made of the flat one of ``before``, where its nodes have their contexts."""
        assert isinstance(made, ModelProto), "what could be made"
        resolved, flat = resolve_with_graph(made, {}, KEPT)
        contexts = {node.name: node.context for node in before.nodes if node.context}
        nodes = tuple(replace(node, context=contexts.get(node.name, node.context)) for node in resolved.nodes)
        return Framed(ties.of(replace(resolved, nodes=nodes), whole=whole), flat, whole)

    sizes = set(first_sizes(proto, dimensions).values())
    if not whole_only and (not sizes or sizes == {1}):
        resolved, flat = resolve_with_graph(proto, dimensions, KEPT)
        found = Framed(ties.of(resolved), flat)
        if sizes and keeps_frames(resolved):
            return found
        if not sizes:
            moved = with_frames_first(flat, resolved)
            if moved is None:
                return found
            return _possible(found, lambda: anew(moved, resolved), input_types, "frame-axis")
        made = with_frame_axis(flat, resolved)
        if isinstance(made, list):
            return found
        return _possible(found, lambda: anew(made, resolved, whole=True), input_types, "frame-axis")
    resolved, flat = resolve_with_graph(proto, dimensions, KEPT, whole=True)
    size = batch_size(resolved)
    batch = of_frames(flat, resolved) if size is not None and not whole_only else []
    whole = with_frame_axis(flat, resolved)
    if whole_only and isinstance(whole, list):
        raise ModelRefused([_apart(node) for node in whole])
    if isinstance(batch, list) and isinstance(whole, list):
        wrong = [*batch, *(node for node in whole if node not in batch)]
        findings = [unsupported_operator(node) for node in wrong if (node.domain, node.op_type) not in KEPT]
        if len(findings) < len(wrong):
            kept = [_in_the_way(node) for node in wrong if (node.domain, node.op_type) in KEPT]
            findings = [*_first_axis(proto, dimensions), *findings, *kept]
        raise ModelRefused(findings)
    if isinstance(batch, list):
        return anew(whole, resolved, whole=True)
    if isinstance(whole, list):
        return anew(batch, resolved)
    return _possible(anew(batch, resolved), lambda: anew(whole, resolved, whole=True), input_types)


def _possible(
    first: Framed, second: Callable[[], Framed], input_types: Mapping[str, InputType] | None, rule: str | None = None
) -> Framed:
    """Return the first of two candidates that can be compiled, by default the first. The second is tried only if
    ``rule`` is among the reasons against the first (None: any reason)."""
    try:
        return replace(first, graph=lower(first.resolved, input_types))
    except ModelRefused as refused:
        if rule is None or any(finding.rule == rule for finding in refused.findings):
            other = second()
            try:
                return replace(other, graph=lower(other.resolved, input_types))
            except ModelRefused:
                pass
    return first


def _first_axis(proto: ModelProto, dimensions: Mapping[str, int]) -> Sequence[Finding]:
    """Return the findings about inputs whose first sizes are no numbers of frames."""
    try:
        resolve_with_graph(proto, dimensions, KEPT)
    except ModelRefused as refused:
        return refused.findings
    return ()


def _apart(node: OnnxNode) -> Finding:
    return Finding(
        "interleave-frames", node.where,
        "must work on each row of a matrix for several frames to go through it as one (--interleave, --share), as "
        "convolutions and pools do not", "leave the option out",
    )


def _in_the_way(node: OnnxNode) -> Finding:
    return Finding(
        "frame-axis", node.where,
        "must process the entries of the first axis independently, or be an operator that works along one of several "
        "axes; it does neither", "export the model with a batch of 1 or a dynamic batch",
    )
