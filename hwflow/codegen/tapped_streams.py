"""Taps on the streams between cores, for ``hwflow sim --layers``.

The top module exists twice: ``hwflow_top`` in ``design.v`` is what is built, :data:`LAYERS_TOP` in
``testbench/layers.v`` is the same with the payload, valid and ready of each core's output as ports. It instantiates the
modules of ``design.v``, so it shows exactly what they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Signal

from hwflow.codegen.emitted.packaging import LAYERS_TOP
from hwflow.cores.beat_movers import PLUMBING
from hwflow.cores.loops.repeated import core_of
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Node, Value
from hwflow.schedule.plan import Plan

LAYERS_FILE = "testbench/layers.v"


@dataclass(frozen=True)
class Tap:
    """A tap on output ``value`` of ``node``. ``base``: the stream whose elements it carries, before any plumbing;
    ``producer``: the node that produces ``base`` (None: an input). ``view``: (pixels, channels) of a frame; only the
    last of a pixel's beats may have surplus ``lanes``."""

    node: Node
    value: Value
    base: Value
    producer: Node | None
    lanes: int
    view: tuple[int, int]
    payload: Signal
    valid: Signal
    ready: Signal

    @property
    def signals(self) -> tuple[Signal, Signal, Signal]:
        return self.payload, self.valid, self.ready

    def table(self, instance: str) -> dict[str, Any]:
        """Return the tap's entry in the manifest's `streams`."""
        element = self.value.typed.element
        return {
            "port": self.payload.name.removesuffix("__payload"),
            "instance": instance,
            "op": core_of(self.node).op,
            "nodes": [] if self.producer is None else list(self.producer.sources),
            "stream": self.base.name,
            "moved": self.base is not self.value,
            "pixels": self.view[0],
            "channels": self.view[1],
            "lanes": self.lanes,
            "beats": self.view[0] * -(-self.view[1] // self.lanes),
            "element": {"width": element.bits, "signed": element.signed},
        }


def taps(plan: Plan, names: Mapping[str, str]) -> list[Tap]:
    """Return a tap on every core's output, in the graph's order. ``names``: instances by node name."""
    producers = plan.graph.producers()
    base: dict[Value, Value] = {}
    result = []
    for node in plan.graph.nodes:
        for index, value in enumerate(node.outputs):
            moved = isinstance(node.attributes, PLUMBING)
            base[value] = base.get(node.inputs[0], node.inputs[0]) if moved else value
            lanes = plan.folding(node).output_lanes
            view = hardware(node.op).output_view(node, value.typed.shape, lanes)
            # Two underscores, which no instance's name has.
            name = names[node.name] if len(node.outputs) == 1 else f"{names[node.name]}__{index}"
            width = lanes * value.typed.element.bits
            signals = [Signal(n, name=f"{name}__{s}") for s, n in (("payload", width), ("valid", 1), ("ready", 1))]
            result.append(Tap(node, value, base[value], producers.get(base[value]), lanes, view, *signals))
    return result


def with_layers(text: str, top: str, taps: Iterable[Tap]) -> str:
    """Duplicate module ``top`` in RTLIL, whose taps are output ports: as :data:`LAYERS_TOP` with these ports, and under
    its own name with wires instead."""
    found = re.search(rf"(?ms)^(?:attribute [^\n]*\n)*module \\{top}\n.*?^end\n", text)
    assert found is not None, "the module is there"
    module = found.group()
    layers = module.replace(f"module \\{top}\n", f"module \\{LAYERS_TOP}\n", 1)
    inner = {signal.name for tap in taps for signal in tap.signals}

    def without_port(wire: re.Match[str]) -> str:
        return wire[1] + wire[3] if wire[4] in inner else wire[0]

    module = re.sub(r"(?m)^( *wire (?:width \d+ )?)(output \d+ +)(\\(\S+))$", without_port, module)
    return text[: found.start()] + module + layers + text[found.end() :]
