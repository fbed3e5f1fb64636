"""The storages of queues: shift registers, an async-read memory, a sync-read memory.

All have the same members and none checks its own room: the pusher knows (by a credit, or by ``full``) that an entry is
free. Use :class:`hdl_lib.streams.fifo.Fifo` or :class:`hdl_lib.streams.output_queue.OutputQueue`, which do that.

Members of each storage:
    ``push`` (in 1), ``payload`` (in, ``shape``): write an entry; the caller guarantees ``~full``.
    ``o`` (out, stream of ``shape``): the oldest entry.
    ``level`` (out): number of entries pushed and not popped; ``full`` (out 1): that is ``depth``. Both are functions of
    registers alone.

Timing: a push at cycle t into an empty storage shows ``o.valid`` at t + :func:`latency_of` (style); each later entry at
``max(push + latency, pop of the one before + 1)``: one beat per cycle, no bubble.
"""

from enum import StrEnum

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.buffer_memory import BufferMemory


class StorageStyle(StrEnum):
    """Where the beats of a queue lie. The values are the words of reports and of cores' arguments."""

    AUTO = "auto"  # one of the others, by size
    REGISTER = "register"
    LUTRAM = "lutram"
    BLOCK = "block"


LUTRAM = "lutram"  # attribute of memories that are to lie in look-up tables, on parts that have such
REGISTER_DEPTH = 4  # up to this depth flip-flops are smaller than a memory and its two pointers
BLOCK_BITS = 4096  # from this size on a block RAM is cheaper than look-up tables used as memory

_LATENCY = {StorageStyle.REGISTER: 1, StorageStyle.LUTRAM: 1, StorageStyle.BLOCK: 3}


def style_of(shape, depth, style=StorageStyle.AUTO, *, block=True):
    """Return the storage style: ``style`` itself, or for AUTO the cheapest by size.

    ``block=False`` limits AUTO to the styles with a latency of one cycle.
    """
    if style not in set(StorageStyle):
        raise ValueError(f"style must be one of {', '.join(repr(str(each)) for each in StorageStyle)}, not {style!r}")
    if style != StorageStyle.AUTO:
        return StorageStyle(style)
    if depth <= REGISTER_DEPTH:
        return StorageStyle.REGISTER
    return StorageStyle.BLOCK if block and depth * Shape.cast(shape).width >= BLOCK_BITS else StorageStyle.LUTRAM


def latency_of(style):
    """Return the cycles from a push into an empty storage of this style, not AUTO, to ``o.valid``."""
    return _LATENCY[style]


def check_depth(depth, *, later=True, least=1):
    """Raise :class:`ValueError` unless ``depth`` is an integer of at least ``least``, or (``later``) None: known when
    the queue itself is built (see :class:`hdl_lib.streams.output_queue.OutputQueue`)."""
    if depth is None and later:
        return
    if not isinstance(depth, int) or depth < least:
        raise ValueError(f"depth must be an integer of at least {least}, not {depth!r}")


def storage_for(shape, depth, style):
    """Return a storage of ``depth`` entries of ``shape``; ``style`` is not AUTO."""
    kinds = {
        StorageStyle.REGISTER: RegisterStorage, StorageStyle.LUTRAM: LutramStorage, StorageStyle.BLOCK: BlockStorage
    }
    return kinds[style](shape, depth)


def count(m, counter, up, down):
    """Count ``counter`` up by one in a cycle with ``up``, down with ``down``, and not at all with both.

    The adder waits for ``up`` alone; ``down``, which may come later in the cycle, goes to the enable.
    """
    with m.If(up ^ down):
        m.d.sync += counter.eq(counter + Mux(up, 1, Const(-1, 2)))


def flag_full(m, full, level, depth, push, pop):
    """Drive the register ``full``: ``level`` is ``depth``."""
    with m.If(push ^ pop):
        m.d.sync += full.eq(push & (level == depth - 1))


class _Storage(wiring.Component):
    def __init__(self, shape, depth):
        check_depth(depth, later=False)
        self.shape = shape
        self.depth = depth
        self._width = Shape.cast(shape).width
        super().__init__(
            {
                "push": In(1),
                "payload": In(shape),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
                "full": Out(1),
            }
        )


class RegisterStorage(_Storage):
    """Shift registers: the oldest entry sits in entry 0, whose flip-flops are ``o.payload``.

    Parameters: ``shape`` (any Amaranth shape), ``depth`` (entries, at least 1).
    Members: see the module. Timing: latency 1; one beat per cycle. Ordering: first in, first out.
    Cost per bit: ``depth`` flip-flops and ``depth - 1`` multiplexers of two inputs.
    """

    def __init__(self, shape, depth):
        super().__init__(shape, depth)
        # occupied[k]: entry k holds a beat; ones from the bottom without a gap, so that each is level > k.
        self.occupied = Signal(depth)
        self.entries = [Signal(self._width, name=f"entry_{k}", reset_less=True) for k in range(depth)]

    def elaborate(self, platform):
        m = Module()
        depth = self.depth
        occupied = self.occupied
        entries = self.entries
        payload = Value.cast(self.payload)
        ready = self.o.ready
        m.d.comb += [
            self.o.valid.eq(occupied[0]),
            Value.cast(self.o.payload).eq(entries[0]),
            self.level.eq(sum(occupied[k] for k in range(depth))),
            self.full.eq(occupied[depth - 1]),
        ]
        # What moves on asks for "ready" alone, where "valid and ready" would do as well: an empty queue has nothing
        # above its first entry. Synthesis makes one table of that conjunction and the reader's own, placed at the
        # reader, and the way there and back is the longest path of a design.
        for k in range(depth):
            below = occupied[k - 1] if k else 1
            above = occupied[k + 1] if k + 1 < depth else 0
            m.d.sync += occupied[k].eq(
                Mux(self.push, Mux(ready, occupied[k], below) if k else 1, Mux(ready, above, occupied[k]))
            )
        for k, entry in enumerate(entries):
            # A free entry may take anything: it follows the input, so that its enable needs neither push nor level. The
            # last one takes nothing else (there is no push while it is occupied), and its enable is a register.
            if k + 1 < depth:
                with m.If(ready | ~occupied[k]):
                    m.d.sync += entry.eq(Mux(occupied[k + 1], entries[k + 1], payload))
            else:
                with m.If(~occupied[k]):
                    m.d.sync += entry.eq(payload)
        return m


