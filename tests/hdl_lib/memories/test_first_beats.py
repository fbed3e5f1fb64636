"""Given beats in front of a stream: what comes out, cycles, reset, parameters."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import unsigned

from hdl_lib.memories.first_beats import FirstBeats
from hdl_lib.memories.rom import Table
from tests.hdl_lib.bench import STALLS, drive
from tests.hdl_lib.protocol import after_reset

CASES = [
    (1, 9), (3, 200), (1, Table.of_words([200], 8)), (6, Table.of_words([5, 250, 1], 8)), (40, 3),
    (300, Table.of_words(range(200), 8)),
]


def given(beats: int, first: int | Table) -> list[int]:
    words = [first] if isinstance(first, int) else list(first.words or ())
    return (words * beats)[:beats]


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize(("beats", "first"), CASES)
def test_values(beats: int, first: int | Table, gap: float, stall: float) -> None:
    rng = random.Random(beats)
    sent = [rng.getrandbits(8) for _ in range(30)]
    trace = drive(FirstBeats(unsigned(8), beats, first), sent, beats + len(sent), gap=gap, stall=stall, seed=beats)
    assert trace.beats == given(beats, first) + sent
    if not gap and not stall:
        begin = trace.out_cycles[0]
        assert trace.out_cycles == [*range(begin, begin + beats + len(sent))]  # a beat a cycle
        assert begin == (FirstBeats.TABLE_LATENCY if isinstance(first, Table) else 1)


@pytest.mark.parametrize(("beats", "first"), CASES)
def test_after_a_reset_the_given_beats_come_again(beats: int, first: int | Table) -> None:
    sent = [*range(40)]
    found = after_reset(FirstBeats(unsigned(8), beats, first), sent, beats + len(sent), seed=beats)
    assert found == given(beats, first) + sent


def test_refused() -> None:
    with pytest.raises(ValueError, match="beats must be at least 1, not 0"):
        FirstBeats(unsigned(8), 0, 1)
    with pytest.raises(ValueError, match="words of 8 bits, not 7"):
        FirstBeats(unsigned(8), 2, Table.of_words([1], 7))
