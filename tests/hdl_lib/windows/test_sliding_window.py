"""SlidingWindow against numpy (values) and against the two-process law written as a recurrence (cycles)."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from amaranth.hdl import signed, unsigned
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hdl_lib.windows.sliding_window import SlidingWindow
from tests.hdl_lib.bench import STALLS, drive, pack
from tests.hdl_lib.protocol import after_reset, check_no_paths


@dataclass(frozen=True)
class Case:
    height: int
    width: int
    channels: int
    lanes: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    pad_value: int = 0
    spare: int = 0  # rows beyond the minimum
    depth: int = 5
    signed: bool = True
    bits: int = 6

    @property
    def geometry(self):
        return dict(kernel=self.kernel, stride=self.stride, pads=self.pads, dilation=self.dilation)

    @property
    def blocks(self):
        return -(-self.channels // self.lanes)

    @property
    def output_size(self):
        sizes = (self.height, self.width)
        return tuple(
            (sizes[k] + self.pads[k] + self.pads[k + 2] - (self.kernel[k] - 1) * self.dilation[k] - 1)
            // self.stride[k]
            + 1
            for k in (0, 1)
        )

    @property
    def rows(self):
        return SlidingWindow.minimum_rows(self.height, self.width, **self.geometry) + self.spare

    def build(self):
        shape = signed(self.bits) if self.signed else unsigned(self.bits)
        return SlidingWindow(
            shape, self.height, self.width, self.channels, self.lanes, **self.geometry,
            pad_value=self.pad_value, rows=self.rows, depth=self.depth,
        )  # fmt: skip

    def frames(self, count, seed=0):
        """Random frames with padding lanes: (frame, row, column, blocks * lanes)."""
        low = -(1 << (self.bits - 1)) if self.signed else 0
        shape = (count, self.height, self.width, self.blocks * self.lanes)
        return np.random.default_rng(seed).integers(low, low + (1 << self.bits), shape)

    def beats(self, array):
        """Pixels along the leading axes, lanes along the last, as payloads."""
        return [pack([int(v) for v in beat], self.bits) for beat in array.reshape(-1, self.lanes)]

    def expected(self, frames):
        top, left, bottom, right = self.pads
        padded = np.pad(frames, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=self.pad_value)
        out = []
        for frame in padded:
            for oy in range(self.output_size[0]):
                for ox in range(self.output_size[1]):
                    y, x = oy * self.stride[0], ox * self.stride[1]
                    rows = slice(y, y + (self.kernel[0] - 1) * self.dilation[0] + 1, self.dilation[0])
                    columns = slice(x, x + (self.kernel[1] - 1) * self.dilation[1] + 1, self.dilation[1])
                    out.append(frame[rows, columns])
        return np.stack(out)


def law(case, frames):
    """Handshake cycles (in, out) of a source and a sink that are always willing, step by step."""
    height, rows, depth = case.height, case.rows, case.depth
    out_height, out_width = case.output_size
    beats_in_row = case.width * case.blocks
    steps_in_row = out_width * case.kernel[0] * case.kernel[1] * case.blocks
    waits, releases = [], []  # by output row, over all frames: the image row waited for, rows released after
    for frame in range(frames):
        for oy in range(out_height):
            row = min(height - 1, oy * case.stride[0] + (case.kernel[0] - 1) * case.dilation[0] - case.pads[0])
            waits.append(frame * height + max(row, 0))
            free = min(max((oy + 1) * case.stride[0] - case.pads[0], 0), height)
            releases.append((frame + 1) * height if oy == out_height - 1 else frame * height + free)
    written, read, popped = [], [], []
    done_in, done_out = frames * height * beats_in_row, len(waits) * steps_in_row
    released_at = {}  # image row -> cycle of the reader step that released it
    while len(written) < done_in or len(read) < done_out:
        progress = False
        while len(written) < done_in:
            row = len(written) // beats_in_row - rows
            if row >= 0 and row not in released_at:
                break
            written.append(max(written[-1] + 1 if written else 0, released_at[row] + 1 if row >= 0 else 0))
            progress = True
        while len(read) < done_out:
            output_row = len(read) // steps_in_row
            wait = waits[output_row]
            if (wait + 1) * beats_in_row > len(written):
                break
            cycle = max(read[-1] + 1 if read else 0, written[(wait + 1) * beats_in_row - 1] + 1)
            if len(read) >= depth:
                cycle = max(cycle, popped[len(read) - depth] + 1)
            read.append(cycle)
            popped.append(max(cycle + 4, popped[-1] + 1 if popped else 0))
            if len(read) % steps_in_row == 0:
                for released in range(releases[output_row]):
                    released_at.setdefault(released, cycle)
            progress = True
        assert progress, "the law deadlocks"
    return written, popped


def check(case, *, frames=2, seed=0, gap=0.0, stall=0.0):
    values = case.frames(frames, seed)
    expected = case.beats(case.expected(values))
    trace = drive(case.build(), case.beats(values), len(expected), gap=gap, stall=stall, seed=seed)
    assert trace.beats == expected
    if not gap and not stall:
        assert (trace.in_cycles, trace.out_cycles) == law(case, frames)


CASES = {
    "one pixel": Case(1, 1, 1, 1, (1, 1)),
    "pointwise": Case(3, 4, 3, 2, (1, 1)),
    "3x3 same": Case(5, 4, 2, 1, (3, 3), pads=(1, 1, 1, 1), pad_value=-5),
    "3x3 same, a spare row": Case(5, 4, 2, 2, (3, 3), pads=(1, 1, 1, 1), pad_value=31, spare=1),
    "frames ahead": Case(4, 3, 1, 1, (2, 2), stride=(2, 2), spare=9),
    "2x2 pool": Case(6, 6, 5, 2, (2, 2), stride=(2, 2), signed=False, pad_value=63),
    "rows left over": Case(7, 5, 1, 1, (2, 2), stride=(2, 2)),
    "stride beyond kernel": Case(9, 8, 2, 1, (1, 2), stride=(4, 5)),
    "stride beyond image": Case(2, 2, 1, 1, (1, 1), stride=(7, 7), spare=1),
    "dilated": Case(7, 7, 1, 1, (3, 2), dilation=(2, 3), pads=(2, 0, 1, 3), pad_value=7, spare=2),
    "kernel larger than image": Case(2, 3, 3, 2, (5, 7), pads=(2, 3, 2, 3), pad_value=-1),
    "one row": Case(1, 9, 1, 1, (1, 4), pads=(0, 3, 0, 0)),
    "one column": Case(9, 1, 2, 1, (4, 1), stride=(2, 1), pads=(0, 0, 3, 0)),
    "output rows of padding only": Case(2, 2, 1, 1, (1, 1), pads=(3, 2, 4, 1), stride=(1, 2), pad_value=9),
    "output of padding only": Case(1, 2, 1, 1, (1, 1), pads=(3, 0, 0, 0), stride=(9, 1), pad_value=9),
    "padding rows that release": Case(4, 2, 1, 1, (1, 1), pads=(3, 0, 0, 0), stride=(5, 1)),
    "narrow queue": Case(4, 4, 1, 1, (2, 2), depth=1),
    "one step per row": Case(6, 1, 1, 1, (1, 1), spare=3),
    "one step per row, strided": Case(7, 1, 1, 1, (1, 1), stride=(3, 1), spare=1),
    "seven by seven": Case(8, 8, 1, 1, (7, 7), pads=(3, 3, 3, 3), stride=(2, 2), pad_value=1),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_values_and_cycles(name, gap, stall):
    check(CASES[name], frames=2 if gap or stall else 3, gap=gap, stall=stall)


@st.composite
def cases(draw):
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    dilation = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    reach = [(kernel[k] - 1) * dilation[k] + 1 for k in (0, 1)]
    sizes = [draw(st.integers(1, 6)) for _ in range(2)]
    before = [draw(st.integers(0, 4)) for _ in range(2)]
    least = [max(0, reach[k] - sizes[k] - before[k]) for k in (0, 1)]
    after = [draw(st.integers(least[k], least[k] + 2)) for k in (0, 1)]
    is_signed = draw(st.booleans())
    return Case(
        *sizes,
        channels=draw(st.integers(1, 4)),
        lanes=draw(st.integers(1, 3)),
        kernel=kernel,
        stride=draw(st.tuples(st.integers(1, 5), st.integers(1, 5))),
        pads=(*before, *after),
        dilation=dilation,
        pad_value=draw(st.integers(-4, 3) if is_signed else st.integers(0, 7)),
        spare=draw(st.integers(0, 3)),
        depth=draw(st.integers(1, 7)),
        signed=is_signed,
        bits=3,
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(cases(), st.sampled_from(STALLS), st.integers(0, 99))
def test_any_geometry(case, stalls, seed):
    check(case, seed=seed, gap=stalls[0], stall=stalls[1])


def test_initiation_interval_is_the_readers():
    case = Case(6, 6, 2, 1, (3, 3), pads=(1, 1, 1, 1), spare=1, pad_value=2)
    values = case.frames(4)
    trace = drive(case.build(), case.beats(values), 4 * 36 * 9 * 2)
    per_frame = [trace.out_cycles[k * 36 * 18 - 1] for k in (1, 2, 3, 4)]
    assert [b - a for a, b in pairwise(per_frame)] == [36 * 18] * 3


def test_minimum_rows_by_hand():
    def rows(height, kernel, stride, pads, dilation=1):
        return SlidingWindow.minimum_rows(
            height, 9, kernel=(kernel, 1), stride=(stride, 1), pads=(pads, 0, pads, 0), dilation=(dilation, 1)
        )

    assert rows(8, 3, 1, 1) == 3
    assert rows(8, 1, 1, 0) == 1
    assert rows(8, 3, 2, 1) == 3
    assert rows(8, 2, 4, 0) == 2
    assert rows(8, 3, 1, 0, dilation=2) == 5
    assert rows(2, 5, 1, 2) == 2  # the whole image


@pytest.mark.parametrize("seed", range(4))
def test_reset_in_mid_frame(seed):
    case = Case(4, 4, 3, 2, (3, 3), pads=(1, 1, 1, 1), spare=2, pad_value=5)
    expected = case.beats(case.expected(case.frames(2, seed)))
    assert after_reset(case.build(), case.beats(case.frames(2, seed)), len(expected), seed=seed) == expected


def test_no_combinational_path():
    check_no_paths(Case(3, 3, 1, 1, (2, 2), depth=2).build(), cycles=100)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(rows=2), "rows must be at least 3, not 2: with fewer the window's rows are never in the buffer together"),
        (dict(pad_value=8), "pad_value must be in -8..7, the range of signed(4), not 8"),
        (dict(kernel=(3, 0)), "kernel must be two numbers of at least 1 (vertical, horizontal), not (3, 0)"),
        (dict(pads=(0, 0, 0, -1)),
         "pads must be four numbers of at least 0 (top, left, bottom, right), not (0, 0, 0, -1)"),
        (dict(kernel=(6, 3)),
         "height with pads must be at least 6 (the dilated kernel's), not 5; "
         "enlarge the pads or take a smaller kernel"),
        (dict(lanes=0), "lanes must be at least 1, not 0"),
        (dict(height=0), "height must be at least 1, not 0"),
        (dict(depth=0), "depth must be an integer of at least 1, not 0"),
        (dict(segment=2, times=3),
         "times must be at least 1, and segment divide 3, the windows of a row, not be 3 and 2"),
        (dict(times=0), "times must be at least 1, and segment divide 3, the windows of a row, not be 0 and 3"),
    ],
)  # fmt: skip
def test_refused(change, message):
    arguments = dict(shape=signed(4), height=5, width=5, channels=1, lanes=1, kernel=(3, 3), rows=3, depth=5) | change
    with pytest.raises(ValueError) as error:
        SlidingWindow(**arguments)
    assert str(error.value) == message
