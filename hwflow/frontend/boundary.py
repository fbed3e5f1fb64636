"""Where hardware ends: float nodes before the first and behind the last quantizer stay on the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hwflow.errors import Finding
from hwflow.frontend.context import Lowering
from hwflow.frontend.handlers import makes_integers
from hwflow.frontend.quantizers import say_scale
from hwflow.frontend.views import Constant, HostInput, HostOutput, Integers, QuantizedConstant, Reals, Refused
from hwflow.ir.graph import Graph, Port, Value, identity_order
from hwflow.onnxspec.model import OnnxNode, ResolvedModel


def quantizes(node: OnnxNode) -> bool:
    """Whether hardware may begin at this node."""
    return makes_integers((node.domain, node.op_type))


@dataclass(frozen=True)
class Tail:
    """Names of the nodes that the host may run instead of hardware. ``real``: no quantizer is reached from them, nor
    are they one. ``light``: none of the operators that hardware is made for is reached from them (a quantizer may
    be)."""

    real: frozenset[str]
    light: frozenset[str]


def tail(model: ResolvedModel) -> Tail:
    """The nodes at the end of a model."""
    return Tail(_without(model, quantizes), _without(model, lambda node: node.op_type in _HEAVY))


_HEAVY = frozenset({
    "AveragePool", "Conv", "ConvInteger", "ConvTranspose", "Gemm", "GlobalAveragePool", "MatMul", "MatMulInteger",
    "MaxPool", "QGemm", "QLinearAveragePool", "QLinearConv", "QLinearGlobalAveragePool", "QLinearMatMul",
})  # fmt: skip


def _without(model: ResolvedModel, kind: Callable[[OnnxNode], bool]) -> frozenset[str]:
    """Names of the nodes that are not of a kind, and from which none of it is reached."""
    leads: set[str] = set()  # values from which one is reached
    names = []
    for node in reversed(model.nodes):
        if kind(node) or any(name in leads for name in node.outputs):
            leads.update(node.inputs)
        else:
            names.append(node.name)
    return frozenset(names)


@dataclass
class Ends:
    """Hardware outputs, and the nodes the host runs behind them, in order."""

    ports: list[Port]
    suffix: tuple[str, ...]


def ends(state: Lowering) -> Ends:
    """The hardware's outputs and the host's nodes that the model's outputs need; findings go to ``state``."""
    model = state.model
    producers = {name: node for node in model.nodes for name in node.outputs if name}
    ports: dict[str, Port] = {}
    suffix: set[str] = set()
    by_name = {node.name: node for node in model.nodes}
    pending = list(model.outputs)
    seen: set[str] = set()
    outputs = frozenset(model.outputs)
    while pending:
        name = pending.pop(0)
        if name in seen:
            continue
        seen.add(name)
        view = state.view(name)
        if isinstance(view, HostOutput):
            node = producers[name]
            suffix.add(node.name)
            shape = model.values[name].shape
            if name in outputs and shape[:1] != (1,):
                message = f"the result must keep the frame axis in front, not have shape {list(shape)}"
                remedy = "leave the frame axis out of what is reduced, or reshape to (frames, ...)"
                state.findings.append(Finding("frame-axis", node.where, message, remedy))
            pending.extend(n for n in node.inputs if n)
        elif isinstance(view, Integers):
            ports[name] = _port(state, name, view.value)
        elif isinstance(view, Reals):
            if view.anchor.name not in ports:
                ports[view.anchor.name] = port = _port(state, view.anchor.name, view.anchor.value)
                if not say_scale(port, view.anchor.scale, view.anchor.zero_point):
                    state.findings.append(_finding(name, "have scales that vary along two axes"))
            suffix.update(view.after)
            for after in view.after:  # constants among their inputs go with them; streams are needed too
                streams = HostInput | Integers | Reals  # which may have other anchors
                pending.extend(n for n in by_name[after].inputs if n and isinstance(state.view(n), streams))
        elif isinstance(view, HostInput):
            suffix.update(view.nodes)
        elif name in outputs:
            found = {
                Constant: "be a constant",
                QuantizedConstant: "be a constant",
                Refused: "come from an output that hardware does not make",
            }[type(view)]
            state.findings.append(_finding(name, found))
    return Ends(list(ports.values()), tuple(node.name for node in model.nodes if node.name in suffix))


def prefix(model: ResolvedModel, graph: Graph) -> tuple[str, ...]:
    """The nodes that the host runs to make the hardware's inputs of the model's, and what else the suffix reads."""
    producers = {name: node for node in model.nodes for name in node.outputs if name}
    pending = [port.value.origin for port in graph.inputs]
    needed: set[str] = set()
    while pending:
        node = producers.get(pending.pop())
        if node is not None and node.name not in needed:
            needed.add(node.name)
            pending.extend(name for name in node.inputs if name)
    return tuple(node.name for node in model.nodes if node.name in needed)


def _port(state: Lowering, name: str, value: Value) -> Port:
    shape = state.model.values[name].shape[1:]
    return Port(name, value, shape, identity_order(shape))


def _finding(name: str, found: str) -> Finding:
    return Finding(
        "quantized-output", f"output '{name}'",
        f"the output must be quantized or follow from quantized values, not {found}",
        "put QuantizeLinear and DequantizeLinear before the output",
    )
