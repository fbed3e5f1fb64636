"""Lower ONNX to the quantized graph, node by node; all nodes that cannot be lowered are reported at once."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod

import numpy as np

from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.frontend import boundary
from hwflow.frontend.approximation_bits import EPSILON, MOST_LOWERINGS, Precision
from hwflow.frontend.context import Handler, Lowering, Refusal, refuse
from hwflow.frontend.honoured_attributes import not_defined, not_honoured
from hwflow.frontend.input_types import InputType
from hwflow.frontend.refused_operators import of_whole_operators, unsupported, whole_operator
from hwflow.frontend.stand_ins import refuse_results, source_of
from hwflow.frontend.states.state_integers import IntegersByState, delays, integers_of_states, view_of
from hwflow.frontend.stream_types import COMPUTED_TYPES, HOST_TYPES, KNOWN_TYPES, REAL_TYPES, STREAM_TYPES
from hwflow.frontend.unquantized import Site, in_the_way, input_type, is_dialect, unquantized
from hwflow.frontend.views import (
    Anchor,
    Constant,
    HostInput,
    HostOutput,
    Integers,
    Masked,
    Reals,
    Refused,
    Source,
    View,
)
from hwflow.ir.graph import Graph, Stage
from hwflow.onnxspec.dialect_operators import can_run
from hwflow.onnxspec.reading.guard import GaveUp, TimeBudget, guarded
from hwflow.onnxspec.resolving.resolved_model import OnnxNode, ResolvedModel
from hwflow.onnxspec.resolving.resolver import Unresolved
from hwflow.operators.onnx_operators import HANDLERS
from hwflow.operators.quantizers.quantizers import graph_input, say_scale
from hwflow.operators.record import Operator
from hwflow.types import Interval, IntType

MAX_ELEMENTS = 1 << 23
"""Elements of one value in one frame: a colour image of 1,600 x 1,600 pixels. The compiler keeps several orders of
elements in memory at a time, 64 MiB each at this size."""

_OVERSIZED_SECONDS, _OVERSIZED_MEMORY = 20.0, 2 << 30
"""Limits of processor time and memory (bytes) for the other findings of a model with larger frames."""

_UNKNOWN = Refused(None, Source.EITHER)
"""The view of a value that could not be resolved."""

_RESHAPE = "reshape to (frames, ...)"


def lower(model: ResolvedModel, input_types: Mapping[str, InputType] | None = None) -> Graph:
    """Return the quantized graph of a resolved model. ``input_types``: the declared integers of float inputs, by name.

    Raises :class:`ModelRefused` with all findings.
    """
    declared = input_types or {}
    oversized = _oversized(model)
    if oversized:
        raise ModelRefused([*oversized, *_within_limits(lambda: _findings(model, declared))])
    return _lowered(model, declared)


def findings_of_rest(unresolved: Unresolved, input_types: Mapping[str, InputType] | None = None) -> list[Finding]:
    """Return the further findings of a model that could not be resolved: nodes of known shapes are checked as
    :func:`lower` does."""
    model = unresolved.rest
    if not any(is_dialect((n.domain, n.op_type)) for n in model.nodes if n.name not in unresolved.opaque):
        return []  # unknown whether the model is quantized at all
    oversized, said = _oversized(model), {finding.where for finding in unresolved.findings}

    def find() -> tuple[Finding, ...]:
        found = of_whole_operators(_examined(model, input_types or {}, unresolved.opaque).findings)
        return tuple(f for f in found if f.rule != "supported-operator" or f.where not in said)

    return [*oversized, *(_within_limits(find) if oversized else find())]


def _findings(model: ResolvedModel, declared: Mapping[str, InputType]) -> tuple[Finding, ...]:
    try:
        _lowered(model, declared)
    except ModelRefused as refused:
        return refused.findings
    return ()


def _within_limits(find: Callable[[], tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """Return the findings of a model besides the size of its frames, as far as the limits allow."""
    try:
        return guarded(find, TimeBudget(_OVERSIZED_SECONDS), _OVERSIZED_MEMORY)
    except GaveUp:
        return ()


def _examined(model: ResolvedModel, declared: Mapping[str, InputType], opaque: Container[str] = ()) -> Lowering:
    """Lower or refuse all nodes, with approximations as precise as is needed. ``opaque``: names of nodes refused
    before."""
    precision = Precision()
    known, findings = integers_of_states(model, lambda assumed: _walked(model, declared, opaque, precision, assumed))
    enough: Lowering | None = None  # with bits to spare: fewer may be too few, since roundings are not all alike
    for _ in range(MOST_LOWERINGS):
        state = _walked(model, declared, opaque, precision, known, settled=True)
        if precision.settled or state.findings or findings:
            state.findings[:0] = findings
            return state
        if precision.epsilon <= EPSILON:
            enough = state
        precision = precision.next()
    if enough is not None:
        return enough
    message = "approximations must be precise enough for the quantizers behind them, not lack bits again and again"
    remedy = "insert QuantizeLinear and DequantizeLinear between the operators that divide or take roots"
    state.findings.append(Finding("precision", f"model {show(model.name)}", message, remedy))
    return state


def _walked(
    model: ResolvedModel, declared: Mapping[str, InputType], opaque: Container[str], precision: Precision,
    states: IntegersByState, *, settled: bool = False,
) -> Lowering:
    """Walk the nodes once. ``states``: the integers assumed of states, ``settled`` for good."""
    state = Lowering(model, precision=precision)
    state.views.update({name: Constant(array) for name, array in model.constants.items()})
    read = {name for node in model.nodes if node.name not in opaque for name in node.inputs} | {*model.outputs}
    for name in model.inputs:
        if name in read and name in model.values:
            state.views[name] = _input_view(state, name, declared.get(name))
        else:
            state.views[name] = Refused(None, Source.HOST)
    for tie in model.ties:
        state.views[tie.target] = view_of(state, tie, states.get(tie.target), known=settled)
    tail = boundary.tail(model)
    state.at_end = tail.real
    for node in model.nodes:
        if node.name in opaque:
            views = [state.views.get(name, _UNKNOWN) for name in node.inputs if name]
            refuse_results(state, node, source_of(node, views))
            if (node.domain, node.op_type) not in HANDLERS and not can_run(node.domain, node.op_type):
                state.findings.append(unsupported_operator(node))
        else:
            _lower_node(state, node, tail)
    return state


def _lowered(model: ResolvedModel, declared: Mapping[str, InputType]) -> Graph:
    state = _examined(model, declared)
    if not state.findings and all(name in model.fixed for name in model.outputs):
        message = "at least one output must be computed by hardware, not none: all are constants"
        remedy = "there is nothing to compile"
        raise ModelRefused.of("hardware-operator", f"model {show(model.name)}", message, remedy)
    if not any(is_dialect((n.domain, n.op_type)) for n in model.nodes) and not _integer_only(model, declared):
        obstacles = in_the_way([Site.of(node) for node in model.nodes], model.inputs)
        others = (finding for finding in state.findings if whole_operator(finding.where) is None)
        state.findings = [unquantized(model.name), *_hosts_alone(model), *others, *obstacles]
    closed = [] if state.findings else [*delays(state)]
    ends = None if state.findings else boundary.ends(state)
    if state.findings or ends is None:
        raise ModelRefused(of_whole_operators(state.findings))
    place = {name: index for index, name in enumerate(model.inputs)}  # results of the prefix come after them
    inputs = sorted(state.inputs, key=lambda port: place.get(port.name, len(place)))
    graph = Graph(
        model.name, Stage.QUANTIZED, inputs, ends.ports, closed + state.nodes, suffix=ends.suffix,
        deferred=tuple(state.deferred),
    )
    _drop_dead_nodes(graph)
    if not graph.nodes and state.deferred:  # the reasons why nothing is left for hardware
        raise ModelRefused(of_whole_operators(state.deferred))
    if not graph.outputs:
        raise ModelRefused([unquantized(model.name), *_hosts_alone(model)])
    graph.prefix = boundary.prefix(model, graph)
    return graph


def _oversized(model: ResolvedModel) -> list[Finding]:
    """Return findings about values whose frames exceed the compiler's memory, one per shape: a file of a few bytes can
    state any shape."""
    producers = {name: node.where for node in model.nodes for name in node.outputs}
    names: dict[tuple[int, ...], list[str]] = {}
    for name, info in model.values.items():
        if prod(info.shape) > MAX_ELEMENTS and name not in model.fixed:
            names.setdefault(info.shape, []).append(name)
    return [
        Finding(
            "frame-size",
            producers.get(first, f"input {show(first)}"),
            f"a frame of {show(first)}{f' and {len(others)} more of its shape' if others else ''} must hold at most "
            f"{MAX_ELEMENTS} elements, whose order the compiler keeps in memory, not {prod(shape)} {list(shape)}",
            "compile the model for smaller frames, tiles of an image for example",
        )
        for shape, (first, *others) in names.items()
    ]


def _integer_only(model: ResolvedModel, declared: Container[str]) -> bool:
    """Tell whether hardware may begin at inputs, and all that are real are declared."""
    begins = [
        name in declared or model.values[name].dtype in STREAM_TYPES or _indices(model, name) is not None
        for name in model.inputs
    ]
    others = (model.values[name].dtype for name, found in zip(model.inputs, begins, strict=True) if not found)
    return any(begins) and REAL_TYPES.isdisjoint(others)


def _indices(model: ResolvedModel, name: str) -> Interval | None:
    """Return the interval of a graph input that nodes read as indices alone; None for any other."""
    sizes = []
    for node in model.nodes:
        for place in [place for place, read in enumerate(node.inputs) if read == name]:
            operator = HANDLERS.get((node.domain, node.op_type))
            size = None
            if operator is not None and operator.indexed is not None and all(n in model.values for n in node.inputs):
                size = operator.indexed(node, [model.values[n].shape for n in node.inputs].__getitem__).get(place)
            if not size:
                return None
            sizes.append(size)
    return Interval(-max(sizes), max(sizes) - 1) if sizes else None


def _input_view(state: Lowering, name: str, declared: InputType | None) -> View:
    info = state.model.values[name]
    if not info.shape:
        state.findings.append(
            Finding(
                "frame-axis", f"input {show(name)}", "the input must have a leading frame axis, not be a scalar",
                _RESHAPE
            )
        )
        return Refused()
    if declared is not None and info.dtype in REAL_TYPES:
        return _declared_input(state, name, declared)
    if declared is not None:
        return _declared_integers(state, name, declared)
    indices = _indices(state.model, name) if info.dtype in COMPUTED_TYPES else None
    if indices is not None:
        type_ = COMPUTED_TYPES[info.dtype]
        interval = Interval(max(indices.lo, type_.min), min(indices.hi, type_.max))
        return graph_input(state, name, name, IntType.holding(interval), None, interval)
    if info.dtype in STREAM_TYPES:
        return graph_input(state, name, name, STREAM_TYPES[info.dtype])
    if info.dtype in REAL_TYPES or info.dtype in HOST_TYPES:
        return HostInput(name, state.frame_shape(name))
    state.findings.append(input_type(name, info.dtype))
    return Refused()


def _hosts_alone(model: ResolvedModel) -> list[Finding]:
    """Return findings about inputs of types that hardware does not take, where nothing is left for it."""
    return [input_type(name, dtype) for name in model.inputs if (dtype := model.values[name].dtype) in HOST_TYPES]


def _declared_integers(state: Lowering, name: str, declared: InputType) -> View:
    """Return an integer input whose integers are of a declared type: as they are, within its range."""
    dtype = state.model.values[name].dtype
    levels, type_ = declared.levels, COMPUTED_TYPES.get(dtype)
    plain = declared == InputType(declared.name) and declared.name != "bipolar"
    if type_ is not None and plain and type_.min <= levels.lo and levels.hi <= type_.max:
        return graph_input(state, name, name, IntType.holding(levels), None, levels)
    message = f"must be declared by a type within its own, {dtype}, and without a scale, not as {declared}"
    remedy = "leave out --input-type for it, or declare the type alone"
    state.findings.append(Finding("input-type", f"input {show(name)}", message, remedy))
    return Refused()


def _declared_input(state: Lowering, name: str, declared: InputType) -> Reals:
    """Return a float input as reals represented by the declared integers, as if a quantizer of that type followed
    it."""
    levels, meaning = declared.levels, declared.meaning
    integers = graph_input(state, name, name, IntType.holding(levels), meaning, levels)
    say_scale(state.inputs[-1], meaning.scale, meaning.zero_point)
    anchor = Anchor(name, integers.value, meaning.scale, meaning.zero_point)
    return Reals(
        integers.value, integers.shape, meaning.scale, meaning.zero_point, anchor, low=levels.lo, high=levels.hi
    )


def _foreign(state: Lowering, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield values, with their element types, that are neither hardware's integers nor real numbers."""
    for name in names:
        info = state.model.values.get(name)
        # shapes, axes and the like are int64
        known = (*REAL_TYPES, *STREAM_TYPES, "int64")
        if info is not None and info.dtype not in known and not _is_int64(state, name, info.dtype):
            yield name, info.dtype


