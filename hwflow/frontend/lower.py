"""ONNX to the quantized graph. Each node lowers by itself; every node that cannot be lowered is reported at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from hwflow.errors import Finding, ModelRefused
from hwflow.frontend import boundary
from hwflow.frontend.context import Handler, Lowering, Refusal, made, refuse
from hwflow.frontend.element_types import COMPUTED_TYPES, KNOWN_TYPES, REAL_TYPES, STREAM_TYPES
from hwflow.frontend.handlers import HANDLERS, KEPT, REAL_ONLY
from hwflow.frontend.integers import INTEGER_ONLY
from hwflow.frontend.ordering import HANDLERS as ORDERING
from hwflow.frontend.quantizers import graph_input
from hwflow.frontend.refused_operators import of_whole_operators, unsupported
from hwflow.frontend.unquantized import input_type, is_dialect, unquantized
from hwflow.frontend.views import Constant, HostInput, HostOutput, Integers, Reals, Refused, View, fractions
from hwflow.ir.graph import Graph, Node, Stage, Value
from hwflow.onnxspec.dialect_operators import can_run
from hwflow.onnxspec.model import OnnxNode, ResolvedModel

__all__ = ["HANDLERS", "KEPT", "lower", "refuse_unsupported"]

MAX_ELEMENTS = 1 << 23
"""Of one value in one frame: a colour image of 1,600 x 1,600 pixels. Streams beyond are far beyond the devices."""

MAX_ALL_ELEMENTS = 1 << 26
"""Of all values in one frame."""

_RESHAPE = "reshape to (frames, ...)"


def lower(model: ResolvedModel) -> Graph:
    """The quantized graph of a resolved model. Raises :class:`ModelRefused` with all findings."""
    _refuse_oversized(model)
    state = Lowering(model)
    state.views.update({name: Constant(array) for name, array in model.constants.items()})
    read = {name for node in model.nodes for name in node.inputs} | {*model.outputs}
    for name in model.inputs:
        if name in read:
            state.views[name] = _input_view(state, name)
    tail = boundary.tail(model)
    for node in model.nodes:
        _lower_node(state, node, tail)
    if not state.findings and all(name in model.fixed for name in model.outputs):
        message = "at least one output must be computed by hardware, not none: all are constants"
        remedy = "there is nothing to compile"
        raise ModelRefused([Finding("hardware-operator", f"model '{model.name}'", message, remedy)])
    if not any(is_dialect((n.domain, n.op_type)) for n in model.nodes) and not _integer_only(model):
        state.findings.insert(0, unquantized(model.name))
    ends = None if state.findings else boundary.ends(state)
    if state.findings or ends is None:
        raise ModelRefused(of_whole_operators(state.findings))
    place = {name: index for index, name in enumerate(model.inputs)}  # what the host makes of inputs comes behind them
    inputs = sorted(state.inputs, key=lambda port: place.get(port.name, len(place)))
    graph = Graph(model.name, Stage.QUANTIZED, inputs, ends.ports, state.nodes, suffix=ends.suffix)
    _drop_dead_nodes(graph)
    if not graph.nodes and state.deferred:  # nothing is left for hardware: that is why
        raise ModelRefused(of_whole_operators(state.deferred))
    if not graph.outputs:
        raise ModelRefused([unquantized(model.name)])
    graph.prefix = boundary.prefix(model, graph)
    return graph


def refuse_unsupported(model: ResolvedModel) -> None:
    """Raise :class:`ModelRefused` where a model of integers has operators that no hardware is made of."""
    findings = [
        _unsupported_operator(node)
        for node in model.nodes
        if (node.domain, node.op_type) not in KEPT
    ]
    if findings and _integer_only(model):
        raise ModelRefused(findings)


def _refuse_oversized(model: ResolvedModel) -> None:
    """A shape is a few bytes in the file, whatever it claims: nothing is allocated for an absurd one."""
    makers = {name: node.where for node in model.nodes for name in node.outputs}
    findings = [
        Finding(
            "frame-size",
            makers.get(name, f"input '{name}'"),
            f"a frame of '{name}' must hold at most {MAX_ELEMENTS} elements, not {prod(info.shape)} {list(info.shape)}",
            "correct the shape, or split the model",
        )
        for name, info in model.values.items()
        if name not in model.constants and prod(info.shape) > MAX_ELEMENTS
    ]
    together = sum(prod(info.shape) for name, info in model.values.items() if name not in model.constants)
    if not findings and together > MAX_ALL_ELEMENTS:
        message = f"the values of one frame must hold at most {MAX_ALL_ELEMENTS} elements together, not {together}"
        findings.append(Finding("frame-size", f"model '{model.name}'", message, "split the model"))
    if findings:
        raise ModelRefused(findings)


def _integer_only(model: ResolvedModel) -> bool:
    return all(model.values[name].dtype in STREAM_TYPES for name in model.inputs)


def _input_view(state: Lowering, name: str) -> View:
    info = state.model.values[name]
    if not info.shape:
        state.findings.append(
            Finding(
                "frame-axis", f"input '{name}'", "the input must have a frame axis in front, not be a scalar", _RESHAPE
            )
        )
        return Refused()
    if info.dtype in STREAM_TYPES:
        return graph_input(state, name, name, STREAM_TYPES[info.dtype])
    if info.dtype in REAL_TYPES:
        return HostInput(name, state.frame_shape(name))
    state.findings.append(input_type(name, info.dtype))
    return Refused()


def _foreign(state: Lowering, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Values, with their element types, that neither hardware nor the host's real numbers can be made of."""
    for name in names:
        info = state.model.values.get(name)
        # Shapes, axes and the like are int64.
        known = (*REAL_TYPES, *STREAM_TYPES, "int64")
        if info is not None and info.dtype not in known:
            yield name, info.dtype


