"""PadCrop: frames padded and cropped in order, in the cycles of the law, whatever the sides do."""

from __future__ import annotations

import pytest
from amaranth.hdl import signed, unsigned

from hdl_lib.memories.pad_crop import Frame, PadCrop, Part
from tests.hdl_lib.bench import STALLS, drive
from tests.hdl_lib.law import Process, cycles

FRAMES = 4
FILL = -3
PASS, CROP, PAD = Part.PASS, Part.CROP, Part.PAD
FORMS = [
    ((5, PASS),),
    ((1, PAD), (3, PASS)),
    ((2, PAD), (1, PASS), (1, CROP)),
    ((2, PAD), (3, PASS), (2, CROP)),
    ((2, CROP), (3, PASS), (2, PAD)),
    ((1, CROP), (2, PAD), (2, PASS), (1, PAD)),
    ((1, PASS), (1, PAD), (1, CROP)),
    ((3, CROP), (2, PAD)),
    ((1, CROP), (2, PASS), (3, CROP), (1, PASS), (2, PAD), (1, PASS)),
]


def padded(parts: tuple[tuple[int, Part], ...], sent: list[int]) -> list[int]:
    """Frames by their definition, a beat at a time."""
    left, results = iter(sent), []
    for count, kind in FRAMES * parts:
        for _ in range(count):
            beat = FILL if kind == PAD else next(left)
            results += [] if kind == CROP else [beat]
    return results


def beats_of(parts: tuple[tuple[int, Part], ...]) -> int:
    return sum(count for count, kind in parts if kind != PAD)


@pytest.mark.parametrize("parts", FORMS)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_beats(parts, gap: float, stall: float) -> None:
    sent = [(7 * k) % 64 for k in range(FRAMES * beats_of(parts))]
    expected = padded(parts, sent)
    dut = PadCrop(unsigned(6), 1, Frame(parts), signed(7), fill=FILL, depth=2)
    trace = drive(dut, sent, len(expected), gap=gap, stall=stall)
    assert trace.beats == [beat % 128 for beat in expected]


@pytest.mark.parametrize("parts", FORMS)
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_cycles_of_the_law(parts, depth: int) -> None:
    frame = [(run.takes, bool(run.sends)) for run in Frame(parts).runs for _ in range(run.steps)]
    taken, shown = cycles(Process(FRAMES * frame, depth, PadCrop.latency))
    dut = PadCrop(unsigned(6), 1, Frame(parts), signed(7), fill=FILL, depth=depth)
    trace = drive(dut, list(range(FRAMES * beats_of(parts))), len(shown))
    assert trace.out_cycles == shown
    assert taken[: len(trace.in_cycles)] == trace.in_cycles[: len(taken)]


def test_steps() -> None:
    """What comes is taken once, at first, too; what leaves is sent once."""
    for parts in FORMS:
        runs = Frame(parts).runs
        assert runs[0].takes
        assert sum(run.steps for run in runs if run.takes) == beats_of(parts)
        assert sum(run.steps for run in runs if run.sends) == len(padded(parts, [0] * 99)) // FRAMES
        assert sum(run.steps for run in runs) == sum(count for count, _ in parts)


@pytest.mark.parametrize("parts", [((2, PAD),), ((2, PAD), (1, CROP), (1, PASS)), ()])
def test_what_is_no_frame(parts) -> None:
    with pytest.raises(ValueError, match=r"^a frame must have beats that come, those after padding"):
        Frame(parts)


def test_parts_without_beats() -> None:
    with pytest.raises(ValueError, match=r"^parts of a frame must have at least one beat"):
        Frame(((1, PASS), (0, PAD)))


def test_padding_outside_of_the_type() -> None:
    with pytest.raises(ValueError, match=r"^fill must be in 0\.\.63, the range of unsigned\(6\), not 64$"):
        PadCrop(unsigned(6), 1, Frame(((1, PASS),)), unsigned(6), fill=64, depth=2)
