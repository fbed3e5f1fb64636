"""Requantization by a binary search among thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Shape, Signal, Value
from amaranth.utils import ceil_log2

from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.blocks import ONE_TURN, Turns, delayed, less
from hdl_lib.memories.rom import Rom, Table, banks_of
from hdl_lib.requantizers.per_channel import PerChannel

SMALL = 16  # words of a table that look-up tables hold: it is read without an output register


def read_latency(depth: int) -> int:
    """Return the cycles from an address to the word of a table of ``depth`` words: 0 for a constant, 1, or 2 beyond 16
    words."""
    return 0 if depth == 1 else 1 if depth <= SMALL else 2


def value_latency(width: int, depth: int) -> int:
    """Return the cycles from an address to the result of a table of ``depth`` results of ``width`` bits: one more with
    several banks."""
    return read_latency(depth) + (banks_of(width, depth) > 1)


class SearchRequantizer(PerChannel):
    """``y = f(number of the channel's bounds B with x > B)``, found by bisection: any step function of a wide input.

    Parameters
    ----------
    input_shape, output_shape: of an element, integer shapes.
    lanes, channels: elements per beat and elements per pixel; ``blocks = ceil(channels / lanes)`` beats per pixel.
    bound_shape: of a bound, an integer shape of at least 1 bit.
    stages: comparisons one after the other, at least 1; each channel has ``2**stages - 1`` bounds.
    bounds: tables of one bound per word, lane by lane ``stages`` of them. Stage ``s`` has ``2**s`` words per block, at
        ``k * 2**s + p`` for block k where the comparisons before gave ``p``, the first one its most significant bit:
        of the channel's bounds in rising order, number ``(2 * p + 1) * 2**(stages - 1 - s) - 1``. A table of a single
        word must be given as a number; it becomes a constant.
    values: tables, one for each lane, of ``output_shape``'s width: at ``k * 2**stages + n`` the result in block k where
        ``x`` is above n bounds. None: the result is ``base + n``, or ``base - n`` with ``falling``, modulo
        ``2**output_shape.width``.
    base, falling: see ``values``; ``base`` is a value of ``output_shape``.
    shared: the tables have one block, used for all.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). Elements of ``input_shape``.
    o: Out(stream). Elements of ``output_shape``; lanes beyond ``channels`` follow the tables' words for them.

    Timing
    ------
    One step per beat, at the first cycle with ``i.valid`` and a credit; ``latency`` cycles later ``o.valid``. Stages:
    input; for each comparison the reading of its bound (no cycle for a constant, one for a table of up to 16 words, two
    beyond) and the comparison; the reading of the value (one or two cycles, three from a table in several banks) if
    there are ``values``; output queue.
    Initiation interval 1 cycle per beat. Under backpressure no step begins; those begun continue.

    Ordering
    --------
    Beats leave in the order they came.
    """

    def __init__(
        self,
        input_shape: Shape,
        output_shape: Shape,
        *,
        lanes: int,
        channels: int,
        bound_shape: Shape,
        stages: int,
        bounds: Sequence[Table],
        depth: int,
        values: Sequence[Table] | None = None,
        base: int = 0,
        falling: bool = False,
        shared: bool = False,
        turns: Turns = ONE_TURN,
    ) -> None:
        super().__init__(input_shape, output_shape, lanes=lanes, channels=channels, depth=depth, turns=turns)
        self.bound_shape = Shape.cast(bound_shape)
        self.stages = stages
        self.bounds = tuple(bounds)
        self.values = tuple(values or ())
        self.base = base
        self.falling = falling
        self.table_blocks = 1 if shared else self.blocks
        if stages < 1:
            raise ValueError(f"stages must be at least 1, not {stages}; a constant needs no requantizer")
        if self.bound_shape.width < 1:
            raise ValueError("bound_shape must have at least 1 bit, not 0")
        least, greatest = interval(self.output_shape)
        if not least <= base <= greatest:
            raise ValueError(f"base must be in {least}..{greatest}, the range of {self.output_shape}, not {base}")
        if len(self.bounds) != lanes * stages:
            raise ValueError(
                f"bounds must be {lanes * stages} tables, {stages} for each lane, not {len(self.bounds)}"
            )
        if values is not None and len(self.values) != lanes:
            raise ValueError(f"values must be {lanes} tables, one for each lane, not {len(self.values)}")
        for index, table in enumerate(self.bounds):
            self._check_size(f"bounds {index}", table, self.bound_shape.width, index % stages)
        for index, table in enumerate(self.values):
            self._check_size(f"values {index}", table, self.output_shape.width, stages)
        if self.table_blocks == 1 and any(table.words is None for table in self.bounds[::stages]):
            raise ValueError("a table of a single word must be given as a number, not in a file")

    def _check_size(self, name: str, table: Table, width: int, address_bits: int) -> None:
        if table.width != width:
            raise ValueError(f"the words of {name} must have {width} bits, not {table.width}")
        if table.depth != self.table_blocks << address_bits:
            raise ValueError(
                f"{name} must have {self.table_blocks << address_bits} words "
                f"({1 << address_bits} for each of {self.table_blocks} blocks), not {table.depth}"
            )

    @staticmethod
    def latency_of(stages: int, table_blocks: int, *, values: int) -> int:
        """Return the cycles from a step to ``o.valid``, with ``table_blocks`` blocks of words in each table;
        ``values``: bits of a result that is read, 0 if none is."""
        reads = [read_latency(table_blocks << stage) for stage in range(stages)]
        if values:
            reads.append(value_latency(values, table_blocks << stages))
        return 2 + stages + sum(reads)

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self.stages, self.table_blocks, values=self.output_shape.width if self.values else 0)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue, step = self._issue(m)
        arrived = Signal(self.i.payload.shape(), reset_less=True)
        m.d.sync += arrived.eq(self.i.payload)
        xs: list[Value] = [arrived[lane] for lane in range(self.lanes)]
        block = delayed(m, "block", self._block(m, "block", self.table_blocks, step), 1)[: ceil_log2(self.table_blocks)]
        found: list[Value] = [Const(0, 0)] * self.lanes  # the comparisons so far, as a number
        for stage in range(self.stages):
            tables = self.bounds[stage :: self.stages]
            bounds = self._read(m, f"bounds_{stage}", tables, block, found)
            cycles = read_latency(self.table_blocks << stage)
            for lane, word in enumerate(bounds):
                x = _later(m, f"x_{lane}_{stage}", xs[lane], cycles)
                above = Signal(name=f"above_{lane}_{stage}", reset_less=True)
                m.d.sync += above.eq(less(word.as_signed() if self.bound_shape.signed else word, x))
                found[lane] = Cat(above, _later(m, f"found_{lane}_{stage}", found[lane], cycles + 1))
                if stage + 1 < self.stages:
                    xs[lane] = _later(m, f"x_{lane}_{stage}_kept", x, 1)
            block = _later(m, f"block_{stage}", block, cycles + 1)
        if self.values:
            results = self._read(m, "values", self.values, block, found)
            depth = self.values[0].depth
            # Behind the choice of a bank, which in front of a queue's registers each of them would make by itself.
            more = value_latency(self.output_shape.width, depth) - read_latency(depth)
            results = [_later(m, f"value_{lane}", result, more) for lane, result in enumerate(results)]
        else:
            results = [self.base - number if self.falling else self.base + number for number in found]
        for lane, result in enumerate(results):
            m.d.comb += queue.payload[lane].eq(result)
        return m

    def _read(
        self, m: Module, name: str, tables: Sequence[Table], block: Value, found: Sequence[Value]
    ) -> list[Value]:
        """Return each lane's word, ``read_latency`` cycles later."""
        words: list[Value] = []
        for lane, table in enumerate(tables):
            if table.depth == 1:
                assert table.words is not None, "checked"
                words.append(Const(table.words[0], table.width))
                continue
            rom = Rom.of_table(table, output_register=table.depth > SMALL)
            m.submodules[f"{name}_{lane}"] = rom
            m.d.comb += rom.addr.eq(Cat(found[lane], block))
            words.append(rom.data)
        return words


def _later(m: Module, name: str, value: Value, cycles: int) -> Value:
    """Return ``value`` delayed by ``cycles``, in data registers without reset."""
    for cycle in range(cycles if len(value) else 0):
        register = Signal.like(value, name=f"{name}_{cycle}", reset_less=True)
        m.d.sync += register.eq(value)
        value = register
    return value
