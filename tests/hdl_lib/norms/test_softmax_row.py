"""Rows of exponentials over their sum, against exact fractions, and twins with less, which are found."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from amaranth.hdl import Shape, signed, unsigned

from hdl_lib.memories.rom import Table
from hdl_lib.norms.softmax_row import Passes, SoftmaxRow, collected_steps, element_steps, row_steps, search_order
from tests.hdl_lib.bench import STALLS, drive

Row = Sequence[int]


class Bench:
    """A core with falling exponentials and rising thresholds, some of them alike."""

    def __init__(
        self, shape: Shape, size: int, greatest: int, digits: int, levels: int, seed: int, *, last: int = 0
    ) -> None:
        rng = random.Random(seed)
        self.shape, self.size, self.digits = shape, size, digits
        distances = 1 << shape.width
        self.exponentials = [greatest, *sorted((rng.randrange(greatest) for _ in range(distances - 1)), reverse=True)]
        self.exponentials[-1] = last
        most = 2 << digits
        self.thresholds = sorted(rng.randrange(1, most) for _ in range((1 << levels) - 1))
        self.bits = (size * greatest).bit_length()
        self.levels = levels

    def core(self, depth: int = 2) -> SoftmaxRow:
        words = search_order(self.thresholds)
        return SoftmaxRow(
            self.shape, signed(10), size=self.size, bits=self.bits, digits=self.digits, offset=-7, depth=depth,
            exponentials=Table.of_words(self.exponentials, self.exponentials[0].bit_length()),
            thresholds=Table.of_words(words, self.digits + 1),
        )

    def results(self, row: Row) -> list[int]:
        """Of exact fractions: an even threshold is reached by a quotient from it on, an odd one by one above the even
        one below it."""
        taken = [self.exponentials[max(row) - x] for x in row]
        found = []
        for exponential in taken:
            quotient = Fraction(exponential, sum(taken)) * 2**self.digits
            reached = [quotient > t // 2 if t % 2 else quotient >= t // 2 for t in self.thresholds]
            found.append(sum(reached) - 7)
        return found

    def rows(self, count: int, seed: int) -> list[Row]:
        """Any elements; equal ones, least and greatest; one far above all others; two values; small differences."""
        rng = random.Random(seed)
        low = -(1 << self.shape.width - 1) if self.shape.signed else 0
        high = low + (1 << self.shape.width) - 1
        size = self.size
        rows: list[Row] = [[low] * size, [high] * size]
        rows += [[high if k == place else low for k in range(size)] for place in (0, size // 2, size - 1)]
        for _ in range(count):
            rows.append([rng.randint(low, high) for _ in range(size)])
            rows.append([rng.choice([low, high]) for _ in range(size)])
            base = rng.randint(low, high - 3)
            rows.append([base + rng.randrange(4) for _ in range(size)])
        return rows


def run(dut: SoftmaxRow, rows: Sequence[Row], gap: float = 0.0, stall: float = 0.0) -> tuple[list[int], list[int]]:
    """The results, and the cycles in which they come."""
    mask = (1 << dut.input_shape.width) - 1
    beats = [x & mask for row in rows for x in row]
    trace = drive(dut, beats, len(beats), gap=gap, stall=stall, seed=1, timeout=1_000_000)
    return [(y ^ 512) - 512 for y in trace.beats], trace.out_cycles


CASES = {
    "keywords": Bench(signed(8), 12, 2**37, 9, 8, 1),
    "long": Bench(signed(6), 5, 2**36, 33, 5, 2),
    "pair": Bench(unsigned(3), 2, 3, 4, 3, 3),
    "no zero": Bench(unsigned(4), 9, 300, 6, 4, 4, last=1),
    "one threshold": Bench(signed(4), 3, 9, 1, 1, 5),
    "greatest sum": Bench(signed(4), 8, 31, 7, 6, 6),
}


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize("name", CASES)
def test_against_fractions(name: str, gap: float, stall: float) -> None:
    bench = CASES[name]
    rows = bench.rows(6, 7)
    found, cycles = run(bench.core(), rows, gap, stall)
    assert found == [y for row in rows for y in bench.results(row)]
    if not gap and not stall:
        period = row_steps(bench.size, bench.bits, bench.digits, bench.levels)
        first = collected_steps(bench.size, bench.bits)
        each = element_steps(bench.bits, bench.digits, bench.levels)
        due = [r * period + first + (k + 1) * each - 1 for r in range(len(rows)) for k in range(bench.size)]
        assert [cycle - cycles[0] for cycle in cycles] == [cycle - due[0] for cycle in due]


def differs(dut: SoftmaxRow, bench: Bench) -> bool:
    rows = bench.rows(30, 8)
    return run(dut, rows)[0] != [y for row in rows for y in bench.results(row)]


def test_a_twin_without_the_rest_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = CASES["pair"]
    assert not differs(bench.core(), bench)
    rows = bench.rows(30, 8)
    assert any(y for row in rows for y in bench.results(row))

    class Twin(Passes):
        def __init__(self, m, bits: int, digits: int) -> None:
            super().__init__(m, bits, digits)
            self.quotient = self.quotient | 1

    monkeypatch.setattr("hdl_lib.norms.softmax_row.Passes", Twin)
    assert differs(bench.core(), bench)


def test_a_twin_that_ignores_the_last_digit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = CASES["keywords"]

    class Twin(Passes):
        def __init__(self, m, bits: int, digits: int) -> None:
            super().__init__(m, bits, digits)
            self.quotient = self.quotient & ~2

    monkeypatch.setattr("hdl_lib.norms.softmax_row.Passes", Twin)
    assert differs(bench.core(), bench)


def test_search_order() -> None:
    assert search_order([10, 20, 30, 40, 50, 60, 70]) == [0, 40, 20, 60, 10, 30, 50, 70]
    assert search_order([5]) == [0, 5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 1}, "size must be at least 2, not 1"),
        ({"digits": 0}, "digits must be at least 1, not 0"),
        ({"bits": 2}, "bits must be at least 3, not 2"),
        ({"exponentials": Table.of_words([64, 1], 7)}, "bits must be at least 7, not 5"),
        ({"thresholds": Table.of_words([0, 1, 2], 5)}, "thresholds must be a power of two, at least 2, not 3"),
        ({"thresholds": Table.of_words([0, 1], 4)}, "thresholds must have 5 bits, not 4"),
    ],
)
def test_parameters(change: dict[str, object], message: str) -> None:
    given = {
        "size": 4, "bits": 5, "digits": 4, "offset": 0, "depth": 2, "exponentials": Table.of_words([7, 1], 3),
        "thresholds": Table.of_words([0, 3], 5),
    }
    with pytest.raises(ValueError, match=message):
        SoftmaxRow(unsigned(1), unsigned(1), **{**given, **change})  # type: ignore[arg-type]