def _advance(pointer, rows):
    """Return the next value of a row pointer through ``rows`` rows."""
    return pointer + 1 if rows & (rows - 1) == 0 else Mux(pointer == rows - 1, 0, pointer + 1)


class LutramStorage(_Storage):
    """A memory with asynchronous read (look-up tables as memory on most devices).

    Parameters: ``shape`` (any Amaranth shape), ``depth`` (entries, at least 1).
    Members: see the module. Timing: latency 1; one beat per cycle. ``o.payload`` is the memory's read path.
    Ordering: first in, first out.

    The memory has the attribute :data:`LUTRAM`: synthesis may otherwise take the register of the row for a block RAM's
    own, and ``o.payload``, of which others expect a look-up table's time, comes more than half a cycle late.
    """

    def __init__(self, shape, depth):
        super().__init__(shape, depth)
        # A power of two costs nothing in a 16-row primitive and spares the pointers a comparison.
        self.rows = 1 << max(1, (depth - 1).bit_length()) if depth <= 16 else depth
        self.memory = memory.Memory(shape=self._width, depth=self.rows, init=[], attrs={LUTRAM: 1})
        self.write_row = Signal(range(self.rows))
        self.read_row = Signal(range(self.rows))
        # One less than the level: its sign bit alone says empty.
        self.surplus = Signal(range(-1, depth), init=-1)
        self._write = self.memory.write_port()
        self._read = self.memory.read_port(domain="comb")

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        rows = self.rows
        write = self._write
        read = self._read
        write_row = self.write_row
        read_row = self.read_row
        surplus = self.surplus
        pop = Signal()
        full = Signal(name="is_full")
        m.d.comb += [
            write.addr.eq(write_row),
            write.data.eq(Value.cast(self.payload)),
            write.en.eq(self.push),
            read.addr.eq(read_row),
            Value.cast(self.o.payload).eq(read.data),
            self.o.valid.eq(surplus >= 0),
            pop.eq(self.o.valid & self.o.ready),
            self.level.eq(surplus + 1),
            self.full.eq(full),
        ]
        flag_full(m, full, surplus, self.depth - 1, self.push, pop)
        count(m, surplus, self.push, pop)
        with m.If(self.push):
            m.d.sync += write_row.eq(_advance(write_row, rows))
        with m.If(pop):
            m.d.sync += read_row.eq(_advance(read_row, rows))
        return m


class BlockStorage(_Storage):
    """A memory with synchronous read (block RAM), its read register and an output register behind it.

    A beat goes memory -> its own register -> ``o.payload``; each of the two advances when the next place is free or
    becomes free in the same cycle, so that no beat waits needlessly. All three together hold ``depth`` beats. No logic
    is between the two registers, so that both may be the block RAM's own.

    Parameters: ``shape`` (any Amaranth shape), ``depth`` (entries, at least 1). Members: see the module. Timing:
    latency 3; one beat per cycle. Ordering: first in, first out.
    """

    def __init__(self, shape, depth):
        super().__init__(shape, depth)
        # One row more than the memory ever holds, so that equal pointers can only mean that it is empty.
        self.rows = max(2, depth - 1)
        self.write_row = Signal(range(self.rows))
        self.read_row = Signal(range(self.rows))
        # One less than the rows that hold a beat: its sign bit alone says that none does.
        self.waiting = Signal(range(-1, self.rows), init=-1)
        self.read_valid = Signal()
        self.output_valid = Signal()
        # A row is never read while it is written: equal pointers say that there is nothing to read.
        self.stored = BufferMemory("memory", self._width, self.rows)

    def elaborate(self, platform):
        m = Module()
        rows = self.rows
        stored = self.stored
        write_row = self.write_row
        read_row = self.read_row
        read_valid = self.read_valid
        output_valid = self.output_valid
        level = Signal(range(self.depth + 1))
        full = Signal(name="is_full")
        pop = Signal()
        fetch = Signal()
        move = Signal()
        m.d.comb += [
            pop.eq(output_valid & self.o.ready),
            move.eq(~output_valid | self.o.ready),  # the output register takes what the read register has
            fetch.eq((self.waiting >= 0) & (~read_valid | move)),  # the read register takes the oldest row
            self.o.valid.eq(output_valid),
            Value.cast(self.o.payload).eq(stored.read(m, read_row, fetch=fetch, move=move)),
            self.level.eq(level),
            self.full.eq(full),
        ]
        stored.write(m, self.push, write_row, Value.cast(self.payload))
        flag_full(m, full, level, self.depth, self.push, pop)
        count(m, level, self.push, pop)
        count(m, self.waiting, self.push, fetch)
        with m.If(self.push):
            m.d.sync += write_row.eq(_advance(write_row, rows))
        with m.If(fetch):
            m.d.sync += read_row.eq(_advance(read_row, rows))
        with m.If(move):
            m.d.sync += output_valid.eq(read_valid)
        with m.If(fetch | move):
            m.d.sync += read_valid.eq(fetch)
        return m