def _is_int64(state: Lowering, name: str, dtype: str) -> bool:
    """Tell whether a value is a constant of uint64 whose numbers fit int64."""
    view = state.views.get(name)
    return dtype == "uint64" and isinstance(view, Constant) and int(view.array.max(initial=0)) < 1 << 63


def _refuse_foreign(state: Lowering, node: OnnxNode, names: Iterable[str]) -> None:
    for name, dtype in _foreign(state, names):
        raise refuse(
            node, "element-type", f"{show(name)} must be of element type {KNOWN_TYPES}, not {dtype}",
            "export the model with another element type",
        )


def _lower_node(state: Lowering, node: OnnxNode, tail: boundary.Tail) -> None:
    """Lower one node; at the model's end the host takes what hardware cannot do."""
    result: View | tuple[View, ...] = Refused()
    unknown = tuple(not_defined(node))
    if unknown:
        state.findings.extend(unknown)
        refuse_results(state, node, source_of(node, [state.view(name) for name in node.inputs if name]))
        return
    operator = HANDLERS.get((node.domain, node.op_type))
    views = [_unmasked(state.view(name)) for name in node.inputs if name]
    needs = () if operator is None else operator.needs
    if needs and not any(isinstance(v, (*needs, Refused)) for v in views):
        operator = None  # left to the host
    if operator is None and not can_run(node.domain, node.op_type):
        state.findings.append(unsupported_operator(node))
        refuse_results(state, node, source_of(node, views))
        return
    if any(isinstance(v, HostOutput) for v in views):
        if (node.domain, node.op_type) not in HANDLERS and node.name not in tail.real:
            state.deferred.append(unsupported_operator(node))
        _leave_to_host(state, node)
        return
    if operator is None:
        behind = any(isinstance(v, Integers | Reals | Refused) for v in views)
        if behind and (node.name in tail.real or node.name in tail.light):
            state.deferred.append(unsupported_operator(node))
            _leave_to_host(state, node)
            return
        said = _operator(node)
        foreign = next(_foreign(state, (*node.inputs, *node.outputs)), None)
        if foreign is not None:
            said += f" (with {show(foreign[0])} of element type {foreign[1]})"
        if not _before_hardware(views):
            state.findings.append(unsupported_operator(node, said))
        else:
            result = _host_inputs(state, node, views)
    elif not any(isinstance(v, Refused) for v in views):
        checked = boundary.quantizes(node) or not _before_hardware(views)  # the host takes all types
        try:
            _refuse_foreign(state, node, node.inputs[:1] if checked else ())
            result = _result(state, node, operator, views)
            # The handler goes first: its finding says more.
            _refuse_foreign(state, node, (*node.inputs, *node.outputs) if checked else ())
        except Refusal as refusal:
            if node.name in tail.real and any(isinstance(v, Integers | Reals) for v in views):
                state.deferred.extend(refusal.findings)
                _leave_to_host(state, node)
                return
            state.findings.extend(refusal.findings)
    else:
        _look_at(state, node, operator)
    if isinstance(result, tuple):
        views_of = zip(node.outputs, result, strict=True)
        state.views.update({name: _nothing(state, name) or view for name, view in views_of if name})
        return
    refuse_results(state, node, source_of(node, views))
    if not isinstance(result, Refused):
        state.views[node.result] = result


