"""The boundary of hardware and host: float nodes before the first and after the last quantizer stay on the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hwflow.display import show
from hwflow.errors import Finding
from hwflow.frontend.context import Lowering
from hwflow.frontend.views import HostInput, HostOutput, Integers, Masked, Reals, Refused
from hwflow.ir.graph import Graph, Meaning, Port, Value, identity_order
from hwflow.onnxspec.resolving.resolved_model import OnnxNode, ResolvedModel
from hwflow.operators.onnx_operators import HEAVY, makes_integers, passes_elements
from hwflow.operators.quantizers.quantizers import say_scale


def quantizes(node: OnnxNode) -> bool:
    """Tell whether hardware may begin at this node."""
    return makes_integers((node.domain, node.op_type))


@dataclass(frozen=True)
class Tail:
    """Names of the nodes that the host may run instead of hardware. ``real``: neither quantizers nor upstream of one.
    ``light``: neither heavy operators (convolutions, matrix products and the like) nor upstream of one; quantizers may
    follow."""

    real: frozenset[str]
    light: frozenset[str]


def tail(model: ResolvedModel) -> Tail:
    """Find the nodes at the end of a model that the host may run."""
    return Tail(_without(model, quantizes), _without(model, lambda node: node.op_type in HEAVY))


def _without(model: ResolvedModel, kind: Callable[[OnnxNode], bool]) -> frozenset[str]:
    """Return the names of the nodes that are not of a kind and do not lead to one."""
    leads: set[str] = set()  # values that lead to one
    names = []
    for node in reversed(model.nodes):
        if kind(node) or any(name in leads for name in node.outputs):
            leads.update(node.inputs)
        else:
            names.append(node.name)
    return frozenset(names)


@dataclass
class Ends:
    """Hardware outputs, and the nodes that the host runs after them, in order."""

    ports: list[Port]
    suffix: tuple[str, ...]


def ends(state: Lowering) -> Ends:
    """Find the hardware's outputs and the host's nodes that the model's outputs need; findings go to ``state``.

    The host already holds the hardware's inputs, and of several names of the same integers one suffices: such outputs
    are the host's, unless the hardware would have no output otherwise.
    """
    found = _Ends(state, host_gives=True)
    if not found.ports and not found.findings:
        found = _Ends(state, host_gives=False)
    state.findings.extend(found.findings)
    return Ends(list(found.ports.values()), tuple(n.name for n in state.model.nodes if n.name in found.suffix))


class _Ends:
    """A walk from the model's outputs back to the hardware's. ``host_gives``: the host provides what it already
    holds."""

    def __init__(self, state: Lowering, *, host_gives: bool) -> None:
        self.state = state
        self.ports: dict[str, Port] = {}
        self.suffix: set[str] = set()
        self.findings: list[Finding] = []
        self._producers = {name: node for node in state.model.nodes for name in node.outputs if name}
        self._by_name = {node.name: node for node in state.model.nodes}
        self._outputs = frozenset(state.model.outputs)
        self._given = {port.value for port in state.inputs} if host_gives else set()
        self._share = host_gives
        self._pending = list(state.model.outputs)
        seen: set[str] = set()
        while self._pending:
            name = self._pending.pop(0)
            if name not in seen:
                seen.add(name)
                self._visit(name)

    def _visit(self, name: str) -> None:
        view = self.state.view(name)
        if isinstance(view, HostOutput):
            self._host_output(name)
        elif isinstance(view, Integers):
            self._integers(name, view)
        elif isinstance(view, Reals | Masked):
            self._reals(name, view.reals if isinstance(view, Masked) else view)
        elif isinstance(view, HostInput):
            self.suffix.update(view.nodes)
        elif isinstance(view, Refused) and name in self._outputs:
            self.findings.append(_finding(name, "come from an output that hardware does not compute"))
        elif name in self._outputs:  # a constant
            self._made_by_host(name)

    def _made_by_host(self, name: str) -> None:
        """Add an output that is a constant, an input of the hardware, or another name of one."""
        node = self._producers.get(name)
        if node is not None:
            self.suffix.add(node.name)
            self._pending.extend(n for n in node.inputs if n)

    def _host_output(self, name: str) -> None:
        node = self._producers[name]
        self.suffix.add(node.name)
        shape = self.state.model.values[name].shape
        if name in self._outputs and shape[:1] != (1,):
            message = f"the result must keep the frame axis first, not have shape {list(shape)}"
            remedy = "do not reduce the frame axis, or reshape to (frames, ...)"
            self.findings.append(Finding("frame-axis", node.where, message, remedy))
        self._pending.extend(n for n in node.inputs if n)

    def _integers(self, name: str, view: Integers) -> None:
        if view.value in self._given:
            self._made_by_host(name)
            return
        path = self._same_integers(name, view.value) if self._share else []
        if path:
            self.suffix.update(node.name for node in path)
        else:
            self.ports[name] = self._port(name, view.value)

    def _same_integers(self, name: str, value: Value) -> list[OnnxNode]:
        """Return the nodes that lead from another output with the same integers to this one; none if there is none."""
        path: list[OnnxNode] = []
        while name in self._producers:
            node = self._producers[name]
            path.append(node)
            views = [(n, self.state.view(n)) for n in node.inputs if n]
            before = [n for n, view in views if isinstance(view, Integers) and view.value is value]
            if not before:
                return []
            name = before[0]
            if name in self._outputs:
                return path
        return []

    def _reals(self, name: str, view: Reals) -> None:
        streams = HostInput | Integers | Reals | Masked  # these may have other anchors
        anchor = view.anchor
        if anchor.value in self._given:
            if anchor.name == name:
                self._made_by_host(name)
            self._pending.append(anchor.name)
        elif anchor.name not in self.ports:
            self.ports[anchor.name] = port = self._port(anchor.name, anchor.value)
            if not say_scale(port, anchor.scale, anchor.zero_point):
                self.findings.append(_finding(name, "have scales that vary along two axes"))
        self.suffix.update(view.after)
        for after in view.after:  # constant inputs go with the nodes; streams must be outputs too
            inputs = (name for name in self._by_name[after].inputs if name)
            self._pending.extend(name for name in inputs if isinstance(self.state.view(name), streams))

    def _port(self, name: str, value: Value) -> Port:
        shape = self.state.model.values[name].shape[1:]
        return Port(name, value, shape, identity_order(shape), levels=self._levels(name))

    def _levels(self, name: str) -> Meaning | None:
        """Return what the integers of an integer tensor mean: as its quantizer has them, through what only moves or
        selects elements; None where no quantizer made them, and where scales along an axis were moved."""
        found: list[Meaning] = []
        pending, seen, moved = [name], {name}, False
        while pending:
            here = pending.pop()
            if (meaning := self.state.levels.get(here)) is not None:
                found.append(meaning)
                continue
            node = self._producers.get(here)
            if node is None or not passes_elements((node.domain, node.op_type)):
                return None
            streams = [n for n in node.inputs if n and isinstance(self.state.view(n), Integers)]
            types = {self.state.model.values[n].dtype for n in (here, *streams)}
            if not streams or len(types) > 1:
                return None
            pending += [n for n in streams if n not in seen]
            seen.update(streams)
            moved = True
        if not found or (moved and any(max(m.scale.size, m.zero_point.size) > 1 for m in found)):
            return None
        first, *others = found
        same = all((m.scale == first.scale).all() and (m.zero_point == first.zero_point).all() for m in others)
        return first if same else None


def prefix(model: ResolvedModel, graph: Graph) -> tuple[str, ...]:
    """Return the nodes that the host runs to compute the hardware's inputs, and what else the suffix reads."""
    producers = {name: node for node in model.nodes for name in node.outputs if name}
    pending = [port.value.origin for port in graph.inputs]
    needed: set[str] = set()
    while pending:
        node = producers.get(pending.pop())
        if node is not None and node.name not in needed:
            needed.add(node.name)
            pending.extend(name for name in node.inputs if name)
    return tuple(node.name for node in model.nodes if node.name in needed)


def _finding(name: str, found: str) -> Finding:
    return Finding(
        "quantized-output", f"output {show(name)}",
        f"the output must be quantized or follow from quantized values, not {found}",
        "put QuantizeLinear and DequantizeLinear before the output",
    )
