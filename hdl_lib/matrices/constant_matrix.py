"""Multiplication of vectors by a constant matrix, fully parallel."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.adder_network import AdderNetwork
from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue


class ConstantMatrix(wiring.Component):
    """Multiplies ``vectors`` vectors per beat with a constant matrix, in a network of adders for each of them.

    Parameters
    ----------
    input_shape, output_shape: integer shapes of an element; the network's inputs and outputs are within their ranges.
    network: the adders, see :class:`hdl_lib.arithmetic.adder_network.AdderNetwork`; its inputs are a vector's elements.
    vectors: vectors per beat, at least 1.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). The elements of ``vectors`` vectors, one vector after the other.
    o: Out(stream). Their products with the matrix, ``len(network.outputs)`` elements per vector.

    Timing
    ------
    One step per beat, at the first cycle with ``i.valid`` and a credit; ``latency`` cycles later ``o.valid``: 1 for the
    input's register, ``network.stages``, 1 for the output queue. Initiation interval 1 cycle per beat. Under
    backpressure no step begins; those begun continue.

    Ordering
    --------
    Beats leave in the order they came.
    """

    def __init__(
        self, input_shape: Shape, output_shape: Shape, network: AdderNetwork, *, vectors: int = 1, depth: int
    ) -> None:
        if vectors < 1:
            raise ValueError(f"vectors must be at least 1, not {vectors}")
        check_depth(depth, least=0)
        self.input_shape = Shape.cast(input_shape)
        self.output_shape = Shape.cast(output_shape)
        self.network = network
        self.vectors = vectors
        self.depth = depth
        for what, shape, number in (
            ("input_shape", self.input_shape, len(network.inputs)),
            ("output_shape", self.output_shape, len(network.outputs)),
        ):
            if shape.width < 1 or number < 1:
                raise ValueError(f"{what} must have at least 1 bit and 1 element, not {shape.width} and {number}")
        ends = network.intervals
        outputs = [(ends[t][0] << shift, ends[t][1] << shift) for t, shift in network.outputs if t is not None]
        for what, shape, intervals in (
            ("input_shape", self.input_shape, network.inputs), ("output_shape", self.output_shape, outputs)
        ):
            for low, high in intervals:
                least, greatest = interval(shape)
                if not least <= low <= high <= greatest:
                    raise ValueError(f"{what} must hold {low}..{high}, not be {shape}")
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(self.input_shape, vectors * len(network.inputs)))),
                "o": Out(stream.Signature(data.ArrayLayout(self.output_shape, vectors * len(network.outputs)))),
            }
        )

    @staticmethod
    def latency_of(stages: int) -> int:
        """Return the cycles from a step to ``o.valid`` for a network of ``stages``."""
        return 2 + stages

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self.network.stages)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        network = self.network
        # The queue holds what varies: the bits of each output's own range, without the zeros below its shift.
        shapes = [network.output_shape(index) for index in range(len(network.outputs))] * self.vectors
        m.submodules.queue = queue = OutputQueue(Shape(sum(shape.width for shape in shapes)), self.depth)
        arrived = Signal(self.i.payload.shape(), reset_less=True)
        m.d.sync += arrived.eq(self.i.payload)
        queue.issue(m, self.i, self.latency - 1)
        m.d.comb += [self.o.valid.eq(queue.o.valid), queue.o.ready.eq(self.o.ready)]
        results: list[Value] = []
        for vector in range(self.vectors):
            first = vector * len(network.inputs)
            inputs = [arrived[first + k] for k in range(len(network.inputs))]
            name = "term" if self.vectors == 1 else f"vector{vector}_term"
            results += network.build(m, name, inputs)
        m.d.comb += queue.payload.eq(Cat(value[: shape.width] for value, shape in zip(results, shapes, strict=True)))
        offset = 0
        for lane, shape in enumerate(shapes):
            bits = queue.o.payload[offset : offset + shape.width]
            offset += shape.width
            value = bits.as_signed() if shape.signed else bits
            m.d.comb += self.o.payload[lane].eq(value.shift_left(network.outputs[lane % len(network.outputs)][1]))
        return m
