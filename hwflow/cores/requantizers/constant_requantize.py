"""Requantizers with constant parameters in every lane: shifts and sums, no multiplier blocks.

That is where a beat holds whole pixels, or where all channels are alike. Multipliers that are powers of two are always
made so; for others it is the kind "shift_add" of a folding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import numpy as np

from hdl_lib.arithmetic.adder_network import Adder, AdderNetwork
from hdl_lib.memories.storage import REGISTER_DEPTH
from hdl_lib.requantizers.requantize_constant import ConstantLane, ConstantRequantizer
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Folding, Resources
from hwflow.ir.graph import Node
from hwflow.numerics.requantizers.requantizer import MultiplyAddShift
from hwflow.numerics.requantizers.step_function import all_alike
from hwflow.numerics.shift_add import Adder as LooseAdder
from hwflow.numerics.shift_add import Network, depth_of, digits_of, levels_of, shift_add_network, width_of

KIND = "shift_add"
MOST_DIGITS = 12  # of a multiplier: above it a multiplier block is certainly cheaper


def shifts_only(form: MultiplyAddShift) -> bool:
    """Tell whether every multiplier is a shift."""
    return all(abs(number) & (abs(number) - 1) == 0 for number in set(form.multipliers))


def worth_offering(form: MultiplyAddShift) -> bool:
    """Tell whether the kind "shift_add" is an alternative to multiplier blocks."""
    numbers = np.array([sorted(set(form.multipliers))])
    digits = sum(np.count_nonzero(place, axis=0) for place in digits_of(numbers)) if numbers.any() else 0
    return not shifts_only(form) and int(np.max(digits)) <= MOST_DIGITS


def latency(node: Node, form: MultiplyAddShift) -> int:
    """Cycles."""
    return ConstantRequantizer.latency_of(_depth(node, form))


def resources(
    node: Node, folding: Folding, form: MultiplyAddShift, own: int, pixels: int, family: str, depth: int
) -> Resources:
    """Predicted, for ``pixels`` times lanes of the first ``own`` channels. Networks of adders are exact in the folding
    that is chosen, and estimated before: a search asks for the cost of every folding."""
    estimated = node.attributes.get("folding") != folding and not shifts_only(form)
    known: dict[tuple[int, bool, str, int], tuple[Resources, int]] = node.attributes.setdefault("constants_cost", {})
    key = own, estimated, family, min(depth, REGISTER_DEPTH + 1)  # of a memory the depth does not matter
    if key not in known:
        known[key] = _pixel(node, form, *key)
    lanes, width = known[key]
    return costs.constant_requantizer(family, lanes.times(pixels), width * pixels, latency(node, form), depth)


def _pixel(
    node: Node, form: MultiplyAddShift, own: int, estimated: bool, family: str, depth: int
) -> tuple[Resources, int]:
    """The lanes of one pixel, and the bits of their results."""
    stages = _depth(node, form)
    alike = Counter(zip(form.multipliers[:own], form.addends[:own], _ranges(node), strict=False))
    lanes = {key: _lane(form, *key) for key in alike}
    networks = {
        (number, ends): None if estimated or not number else _product(abs(number), ends) for number, _, ends in alike
    }
    chains = {
        key: [network.carry_bits(adder) for adder in network.adders] for key, network in networks.items() if network
    }
    longest = costs.longest_path(lanes.values(), chain.from_iterable(chains.values()))
    total, width = Resources(), 0
    for key, count in alike.items():
        number, _, ends = key
        network = networks[number, ends]
        each = costs.constant_lane(family, lanes[key], depth, longest)
        if network is not None:
            pipeline = _pipeline(network, levels_of(network, 1, stages))
            each += costs.constant_product(family, chains[number, ends], pipeline, stages)
        elif number:  # of 0, the input is not looked at
            each += costs.estimated_constant_product(width_of(*ends), abs(number), stages)
        total += each.times(count)
        width += lanes[key].result_shape().width * count
    return total, width


def _lane(form: MultiplyAddShift, multiplier: int, addend: int, ends: tuple[int, int]) -> ConstantLane:
    magnitude = abs(multiplier)
    distance = (magnitude & -magnitude).bit_length() - 1 if magnitude else 0
    low, high = (end * (magnitude >> distance) for end in ends)
    return ConstantLane(
        (low, high) if magnitude else None, distance, multiplier < 0, addend, form.shift, form.low, form.high,
        form.rounding,
    )


def core(node: Node, form: MultiplyAddShift, lanes: Sequence[int], depth: int) -> ConstantRequantizer:
    """The core; ``lanes``: the channel of each."""
    ranges = _ranges(node)
    network = _side_by_side([_product(abs(form.multipliers[channel]), ranges[channel]) for channel in lanes])
    return ConstantRequantizer(
        shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element),
        _pipeline(network, levels_of(network)),
        [form.multipliers[channel] < 0 for channel in lanes], [form.addends[channel] for channel in lanes],
        shift=form.shift, low=form.low, high=form.high, rounding=form.rounding, depth=depth,
    )


def _depth(node: Node, form: MultiplyAddShift) -> int:
    """Levels of adders of the deepest product."""
    if "constants_depth" not in node.attributes:
        numbers = sorted({abs(number) for number in form.multipliers})
        node.attributes["constants_depth"] = depth_of(np.array(numbers, dtype=np.int64)[:, None])
    depth: int = node.attributes["constants_depth"]
    return depth


def _ranges(node: Node) -> Sequence[tuple[int, int]]:
    """Return the input range of each channel's lane."""
    intervals = node.inputs[0].typed.channel_intervals(1)
    if all_alike(node.attributes["steps"]):  # any channel may come in any lane
        intervals = (node.inputs[0].typed.interval,) * len(intervals)
    return [(interval.lo, interval.hi) for interval in intervals]


@lru_cache(maxsize=4096)
def _product(magnitude: int, ends: tuple[int, int]) -> Network:
    """Of one lane."""
    return shift_add_network(np.array([[magnitude]]), [ends])


def _side_by_side(lanes: Sequence[Network]) -> Network:
    """Networks of one input and one output each as one network: first all inputs, then the adders."""
    inputs = [network.inputs[0] for network in lanes]
    adders: list[LooseAdder] = []
    outputs = []
    for lane, network in enumerate(lanes):
        terms = [lane, *range(len(lanes) + len(adders), len(lanes) + len(adders) + len(network.adders))]
        for adder in network.adders:
            left = None if adder.left is None else terms[adder.left]
            adders.append(adder._replace(left=left, right=terms[adder.right]))
        (output,) = network.outputs
        outputs.append(output if output.term is None else output._replace(term=terms[output.term]))
    return Network(tuple(inputs), tuple(adders), tuple(outputs))


def _pipeline(network: Network, levels: Sequence[int]) -> AdderNetwork:
    adders = tuple(Adder(*adder, level) for adder, level in zip(network.adders, levels, strict=True))
    return AdderNetwork(network.inputs, adders, tuple((o.term, o.shift) for o in network.outputs))
