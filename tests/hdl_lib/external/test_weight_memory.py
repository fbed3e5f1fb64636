"""Streams from a memory beside its model, an SDRAM's checks its timing: every word in its place, never later than the
plan says."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hdl_lib.external.fetch_plan import FetchPlan, Parts
from hdl_lib.external.memory_timing import MemoryTiming
from hdl_lib.external.sdram import SdramTiming
from hdl_lib.external.spi_flash import SpiFlashTiming
from hdl_lib.external.spram import SpramTiming
from hdl_lib.external.weight_memory import WeightMemory, image_words
from tests.hdl_lib.external.memory_bench import CHIP, FLASH, RAM, memory_verilog, queue_word, run, streams_bench

SIZES = [(70, 2), (33, 1), (200, 1)]
PARTS = [(Parts((40, 1, 33), (0, 1, 0, 2, 2, 1)), 2), (33, 1), (Parts((150, 50), (1, 0, 0)), 1)]
DEPTHS = [2, 3, 4]
BEATS = 500
SDRAM = SdramTiming(CHIP, Fraction(100_000_000))
SPRAM = SpramTiming(RAM, Fraction(42_000_000))
MEMORIES = pytest.mark.parametrize("timing", [SDRAM, SPRAM], ids=["sdram", "spram"])


@pytest.fixture(scope="module", params=[50, 117, "spram", "flash", "parts"])
def memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[FetchPlan, str]:
    """An SDRAM at clocks with two and three cycles to a word, a part's own RAM, and a flash; an SDRAM with parts that
    are read more than once."""
    folder = tmp_path_factory.mktemp("memory")
    timings = {"spram": SPRAM, "flash": SpiFlashTiming(FLASH, Fraction(24_000_000)), "parts": SDRAM}
    timing = timings.get(request.param) or SdramTiming(CHIP, Fraction(request.param * 1_000_000))
    plan = FetchPlan.of(timing, PARTS if request.param == "parts" else SIZES)
    return plan, memory_verilog(folder, WeightMemory(plan, [16] * len(SIZES), DEPTHS))


def image(plan: FetchPlan) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 1 << 16, image_words(plan))


def arrivals(plan: FetchPlan, out: str, words: np.ndarray) -> list[list[int]]:
    """The cycles of each stream's beats, which must be the words of its region over and over."""
    found = []
    for number, region in enumerate(plan.regions):
        beats = [line.split() for line in out.splitlines() if line.startswith(f"{number} ")]
        wanted = [int(words[region.address(k % region.words, plan.timing.chip.columns)]) for k in range(len(beats))]
        assert [int(beat[1]) for beat in beats] == wanted
        assert len(beats) >= BEATS
        found.append([int(beat[2]) for beat in beats])
    return found


@pytest.mark.parametrize("stalls", [[0, 0, 0], [200, 10, 100]])
def test_words_in_order_and_in_time(tmp_path: Path, memory: tuple[FetchPlan, str], stalls: list[int]) -> None:
    plan, text = memory
    words = image(plan)
    (tmp_path / "image.mem").write_text("\n".join(f"{word:04x}" for word in words))
    out = run(tmp_path, streams_bench(plan, stalls, BEATS), text)
    assert "done" in out, out[-300:]
    for region, stall, cycles in zip(plan.regions, stalls, arrivals(plan, out, words), strict=True):
        if stall == 0:  # always room: a burst a round, however others stall
            for beat, cycle in enumerate(cycles[:BEATS]):
                turn, word = divmod(beat, region.words)
                burst = bisect_right(region.begins, word) - 1
                place = word - region.begins[burst]
                late = (turn * region.bursts + burst) * plan.round + place * plan.timing.word_cycles
                assert cycle - cycles[0] <= late


@pytest.mark.parametrize("damage", [0, 1 << 3, 1 << 30])
def test_loading_is_checked(tmp_path: Path, memory: tuple[FetchPlan, str], damage: int) -> None:
    plan, text = memory
    words = image(plan)
    crc = zlib.crc32(words.astype("<u2").tobytes()) ^ damage
    sent = [*([] if plan.timing.read_only else words.tolist()), crc & 0xFFFF, crc >> 16]
    (tmp_path / "image.mem").write_text("\n".join(f"{word:04x}" for word in words))  # of a flash
    out = run(tmp_path, streams_bench(plan, [0, 0, 0], BEATS, filled=False, words=sent), text)
    if damage:
        assert out.strip() == "error"
    else:
        arrivals(plan, out, words)


