"""Given beats in front of a stream: they leave, then every beat that came, in order; broken twins do not."""

import pytest
from amaranth.hdl import Array, Assert, Const, Cover, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl_lib.memories import first_beats
from hdl_lib.memories.first_beats import FirstBeats
from hdl_lib.memories.rom import Table
from tests.formal.prover import check_bounded, refute
from tests.formal.scoreboard import stream_rules

WIDTH = 2


class FirstProof(wiring.Component):
    """``words``: that leave before any other. What comes passes at once: a beat is inside for no cycle."""

    i_valid: In(1)
    i_payload: In(WIDTH)
    o_ready: In(1)

    def __init__(self, dut: FirstBeats, words: list[int]) -> None:
        self.dut, self.words = dut, words
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        # The sender keeps to the rules: what it offers stays.
        offered, kept = Signal(), Signal(WIDTH)
        m.d.sync += [offered.eq(dut.i.valid & ~dut.i.ready), kept.eq(dut.i.payload)]
        fresh = Signal(init=1)
        m.d.sync += fresh.eq(0)
        m.d.comb += [
            dut.i.valid.eq((self.i_valid | offered) & ~fresh),
            dut.o.ready.eq(self.o_ready),
        ]
        with m.If(offered):
            m.d.comb += dut.i.payload.eq(kept)
        with m.Else():
            m.d.comb += dut.i.payload.eq(self.i_payload)
        stream_rules(m, "o", dut.o.valid, dut.o.payload, dut.o.ready)
        leaves, left = dut.o.valid & dut.o.ready, Signal(range(len(self.words) + 1))
        first = left != len(self.words)
        with m.If(leaves & first):
            m.d.sync += left.eq(left + 1)
        word = Array([Const(word, WIDTH) for word in (*self.words, 0)])[left]
        m.d.comb += [
            Assert(~(dut.o.valid & first) | (dut.o.payload == word)),
            Assert(~(first & dut.i.ready)),
            Assert(first | (dut.i.ready == dut.o.ready)),
            Assert(first | (dut.o.valid == dut.i.valid)),
            Assert(first | ~dut.o.valid | (dut.o.payload == dut.i.payload)),
            Cover(leaves & ~first & (dut.o.payload == 3)),
        ]
        return m


CASES = [(1, 2, [2]), (3, 1, [1, 1, 1]), (4, Table.of_words([3, 1], WIDTH), [3, 1, 3, 1])]


@pytest.mark.parametrize(("beats", "first", "words"), CASES)
def test_first_beats(beats, first, words, tmp_path):
    check_bounded(FirstProof(FirstBeats(WIDTH, beats, first), words), tmp_path, depth=12)


@pytest.mark.parametrize(("beats", "first", "words"), CASES)
def test_a_beat_too_many_is_refuted(beats, first, words, tmp_path):
    refute(FirstProof(FirstBeats(WIDTH, beats + 1, first), words), tmp_path, depth=12)


def test_a_table_that_stands_still_is_refuted(tmp_path, monkeypatch):
    monkeypatch.setattr(first_beats, "count_up", lambda m, name, count, advance: Signal(range(count), name=name))
    beats, first, words = CASES[-1]
    refute(FirstProof(FirstBeats(WIDTH, beats, first), words), tmp_path, depth=12)
