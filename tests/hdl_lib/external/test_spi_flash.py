"""Weights from an SPI flash: what a controller that is not as it must be is found out by, and what the model of the
flash sees to."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hdl_lib.external.fetch_plan import FetchPlan
from hdl_lib.external.spi_flash import SpiFlashController, SpiFlashTiming
from hdl_lib.external.weight_memory import WeightMemory, image_words
from tests.hdl_lib.external.memory_bench import FLASH, memory_verilog, run, streams_bench

TIMING = SpiFlashTiming(FLASH, Fraction(24_000_000))
PLAN = FetchPlan.of(TIMING, [(70, 2), (33, 1)])
RIGHT = SpiFlashController.setup


def printed(folder: Path, bench: str = "") -> tuple[str, list[int]]:
    """What a bench of the controller as it is now prints, and the words of the first stream as they should be."""
    words = np.random.default_rng(2).integers(0, 1 << 16, image_words(PLAN))
    (folder / "image.mem").write_text("\n".join(f"{word:04x}" for word in words))
    text = memory_verilog(folder, WeightMemory(PLAN, [16, 16], [2, 3]))
    found = run(folder, bench or streams_bench(PLAN, [50, 0], 200), text)
    return found, [int(words[PLAN.regions[0].address(k % 70, FLASH.columns)]) for k in range(200)]


def streamed(out: str) -> list[int]:
    return [int(line.split()[1]) for line in out.splitlines() if line.startswith("0 ")][:200]


@pytest.mark.parametrize("mhz", [12, 24, 30, 48])
def test_words_come_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mhz: int) -> None:
    timing = SpiFlashTiming(FLASH, Fraction(mhz * 1_000_000))
    monkeypatch.setattr(f"{__name__}.PLAN", FetchPlan.of(timing, [(70, 2), (33, 1)]))
    out, words = printed(tmp_path)
    assert "done" in out, out[-300:]
    assert streamed(out) == words


TWINS = {
    "it must be woken before command 50": (RIGHT[0], b"", *RIGHT[2:]),
    "/WP and /HOLD must be high until QE is set": (*RIGHT[:3], b""),
    "it must be enabled before its status": (*RIGHT[:2], b"", RIGHT[3]),
    "command 35 is none of those": (*RIGHT[:3], b"\x35\x02"),
    "the command 31 must have 16 bits, not 8": (*RIGHT[:3], b"\x31"),
}


@pytest.mark.parametrize("said", TWINS)
def test_another_setup_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setattr(SpiFlashController, "setup", TWINS[said])
    out, _ = printed(tmp_path)
    assert f"flash: {said}" in out, out[-300:]
    assert "done" not in out


def test_quad_reads_need_their_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpiFlashController, "setup", (*RIGHT[:3], b""))
    bench = streams_bench(PLAN, [0, 0], 200).replace("holds <= hold", "holds <= 1")
    out, _ = printed(tmp_path, bench)
    assert "flash: QE must be set before four wires are read" in out, out[-300:]


@pytest.mark.parametrize("dummies", [7, 9])
def test_as_many_cycles_as_the_flash_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dummies: int) -> None:
    """A nibble too early, or too late: there is no whole word at the burst's end, and no stream is right."""
    monkeypatch.setattr(SpiFlashController, "dummies", dummies)
    out, words = printed(tmp_path)
    assert "flash: a burst must have whole words" in out
    assert not streamed(out) or streamed(out) != words[: len(streamed(out))]


SLOWER = {
    "tRES1": ("T_RES1(3000000)", "T_RES1(5400000)"),
    "tSHSL": ("T_CSH(50000)", "T_CSH(83400)"),
    "byte 1048576 must be one of the image's": ("OFFSET(1048576)", "OFFSET(2097152)"),
}


@pytest.mark.parametrize("said", SLOWER)
def test_another_flash_ends_the_simulation(tmp_path: Path, said: str) -> None:
    """Pauses of the setup are as long as a power of two, here 128 cycles of 41.7 ns with eight bits before them."""
    bench = streams_bench(PLAN, [0, 0], 200)
    right, wrong = SLOWER[said]
    assert right in bench
    out, _ = printed(tmp_path, bench.replace(right, wrong))
    assert f"flash: {said}" in out, out[-300:]


def test_a_word_takes_four_cycles(tmp_path: Path) -> None:
    """Not one, as of other memories: what a stream's schedule counts with."""
    out, _ = printed(tmp_path, streams_bench(PLAN, [0, 0], 200))
    cycles = [int(line.split()[2]) for line in out.splitlines() if line.startswith("0 ")]
    burst = PLAN.regions[0].burst
    assert [cycle - cycles[0] for cycle in cycles[:burst]] == [TIMING.word_cycles * k for k in range(burst)]


def test_a_flash_whose_QE_is_fixed(tmp_path: Path) -> None:
    out, words = printed(tmp_path, streams_bench(PLAN, [0, 0], 200).replace(".CLOCK_PS", ".QUAD(1), .CLOCK_PS"))
    assert streamed(out) == words


def test_it_has_no_queues() -> None:
    with pytest.raises(ValueError, match="bench must be written where queues wait, but is only read"):
        FetchPlan.of(TIMING, [(70, 2)], queues=[(50, 100)])


def test_bursts_take_hardly_longer_than_their_words() -> None:
    """Half a byte a cycle, less 42 cycles a burst: a frame of 220 KB takes less than half a million cycles."""
    assert TIMING.burst_cycles(128) == 40 + 4 * 128 + 2
    plan = FetchPlan.of(TIMING, [(110_000, 1)], 128)
    assert plan.cycles == 110_000 // 125 * 550