def _nothing(state: Lowering, name: str) -> Constant | None:
    """Return a tensor without elements (one part of a Split, say) as a constant; None for any other."""
    info = state.model.values[name]
    return Constant(np.zeros(info.shape, np.int64 if "int" in info.dtype else np.float64)) if 0 in info.shape else None


def unsupported_operator(node: OnnxNode, said: str = "") -> Finding:
    """Return the finding about an unsupported operator, described as ``said``."""
    return unsupported(node.where, node.op_type, said or _operator(node))


def _operator(node: OnnxNode) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _leave_to_host(state: Lowering, node: OnnxNode) -> None:
    """Leave all outputs of a node after the last quantizer to the host."""
    for name in node.outputs:
        if name:
            state.views[name] = HostOutput(name, state.frame_shape(name))


def _before_hardware(views: list[View]) -> bool:
    """Tell whether a node that reads ``views`` reads only what the host holds before the first quantizer."""
    host = [v for v in views if isinstance(v, HostInput)]
    return bool(host) and all(isinstance(v, HostInput | Constant) for v in views)


def _host_inputs(state: Lowering, node: OnnxNode, views: list[View]) -> tuple[View, ...]:
    """Return views of all outputs of a node before the first quantizer: they are the host's."""
    before = dict.fromkeys(name for v in views if isinstance(v, HostInput) for name in v.nodes)
    nodes = (*before, node.name)
    return tuple(HostInput(name, state.frame_shape(name), nodes) if name else Refused() for name in node.outputs)


