"""Give products with constant weights, and the requantizers behind them, room for other weights, scales and biases.

Requires: typed-values. Ensures: typed-values; the hardware of these layers follows from what they hold, not from their
own numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.ir.graph import Graph, Node, Recurring
from hwflow.ir.node_attributes import Conv2dAttributes, DenseAttributes, HeldSums, RequantizeAttributes
from hwflow.numerics.requantizers.held_form import HeldForm
from hwflow.numerics.requantizers.stages import NoSteps, chain
from hwflow.passes.infer_types import infer_types
from hwflow.types import Interval, IntType

RULE = "held-layer"
LARGER = 2  # times as large sums as the layer's own have room
_WEIGHT_BITS = (2, 4, 8, 16)
_FAR = 12  # bits beyond a layer's own sums: all quantizers saturate there


@dataclass(frozen=True)
class HeldLayer:
    """What the hardware of a layer holds: its sums, and its requantizer's form."""

    sums: HeldSums
    form: HeldForm

    def table(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        form = self.form
        return {
            "weight_bits": self.sums.weight_bits, "sums": [self.sums.sums.lo, self.sums.sums.hi], "shift": form.shift,
            "clamp": [form.low, form.high], "multiplier": list(form.multiplier), "addend": list(form.addend),
        }

    @classmethod
    def of_table(cls, table: Mapping[str, Any]) -> HeldLayer:
        """Return what :meth:`table` says."""
        (low, high), (multiplier, m_signed), (addend, a_signed) = table["clamp"], table["multiplier"], table["addend"]
        form = HeldForm(table["shift"], low, high, (multiplier, m_signed), (addend, a_signed))
        return cls(HeldSums(table["weight_bits"], Interval(*table["sums"])), form)


@dataclass
class Holding:
    """The layers that have room: all (``names`` None), or those of ONNX nodes. ``known``: what the hardware of each
    holds, where there is such hardware already; ``loadable``: it is written while the design runs; ``found``: what the
    hardware of the graph that was last changed holds."""

    names: frozenset[str] | None = None
    known: Mapping[str, HeldLayer] | None = None
    loadable: bool = False
    found: dict[str, HeldLayer] = field(default_factory=dict)

    @property
    def option(self) -> str:
        """Return the option that asks for it."""
        return "--loadable" if self.loadable else "--patchable"

    def hold(self, graph: Graph) -> Graph:
        """Return a copy of ``graph`` with these layers.

        Raises :class:`ModelRefused` with a finding for each layer that cannot be held, or that known hardware does not
        hold.
        """
        graph = graph.copy()
        findings: list[Finding] = []
        if self.loadable and any(isinstance(node.attributes, Recurring) for node in graph.nodes):
            findings.append(Finding(
                RULE, "option --loadable", "must be given for a model without state: what follows from its state is "
                "computed before the next frame comes", "leave it out",
            ))
        pairs = list(self._pairs(graph, findings))
        sums = {}
        for layer, _ in pairs:
            known = None if self.known is None else self.known.get(layer.name)
            sums[layer] = replace(_sums(layer, self.loadable) if known is None else known.sums, loadable=self.loadable)
            findings += _beyond(layer, sums[layer])
            layer.attributes = replace(layer.attributes, held=sums[layer])
        if findings:
            raise ModelRefused(findings)
        infer_types(graph)
        self.found = {}
        for layer, requantizer in pairs:
            steps = requantizer.attributes.steps
            known = None if self.known is None else self.known.get(layer.name)
            form = _form(requantizer, self.loadable) if known is None else known.form
            if form is None or form.find(steps) is None:
                findings.append(_unlike(requantizer, known))
                continue
            form = replace(form, loadable=self.loadable)
            requantizer.attributes = replace(requantizer.attributes, held=form)
            self.found[layer.name] = HeldLayer(sums[layer], form)
        if findings:
            raise ModelRefused(findings)
        return infer_types(graph)

    def _pairs(
        self, graph: Graph, findings: list[Finding]
    ) -> Iterator[tuple[Node[Any], Node[RequantizeAttributes]]]:
        """Yield each layer with its requantizer."""
        consumers, outputs = graph.consumers(), {port.value for port in graph.outputs}
        left = set() if self.names is None else set(self.names)
        for node in graph.nodes:
            attributes = node.attributes
            if not isinstance(attributes, Conv2dAttributes | DenseAttributes):
                continue
            if self.names is not None and self.names.isdisjoint({node.name, *node.sources}):
                continue
            left -= {node.name, *node.sources}
            depthwise = isinstance(attributes, Conv2dAttributes) and (
                attributes.groups > 1 and attributes.weights.shape[1] == 1
            )
            readers = consumers[node.outputs[0]]
            alone = len(readers) == 1 and node.outputs[0] not in outputs
            if attributes.binary or depthwise:
                what = "binary" if attributes.binary else "depthwise"
                findings.append(_refusal(node, f"must be a product with weights of several bits, not {what}"))
            elif attributes.weights.shape[-2 if isinstance(attributes, DenseAttributes) else 0] == 1:
                findings.append(_refusal(node, "must have several output channels, not 1"))
            elif not alone or not isinstance(readers[0][0].attributes, RequantizeAttributes):
                findings.append(_refusal(node, "must be followed by a quantizer and nothing else"))
            else:
                yield node, readers[0][0]
        for name in sorted(left):
            findings.append(Finding(
                RULE, f"option {self.option}", f"must name nodes with constant weights, not {show(name)}",
                "name others, or 'all'",
            ))


def _sums(layer: Node[Any], loadable: bool) -> HeldSums:
    """Return room for weights of as many bits: for sums twice as large, or if ``loadable`` for those of any weights."""
    weights, interval = layer.attributes.weights, layer.outputs[0].typed.interval
    bits = 1 + max(int(weights.max(initial=0)), -int(weights.min(initial=0)) - 1).bit_length()
    wide = next((each for each in _WEIGHT_BITS if each >= bits), bits)
    sums = Interval(LARGER * min(interval.lo, -1), LARGER * max(interval.hi, 1))
    return HeldSums(wide, interval.hull(_of_any_weights(layer, wide)) if loadable else sums)


def _of_any_weights(layer: Node[Any], bits: int) -> Interval:
    """Return the sums that weights of so many bits may make."""
    attributes, x = layer.attributes, layer.inputs[0].typed.interval
    terms = int(attributes.weights.shape[-1])
    if isinstance(attributes, Conv2dAttributes):
        terms = int(np.prod(attributes.weights.shape[1:]))
        x = x.hull(Interval(attributes.pad_value, attributes.pad_value))
        if attributes.centred:
            x = x.plus(-attributes.pad_value)
    weight = IntType(bits, True)
    ends = [a * b for a in (x.lo, x.hi) for b in (weight.min, weight.max)]
    return Interval(terms * min(ends), terms * max(ends))


def _form(requantizer: Node[RequantizeAttributes], loadable: bool) -> HeldForm | None:
    """Return room for other functions, whose results are those of sums of any size."""
    source = requantizer.inputs[0].typed
    interval = source.interval
    far = max(-interval.lo, interval.hi) << _FAR
    try:
        every = [chain(stages, -far, far) for stages in dict.fromkeys(requantizer.attributes.stages)]
    except NoSteps:
        return None
    values = [value for steps in every for value in (min(steps.values), max(steps.values))]
    bits = source.element.bits if loadable else None
    return HeldForm.of(requantizer.attributes.steps, min(values), max(values), bits)


def _beyond(layer: Node[Any], held: HeldSums) -> Iterator[Finding]:
    """Yield what does not fit."""
    weights, interval = layer.attributes.weights, layer.outputs[0].typed.interval
    most = 1 << (held.weight_bits - 1)
    if int(weights.min(initial=0)) < -most or int(weights.max(initial=0)) >= most:
        yield _refusal(
            layer, f"must have weights of {held.weight_bits} bits, not from {weights.min()} to {weights.max()}"
        )
    if not (held.sums.lo <= interval.lo and interval.hi <= held.sums.hi):
        yield _refusal(layer, f"must have sums within {held.sums}, not {interval}: hardware has room for no others")


def _unlike(requantizer: Node[RequantizeAttributes], known: HeldLayer | None) -> Finding:
    if known is None:
        return _refusal(
            requantizer,
            "must be a multiplication, an addition and a shift that rounds down, not another step function (with "
            "scales that are powers of two, sums half-way between two results are rounded to the even one)",
        )
    form = known.form
    return _refusal(
        requantizer,
        f"must be a multiplication by at most {form.multiplier[0]} bits, an addition of at most {form.addend[0]} bits, "
        f"a shift by {form.shift} and a clamp to [{form.low}, {form.high}] for every channel, which hardware has room "
        "for, not another step function",
    )


def _refusal(node: Node[Any], message: str) -> Finding:
    names = ", ".join(show(name) for name in node.sources) or show(node.name)
    remedy = "build this model with 'hwflow synth', or leave the node out of '--patchable' or '--loadable'"
    return Finding(RULE, f"node {names}", message, remedy)
