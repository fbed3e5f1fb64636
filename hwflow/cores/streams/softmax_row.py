"""Softmax of each pixel's channels, with its quantizer: exponentials from a table, over their sum, as integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from hdl_lib.norms.softmax_row import LEAST_BITS, collected_steps, element_steps, row_steps, search_order
from hdl_lib.norms.softmax_row import SoftmaxRow as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, MemoryFile, Resources
from hwflow.cores.streams.digit_recurrence import Quotient
from hwflow.cores.timing import Cyclic, Process, Timing
from hwflow.ir.graph import Attributes, IntArray, Node, Stage
from hwflow.ir.node_attributes import QuotientAttributes
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.types import TensorType

MOST_WORDS = 1024
"""Of each table: exponentials, thresholds."""


@dataclass(frozen=True, eq=False)
class SoftmaxRowAttributes(Attributes):
    """``table`` int64: exponentials by the distance to the greatest element of a pixel, one for each there may be;
    ``quotient``: of one by the sum of all; ``steps``: what becomes of that; ``result``: its type."""

    op = "softmax_row"
    table: IntArray
    quotient: QuotientAttributes
    steps: StepFunction
    result: TensorType


@dataclass(frozen=True)
class Search:
    """The steps of quotients up to 1: ``thresholds`` among quotients with ``digits`` bits below the point and one that
    says that something is left, one fewer than a power of two; the result is ``offset`` plus the number reached."""

    digits: int
    thresholds: tuple[int, ...]
    offset: int

    @property
    def levels(self) -> int:
        return len(self.thresholds).bit_length()


def search_of(fraction: int, steps: StepFunction) -> Search | None:
    """Return the search with the fewest digits that gives the same for all quotients up to 1, of which ``steps`` take
    ``fraction`` bits and the bit below; None where results do not rise one by one, or do so at 1.

    A threshold ``2 * p`` is reached by quotients from ``p / 2**fraction`` on, ``2 * p + 1`` by those above it: neither
    changes without bits that are 0 in every ``p``. The quotient 1 has the greatest number of the bits below the point
    instead, which is no less than any threshold below it.
    """
    breaks = [each for each in steps.breaks if each <= 2 << fraction]
    values = steps.values[: len(breaks) + 1]
    if not breaks or breaks[-1] == 2 << fraction or values != tuple(range(values[0], values[-1] + 1)):
        return None
    together = gcd(1 << fraction - 1, *(each >> 1 for each in breaks))
    idle = together.bit_length() - 1
    thresholds = [(each >> 1 + idle << 1) + (each & 1) for each in breaks]
    padding = (1 << len(breaks).bit_length()) - 1 - len(breaks)  # thresholds that all reach
    return Search(fraction - idle, (*[0] * padding, *thresholds), values[0] - padding)


def is_offered(attributes: SoftmaxRowAttributes) -> bool:
    """Tell whether there is hardware for these attributes."""
    table, search = attributes.table, _found(attributes)
    if search is None or not 2 <= len(table) <= MOST_WORDS or len(search.thresholds) > MOST_WORDS:
        return False
    return bool(table.min() >= 0 and table[0] > 0)  # so that sums are positive, and quotients at most 1


def _found(attributes: SoftmaxRowAttributes) -> Search | None:
    return search_of(attributes.quotient.fraction, attributes.steps)


def _search(node: Node[SoftmaxRowAttributes]) -> Search:
    found = _found(node.attributes)
    assert found is not None, "of a node that becomes hardware"
    return found


def _bits(node: Node[SoftmaxRowAttributes]) -> int:
    """Return the bits of the greatest sum, as many as the core needs at least."""
    most = node.inputs[0].typed.shape[1] * int(node.attributes.table.max())
    return max(LEAST_BITS, most.bit_length())


class SoftmaxRow(HardwareOperator[SoftmaxRowAttributes]):
    attributes = SoftmaxRowAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: SoftmaxRowAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return (attributes.result,)

    def evaluate(self, attributes: SoftmaxRowAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        (x,) = inputs
        exponentials = attributes.table[x.max(axis=-1, keepdims=True) - x]
        sums = np.broadcast_to(exponentials.sum(axis=-1, keepdims=True), x.shape)
        (quotients,) = Quotient().evaluate(attributes.quotient, (exponentials, sums))
        return (attributes.steps.evaluate(quotients),)

    def foldings(self, node: Node[SoftmaxRowAttributes], device: Device) -> Sequence[Folding]:
        return [Folding(1, 1)]

    def cycles(self, node: Node[SoftmaxRowAttributes], folding: Folding) -> int:
        rows, size = node.inputs[0].typed.shape
        search = node.once(_search)
        return int(rows * row_steps(size, _bits(node), search.digits, search.levels))

    def timing(self, node: Node[SoftmaxRowAttributes], decision: Decision) -> Timing:
        rows, size = node.inputs[0].typed.shape
        search, bits = node.once(_search), _bits(node)
        each, elements = element_steps(bits, search.digits, search.levels), np.arange(size, dtype=np.int64)
        period = row_steps(size, bits, search.digits, search.levels)
        produced = collected_steps(size, bits) + (elements + 1) * each - 1
        steps = Process(rows * period, {0: Cyclic(elements, period, rows)}, {0: Cyclic(produced, period, rows)})
        return Timing((steps,), (1,))

    def resources(self, node: Node[SoftmaxRowAttributes], decision: Decision, device: Device) -> Resources:
        search, source, result = node.once(_search), node.inputs[0].typed, node.outputs[0].typed
        return costs.softmax_row(
            device.family, source.element.bits, source.shape[1], result.element.bits, _bits(node),
            node.attributes.table.tolist(), search_order(search.thresholds), search.digits, search.offset,
            decision.depth,
        )

    def build(self, node: Node[SoftmaxRowAttributes], decision: Decision, name: str) -> Built:
        search, words = node.once(_search), node.attributes.table.tolist()
        width = max(words).bit_length()
        exponentials = MemoryFile(f"{name}_exponentials", words, width)
        thresholds = MemoryFile(f"{name}_thresholds", search_order(search.thresholds), search.digits + 1)
        core = Core(
            shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element),
            size=node.inputs[0].typed.shape[1], exponentials=exponentials.table, bits=_bits(node),
            digits=search.digits, thresholds=thresholds.table, offset=search.offset, depth=decision.depth,
        )
        return Built(core, [core.i], [core.o], [exponentials, thresholds])