def _look_at(state: Lowering, node: OnnxNode, operator: Operator) -> None:
    """Find a node's own faults although it reads the result of a refused one.

    A node is skipped where that result cannot be guessed: the finding about its producer is enough.
    """
    refused = {n: v for n in node.inputs if n and isinstance(v := state.view(n), Refused)}
    if any(v.stand_in is None for v in refused.values()):
        return
    state.views.update({name: v.stand_in for name, v in refused.items() if v.stand_in is not None})
    try:
        _result(state, node, operator, [state.view(name) for name in node.inputs if name])
    except Refusal as refusal:
        state.findings.extend(refusal.findings)
    finally:
        state.views.update(refused)


def _result(
    state: Lowering, node: OnnxNode, operator: Operator, views: list[View]
) -> View | tuple[View, ...]:
    if any(isinstance(v, HostInput | Integers | Reals) for v in views):
        shapes = [state.model.values[name].shape for name in node.outputs if name]
        shape = next((shape for shape in shapes if min(shape, default=1) > 0), shapes[0])
        if min(shape, default=1) < 1:  # shape inference gives a negative size for a window larger than the image
            raise refuse(
                node, "empty-tensor", f"the result must hold at least one element, not have shape {list(shape)}",
                "leave the node out, or give its window pads if it is larger than the image",
            )
        if shape[:1] != (1,):
            raise refuse(
                node, "frame-axis", f"the result must keep the frame axis first, not have shape {list(shape)}",
                _RESHAPE,
            )
    if operator.real_only:
        for name in node.inputs:
            if isinstance(state.views.get(name), Reals) and state.model.values[name].dtype in STREAM_TYPES:
                raise refuse(
                    node, "integer-arithmetic",
                    f"input {show(name)} must be of a real type, not {state.model.values[name].dtype}: products of "
                    "integers wrap around, quotients lose their fraction", "put a Cast to float before it",
                )
    if not boundary.quantizes(node) and _before_hardware(views):
        return _host_inputs(state, node, views)
    if operator.approximates and node.name in state.at_end:
        raise refuse(
            node, "quantized-result", f"the result of {node.op_type} must be quantized, not left in float: the "
            "quantizer says how precisely it is computed", "leave it to the host, or quantize its result",
        )
    ignored = tuple(not_honoured(node, operator))
    if ignored:
        raise Refusal(*ignored)
    assert operator.lower is not None
    view = state.view(node.inputs[0]) if node.inputs and node.inputs[0] else None
    if operator.masks and isinstance(view, Masked):
        return _of_masked(state, node, operator.lower, view)
    return operator.lower(state, node)


