"""Proof for the width converter: any element of any beat is followed to its lane of its output beat.

The two elementary conversions (up, down) are proved for all time. A converter of another ratio is the one wired to the
other by a stream, so it inherits order and completeness; it is checked from reset besides, to a bounded depth.
"""

import pytest
from amaranth.hdl import Array, Assert, Assume, Cat, Const, Cover, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl_lib.streams import width_converter
from hdl_lib.streams.output_queue import OutputQueue
from hdl_lib.streams.width_converter import Up, WidthConverter
from tests.formal.prover import check_bounded, prove, refute
from tests.formal.scoreboard import lookup, stream_rules

WIDTH = 1


class ConverterProof(wiring.Component):
    """``owed``: output beats of all pixels whose first beat was taken, less those delivered. ``pick`` chooses the beat
    and ``lane`` the element to follow: it must come out after ``ahead`` beats, in lane ``out_lane``.

    ``invariants=False`` leaves only what is visible from outside; ``slack``: cycles a complete beat may take to show.
    """

    def __init__(self, dut, *, invariants=True, slack=0):
        self.dut = dut
        self.invariants = invariants
        self.slack = slack
        super().__init__(
            {
                "i_valid": In(1),
                "i_payload": In(WIDTH * dut.lanes_in),
                "o_ready": In(1),
                "pick": In(1),
                "lane": In(range(dut.lanes_in)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        channels, lanes_in, lanes_out = dut.channels, dut.lanes_in, dut.lanes_out
        beats_in, beats_out = -(-channels // lanes_in), -(-channels // lanes_out)
        # Two stages hold a pixel each in parts, and two in the queue between them.
        most = dut.depth + (4 if len(dut.stages) == 2 else 1) * beats_out
        output = Value.cast(dut.o.payload)
        lanes = Array([output[k * WIDTH : (k + 1) * WIDTH] for k in range(lanes_out)])

        enter = Signal()
        leave = Signal()
        in_beat = Signal(range(beats_in))
        out_beat = Signal(range(beats_out))
        owed = Signal(range(most + beats_out + 1))
        next_owed = Signal(range(most + beats_out + 1))
        m.d.comb += [
            dut.i.valid.eq(self.i_valid),
            Value.cast(dut.i.payload).eq(self.i_payload),
            dut.o.ready.eq(self.o_ready),
            enter.eq(dut.i.valid & dut.i.ready),
            leave.eq(dut.o.valid & dut.o.ready),
            next_owed.eq(owed - leave),
        ]
        with m.If(enter & (in_beat == 0)):
            m.d.comb += next_owed.eq(owed - leave + beats_out)
        m.d.sync += owed.eq(next_owed)
        with m.If(enter):
            m.d.sync += in_beat.eq(lookup(lambda k: (k + 1) % beats_in, in_beat, beats_in))
        with m.If(leave):
            m.d.sync += out_beat.eq(lookup(lambda k: (k + 1) % beats_out, out_beat, beats_out))

        following = Signal()
        ahead = Signal(range(most + beats_out + 1))
        out_lane = Signal(range(max(2, lanes_out)))
        value = Signal(WIDTH)
        channel = Signal(range(channels + lanes_in))
        behind = Signal()
        m.d.comb += [
            channel.eq(in_beat * lanes_in + self.lane),
            Assume(~self.pick | ((self.lane < lanes_in) & (channel < channels))),
        ]
        with m.If(following & leave):
            m.d.sync += ahead.eq(ahead - 1)
            with m.If(ahead == 0):
                m.d.sync += [following.eq(0), ahead.eq(0)]
        with m.Elif(~following & enter & self.pick):
            count = channels + lanes_in
            m.d.sync += [
                following.eq(1),
                value.eq(self.i_payload.word_select(self.lane, WIDTH)),
                ahead.eq(next_owed - beats_out + lookup(lambda c: c // lanes_out, channel, count)),
                out_lane.eq(lookup(lambda c: c % lanes_out, channel, count)),
                behind.eq(next_owed > beats_out),
            ]

        # The oldest output beat owed is complete when its pixel is, or when enough of its pixel's elements entered.
        needed = lookup(lambda k: min((k + 1) * lanes_out, channels), out_beat, beats_out)
        complete = Signal()
        m.d.comb += complete.eq((owed > beats_out - out_beat) | (in_beat == 0) | (in_beat * lanes_in >= needed))
        surplus = beats_out * lanes_out - channels
        arrives = following & (ahead == 0)
        stream_rules(m, "o", dut.o.valid, output, dut.o.ready)
        m.d.comb += [
            Assert(owed <= most),
            Assert(~dut.o.valid | ((owed != 0) & complete)),
            Assert(~(arrives & dut.o.valid) | (lanes[out_lane] == value)),
            Cover(arrives & leave & behind & (value != 0)),
        ]
        if surplus:
            m.d.comb += Assert(
                ~(dut.o.valid & (out_beat == beats_out - 1)) | (output[(lanes_out - surplus) * WIDTH :] == 0)
            )
        late = Signal(range(self.slack + 2))
        # Between two stages a beat waits for its common multiple of elements: only whole pixels must come out by
        # then.
        due = complete if len(dut.stages) == 1 else (owed > beats_out - out_beat) | (in_beat == 0)
        with m.If((owed != 0) & due & ~dut.o.valid):
            m.d.sync += late.eq(late + 1)
            m.d.comb += Assert(late < self.slack)
        with m.Else():
            m.d.sync += late.eq(0)
        if self.invariants:
            (stage,) = dut.stages.values()
            where = {"owed": owed, "in_beat": in_beat, "out_beat": out_beat, "following": following, "ahead": ahead}
            self._invariants(m, stage, where, Cat(out_lane, Const(0, 1)), value, surplus)
        return m

    def _invariants(self, m, stage, where, out_lane, value, surplus):
        """Where the elements inside are: in the queue's entries, then in the collected or held parts."""
        owed, in_beat, out_beat = where["owed"], where["in_beat"], where["out_beat"]
        following, ahead = where["following"], where["ahead"]
        lanes_in, lanes_out = stage.lanes_in, stage.lanes_out
        beats_in, beats_out, depth = stage.beats_in, stage.beats_out, stage.depth
        queue = stage.queue
        queued = Signal(range(depth + 1))
        m.d.comb += [
            queued.eq(queue.storage.level),
            Assert(queue.spare + 1 + queued == depth),
            Assert(queue.storage.occupied == lookup(lambda k: (1 << k) - 1, queued, depth + 1)),
            Assert(in_beat < beats_in),
            Assert(out_beat < beats_out),
            Assert(~following | (ahead < owed)),
            Assert(out_lane < lanes_out),
        ]
        # The output beat the followed element is in: its lane there is not a surplus one.
        place = lookup(lambda k: k % beats_out, out_beat + ahead, 16)
        if surplus:
            m.d.comb += Assert(~(following & (place == beats_out - 1)) | (out_lane < lanes_out - surplus))
        for k, entry in enumerate(queue.storage.entries):
            lanes = Array([entry[n * WIDTH : (n + 1) * WIDTH] for n in range(lanes_out)])
            m.d.comb += Assert(~(following & (ahead == k) & (queued > k)) | (lanes[out_lane] == value))
            if surplus:
                last = lookup(lambda j: j % beats_out, out_beat + k, 16) == beats_out - 1
                m.d.comb += Assert(~((queued > k) & last) | (entry[(lanes_out - surplus) * WIDTH :] == 0))
        inside = following & (ahead >= queued)  # not in the queue yet
        if isinstance(stage, Up):
            ratio = -(-lanes_out // lanes_in)
            m.d.comb += [
                Assert(stage.place == lookup(lambda k: k % ratio, in_beat, beats_in)),
                Assert((stage.beat == in_beat) | (stage.beat == 0)),
                # Output beats not queued yet belong to the pixel being collected.
                Assert(owed == queued + lookup(lambda k: beats_out - k // ratio if k else 0, in_beat, beats_in)),
                Assert(
                    lookup(lambda k: k % beats_out, out_beat + queued, 16)
                    == lookup(lambda k: k // ratio, in_beat, beats_in)
                ),
                Assert(~inside | (ahead == queued)),
            ]
            if beats_in > stage.ratio:
                m.d.comb += Assert(stage.beat == in_beat)
            for k in range(ratio):
                for n in range(lanes_in):
                    here = inside & (out_lane == k * lanes_in + n)
                    if k < len(stage.parts):
                        part = stage.parts[k][n * WIDTH : (n + 1) * WIDTH]
                        m.d.comb += Assert(~here | ((stage.place > k) & (part == value)))
                    else:
                        m.d.comb += Assert(~here)
        else:
            ratio = -(-lanes_in // lanes_out)
            m.d.comb += [
                Assert(stage.beat == in_beat),
                Assert(stage.left < stage.ratio),
                Assert(stage.empty == (stage.left == 0)),
                # Output beats neither queued nor held belong to input beats of this pixel that are still to come.
                Assert(
                    owed == queued + stage.left
                    + lookup(lambda k: beats_out - k * ratio if k else 0, in_beat, beats_in)
                ),
                Assert(
                    lookup(lambda k: k % beats_out, out_beat + queued + stage.left, 16)
                    == lookup(lambda k: k * ratio, in_beat, beats_in)
                ),
                Assert(~inside | (ahead - queued < stage.left)),
                Assert((stage.left == 0) | (queued != 0)),  # the parts held never leave a gap in the stream
            ]
            for k in range(stage.ratio - 1):
                part = stage.held[k * lanes_out * WIDTH : (k + 1) * lanes_out * WIDTH]
                lanes = Array([part[n * WIDTH : (n + 1) * WIDTH] for n in range(lanes_out)])
                m.d.comb += Assert(~(inside & (ahead == queued + k)) | (lanes[out_lane] == value))
                if surplus:
                    last = lookup(lambda j: j % beats_out, out_beat + queued + k, 16) == beats_out - 1
                    m.d.comb += Assert(~((stage.left > k) & last) | (part[(lanes_out - surplus) * WIDTH :] == 0))


class GenerousQueue(OutputQueue):
    """A queue that hands out one credit more than it has entries."""

    def __init__(self, shape, depth):
        super().__init__(shape, depth)
        self.spare = Signal(range(-1, depth + 1), init=depth)


UP = [(5, 1, 2), (5, 2, 4), (3, 1, 4), (7, 2, 4), (3, 2, 3), (5, 2, 5)]  # channels, lanes in, lanes out
DOWN = [(5, 2, 1), (5, 4, 2), (7, 4, 1), (3, 4, 2), (3, 3, 2), (5, 5, 2)]


@pytest.mark.parametrize(("channels", "lanes_in", "lanes_out"), UP + DOWN)
def test_up_and_down(channels, lanes_in, lanes_out, tmp_path):
    prove(ConverterProof(WidthConverter(WIDTH, channels, lanes_in, lanes_out)), tmp_path)


@pytest.mark.parametrize(("channels", "lanes_in", "lanes_out"), [(4, 2, 3), (4, 3, 2)])
def test_other_ratios_from_reset(channels, lanes_in, lanes_out, tmp_path):
    dut = WidthConverter(WIDTH, channels, lanes_in, lanes_out)
    check_bounded(ConverterProof(dut, invariants=False, slack=3), tmp_path, depth=9)


@pytest.mark.parametrize(("channels", "lanes_in", "lanes_out"), [(5, 2, 4), (5, 4, 2)])
def test_pixels_that_never_end_are_refuted(channels, lanes_in, lanes_out, tmp_path, monkeypatch):
    monkeypatch.setattr(width_converter._Converter, "_last", lambda self, m, step: Const(0))
    dut = WidthConverter(WIDTH, channels, lanes_in, lanes_out)
    refute(ConverterProof(dut, invariants=False), tmp_path)


@pytest.mark.parametrize(("lanes_in", "lanes_out"), [(2, 3), (3, 2)])
def test_other_ratios_with_pixels_an_element_short_are_refuted(lanes_in, lanes_out, tmp_path):
    dut = WidthConverter(WIDTH, 4, lanes_in, lanes_out)
    assert len(dut.stages) == 2  # for 4 channels
    dut.channels = 5  # what the proof expects
    refute(ConverterProof(dut, invariants=False, slack=3), tmp_path, depth=9)


@pytest.mark.parametrize(("channels", "lanes_in", "lanes_out"), [(5, 2, 4), (5, 4, 2)])
def test_surplus_lanes_that_keep_what_they_had_are_refuted(channels, lanes_in, lanes_out, tmp_path, monkeypatch):
    monkeypatch.setattr(width_converter._Converter, "_cleared", lambda self, last: Value.cast(self.i.payload))
    dut = WidthConverter(WIDTH, channels, lanes_in, lanes_out)
    refute(ConverterProof(dut, invariants=False), tmp_path)


@pytest.mark.parametrize(("channels", "lanes_in", "lanes_out"), [(4, 1, 2), (4, 2, 1)])
def test_a_credit_too_many_is_refuted(channels, lanes_in, lanes_out, tmp_path, monkeypatch):
    monkeypatch.setattr(width_converter, "OutputQueue", GenerousQueue)
    dut = WidthConverter(WIDTH, channels, lanes_in, lanes_out)
    refute(ConverterProof(dut, invariants=False), tmp_path)
