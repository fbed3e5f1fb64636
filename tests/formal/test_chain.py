"""Proof for cores in series behind one queue (hdl_lib.chain); broken twins are refuted."""

from types import SimpleNamespace

import pytest
from amaranth.hdl import Assert, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib import chain
from hdl_lib.chain import Chain, Link
from hdl_lib.streams.output_queue import OutputQueue
from tests.formal.prover import prove, refute
from tests.formal.scoreboard import Follower, storage_invariants, stream_rules

WIDTH = 2


class Stage(wiring.Component):
    """A core of one register, without a queue."""

    def __init__(self):
        self.held, self.full = Signal(WIDTH), Signal()
        super().__init__({"i": In(stream.Signature(WIDTH)), "o": Out(stream.Signature(WIDTH))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = OutputQueue(WIDTH, 0)
        step = queue.issue(m, self.i, 1)
        m.d.sync += [self.held.eq(self.i.payload), self.full.eq(step)]
        m.d.comb += queue.payload.eq(self.held)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        return m


class ChainProof(wiring.Component):
    """Two stages behind a queue of ``depth``: every beat comes out, in order, at the cycle that is said."""

    i_valid: In(1)
    i_payload: In(WIDTH)
    o_ready: In(1)
    pick: In(1)

    def __init__(self, depth, *, invariants=True):
        self.depth, self.invariants = depth, invariants
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        first, second = Stage(), Stage()
        m.submodules.dut = dut = Chain(
            [(name, Link(stage, stage.i, stage.o)) for name, stage in (("first", first), ("second", second))],
            depth=self.depth,
        )
        enter, leave = Signal(), Signal()
        m.d.comb += [
            dut.i.valid.eq(self.i_valid), dut.i.payload.eq(self.i_payload), dut.o.ready.eq(self.o_ready),
            enter.eq(dut.i.valid & dut.i.ready), leave.eq(dut.o.valid & dut.o.ready),
        ]
        stream_rules(m, "o", dut.o.valid, dut.o.payload, dut.o.ready)
        follower = Follower(
            m, "beat", self.pick, enter=enter, value=dut.i.payload, leave=leave, valid=dut.o.valid,
            payload=dut.o.payload, capacity=self.depth,
        )
        m.d.comb += Assert(dut.i.ready == (follower.level != self.depth))
        way = Signal(2)  # beats that have been on their way for one cycle, and for two
        m.d.sync += way.eq(way << 1 | enter)
        m.d.comb += Assert(dut.o.valid == (follower.level != way[0] + way[1]))
        if self.invariants:
            queue = dut.queue
            level = Signal(range(self.depth + 1))
            inside = follower.following & (follower.ahead < level)
            m.d.comb += [
                level.eq(queue.storage.level),
                Assert(way == first.full + (second.full << 1)),
                Assert(follower.level == level + first.full + second.full),
                Assert(queue.spare + 1 + follower.level == self.depth),
                Assert(~follower.following | (follower.ahead < follower.level)),
            ]
            last = follower.following & (follower.ahead == level)
            behind = follower.following & (follower.ahead == level + second.full)
            m.d.comb += [
                Assert(~(last & second.full) | (second.held == follower.value)),
                Assert(~(behind & first.full) | (first.held == follower.value)),
            ]
            storage_invariants(
                m, queue.storage,
                SimpleNamespace(level=level, ahead=follower.ahead, value=follower.value, following=inside),
            )
        return m


@pytest.mark.parametrize("depth", [1, 2, 4, 6])
def test_chain(depth, tmp_path):
    prove(ChainProof(depth), tmp_path)


class Free(OutputQueue):
    """A queue that gives credits without counting them."""

    def build(self):
        m = Module()
        m.submodules.storage = storage = self.storage
        m.d.comb += [self.available.eq(1), storage.push.eq(self.push), storage.payload.eq(self.payload)]
        wiring.connect(m, storage.o, wiring.flipped(self.o))
        return m


def test_a_chain_whose_beats_take_no_credits_is_refuted(tmp_path, monkeypatch):
    monkeypatch.setattr(chain, "OutputQueue", Free)
    refute(ChainProof(3, invariants=False), tmp_path)


def test_a_chain_with_cores_that_wait_is_refuted(tmp_path, monkeypatch):
    """One that hands on what was valid a cycle ago."""
    monkeypatch.setattr(Stage, "elaborate", lambda self, platform: slow(self))

    def slow(stage):
        m = Module()
        early = Signal()
        m.d.sync += [early.eq(stage.i.valid), stage.full.eq(early), stage.held.eq(stage.i.payload)]
        m.d.comb += [stage.o.valid.eq(stage.full), stage.o.payload.eq(stage.held), stage.i.ready.eq(1)]
        return m

    refute(ChainProof(3, invariants=False), tmp_path)


def test_what_a_chain_takes():
    a, b = Stage(), Stage()
    wide = stream.Signature(WIDTH + 1).create()
    with pytest.raises(ValueError, match=r"^links must be at least one core$"):
        Chain([], depth=2)
    with pytest.raises(ValueError, match=r"^link b must take beats of 2 bits, as the one before gives, not 3$"):
        Chain([("a", Link(a, a.i, a.o)), ("b", Link(b, wide, b.o))], depth=2)