def _of_masked(state: Lowering, node: OnnxNode, handler: Handler, view: Masked) -> View | tuple[View, ...]:
    """Lower a node that takes masked elements as any others."""
    state.views[node.inputs[0]] = view.reals
    try:
        result = handler(state, node)
    finally:
        state.views[node.inputs[0]] = view

    def masked(found: View) -> View:
        if not isinstance(found, Reals):
            return found
        # The host has no integers for what is masked.
        after = tuple(dict.fromkeys((*view.reals.after, node.name)))
        return replace(view, reals=replace(found, anchor=view.reals.anchor, after=after))

    return tuple(map(masked, result)) if isinstance(result, tuple) else masked(result)


def _unmasked(view: View) -> View:
    return view.reals if isinstance(view, Masked) else view


def _drop_dead_nodes(graph: Graph) -> None:
    """Remove nodes that no output needs."""
    producers = graph.producers()
    pending = [port.value for port in graph.outputs]
    needed = set(pending)
    while pending:
        node = producers.get(pending.pop())
        more = [] if node is None else [value for value in node.inputs if value not in needed]
        needed.update(more)
        pending += more
    graph.nodes = [node for node in graph.nodes if not needed.isdisjoint(node.outputs)]
    graph.inputs = [p for p in graph.inputs if p.value in needed]
