"""Requantizers whose every lane has constant parameters: shifts and sums, no multiplier blocks.

That is where a beat holds whole pixels, or where all channels are alike. Multipliers that are powers of two are always
made so; for others it is the kind "shift_add" of a folding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdl_lib.adder_network import Adder, AdderNetwork
from hdl_lib.requantize_constant import ConstantRequantizer
from hwflow.ir.graph import Node
from hwflow.numerics.requantizer import MultiplyAddShift
from hwflow.numerics.shift_add import Network, depth_of, digits_of, levels_of, shift_add_network
from hwflow.ops import costs
from hwflow.ops.operator import Resources
from hwflow.ops.shapes import shape_of

KIND = "shift_add"
MOST_DIGITS = 12  # of a multiplier: above it a multiplier block is certainly cheaper


def shifts_only(form: MultiplyAddShift) -> bool:
    """Whether no multiplier needs more than a shift."""
    return all(abs(number) & (abs(number) - 1) == 0 for number in set(form.multipliers))


def worth_offering(form: MultiplyAddShift) -> bool:
    """Whether the kind "shift_add" is an alternative to multiplier blocks."""
    numbers = np.array([sorted(set(form.multipliers))])
    digits = sum(np.count_nonzero(place, axis=0) for place in digits_of(numbers)) if numbers.any() else 0
    return not shifts_only(form) and int(np.max(digits)) <= MOST_DIGITS


def latency(form: MultiplyAddShift, lanes: Sequence[int]) -> int:
    """Cycles; ``lanes``: the channel of each."""
    return ConstantRequantizer.latency_of(depth_of(_magnitudes(form, lanes)))


def resources(node: Node, form: MultiplyAddShift, lanes: Sequence[int], family: str, depth: int) -> Resources:
    """Predicted."""
    network = _products(node, form, lanes)
    carries = [network.carry_bits(adder) for adder in network.adders]
    return costs.constant_requantizer(family, core(node, form, lanes, depth), carries)


def core(node: Node, form: MultiplyAddShift, lanes: Sequence[int], depth: int) -> ConstantRequantizer:
    """The core."""
    network = _products(node, form, lanes)
    adders = [Adder(*adder, level) for adder, level in zip(network.adders, levels_of(network), strict=True)]
    return ConstantRequantizer(
        shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element),
        AdderNetwork(network.inputs, tuple(adders), tuple((o.term, o.shift) for o in network.outputs)),
        [form.multipliers[channel] < 0 for channel in lanes], [form.addends[channel] for channel in lanes],
        shift=form.shift, low=form.low, high=form.high, rounding=form.rounding, depth=depth,
    )


def _magnitudes(form: MultiplyAddShift, lanes: Sequence[int]) -> np.ndarray:
    return np.diag([abs(form.multipliers[channel]) for channel in lanes]).astype(np.int64)


def _products(node: Node, form: MultiplyAddShift, lanes: Sequence[int]) -> Network:
    """The network of all lanes, found once."""
    known: dict[tuple[int, ...], Network] = node.attributes.setdefault("products", {})
    key = tuple(lanes)
    if key not in known:
        intervals = node.inputs[0].typed.channel_intervals(1)
        if len(set(node.attributes["steps"])) == 1:  # any channel may come in any lane
            intervals = (node.inputs[0].typed.interval,) * len(intervals)
        ranges = [(intervals[channel].lo, intervals[channel].hi) for channel in lanes]
        known[key] = shift_add_network(_magnitudes(form, lanes), ranges)
    return known[key]
