"""Proofs for FIFO, skid buffer, output queue and fork; each proof must refute a broken twin of its core."""

import pytest
from amaranth.hdl import Assert, Assume, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl_lib.memories import storage
from hdl_lib.streams.fifo import Fifo
from hdl_lib.streams.fork import Fork
from hdl_lib.streams.frame_mark import FrameMark
from hdl_lib.streams.frame_sync import FrameSync
from hdl_lib.streams.output_queue import OutputQueue
from hdl_lib.streams.skid_buffer import SkidBuffer
from hdl_lib.streams.width_converter import WidthConverter
from tests.formal.prover import has_path, prove, refute
from tests.formal.scoreboard import Follower, storage_invariants, stream_rules

WIDTH = 2


class QueueProof(wiring.Component):
    """A core with one input and one output that hands every beat on: FIFO or skid buffer.

    ``invariants=False`` leaves only what is visible from outside, which is what a broken twin must fail.
    """

    i_valid: In(1)
    i_payload: In(WIDTH)
    o_ready: In(1)
    pick: In(1)

    def __init__(self, dut, latency, *, invariants=True):
        self.dut = dut
        self.latency = latency
        self.invariants = invariants
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        enter = Signal()
        leave = Signal()
        m.d.comb += [
            dut.i.valid.eq(self.i_valid),
            dut.i.payload.eq(self.i_payload),
            dut.o.ready.eq(self.o_ready),
            enter.eq(dut.i.valid & dut.i.ready),
            leave.eq(dut.o.valid & dut.o.ready),
        ]
        stream_rules(m, "o", dut.o.valid, dut.o.payload, dut.o.ready)
        follower = Follower(
            m, "beat", self.pick,
            enter=enter, value=dut.i.payload, leave=leave, valid=dut.o.valid, payload=dut.o.payload, capacity=dut.depth,
        )
        m.d.comb += Assert(dut.i.ready == (follower.level != dut.depth))
        if isinstance(dut, Fifo):
            m.d.comb += Assert(dut.level == follower.level)
        # A beat that is inside shows at most `latency` cycles after it entered.
        late = Signal(range(self.latency + 1))
        with m.If((follower.level != 0) & ~dut.o.valid):
            m.d.sync += late.eq(late + 1)
            m.d.comb += Assert(late < self.latency - 1)
        with m.Else():
            m.d.sync += late.eq(0)
        if self.invariants:
            storage_invariants(m, dut.storage, follower)
        return m


class IgnoresFull(Fifo):
    """A FIFO that is always ready."""

    def elaborate(self, platform):
        m = Module()
        m.submodules.storage = self.storage
        m.d.comb += [
            self.i.ready.eq(1),
            self.storage.push.eq(self.i.valid),
            self.storage.payload.eq(self.i.payload),
            self.level.eq(self.storage.level),
        ]
        wiring.connect(m, self.storage.o, wiring.flipped(self.o))
        return m


@pytest.mark.parametrize(
    ("style", "depth", "latency"),
    [
        ("register", 1, 1), ("register", 3, 1),
        ("lutram", 1, 1), ("lutram", 3, 1), ("lutram", 4, 1),
        ("block", 1, 3), ("block", 4, 3), ("block", 5, 3),
    ],
)
def test_fifo(style, depth, latency, tmp_path):
    prove(QueueProof(Fifo(WIDTH, depth, style=style), latency), tmp_path, induction=latency + 1)


@pytest.mark.parametrize("style", ["register", "lutram", "block"])
def test_fifo_that_ignores_full_is_refuted(style, tmp_path):
    refute(QueueProof(IgnoresFull(WIDTH, 3, style=style), 3, invariants=False), tmp_path)