def _refuse_foreign(state: Lowering, node: OnnxNode, names: Iterable[str]) -> None:
    for name, dtype in _foreign(state, names):
        raise refuse(
            node, "element-type", f"'{name}' must be of element type {KNOWN_TYPES}, not {dtype}",
            "export the model with another element type",
        )


def _lower_node(state: Lowering, node: OnnxNode, tail: boundary.Tail) -> None:
    """Lower one node; at the model's end the host does what hardware cannot."""
    result: View | tuple[View, ...] = Refused()
    handler = HANDLERS.get((node.domain, node.op_type))
    views = [state.view(name) for name in node.inputs if name]
    taken = Integers if node.op_type in INTEGER_ONLY else Integers | Reals
    if node.domain == "" and node.op_type in (*INTEGER_ONLY, *ORDERING) and not any(
        isinstance(v, taken) for v in views
    ):
        handler = None  # the host's
    if handler is None and not can_run(node.domain, node.op_type):
        state.findings.append(_unsupported_operator(node))
        in_hardware = any(isinstance(v, Integers | Reals) for v in views)  # elsewhere, it may be a quantizer
        refused = Refused(_stand_in(state, node, views) if in_hardware else None)
        state.views.update({name: refused for name in node.outputs if name})
        return
    if any(isinstance(v, HostOutput) for v in views):
        if handler is None and node.name not in tail.real:
            state.deferred.append(_unsupported_operator(node))
        _leave_to_host(state, node)
        return
    if handler is None:
        behind = any(isinstance(v, Integers | Reals | Refused) for v in views)
        if behind and (node.name in tail.real or node.name in tail.light):
            state.deferred.append(_unsupported_operator(node))
            _leave_to_host(state, node)
            return
        operator = _operator(node)
        foreign = next(_foreign(state, (*node.inputs, *node.outputs)), None)
        if foreign is not None:
            operator += f" (with '{foreign[0]}' of element type {foreign[1]})"
        if not _before_hardware(state, node, views):
            state.findings.append(_unsupported_operator(node, operator))
            result = Refused(_stand_in(state, node, views))
        else:
            result = _host_input(state, node, views)
    elif not any(isinstance(v, Refused) for v in views):
        try:
            _refuse_foreign(state, node, node.inputs[:1])
            result = _result(state, node, handler, views)
            _refuse_foreign(state, node, (*node.inputs, *node.outputs))  # a handler that has more to say has said it
        except Refusal as refusal:
            if node.name in tail.real and any(isinstance(v, Integers | Reals) for v in views):
                state.deferred.append(refusal.finding)
                _leave_to_host(state, node)
                return
            result = Refused()
            state.findings.append(refusal.finding)
    else:
        _look_at(state, node, handler)
    if isinstance(result, tuple):
        state.views.update({name: view for name, view in zip(node.outputs, result, strict=True) if name})
        return
    if isinstance(result, Refused):
        result = Refused(_stand_in(state, node, views))
    state.views[node.outputs[0]] = result
    for name in node.outputs[1:]:
        state.views[name] = result if isinstance(result, HostInput) else Refused()


