"""What a design multiplies: its multipliers by kind, how busy they are, and its products without those of padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hdl_lib.arithmetic.multiplier import ProductForm
from hwflow.cores.beat_movers import ForkAttributes, ViewAttributes
from hwflow.cores.engine.engine_layers import macs_of_data as macs_of_layers
from hwflow.cores.engine.layer_engine import LayerEngineAttributes
from hwflow.cores.logical.index_map import FILL
from hwflow.cores.loops.repeated import core_of
from hwflow.cores.registry import OPERATORS, hardware
from hwflow.cores.streams.rearrange import RearrangeAttributes
from hwflow.cores.windows.sliding_window import LineBufferAttributes, SlidingWindowAttributes
from hwflow.ir.graph import Node, Value
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.schedule.schedule import Schedule

KINDS = {
    ProductForm.DSP: "block", ProductForm.DSP2: "block", ProductForm.LUT: "lut", ProductForm.XNOR: "xnor",
    ProductForm.SHIFT_ADD: "constant", ProductForm.NEURONS: "constant",
}
"""report.json's kind of a form of products."""

COUNTED = ("block", "lut", "requantizer")
"""The kinds that could each make any product in a cycle: what the utilisation is of."""

MOVERS = (SlidingWindowAttributes, RearrangeAttributes, ForkAttributes, ViewAttributes)
"""Of the cores that pass elements on unchanged."""

Mask = npt.NDArray[np.bool_]


def macs_of_data(nodes: Sequence[Node]) -> dict[Node, int]:
    """Return the multiply-accumulates per frame of those of ``nodes``, in order, that have some, without padding's."""
    masks: dict[Value, Mask] = {}  # [pixels, channels or 1], of streams with padding: what is data
    result = {}
    for node in nodes:
        mask = masks.get(node.inputs[0]) if node.inputs else None
        match node.attributes:
            case SlidingWindowAttributes(geometry=geometry, images=images, stacked=stacked) if images * stacked > 1:
                whole = np.ones((1, geometry.height, geometry.width, 1), np.int64)
                taps = geometry.windows(whole, 0).reshape(-1, 1) > 0
                mask = np.tile(np.repeat(taps, stacked, axis=0), (images, 1))
            case LayerEngineAttributes(layers=layers):
                result[node] = macs_of_layers(layers)
                continue
            case LineBufferAttributes(geometry=geometry) if mask is not None or geometry.touches_padding():
                mask = np.ones((geometry.height * geometry.width, 1), np.bool_) if mask is None else mask
                image = mask.reshape(1, geometry.height, geometry.width, -1)
                mask = geometry.windows(image.astype(np.int64), 0).reshape(-1, mask.shape[1]) > 0
            case RearrangeAttributes(map=moved, channels=channels) if mask is not None or moved.has_fill:
                shape = node.inputs[0].typed.shape
                elements = np.broadcast_to(True if mask is None else mask, shape).reshape(-1)
                mask = (elements[moved.index] & (moved.index != FILL)).reshape(-1, channels)
        if macs := OPERATORS[node.op].macs(node):
            result[node] = macs if mask is None else macs * int(mask.sum()) // mask.size
        if mask is not None and isinstance(node.attributes, MOVERS):
            masks.update(dict.fromkeys(node.outputs, mask))
    return result


def multipliers_by_kind(schedule: Schedule, macs: dict[Node, int]) -> dict[str, dict[str, Any]]:
    """Return for each kind its parallel ``multipliers``, and the share of cycles in which they make a product of data:
    ``busy``, None without multipliers. ``macs``: of :func:`macs_of_data`. Of requantizers, the multipliers are
    blocks."""
    count = dict.fromkeys((*dict.fromkeys(KINDS.values()), "requantizer"), 0)
    made = dict(count)
    for node in schedule.plan.cores:
        folding = schedule.plan.folding(node)
        if isinstance(core_of(node).attributes, RequantizeAttributes):
            blocks = schedule.parts[node].dsp
            count["requantizer"] += blocks
            made["requantizer"] += blocks * hardware(node.op).cycles(node, folding)
        elif folding.multipliers:
            for form, number in hardware(node.op).multipliers_by_form(node, folding).items():
                count[KINDS[form]] += number
                made[KINDS[form]] += macs[node] * number // folding.multipliers
    cycles = schedule.initiation_interval
    return {
        kind: {"multipliers": number, "busy": made[kind] / (cycles * number) if number else None}
        for kind, number in count.items()
    }


def utilization(multipliers: dict[str, dict[str, Any]]) -> float | None:
    """Return the products of data over those that blocks, requantizers' included, and look-up table multipliers could
    make: networks of constants and comparisons of bits are apart. None without such multipliers."""
    total = sum(multipliers[kind]["multipliers"] for kind in COUNTED)
    useful = sum(multipliers[kind]["multipliers"] * (multipliers[kind]["busy"] or 0) for kind in ("block", "lut"))
    return useful / total if total else None