def test_bursts_stay_within_pages_and_take_their_share() -> None:
    plan = FetchPlan.of(SDRAM, SIZES)
    longest = max(plan.regions, key=lambda region: region.words * region.times)
    assert longest.words == 200
    for region in plan.regions:
        assert region.burst * region.per_page <= CHIP.columns
        assert (region.bursts - 1) * region.burst + region.last == region.words
    places = {(n, region.address(word, CHIP.columns)) for n, region in enumerate(plan.regions)
              for word in range(region.words)}  # fmt: skip
    assert len({place for _, place in places}) == sum(words for words, _ in SIZES)
    # the sum of all bursts with what comes around them, and the refreshes of so many cycles
    assert plan.round >= sum(plan.timing.burst_cycles(region.burst) for region in plan.regions)


def test_regions_that_follow_the_first_one() -> None:
    """They are read behind each other, either as fast as their bursts come or as their reader takes words, and their
    queues of three bursts are filled again. Their bursts are half as long where they have a third of its words."""
    plan = FetchPlan.of(SDRAM, [(3000, 1), (500, 1), (100, 2)], taken=[10, 7000])
    first, second, third = plan.regions
    assert (first.burst, second.burst, third.burst) == (30, 16, 16)  # of at most 32, a page
    fetched = second.bursts * plan.round
    assert fetched > 10 and 2 * third.bursts * plan.round < 7000
    assert plan.busy == fetched + 7000 + 6 * plan.round
    # the first one's burst, refreshes, and a look at each of the others
    assert plan.timing.burst_cycles(first.burst) + 2 + 2 <= plan.round_of([first]) < plan.round
    assert plan.round_of(plan.regions) == plan.round
    assert FetchPlan.of(SDRAM, [(3000, 1), (500, 1)]).busy is None
    large = FetchPlan.of(SDRAM, [(3000, 1), (2999, 1)], taken=[1])
    assert large.regions[0].burst - large.regions[1].burst < 8


