"""SinglePortQueue: beats in order, a beat in two cycles, and as many as it says."""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.hdl import Module, unsigned

from hdl_lib.external import single_port_queue
from hdl_lib.external.single_port_queue import SinglePortQueue
from hdl_lib.external.spram import SinglePortRam
from tests.hdl_lib.bench import STALLS, drive

BEATS = np.random.default_rng(1).integers(0, 1 << 25, 200).tolist()


@pytest.mark.parametrize("depth", [2, 8, 64])
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_beats_in_order(gap: float, stall: float, depth: int) -> None:
    trace = drive(SinglePortQueue(unsigned(25), depth), BEATS, len(BEATS), gap=gap, stall=stall)
    assert trace.beats == BEATS
    if gap == stall == 0:
        assert set(np.diff(trace.out_cycles).tolist()) == {2}


@pytest.mark.parametrize("depth", [4, 32])
def test_it_holds_as_many_as_it_says(depth: int) -> None:
    """A sink that takes nothing at first: so many are taken, and those that are shown."""
    trace = drive(SinglePortQueue(unsigned(25), depth), BEATS, len(BEATS), stall=0.97, seed=3)
    assert trace.beats == BEATS
    taken = np.searchsorted(np.array(trace.in_cycles), np.array(trace.out_cycles), side="left") - np.arange(len(BEATS))
    assert depth <= taken.max() <= depth + 3


class Late(SinglePortRam):
    """Shows a word a cycle later."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.words = words = SinglePortRam(self.width, self.words)
        m.d.comb += [
            words.en.eq(self.en), words.we.eq(self.we), words.a.eq(self.a), words.dq_i.eq(self.dq_i),
        ]
        m.d.sync += self.dq_o.eq(words.dq_o)
        return m


def test_words_that_come_too_late_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_port_queue, "SinglePortRam", Late)
    assert drive(SinglePortQueue(unsigned(25), 8), BEATS, len(BEATS)).beats != BEATS


def test_a_depth_that_is_no_power_of_two() -> None:
    with pytest.raises(ValueError, match="depth must be a power of two, not 12"):
        SinglePortQueue(unsigned(8), 12)
