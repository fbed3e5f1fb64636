"""Requantizers with constant parameters in every lane: shifts and adders, no multiplier blocks.

Possible if a beat holds whole pixels, or if all channels are alike. Multipliers that are powers of two are always
implemented so; for others it is the folding's kind "shift_add".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np

from hdl_lib.arithmetic.adder_network import Adder, AdderNetwork
from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.memories.storage import REGISTER_DEPTH
from hdl_lib.requantizers.requantize_constant import ConstantLane, ConstantRequantizer
from hdl_lib.requantizers.shift_and_clamp import ShiftRounding
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Folding, Resources
from hwflow.cores.requantizers.requantizer_core import RequantizerCore, form_of
from hwflow.ir.graph import Node, Scratch
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.step_function import all_alike
from hwflow.numerics.shift_add import Adder as LooseAdder
from hwflow.numerics.shift_add import Network, depth_of, digits_of, levels_of, shift_add_network, width_of

MOST_DIGITS = 12  # of a multiplier: above it a multiplier block is certainly cheaper


class ConstantLanes(RequantizerCore[MultiplyAddShift]):
    """Implements :class:`hdl_lib.requantizers.requantize_constant.ConstantRequantizer`."""

    kind: ClassVar[ProductForm] = ProductForm.SHIFT_ADD
    held = True

    @classmethod
    def foldings(
        cls, node: Node[RequantizeAttributes], form: MultiplyAddShift, options: Sequence[Folding]
    ) -> list[Folding]:
        if not worth_offering(form):
            return []
        return [each for each in cls.in_lanes(options) if cls(node, each, form).words == 1]

    def latency(self) -> int:
        return ConstantRequantizer.latency_of(self.node.once(_Constants).depth)

    def resources(self, decision: Decision, family: str) -> Resources:
        """Return the resources; adders are exact once the folding is chosen, and estimated before."""
        estimated, pixels = decision.provisional and not self.form.shifts_only, self.lanes // self.own
        lanes, width = self.node.once(_Constants).pixel(self.own, family, decision.depth, estimated=estimated)
        return costs.constant_requantizer(family, lanes.times(pixels), width * pixels, self.latency(), decision.depth)

    def build(self, depth: int, name: str) -> Built:
        form, ranges = self.form, self.node.once(_Constants).ranges
        lanes = [k % self.own for k in range(self.lanes)]
        network = _side_by_side([_product(abs(form.multipliers[channel]), ranges[channel]) for channel in lanes])
        core = ConstantRequantizer(
            shape_of(self.input), shape_of(self.output), _pipeline(network, levels_of(network)),
            [form.multipliers[channel] < 0 for channel in lanes], [form.addends[channel] for channel in lanes],
            shift=form.shift, low=form.low, high=form.high, rounding=form.rounding, depth=depth,
            held=self.held,
        )
        return Built(core, [core.i], [core.o])


class WiredLanes(ConstantLanes):
    """The same without registers and queue, between two cores that have some. Only of shifts."""

    kind: ClassVar[ProductForm] = ProductForm.WIRES
    held = False

    @classmethod
    def foldings(
        cls, node: Node[RequantizeAttributes], form: MultiplyAddShift, options: Sequence[Folding]
    ) -> list[Folding]:
        return []  # chosen once it is known what is around it

    def latency(self) -> int:
        return ConstantRequantizer.latency_of(0, held=False)

    def resources(self, decision: Decision, family: str) -> Resources:
        return super().resources(decision, family)._replace(ff=0)


def worth_offering(form: MultiplyAddShift) -> bool:
    """Tell whether adders are an alternative to multiplier blocks."""
    if form.shifts_only:
        return False
    digits = digits_of(np.array([sorted(set(form.multipliers))]))
    return int(sum(np.count_nonzero(place, axis=0) for place in digits).max()) <= MOST_DIGITS


class _Constants:
    """The data of a node that all foldings share. ``depth``: adder levels of the deepest product; ``ranges``: of the
    input of each channel's lane."""

    def __init__(self, node: Node[RequantizeAttributes]) -> None:
        form = form_of(node)
        assert isinstance(form, MultiplyAddShift), "asked of that form alone"
        self.form = form
        numbers = sorted({abs(number) for number in form.multipliers})
        self.depth = depth_of(np.array(numbers, dtype=np.int64)[:, None])
        source = node.inputs[0].typed
        intervals = source.channel_intervals(1)
        if all_alike(node.attributes.steps):  # any channel may come in any lane
            intervals = (source.interval,) * len(intervals)
        self.ranges = [(interval.lo, interval.hi) for interval in intervals]
        self._pixels: dict[tuple[int, str, int, bool], tuple[Resources, int]] = Scratch()

    def pixel(self, own: int, family: str, depth: int, *, estimated: bool) -> tuple[Resources, int]:
        """Return the resources of the lanes of a pixel's first ``own`` channels, and the bits of their results."""
        depth = min(depth, REGISTER_DEPTH + 1)  # of a memory the depth does not matter
        key = own, family, depth, estimated
        if key not in self._pixels:
            self._pixels[key] = self._pixel(own, family, depth, estimated)
        return self._pixels[key]

    def _pixel(self, own: int, family: str, depth: int, estimated: bool) -> tuple[Resources, int]:
        form, stages = self.form, self.depth
        alike = Counter(zip(form.multipliers[:own], form.addends[:own], self.ranges, strict=False))
        lanes = {key: _lane(form, *key) for key in alike}
        networks = {
            (number, ends): None if estimated or not number else _product(abs(number), ends)
            for number, _, ends in alike
        }
        chains = {
            key: [network.carry_bits(adder) for adder in network.adders]
            for key, network in networks.items() if network
        }
        total, width = Resources(), 0
        for key, count in alike.items():
            number, _, ends = key
            network = networks[number, ends]
            each = costs.constant_lane(family, lanes[key], depth)
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
        ShiftRounding(form.rounding),
    )


@lru_cache(maxsize=4096)
def _product(magnitude: int, ends: tuple[int, int]) -> Network:
    """Return the shift-add network of one lane."""
    return shift_add_network(np.array([[magnitude]]), [ends])


def _side_by_side(lanes: Sequence[Network]) -> Network:
    """Merge networks of one input and one output each into one network: first all inputs, then the adders."""
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
