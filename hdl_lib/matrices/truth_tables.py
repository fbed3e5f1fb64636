"""Functions of vectors, each output of few bits, as look-up tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue


class TableOutput(NamedTuple):
    """An element of a result: ``signals`` of its bits, lowest first, and whether the last one is its sign."""

    signals: tuple[int, ...]
    signed: bool


class TruthTables(wiring.Component):
    """Applies a network of look-up tables to each of ``vectors`` vectors per beat.

    Parameters
    ----------
    input_shape, output_shape: integer shapes of an element.
    elements: of a vector, at least 1.
    bits: the network's inputs: for each the element of the vector and the bit in it.
    tables: for each the signals that it reads, and its truth table: bit k is the value where they are the bits of k,
        the first one lowest. Signals are the network's inputs, then the tables in order; a table reads signals before
        it, a constant none.
    stages: of each table, from 0 and not before those that it reads: registers are between them. Empty: all 0.
    outputs: the elements of a result, at least 1.
    vectors: vectors per beat, at least 1.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). The elements of ``vectors`` vectors, one vector after the other.
    o: Out(stream). ``len(outputs)`` elements per vector.

    Timing
    ------
    One step per beat, at the first cycle with ``i.valid`` and a credit; ``latency`` cycles later ``o.valid``: 1 for the
    input's register, 1 for each stage behind the first, 1 for the output queue. Initiation interval 1 cycle per beat.

    Ordering
    --------
    Beats leave in the order they came.
    """

    def __init__(
        self,
        input_shape: Shape,
        output_shape: Shape,
        *,
        elements: int,
        bits: Sequence[tuple[int, int]],
        tables: Sequence[tuple[Sequence[int], int]],
        stages: Sequence[int] = (),
        outputs: Sequence[TableOutput],
        vectors: int = 1,
        depth: int,
    ) -> None:
        self.input_shape = Shape.cast(input_shape)
        self.output_shape = Shape.cast(output_shape)
        self.elements = elements
        self.bits = tuple(bits)
        self.tables = tuple((tuple(inputs), truth) for inputs, truth in tables)
        self.stages = tuple(stages) or (0,) * len(self.tables)
        self.outputs = tuple(outputs)
        self.vectors = vectors
        self.depth = depth
        check_depth(depth, least=0)
        if min(vectors, elements, len(self.outputs)) < 1:
            raise ValueError(
                f"vectors, elements and outputs must be at least 1, not {vectors}, {elements} and {len(self.outputs)}"
            )
        for element, bit in self.bits:
            if not (0 <= element < elements and 0 <= bit < self.input_shape.width):
                raise ValueError(
                    f"bits must be of elements 0..{elements - 1} and bits 0..{self.input_shape.width - 1}, "
                    f"not {element} and {bit}"
                )
        if len(self.stages) != len(self.tables):
            raise ValueError(f"stages must be {len(self.tables)}, one for each table, not {len(self.stages)}")
        known = len(self.bits)
        every = [0] * known + list(self.stages)
        for number, (inputs, truth) in enumerate(self.tables, known):
            if not all(0 <= signal < number for signal in inputs):
                raise ValueError(f"table {number - known} must read signals of 0..{number - 1}, not {inputs}")
            if every[number] < (least := max((every[signal] for signal in inputs), default=0)):
                raise ValueError(f"table {number - known} must be of stage {least} at least, not {every[number]}")
            if not 0 <= truth < 1 << (1 << len(inputs)):
                raise ValueError(f"table {number - known} must have {1 << len(inputs)} bits, not be {truth:#x}")
        known += len(self.tables)
        for number, (signals, signed) in enumerate(self.outputs):
            if len(signals) > self.output_shape.width or signed > self.output_shape.signed:
                raise ValueError(
                    f"output {number} must be within {self.output_shape}, not have {len(signals)} bits"
                    f"{' with a sign' if signed else ''}"
                )
            if not all(0 <= signal < known for signal in signals):
                raise ValueError(f"output {number} must be signals of 0..{known - 1}, not {signals}")
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(self.input_shape, vectors * elements))),
                "o": Out(stream.Signature(data.ArrayLayout(self.output_shape, vectors * len(self.outputs)))),
            }
        )

    @staticmethod
    def latency_of(stages: Sequence[int]) -> int:
        """Return the cycles from a step to ``o.valid``."""
        return 2 + max(stages, default=0)

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self.stages)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        results = self._results
        m.submodules.queue = queue = OutputQueue(Shape(self.vectors * len(results)), self.depth)
        arrived = Signal(self.i.payload.shape(), reset_less=True)
        m.d.sync += arrived.eq(self.i.payload)
        queue.issue(m, self.i, self.latency - 1)
        m.d.comb += [self.o.valid.eq(queue.o.valid), queue.o.ready.eq(self.o.ready)]
        made: list[Value] = []
        for vector in range(self.vectors):
            name = "table" if self.vectors == 1 else f"vector{vector}_table"
            first = vector * self.elements
            bits = [Value.cast(arrived[first + element])[bit] for element, bit in self.bits]
            made += self._network(m, name, bits, list(results))
            held = queue.o.payload[vector * len(results) :]
            for lane, (signals, signed) in enumerate(self.outputs, vector * len(self.outputs)):
                element = Cat(held[results[s]] if s in results else self._constant(s) for s in signals)
                m.d.comb += self.o.payload[lane].eq(element.as_signed() if signed else element)
        m.d.comb += queue.payload.eq(Cat(made))
        return m

    def _network(self, m: Module, name: str, bits: Sequence[Value], results: Sequence[int]) -> list[Value]:
        """Build the tables for inputs in registers; return the values of ``results`` in the last stage."""
        stages = [0] * len(bits) + list(self.stages)
        copies = [[bit] for bit in bits]  # of each signal, those in its own stage and in the next ones

        def of(signal: int, stage: int) -> Value:
            known, own = copies[signal], stages[signal]
            if signal >= len(bits) and not self.tables[signal - len(bits)][0]:
                return known[0]  # a constant
            while len(known) <= stage - own:
                register = Signal(name=f"{name}_{signal}_{own + len(known)}", reset_less=True)
                m.d.sync += register.eq(known[-1])
                known.append(register)
            return known[stage - own]

        for number, (inputs, truth) in enumerate(self.tables, len(bits)):
            value = Signal(name=f"{name}_{number}")
            address = Cat(of(signal, stages[number]) for signal in inputs)
            m.d.comb += value.eq(Const(truth, 1 << len(inputs)).bit_select(address, 1))
            copies.append([value])
        return [of(signal, max(self.stages, default=0)) for signal in results]

    @property
    def _results(self) -> dict[int, int]:
        """Return the place in the queue of each signal among the outputs that is not constant."""
        signals = dict.fromkeys(signal for output in self.outputs for signal in output.signals)
        kept = [signal for signal in signals if signal < len(self.bits) or self.tables[signal - len(self.bits)][0]]
        return {signal: place for place, signal in enumerate(kept)}

    def _constant(self, signal: int) -> Const:
        return Const(self.tables[signal - len(self.bits)][1], 1)
