"""What every stream proof says: the stream rules, and one arbitrary beat followed from its entry to its exit.

A free input chooses which beat is followed, so what is proved of it holds for every beat: it comes out after exactly
the beats that were inside before it (order, no loss, no duplication), unchanged.
"""

from amaranth.hdl import Array, Assert, Cover, Mux, Signal

from hdl_lib.memories.storage import BlockStorage, LutramStorage, RegisterStorage


def lookup(function, index, count):
    """``function`` of a small unsigned value as a table of ``count`` entries."""
    return Array([function(k) for k in range(count)])[index]


def stream_rules(m, name, valid, payload, ready):
    """Valid and payload are held until ready; nothing is valid after reset."""
    fresh = Signal(name=f"{name}_fresh", init=1)
    waiting = Signal(name=f"{name}_waiting")
    offered = Signal(len(payload), name=f"{name}_offered")
    m.d.sync += [fresh.eq(0), waiting.eq(valid & ~ready), offered.eq(payload)]
    m.d.comb += [
        Assert(~(fresh & valid)),
        Assert(~waiting | valid),
        Assert(~waiting | (payload == offered)),
    ]


class Follower:
    """Counts the beats inside (``level``) and follows one: ``ahead`` beats leave before it, then ``value``."""

    def __init__(self, m, name, pick, *, enter, value, leave, valid, payload, capacity):
        self.level = Signal(range(capacity + 2), name=f"{name}_level")
        self.following = Signal(name=f"{name}_following")
        self.ahead = Signal(range(capacity + 1), name=f"{name}_ahead")
        self.value = Signal(len(payload), name=f"{name}_value")
        behind = Signal(name=f"{name}_behind")  # the beat entered behind another one
        m.d.sync += self.level.eq(self.level + enter - leave)
        with m.If(self.following & leave):
            m.d.sync += self.ahead.eq(self.ahead - 1)
            with m.If(self.ahead == 0):
                m.d.sync += [self.following.eq(0), self.ahead.eq(0)]
        with m.Elif(~self.following & enter & pick):
            m.d.sync += [
                self.following.eq(1),
                self.value.eq(value),
                self.ahead.eq(self.level - leave),
                behind.eq(self.level != leave),
            ]
        arrives = self.following & (self.ahead == 0)
        m.d.comb += [
            Assert(self.level <= capacity),
            Assert(~valid | (self.level != 0)),
            Assert(~(arrives & valid) | (payload == self.value)),
            Cover(arrives & leave & (behind | (capacity < 2)) & (self.value != 0)),
            Cover(self.level == capacity),
        ]


def storage_invariants(m, storage, follower):
    """Where a storage keeps the followed beat: what makes the proof inductive."""
    level, ahead, value, following = follower.level, follower.ahead, follower.value, follower.following
    m.d.comb += Assert(~following | (ahead < level))
    if isinstance(storage, RegisterStorage):
        m.d.comb += Assert(storage.occupied == lookup(lambda k: (1 << k) - 1, level, storage.depth + 1))
        for k, entry in enumerate(storage.entries):
            m.d.comb += Assert(~(following & (ahead == k)) | (entry == value))
        return
    m.d.comb += Assert(storage.full == (level == storage.depth))
    rows = storage.rows
    memory = storage.stored.parts[0] if isinstance(storage, BlockStorage) else storage.memory
    probe = memory.read_port(domain="comb")
    used = Signal(range(rows + 1), name="rows_used")
    m.d.comb += [
        used.eq(storage.write_row - storage.read_row + Mux(storage.write_row < storage.read_row, rows, 0)),
        Assert(storage.write_row < rows),
        Assert(storage.read_row < rows),
    ]
    skipped = Signal(range(3), name="registers_used")
    place = Signal(range(2 * rows), name="probe_place")
    m.d.comb += [
        place.eq(storage.read_row + ahead - skipped),
        probe.addr.eq(Mux(place >= rows, place - rows, place)),
    ]
    if isinstance(storage, LutramStorage):
        m.d.comb += [
            Assert(used == lookup(lambda k: k % rows, level, storage.depth + 1)),
            Assert(storage.surplus + 1 == level),
            Assert(~following | (probe.data == value)),
        ]
    else:
        assert isinstance(storage, BlockStorage)
        in_output = following & (ahead == 0) & storage.output_valid
        in_read = following & (ahead == storage.output_valid) & storage.read_valid
        m.d.comb += [
            skipped.eq(storage.output_valid + storage.read_valid),
            Assert(level == used + skipped),
            Assert(storage.waiting + 1 == used),
            Assert((used < 2) | (storage.read_valid & storage.output_valid)),
            Assert(~in_output | (storage.stored.moved[0] == value)),
            Assert(~in_read | (storage.stored.fetched[0] == value)),
            Assert(~(following & (ahead >= skipped)) | (probe.data == value)),
            Assert(~(storage.push & (used == rows - 1))),  # the row written is never the row read
        ]
