"""Matrix-vector unit: products of constant matrices with vectors.

Its cores are in :mod:`hwflow.cores.matrix.folded_mvu` and :mod:`hwflow.cores.matrix.constant_mvu`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hdl_lib.matrices.mvu import MAXIMUM_INPUT, MAXIMUM_WEIGHT
from hwflow.cores import costs
from hwflow.cores.logical.image_windows import Clipping, WindowGeometry
from hwflow.cores.matrix.constant_mvu import ConstantBlockMvu, ConstantNetworkMvu
from hwflow.cores.matrix.dot_products import MvuAttributes, ends_of, row_intervals, row_values, sets_of
from hwflow.cores.matrix.folded_mvu import BlockMvu, LookupTableMvu, PackedMvu, XnorMvu
from hwflow.cores.operator import Device, Folding, Implementation, ImplementedOperator, LoweringContext, grouped
from hwflow.ir.graph import IntArray, Node, Stage, Value
from hwflow.ir.node_attributes import HeldSums
from hwflow.types import Interval, IntType, TensorType


class Mvu(ImplementedOperator[MvuAttributes]):
    attributes = MvuAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: MvuAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        weights, vector = attributes.weights, attributes.pixels_per_vector
        pixels, _ = inputs[0].shape
        ranges = inputs[0].channel_intervals(1) * vector
        if attributes.clipped is not None:
            rows, columns = attributes.clipped.output
            pixels, ranges = rows * columns * vector, tuple(each.hull(Interval(0, 0)) for each in ranges)
        of_sets = [row_intervals(each, ranges, binary=attributes.binary) for each in sets_of(attributes.weights)]
        channels = tuple(map(Interval.hull_of, zip(*of_sets, strict=True)))
        if attributes.held is not None:
            channels = (attributes.held.sums,) * len(channels)
        return (TensorType.of((pixels // vector, weights.shape[-2]), channels, 1),)

    def evaluate(self, attributes: MvuAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        frames, pixels, channels = inputs[0].shape
        vector = attributes.pixels_per_vector
        if attributes.clipped is not None:
            inside = attributes.clipped.inside()
            whole = np.zeros((frames, len(inside), channels), dtype=np.int64)
            whole[:, inside] = inputs[0]
            return self.evaluate(replace(attributes, clipping=Clipping.NONE), [whole])
        sets, binary = sets_of(attributes.weights), attributes.binary
        vectors = inputs[0].reshape(frames, pixels // vector // len(sets), len(sets), vector * channels)
        rows = [row_values(each, vectors[:, :, turn], binary=binary) for turn, each in enumerate(sets)]
        return (np.stack(rows, axis=2).reshape(frames, pixels // vector, len(sets[0])),)

    def macs(self, node: Node[MvuAttributes]) -> int:
        return int(sets_of(node.attributes.weights)[0].size) * node.outputs[0].typed.shape[0]

    def foldings(self, node: Node[MvuAttributes], device: Device) -> Sequence[Folding]:
        family = costs.FAMILIES[device.family]
        found = [folding for kind in _FOLDED for folding in kind.foldings(node, family)]
        if node.attributes.clipped is not None:
            return found
        if node.attributes.clipping == Clipping.OFFERED:
            found += [replace(each, clipped=True) for each in self.foldings(node.once(_clipped), device)]
        if not node.attributes.binary and node.attributes.weights.ndim == 2 and node.attributes.held is None:
            found += ConstantBlockMvu.foldings(node, device) + ConstantNetworkMvu.foldings(node, device)
        return sorted(found, key=lambda folding: (folding.multipliers, folding.output_lanes))

    def in_turns(self, each: Sequence[MvuAttributes]) -> MvuAttributes:
        weights = np.stack([matrix for own in each for matrix in sets_of(own.weights)])
        return replace(each[0], weights=weights, windows=None, clipping=Clipping.NONE, rounds=len(each))

    def as_chosen(
        self, node: Node[MvuAttributes], folding: Folding
    ) -> tuple[Node[MvuAttributes], Folding]:
        return (node.once(_clipped), replace(folding, clipped=False)) if folding.clipped else (node, folding)

    def implementation(self, node: Node[MvuAttributes], folding: Folding) -> Implementation[MvuAttributes]:
        several = folding.input_lanes > int(node.attributes.weights.shape[-1])
        return (_SEVERAL_VECTORS if several else _ONE_VECTOR)[folding.multiplier](node, folding)

    def input_view(
        self, node: Node[MvuAttributes], shape: tuple[int, ...], lanes: int, *, whole_vector: bool = False,
        index: int = 0,
    ) -> tuple[int, int]:
        """Return (pixels, channels): of pixels for lanes up to a pixel's channels, else or with ``whole_vector`` of
        vectors."""
        pixels, channels = shape
        vector = int(node.attributes.pixels_per_vector)
        if lanes <= channels and not whole_vector:
            return pixels, channels
        return grouped((pixels // vector, vector * channels), lanes)


def _clipped(node: Node[MvuAttributes]) -> Node[MvuAttributes]:
    """Return the node with clipped windows."""
    windows, (source,) = node.attributes.windows, node.inputs
    assert windows is not None, "windows that may be clipped"
    shape = int(windows.inside().sum()), source.typed.shape[1]
    stream = Value(source.name, replace(source.typed, shape=shape), source.origin)
    attributes = replace(node.attributes, clipping=Clipping.CLIPPED)
    return Node(node.name, [stream], node.outputs, attributes, node.sources)


_FOLDED = (PackedMvu, BlockMvu, LookupTableMvu, XnorMvu)
_ONE_VECTOR: dict[str, type[Implementation[MvuAttributes]]] = {
    kind.kind: kind for kind in (*_FOLDED, ConstantNetworkMvu)
}
"""By the folding's kind of multiplier; for those of several vectors per beat there are others."""
_SEVERAL_VECTORS: dict[str, type[Implementation[MvuAttributes]]] = {
    kind.kind: kind for kind in (ConstantNetworkMvu, ConstantBlockMvu)
}


def add_mvu(
    context: LoweringContext, stream: Value, weights: IntArray, pixels_per_vector: int, *, binary: bool,
    windows: WindowGeometry | None = None, held: HeldSums | None = None,
) -> Value | None:
    """Add the product of ``weights`` with a stream, or ``binary`` the number of equal bits; refuse the node and return
    None if an operand is too wide for the core. ``windows``: of the stream, if they may come clipped; ``held``: room
    for other weights."""
    weight = IntType.holding(Interval(*ends_of(weights)))
    operands = (("input", stream.typed.element, MAXIMUM_INPUT), ("weight", weight, MAXIMUM_WEIGHT))
    for what, element, maximum in operands:
        if element.bits > maximum:
            context.refuse(
                "operand-width", f"{what}s must have at most {maximum} bits, not {element.bits}",
                "quantize them to fewer bits",
            )
            return None
    clipping = Clipping.NONE if windows is None else Clipping.OFFERED
    attributes = MvuAttributes(weights, pixels_per_vector, binary, windows, clipping, held=held)
    return context.add("mvu", [stream], attributes)