def _unsupported_operator(node: OnnxNode, said: str = "") -> Finding:
    return unsupported(node.where, node.op_type, said or _operator(node))


def _operator(node: OnnxNode) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _leave_to_host(state: Lowering, node: OnnxNode) -> None:
    """All outputs of a node behind the last quantizer are the host's."""
    for name in node.outputs:
        if name:
            state.views[name] = HostOutput(name, state.frame_shape(name))


def _before_hardware(state: Lowering, node: OnnxNode, views: list[View]) -> bool:
    """Whether a node works on nothing but what the host holds before the first quantizer."""
    host = [v for v in views if isinstance(v, HostInput)]
    return bool(host) and all(isinstance(v, HostInput | Constant) for v in views)


def _host_input(state: Lowering, node: OnnxNode, views: list[View]) -> HostInput:
    nodes = dict.fromkeys(name for v in views if isinstance(v, HostInput) for name in v.nodes)
    return HostInput(node.outputs[0], state.frame_shape(node.outputs[0]), (*nodes, node.name))


def _look_at(state: Lowering, node: OnnxNode, handler: Handler) -> None:
    """Find what is wrong in itself with a node that reads the result of a refused one.

    Nothing is said where it cannot be told what that result would be: the finding about its maker is enough.
    """
    refused = {n: v for n in node.inputs if n and isinstance(v := state.view(n), Refused)}
    if any(v.stand_in is None for v in refused.values()):
        return
    state.views.update({name: v.stand_in for name, v in refused.items() if v.stand_in is not None})
    try:
        _result(state, node, handler, [state.view(name) for name in node.inputs if name])
    except Refusal as refusal:
        state.findings.append(refusal.finding)
    finally:
        state.views.update(refused)


def _stand_in(state: Lowering, node: OnnxNode, views: list[View]) -> HostInput | Integers | Reals | None:
    """What a refused node's result would be like: the host's, or hardware's by its element type."""
    known = [v.stand_in if isinstance(v, Refused) else v for v in views]
    info = state.model.values.get(node.outputs[0])  # none where the first output is left out
    if info is None or info.shape[:1] != (1,) or min(info.shape) < 1:
        return None
    shape = state.frame_shape(node.outputs[0])
    if not (info.dtype in COMPUTED_TYPES or info.dtype in REAL_TYPES):
        return None
    in_hardware = any(isinstance(v, Integers | Reals) for v in known)
    if in_hardware or (boundary.quantizes(node) and any(isinstance(v, HostInput) for v in known)):
        element = COMPUTED_TYPES.get(info.dtype)
        value = Value(state.value_names.fresh(node.outputs[0]))
        if element is not None:
            return Integers(value, shape, element.min, element.max)
        return made(value, shape, fractions(1), fractions(0), node)
    if any(isinstance(v, HostInput) for v in known):
        return HostInput(node.outputs[0], shape)
    return None


def _result(
    state: Lowering, node: OnnxNode, handler: Handler, views: list[View]
) -> View | tuple[View, ...]:
    if any(isinstance(v, HostInput | Integers | Reals) for v in views):
        shape = state.model.values[node.outputs[0]].shape
        if min(shape, default=1) < 1:  # inference goes below 0 for a window larger than the image
            raise refuse(
                node, "empty-tensor", f"the result must hold at least one element, not have shape {list(shape)}",
                "correct the node's attributes or the shape of what it reads",
            )
        if shape[:1] != (1,):
            raise refuse(
                node, "frame-axis", f"the result must keep the frame axis in front, not have shape {list(shape)}",
                _RESHAPE,
            )
    if node.domain == "" and node.op_type in REAL_ONLY:
        for name in node.inputs:
            if isinstance(state.views.get(name), Reals) and state.model.values[name].dtype in STREAM_TYPES:
                raise refuse(
                    node, "integer-arithmetic",
                    f"input '{name}' must be of a real type, not {state.model.values[name].dtype}: products of "
                    "integers wrap around, quotients lose their fraction", "put a Cast to float before it",
                )
    if not boundary.quantizes(node) and _before_hardware(state, node, views):
        return _host_input(state, node, views)
    return handler(state, node)


def _drop_dead_nodes(graph: Graph) -> None:
    """Nodes that no output needs are left out: hardware must not compute what nobody reads."""
    needed = {port.value for port in graph.outputs}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(v in needed for v in node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    graph.nodes = kept[::-1]
    graph.inputs = [p for p in graph.inputs if p.value in needed]
