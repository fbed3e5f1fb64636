"""Give products with constant weights, and the requantizers behind them, room for other weights, scales and biases.

Requires: typed-values. Ensures: typed-values; the hardware of these layers follows from what they hold, not from their
own numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.ir.graph import Graph, Node, Recurring
from hwflow.ir.node_attributes import (
    Conv2dAttributes,
    DenseAttributes,
    HeldFactors,
    HeldSums,
    RequantizeAttributes,
)
from hwflow.numerics.requantizers.held_form import HeldForm
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.numerics.requantizers.stages import NoSteps, QuantizerStage, Stage, chain
from hwflow.passes.hold_sums import hold_sum, quantized_sums
from hwflow.passes.infer_types import infer_types
from hwflow.passes.rescale_sums import rescale_sums
from hwflow.types import Interval, IntType

RULE = "held-layer"
LARGER = 2  # times as large sums as the layer's own have room
_WEIGHT_BITS = (2, 4, 8, 16)
_FAR = 12  # bits beyond a layer's own sums: all quantizers saturate there


@dataclass(frozen=True)
class HeldLayer:
    """The fixed hardware capacity of a layer: ranges of its sums, and forms of the requantizers that read them; of the
    sum of two tensors its ``factors`` and the form; of a requantizer behind something else its form alone."""

    sums: HeldSums | None
    forms: tuple[HeldForm, ...]
    factors: HeldFactors | None = None

    def table(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        forms: dict[str, Any] = {"requantizers": [form.table() for form in self.forms]}
        if self.factors is not None:
            sums = self.factors.sums
            return {"factor_bits": list(self.factors.bits), "sums": [sums.lo, sums.hi], **forms}
        if self.sums is None:
            return forms
        return {"weight_bits": self.sums.weight_bits, "sums": [self.sums.sums.lo, self.sums.sums.hi], **forms}

    @classmethod
    def of_table(cls, table: Mapping[str, Any]) -> HeldLayer:
        """Return what :meth:`table` says."""
        forms = tuple(HeldForm.of_table(each) for each in table["requantizers"])
        if "sums" not in table:
            return cls(None, forms)
        if "factor_bits" in table:
            first, second = table["factor_bits"]
            return cls(None, forms, HeldFactors((first, second), Interval(*table["sums"])))
        return cls(HeldSums(table["weight_bits"], Interval(*table["sums"])), forms)


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

    def _refusal(self, node: Node[Any], message: str) -> Finding:
        names = ", ".join(show(name) for name in node.sources) or show(node.name)
        remedy = f"leave it out: name others with option {self.option}"
        if self.known is not None:
            remedy = "build this model with 'hwflow synth'"
        return Finding(RULE, f"node {names}", message, remedy)

    def hold(self, graph: Graph) -> Graph:
        """Return a copy of ``graph`` with these layers.

        Raises :class:`ModelRefused` with a finding for each layer that cannot be held, or that known hardware does not
        hold.
        """
        if not self.loadable or self.known is not None:
            return self._hold(graph, {})
        # Quantizers that are held reach more than the model's own numbers let them: the layers behind take that in.
        reached = {node.name: node.inputs[0].typed.interval for node in self._hold(graph, {}).nodes if node.inputs}
        return self._hold(graph, reached)

    def _hold(self, graph: Graph, reached: Mapping[str, Interval]) -> Graph:
        """Return the copy, with layers whose inputs may be what is ``reached`` there, by name."""
        graph = graph.copy()
        findings: list[Finding] = []
        if self.loadable and any(isinstance(node.attributes, Recurring) for node in graph.nodes):
            findings.append(Finding(
                RULE, "option --loadable", "must be given for a model without state: what follows from its state is "
                "computed before the next frame comes", "leave it out",
            ))
        added = dict(self._hold_sums(graph, findings))
        graph = rescale_sums(graph)
        pairs = list(self._pairs(graph, findings))
        sums = {}
        for layer, _ in pairs:
            known = None if self.known is None else self.known.get(layer.name)
            room = None if known is None else known.sums
            own = layer.inputs[0].typed.interval
            made = room or _sums(layer, self.loadable, reached.get(layer.name, own))
            sums[layer] = replace(made, loadable=self.loadable)
            findings += [self._refusal(layer, message) for message in _beyond(layer, sums[layer])]
            layer.attributes = replace(layer.attributes, held=sums[layer])
        if findings:
            raise ModelRefused(findings)
        infer_types(graph)
        self.found = added
        for layer, requantizers in pairs:
            known = None if self.known is None else self.known.get(layer.name)
            forms = [_form(each, self.loadable) for each in requantizers] if known is None else known.forms
            if len(forms) != len(requantizers):
                findings.append(self._refusal(
                    layer, f"must be followed by {len(forms)} quantizers, as hardware has them, not {len(requantizers)}"
                ))
                continue
            for requantizer, form in zip(requantizers, forms, strict=True):
                if form is None or form.find(requantizer.attributes.steps) is None:
                    findings.append(self._refusal(requantizer, _unlike(requantizer, None if known is None else form)))
                    continue
                requantizer.attributes = replace(requantizer.attributes, held=replace(form, loadable=self.loadable))
            held = [each.attributes.held for each in requantizers if each.attributes.held is not None]
            self.found[layer.name] = HeldLayer(sums[layer], tuple(held))
        findings += self._hold_others(graph, {each for _, requantizers in pairs for each in requantizers})
        if findings:
            raise ModelRefused(findings)
        if self.known is None and not self.found:
            findings.append(Finding(
                RULE, f"option {self.option}", "must be given for a model with weights or scales of its layers in "
                "tables, but this one has neither", "leave it out",
            ))
        graph = infer_types(graph)
        findings += [self._refusal(node, message) for node, message in _beyond_reach(graph)]
        if findings:
            raise ModelRefused(findings)
        return graph

    def _hold_sums(self, graph: Graph, findings: list[Finding]) -> Iterator[tuple[str, HeldLayer]]:
        """Give sums of two tensors that one quantizer alone reads room for other scales, where all layers have some."""
        if self.names is not None:
            return
        for add, requantizer in quantized_sums(graph):
            known = None if self.known is None else self.known.get(add.name)
            if self.known is not None and (known is None or known.factors is None):
                continue
            room = None if known is None or known.factors is None else (known.factors, known.forms[0])
            held = hold_sum(add, requantizer, self.loadable, room)
            if held is not None:
                yield add.name, HeldLayer(None, (held[1],), held[0])
            elif known is not None:
                findings.append(self._refusal(
                    add, "must be a sum of scales that hardware has room for, not of others: "
                    "at most eight times as large, and no further apart"
                ))

    def _hold_others(self, graph: Graph, held: Set[Node[Any]]) -> Iterator[Finding]:
        """Give the requantizers that are not ``held`` room, too, where all layers have some: other scales of what they
        read change them. Those that are no multiply-add-shift stay as they are."""
        if self.names is not None:
            return
        for node in graph.nodes:
            given = node.attributes
            if not isinstance(given, RequantizeAttributes) or node in held or given.held is not None:
                continue
            if self.known is None:
                form = _form(node, self.loadable)
            else:
                known = self.known.get(node.name)
                form = None if known is None else known.forms[0]
            if form is None:
                continue
            if form.find(node.attributes.steps) is None:
                if self.known is not None:
                    yield self._refusal(node, _unlike(node, form))
                continue
            node.attributes = replace(node.attributes, held=replace(form, loadable=self.loadable))
            self.found[node.name] = HeldLayer(None, (form,))

    def _pairs(
        self, graph: Graph, findings: list[Finding]
    ) -> Iterator[tuple[Node[Any], list[Node[RequantizeAttributes]]]]:
        """Yield each layer with the requantizers that read it. What else does has room for the sums, and hardware for
        one scale of them."""
        consumers = graph.consumers()
        left = set() if self.names is None else set(self.names)
        for node in graph.nodes:
            attributes = node.attributes
            if not isinstance(attributes, Conv2dAttributes | DenseAttributes):
                continue
            if self.names is not None and self.names.isdisjoint({node.name, *node.sources}):
                continue
            left -= {node.name, *node.sources}
            readers = list(dict.fromkeys(reader for reader, _ in consumers[node.outputs[0]]))
            if attributes.binary:
                findings.append(self._refusal(node, "must be a product with weights of several bits, not binary"))
            elif attributes.weights.size == 1:
                findings.append(self._refusal(node, "must have several weights, not 1"))
            else:
                yield node, [reader for reader in readers if isinstance(reader.attributes, RequantizeAttributes)]
        for name in sorted(left):
            findings.append(Finding(
                RULE, f"option {self.option}", f"must name nodes with constant weights, not {show(name)}",
                "name others, or 'all'",
            ))


def _sums(layer: Node[Any], loadable: bool, x: Interval) -> HeldSums:
    """Return room for weights of as many bits: for sums twice as large, or if ``loadable`` for those of any weights
    with inputs in ``x``."""
    weights, interval = layer.attributes.weights, layer.outputs[0].typed.interval
    bits = 1 + max(int(weights.max(initial=0)), -int(weights.min(initial=0)) - 1).bit_length()
    wide = next((each for each in _WEIGHT_BITS if each >= bits), bits)
    sums = Interval(LARGER * min(interval.lo, -1), LARGER * max(interval.hi, 1))
    return HeldSums(wide, interval.hull(_of_any_weights(layer, wide, x)) if loadable else sums)


def _of_any_weights(layer: Node[Any], bits: int, x: Interval) -> Interval:
    """Return the sums that weights of so many bits may make of inputs in ``x``."""
    attributes = layer.attributes
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
    far = max(-interval.lo, interval.hi, 1) << _FAR
    try:
        every = [chain(stages, -far, far) for stages in dict.fromkeys(requantizer.attributes.stages)]
    except NoSteps:
        return None
    values = [value for steps in every for value in (min(steps.values), max(steps.values))]
    if not any(steps.count for steps in every):  # constant, as behind a state of zeros: another one has another value
        values += [end for stages in requantizer.attributes.stages for end in _ends(stages[-1])]
    bits = source.element.bits if loadable else None
    return HeldForm.of(requantizer.attributes.steps, min(values), max(values), bits)


def _ends(stage: Stage) -> Iterator[int]:
    """Yield the least and the greatest value of a quantizer."""
    if isinstance(stage, QuantizerStage):
        yield from (stage.low, stage.high)


def _beyond(layer: Node[Any], held: HeldSums) -> Iterator[str]:
    """Yield what does not fit."""
    weights, interval = layer.attributes.weights, layer.outputs[0].typed.interval
    most = 1 << (held.weight_bits - 1)
    if int(weights.min(initial=0)) < -most or int(weights.max(initial=0)) >= most:
        yield f"must have weights of {held.weight_bits} bits, not from {weights.min()} to {weights.max()}"
    if not (held.sums.lo <= interval.lo and interval.hi <= held.sums.hi):
        yield f"must have sums within {held.sums}, not {interval}: the hardware has no room for others"


def _beyond_reach(graph: Graph) -> Iterator[tuple[Node[Any], str]]:
    """Yield the held requantizers whose hardware has not the function of all that their inputs may be, as these reach
    more where what is in front of them is held."""
    for node in graph.nodes:
        given = node.attributes
        if isinstance(given, RequantizeAttributes) and given.held is not None and given.held.find(given.steps) is None:
            yield node, _unlike(node, given.held)


def _unlike(requantizer: Node[RequantizeAttributes], form: HeldForm | None) -> str:
    if form is None:
        return "must be a multiplication, an addition and a shift, not another step function"
    parities = {ShiftRounding.HALF_EVEN: ("even", "odd"), ShiftRounding.HALF_ODD: ("odd", "even")}
    for rounding, (own, other) in parities.items():
        turned = next(each for each in parities if each != rounding)
        if form.rounding == rounding and replace(form, rounding=turned).find(requantizer.attributes.steps) is not None:
            return f"must have {own} zero points, by which hardware rounds sums half-way, not {other} ones"
    return (
        f"must be a multiplication by at most {form.multiplier[0]} bits, an addition of at most {form.addend[0]} bits, "
        f"a shift by {form.shift} ({form.rounding}) and a clamp to [{form.low}, {form.high}] for every "
        "channel, which hardware has room for, not another step function"
    )
