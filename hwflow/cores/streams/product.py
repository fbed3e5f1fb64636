"""The product of two tensors of one shape, element by element, exact before rounding."""

from __future__ import annotations

from collections.abc import Sequence

from hdl_lib.arithmetic.multiplier import Multiplier, ProductForm
from hdl_lib.streams.stream_product import StreamProduct as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Device, Folding, LogicalOperator, LoweringContext, Resources
from hwflow.cores.streams.joined import Joined, joined_streams, joined_timing
from hwflow.cores.timing import Timing
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import ProductAttributes
from hwflow.ir.wrapping import wrapped, wrapped_interval
from hwflow.types import Interval, IntType, TensorType


class Product(LogicalOperator[ProductAttributes], Joined[ProductAttributes]):
    attributes = ProductAttributes
    stages = frozenset({Stage.QUANTIZED, Stage.DATAFLOW, Stage.SCHEDULED})
    keeps_order = joins = True

    def infer(self, attributes: ProductAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        a, b = inputs
        axis = a.channel_axis if a.channels else b.channel_axis if b.channels else 0
        channels = []
        for left, right in zip(a.channel_intervals(axis), b.channel_intervals(axis), strict=True):
            xs, ys = _factors(left, attributes.offsets[0]), _factors(right, attributes.offsets[1])
            exact, wrap = xs.times(ys), attributes.wrap
            if attributes.square:
                exact = Interval(0 if xs.includes(0) else min(xs.lo**2, xs.hi**2), exact.hi)
            channels.append(exact if wrap is None else wrapped_interval(exact, wrap))
        return (TensorType.of(a.shape, tuple(channels), axis),)

    def evaluate(self, attributes: ProductAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        (a, b), (offset_a, offset_b) = inputs, attributes.offsets
        result = (a - offset_a) * (b - offset_b)
        return (result if attributes.wrap is None else wrapped(result, attributes.wrap),)

    def lower(self, node: Node[ProductAttributes], context: LoweringContext) -> None:
        streams, order = joined_streams(node, context)
        result = context.add("", streams, node.attributes)
        context.bind(node.outputs[0], result, order)

    def foldings(self, node: Node[ProductAttributes], device: Device) -> Sequence[Folding]:
        kinds = costs.product_kinds(device.family, *_operands(_multiplier(node, Folding(1, 1, 0, ProductForm.DSP))))
        lanes = costs.stream_lanes(node.outputs[0].typed.shape)
        return [Folding(count, count, 0, kind, part) for count in lanes for kind, part in kinds]

    def timing(self, node: Node[ProductAttributes], decision: Decision) -> Timing:
        latency = Core.latency_of(_multiplier(node, decision.folding))
        return joined_timing(self.cycles(node, decision.folding), latency)

    def resources(self, node: Node[ProductAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        types = [value.typed.element for value in node.inputs]
        multiplier = _multiplier(node, folding)
        x, w = _operands(multiplier)
        return costs.stream_product(
            device.family, types, node.attributes.offsets, x, w, node.outputs[0].typed.element, folding.output_lanes,
            folding.multiplier, Core.latency_of(multiplier), decision.depth
        )

    def build(self, node: Node[ProductAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        core = Core(
            [shape_of(value.typed.element) for value in node.inputs], shape_of(node.outputs[0].typed.element),
            lanes=folding.output_lanes, offsets=node.attributes.offsets, multiplier=folding.multiplier,
            depth=decision.depth, part=folding.part or None,
        )
        return Built(core, [core.a, core.b], [core.o])


def _factors(interval: Interval, offset: int) -> Interval:
    return Interval(interval.lo - offset, interval.hi - offset)


def _multiplier(node: Node[ProductAttributes], folding: Folding) -> Multiplier:
    shapes = [shape_of(value.typed.element) for value in node.inputs]
    return Core.multiplier_of(shapes, node.attributes.offsets, folding.multiplier, folding.part or None)


def _operands(multiplier: Multiplier) -> tuple[IntType, IntType]:
    """Return the types of the factors, offsets subtracted."""
    x, w = multiplier.input_shape, multiplier.weight_shape
    return IntType(x.width, x.signed), IntType(w.width, w.signed)
