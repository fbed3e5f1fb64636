"""Shares of the frames side by side: what each finds is said of all frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sim.result import Hang, RunResult, Violation, Waiting
from sim.side_by_side import merged, shares
from sim.vectors import Vectors
from tests.sim import designs


@pytest.mark.parametrize(
    ("frames", "count", "lengths"),
    [(8, 2, [4, 4]), (7, 2, [3, 4]), (7, 3, [2, 2, 3]), (5, 4, [2, 3]), (3, 2, [3]), (1, 2, [1]), (4, 1, [4])],
)
def test_shares_are_equal_and_have_an_interval(frames, count, lengths):
    parts = shares(frames, count)
    assert [len(part) for part in parts] == lengths
    assert [frame for part in parts for frame in part] == list(range(frames))


def test_two_shares_take_their_own_cycles(verilator, plus):
    """Four frames each: 28 cycles, from a reset."""
    design, _, _ = plus
    vectors = Vectors.of(design, *designs.plus_data(8))
    counts = []
    result = verilator(design, vectors, threads=2, seed=5, on_frames=counts.append)
    assert result.ok and result.complaints() == []
    assert (result.frames, result.latency, result.initiation_interval, result.cycles, result.seed) == (8, 3, 7, 56, 5)
    assert result.streams["m_axis"].first == (3, 10, 17, 24, 31, 38, 45, 52)
    assert result.streams["m_axis"].last == tuple(7 * frame + 6 for frame in range(8))
    assert result.streams["m_axis"].beats == 32


def test_a_mismatch_is_at_its_frame_among_all(verilator, plus):
    design, _, _ = plus
    inputs, expected = designs.plus_data(8)
    wrong = np.array(expected["y"])
    wrong[6, 2] ^= 1
    wrong[7, 0] ^= 1
    vectors = Vectors.of(design, inputs, {"y": wrong})
    alone, both = (verilator(design, vectors, threads=count) for count in (1, 2))
    assert (both.mismatches, both.mismatching_frames) == (alone.mismatches, alone.mismatching_frames) == (2, 2)
    assert both.first_mismatch == alone.first_mismatch
    assert (both.first_mismatch.frame, both.first_mismatch.beat) == (6, 2)


def test_a_hang_in_one_share_is_said(verilator, plus):
    """Defect 10: tready stays 0 after nine beats, in frame 2 of each share."""
    design, _, set_weights = plus
    set_weights("defect.mem", "0a\n")
    result = verilator(design, Vectors.of(design, *designs.plus_data(8)), threads=2, watchdog=100)
    assert [w.frame for w in result.hang.waiting] == [2, 2]
    assert result.mismatches == 2 * 7


def result_of(**about) -> RunResult:
    right = RunResult(4, 0, 0, None, 0, None, None, False, None, 28, 7, 3, {})
    return replace(right, **about)


def test_the_second_share_alone_is_wrong():
    hang = Hang(40, 10, (Waiting("m_axis", 1, 2),))
    violation = Violation("surplus", "m_axis", 3, 0, 30, "text")
    whole = merged([result_of(), result_of(hang=hang, violations=2, first_violation=violation)])
    assert whole.hang == Hang(40, 10, (Waiting("m_axis", 5, 2),))
    assert (whole.violations, whole.first_violation.frame, whole.first_violation.cycle) == (2, 7, 30)
    whole = merged([result_of(), result_of(error=True, error_cycle=0)])
    assert (whole.error, whole.error_cycle) == (True, 0)


@pytest.mark.parametrize("name", ["initiation_interval", "latency"])
def test_another_interval_or_latency_of_a_later_share_is_seen(name):
    assert getattr(merged([result_of(**{name: n}) for n in (7, 7, 7)]), name) == 7
    assert getattr(merged([result_of(**{name: n}) for n in (7, 8, 7)]), name) == 8
    assert getattr(merged([result_of(**{name: n}) for n in (7, 7, None)]), name) is None