def test_fifo_whose_pointers_stand_still_is_refuted(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_advance", lambda pointer, rows: pointer)
    refute(QueueProof(Fifo(WIDTH, 3, style="lutram"), 1, invariants=False), tmp_path)


def test_block_fifo_with_the_latency_of_the_others_is_refuted(tmp_path):
    refute(QueueProof(Fifo(WIDTH, 4, style="block"), 2, invariants=False), tmp_path)


class LosesTheThirdBeat(SkidBuffer):
    """A skid buffer that is always ready and drops what it has no register for."""

    def elaborate(self, platform):
        m = Module()
        m.submodules.storage = self.storage
        m.d.comb += [
            self.i.ready.eq(1),
            self.storage.push.eq(self.i.valid & ~self.storage.full),
            self.storage.payload.eq(self.i.payload),
        ]
        wiring.connect(m, self.storage.o, wiring.flipped(self.o))
        return m


def test_skid_buffer(tmp_path):
    prove(QueueProof(SkidBuffer(WIDTH), 1), tmp_path)


def test_skid_buffer_that_loses_a_beat_is_refuted(tmp_path):
    refute(QueueProof(LosesTheThirdBeat(WIDTH), 1, invariants=False), tmp_path)


class OutputQueueProof(wiring.Component):
    """An output queue behind any pipeline: a push comes with its reserve or any time after it."""

    reserve: In(1)
    push: In(1)
    payload: In(WIDTH)
    o_ready: In(1)
    pick: In(1)

    def __init__(self, dut, *, invariants=True, obedient=True):
        self.dut = dut
        self.invariants = invariants
        self.obedient = obedient
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        leave = Signal()
        promised = Signal(range(dut.depth + 2))  # credits taken whose beat is still on its way
        m.d.comb += [
            dut.reserve.eq(self.reserve),
            dut.push.eq(self.push),
            dut.payload.eq(self.payload),
            dut.o.ready.eq(self.o_ready),
            leave.eq(dut.o.valid & dut.o.ready),
            Assume(~self.push | self.reserve | (promised != 0)),
        ]
        if self.obedient:
            m.d.comb += Assume(~self.reserve | dut.available)
        m.d.sync += promised.eq(promised + self.reserve - self.push)
        stream_rules(m, "o", dut.o.valid, dut.o.payload, dut.o.ready)
        follower = Follower(
            m, "beat", self.pick, enter=dut.push, value=dut.payload, leave=leave,
            valid=dut.o.valid, payload=dut.o.payload, capacity=dut.depth,
        )
        m.d.comb += [
            Assert(dut.available == (follower.level + promised != dut.depth)),
            Assert(dut.o.valid == (follower.level != 0)),
        ]
        if self.invariants:
            m.d.comb += Assert(dut.spare + 1 + follower.level + promised == dut.depth)
            storage_invariants(m, dut.storage, follower)
        return m


@pytest.mark.parametrize(("style", "depth"), [("register", 1), ("register", 3), ("lutram", 3)])
def test_output_queue(style, depth, tmp_path):
    prove(OutputQueueProof(OutputQueue(WIDTH, depth, style=style)), tmp_path)


def test_output_queue_of_a_core_that_takes_credits_it_does_not_have_is_refuted(tmp_path):
    refute(OutputQueueProof(OutputQueue(WIDTH, 2), invariants=False, obedient=False), tmp_path)


class ForkProof(wiring.Component):
    """A fork whose branches are taken from independently."""

    def __init__(self, dut, *, invariants=True):
        self.dut = dut
        self.invariants = invariants
        super().__init__(
            {"i_valid": In(1), "i_payload": In(WIDTH), "o_ready": In(dut.outputs), "pick": In(dut.outputs)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        enter = Signal()
        m.d.comb += [
            dut.i.valid.eq(self.i_valid),
            dut.i.payload.eq(self.i_payload),
            enter.eq(dut.i.valid & dut.i.ready),
        ]
        room = 1
        for k, (o, queue) in enumerate(zip(dut.o, dut.queues, strict=True)):
            leave = Signal(name=f"leave_{k}")
            m.d.comb += [o.ready.eq(self.o_ready[k]), leave.eq(o.valid & o.ready)]
            stream_rules(m, f"o_{k}", o.valid, o.payload, o.ready)
            follower = Follower(
                m, f"beat_{k}", self.pick[k],
                enter=enter, value=dut.i.payload, leave=leave, valid=o.valid, payload=o.payload, capacity=queue.depth,
            )
            m.d.comb += Assert(o.valid == (follower.level != 0))
            room &= follower.level != queue.depth
            if self.invariants:
                m.d.comb += Assert(queue.spare + 1 + follower.level == queue.depth)
                storage_invariants(m, queue.storage, follower)
        m.d.comb += Assert(dut.i.ready == room)
        return m


class ForkOfTheFirst(Fork):
    """A fork that asks only its first branch for room."""

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(self.queues[0].available)
        for k, queue in enumerate(self.queues):
            m.submodules[f"branch_{k}"] = queue
            m.d.comb += [
                queue.reserve.eq(self.i.valid & self.i.ready),
                queue.push.eq(self.i.valid & self.i.ready),
                queue.payload.eq(self.i.payload),
            ]
            wiring.connect(m, queue.o, wiring.flipped(self.o[k]))
        return m


@pytest.mark.parametrize("depths", [(2, 2), (1, 3, 2)])
def test_fork(depths, tmp_path):
    prove(ForkProof(Fork(WIDTH, len(depths), depths)), tmp_path)


def test_fork_that_asks_one_branch_only_is_refuted(tmp_path):
    refute(ForkProof(ForkOfTheFirst(WIDTH, 2, (2, 2)), invariants=False), tmp_path)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Fifo(WIDTH, 2, style="register"),
        lambda: Fifo(WIDTH, 3, style="lutram"),
        lambda: Fifo(WIDTH, 4, style="block"),
        lambda: SkidBuffer(WIDTH),
        lambda: Fork(WIDTH, 2),
        lambda: WidthConverter(WIDTH, 5, 2, 3),
        lambda: FrameSync(WIDTH, 3),
    ],
    ids=["register", "lutram", "block", "skid_buffer", "fork", "width_converter", "frame_sync"],
)
def test_no_combinational_path(build, tmp_path):
    assert not has_path(build(), tmp_path)


def test_the_path_through_frame_mark_is_seen(tmp_path):
    assert has_path(FrameMark(WIDTH, 3), tmp_path)