def test_parts_lie_once_each_from_a_page_on() -> None:
    plan = FetchPlan.of(SDRAM, PARTS)
    first, *_, last = plan.regions
    assert (first.words, last.words) == (40 + 1 + 40 + 33 + 33 + 1, 50 + 150 + 150)
    places = [first.address(word, CHIP.columns) for word in range(first.words)]
    assert len(set(places)) == 74
    assert places[:40] == places[41:81]
    assert {place // CHIP.columns for place in places[40:41]}.isdisjoint(place // CHIP.columns for place in places[:40])
    assert first.begins[:2] == [0, first.burst]
    assert first.bursts == len(first.begins)
    with pytest.raises(ValueError, match="not 0 behind them"):
        first.address(first.words, CHIP.columns)


def test_a_clock_too_slow_for_refreshes_is_refused() -> None:
    with pytest.raises(ValueError, match="refreshes"):
        FetchPlan.of(SdramTiming(CHIP, Fraction(5_000_000)), SIZES)


def test_streams_wider_than_a_word_are_refused(memory: tuple[FetchPlan, str]) -> None:
    """Their upper bits would be lost."""
    with pytest.raises(ValueError, match="at most the 16 bits of a word, not 17"):
        WeightMemory(memory[0], [16, 17, 16], DEPTHS)
    plan = FetchPlan.of(SPRAM, [], queues=[(16, 40)])
    with pytest.raises(ValueError, match="at most the 16 bits of a word, not 20"):
        WeightMemory(plan, [], [], [20], [16])


QUEUES = [(50, 100), (16, 40)]  # words of a frame, held


@MEMORIES
def test_queues_in_the_memory(tmp_path: Path, timing: MemoryTiming) -> None:
    """Beside a region that is read all the time: words leave in order, at most as long after the last word of their
    burst as schedules count with, and as many as asked for wait inside."""
    plan = FetchPlan.of(timing, [(70, 2)], queues=QUEUES)
    text = memory_verilog(tmp_path, WeightMemory(plan, [16], [2], [16, 16], [4, 4]))
    (tmp_path / "image.mem").write_text("\n".join(f"{word:04x}" for word in range(image_words(plan))))
    for gaps, stalls in (([0, 0], [0, 0, 0]), ([240, 100], [0, 0, 50]), ([0, 0], [0, 250, 253])):
        out = run(tmp_path, streams_bench(plan, stalls, BEATS, gaps=gaps), text)
        assert "done" in out, out[-300:]
        for number, region in enumerate(plan.queues):
            got = [tuple(map(int, line.split()[1:])) for line in out.splitlines() if line.startswith(f"{number + 1} ")]
            sent = [int(line.split()[2]) for line in out.splitlines() if line.startswith(f"s{number} ")]
            assert [value for value, _ in got] == [queue_word(k) for k in range(len(got))]
            assert len(got) >= BEATS
            if stalls[number + 1] > 200:  # more is sent than taken
                assert len(sent) - len(got) >= QUEUES[number][1]
            if stalls[number + 1] == 0:
                start = next(int(line.split()[2]) for line in out.splitlines() if line.startswith("0 "))
                written = read = start
                for burst in range(BEATS // region.words * region.bursts):
                    frame, place = divmod(burst, region.bursts)
                    first = frame * region.words + place * region.burst
                    end = frame * region.words + min((place + 1) * region.burst, region.words)
                    written = max(max(sent[end - 1], start) + 2 * plan.round, written + plan.round)
                    read = max(written + 2 * plan.round, read + plan.round)
                    assert all(got[k][1] <= read + k - first for k in range(first, end))


@MEMORIES
def test_a_reset_leaves_nothing_of_what_was_under_way(tmp_path: Path, timing: MemoryTiming) -> None:
    """Whatever bursts a reset meets: then each region is read from its first word on, and queues are empty."""
    plan = FetchPlan.of(timing, [(70, 2)], queues=QUEUES)
    text = memory_verilog(tmp_path, WeightMemory(plan, [16], [2], [16, 16], [4, 4]))
    (tmp_path / "image.mem").write_text("\n".join(f"{word:04x}" for word in range(image_words(plan))))
    words = [plan.regions[0].address(k, timing.chip.columns) for k in range(70)]
    resets = np.cumsum(np.random.default_rng(5).integers(600, 640, 60)).tolist()
    out = run(tmp_path, streams_bench(plan, [0, 60, 0], 200, gaps=[0, 30], resets=resets), text)
    assert "done" in out, out[-300:]
    parts = out.split("reset\n")
    assert len(parts) == 61
    streamed = 0
    for part in parts:
        got = [[int(line.split()[1]) for line in part.splitlines() if line.startswith(f"{k} ")] for k in range(3)]
        streamed += sum(map(bool, got))
        assert got[0] == [words[k % 70] for k in range(len(got[0]))]
        for values in got[1:]:
            assert values == [queue_word(k) for k in range(len(values))]
    assert streamed > 150  # most of the runs came as far as the queues


def test_a_word_must_be_written_before_it_is_read(tmp_path: Path) -> None:
    """Which the model of a part's RAM sees to: here the image has a page less than regions take."""
    plan = FetchPlan.of(SPRAM, SIZES)
    text = memory_verilog(tmp_path, WeightMemory(plan, [16] * len(SIZES), DEPTHS))
    words = image_words(plan) - SPRAM.chip.columns
    (tmp_path / "image.mem").write_text("0000\n" * words)
    bench = streams_bench(plan, [0, 0, 0], BEATS).replace(f".IMAGE({image_words(plan)})", f".IMAGE({words})")
    out = run(tmp_path, bench, text)
    assert f"SPRAM: word {words} must be written before it is read" in out, out[-300:]


def test_bursts_are_shared_by_what_regions_could_take() -> None:
    """A reader that could take ten times its words in a frame has bursts as long as if it had as many."""
    sizes = [(6000, 1), (3000, 1)]
    plain, more = FetchPlan.of(SDRAM, sizes), FetchPlan.of(SDRAM, sizes, wanted=[60000, 0])
    other = FetchPlan.of(SDRAM, [(60000, 1), (3000, 1)], more.longest)
    assert plain.regions[1].burst > plain.regions[0].burst / 3 >= more.regions[1].burst
    assert [each.burst for each in more.regions] == [each.burst for each in other.regions]
    assert FetchPlan.of(SDRAM, [(6000, 1)], wanted=[60000]) == FetchPlan.of(SDRAM, [(6000, 1)])
