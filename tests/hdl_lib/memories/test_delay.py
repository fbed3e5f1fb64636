"""Delays that never begin anew: what comes out is what came, behind the first beats; cycles, reset, parameters. (Those
that do are the harness's cases: tests/cores/cases/delay_cases.py.)"""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import unsigned

from hdl_lib.memories.delay import Delay
from hdl_lib.memories.rom import Table
from tests.hdl_lib.bench import STALLS, Run, drive_in_turn
from tests.hdl_lib.protocol import after_reset, check_no_paths

CASES = [
    (1, 9, 4), (1, Table.of_words([200], 8), 4), (2, 0, 1), (3, Table.of_words([5, 250, 1], 8), 5),
    (6, Table.of_words([7, 8], 8), 6), (40, 3, 5), (600, Table.of_words(range(200), 8), 8),
]


def first_beats(beats: int, first: int | Table) -> list[int]:
    words = [first] if isinstance(first, int) else list(first.words or ())
    return words * (beats // len(words))


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize(("beats", "first", "depth"), CASES)
def test_values(beats: int, first: int | Table, depth: int, gap: float, stall: float) -> None:
    rng = random.Random(beats)
    sent = [rng.getrandbits(8) for _ in range(2 * beats + 9)]
    core = Delay(unsigned(8), beats, first=first, depth=depth)
    run = Run([sent], len(sent) + beats, gap, stall, before=beats + depth + 4)
    (trace,) = drive_in_turn(core, [run], [core.i], core.o)
    assert trace.beats == first_beats(beats, first) + sent
    if not gap and not stall and depth > Delay.LATENCY and beats > Delay.LATENCY + depth:
        assert trace.out_cycles[: 2 * beats] == [*range(2 * beats)]  # a beat a cycle


@pytest.mark.parametrize(("beats", "first", "depth"), CASES)
def test_after_a_reset_the_first_beats_come_again(beats: int, first: int | Table, depth: int) -> None:
    core = Delay(unsigned(8), beats, first=first, depth=depth)
    sent = [*range(40)]
    found = after_reset(core, sent, len(sent), seed=beats)
    assert found == (first_beats(beats, first) + sent)[: len(sent)]


def test_no_combinational_path() -> None:
    check_no_paths(Delay(unsigned(8), 3, first=1, depth=2))


@pytest.mark.parametrize(
    ("beats", "more", "message"),
    [
        (0, {"first": 0}, "beats must be at least 1, not 0"),
        (3, {"first": Table.of_words([1, 2], 8)}, "in a number that divides 3 beats, not 2 of 8 bits"),
        (2, {"first": Table.of_words([1, 2], 7)}, "words of 8 bits, .* not 2 of 7 bits"),
        (2, {"first": 0, "again": 3}, "again must be a multiple of 2 beats, not 3"),
    ],
)
def test_refused(beats: int, more: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Delay(unsigned(8), beats, depth=2, **more)
