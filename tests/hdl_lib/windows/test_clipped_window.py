# amaranth: UnusedElaboratable=no
"""ClippedWindow against numpy (values) and against the two-process law written as a recurrence (cycles)."""

from dataclasses import dataclass

import numpy as np
import pytest
from amaranth.hdl import signed
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hdl_lib.windows.clipped_taps import clipped_taps
from hdl_lib.windows.clipped_window import ClippedWindow
from hdl_lib.windows.window_geometry import WindowGeometry
from tests.hdl_lib.bench import STALLS, drive, pack
from tests.hdl_lib.protocol import after_reset, check_no_paths


@dataclass(frozen=True)
class Case:
    height: int
    width: int
    channels: int
    lanes: int
    kernel: tuple[int, int]
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    spare: int = 0  # rows beyond the minimum
    depth: int = 5

    @property
    def geometry(self):
        return WindowGeometry(self.height, self.width, self.kernel, self.stride, self.pads, self.dilation)

    @property
    def blocks(self):
        return -(-self.channels // self.lanes)

    @property
    def rows(self):
        return self.geometry.minimum_rows + self.spare

    def build(self):
        return ClippedWindow(
            signed(6), self.height, self.width, self.channels, self.lanes, kernel=self.kernel, stride=self.stride,
            pads=self.pads, dilation=self.dilation, rows=self.rows, depth=self.depth,
        )  # fmt: skip

    def windows(self):
        """For each output row the (row, column) of every pixel that is sent."""
        g, found = self.geometry, []
        for y in range(g.out_height):
            found.append([])
            for x in range(g.out_width):
                for ky in range(self.kernel[0]):
                    for kx in range(self.kernel[1]):
                        row = y * self.stride[0] + ky * self.dilation[0] - self.pads[0]
                        column = x * self.stride[1] + kx * self.dilation[1] - self.pads[1]
                        if 0 <= row < self.height and 0 <= column < self.width:
                            found[-1].append((row, column))
        return found

    def frames(self, count, seed=0):
        shape = (count, self.height, self.width, self.blocks, self.lanes)
        return np.random.default_rng(seed).integers(-32, 32, shape)

    def expected(self, frames):
        places = [place for row in self.windows() for place in row]
        return _beats([frame[place] for frame in frames for place in places], self.lanes)


def _beats(pixels, lanes):
    return [pack([int(v) for v in beat], 6) for beat in np.asarray(pixels).reshape(-1, lanes)]


def law(case, frames):
    """Handshake cycles (in, out) of a source and a sink that are always willing, beat by beat."""
    row_beats, steps = case.width * case.blocks, [len(row) * case.blocks for row in case.windows()]
    reads = []  # of each reader step: the image row waited for, the image rows that it releases
    for frame in range(frames):
        for y, count in enumerate(steps):
            last = y * case.stride[0] + (case.kernel[0] - 1) * case.dilation[0] - case.pads[0]
            wait = frame * case.height + max(0, min(case.height - 1, last))
            free = case.height if y == len(steps) - 1 else min(
                max((y + 1) * case.stride[0] - case.pads[0], 0), case.height
            )
            reads += [(wait, None)] * (count - 1) + [(wait, frame * case.height + free)]
    written, read, popped, released = [], [], [], {}
    while len(written) < frames * case.height * row_beats or len(read) < len(reads):
        before = len(written), len(read)
        while len(written) < frames * case.height * row_beats:
            row = len(written) // row_beats - case.rows
            if row >= 0 and row not in released:
                break
            written.append(max(written[-1] + 1 if written else 0, released[row] + 1 if row >= 0 else 0))
        while len(read) < len(reads) and (reads[len(read)][0] + 1) * row_beats <= len(written):
            wait, free = reads[len(read)]
            cycle = max(read[-1] + 1 if read else 0, written[(wait + 1) * row_beats - 1] + 1)
            if len(read) >= case.depth:
                cycle = max(cycle, popped[len(read) - case.depth] + 1)
            read.append(cycle)
            popped.append(max(cycle + 4, popped[-1] + 1 if popped else 0))
            for row in range(free or 0):
                released.setdefault(row, cycle)
        assert before != (len(written), len(read)), "the law deadlocks"
    return written, popped


def check(case, dut=None, *, frames=2, seed=0, gap=0.0, stall=0.0):
    values = case.frames(frames, seed)
    expected = case.expected(values)
    trace = drive(dut or case.build(), _beats(values, case.lanes), len(expected), gap=gap, stall=stall, seed=seed)
    assert trace.beats == expected
    if not gap and not stall:
        assert (trace.in_cycles, trace.out_cycles) == law(case, frames)


CASES = {
    "3x3 same": Case(5, 4, 2, 1, (3, 3)),
    "3x3 same, a spare row": Case(5, 4, 2, 2, (3, 3), spare=1),
    "image of one window": Case(3, 3, 1, 1, (3, 3), pads=(0, 0, 0, 0)),
    "two by two": Case(2, 2, 2, 2, (3, 3)),
    "even kernel": Case(5, 6, 1, 1, (4, 4), pads=(1, 1, 2, 2)),
    "strided": Case(6, 6, 3, 2, (3, 3), pads=(0, 0, 1, 1), stride=(2, 2)),
    "rows left over": Case(7, 5, 1, 1, (3, 3), stride=(3, 2), spare=2),
    "dilated": Case(7, 7, 1, 1, (3, 2), dilation=(2, 3), pads=(2, 0, 1, 3), spare=2),
    "kernel larger than image": Case(2, 3, 3, 2, (5, 7), pads=(2, 3, 2, 3)),
    "one row": Case(1, 9, 2, 1, (1, 4), pads=(0, 3, 0, 0)),
    "one pixel": Case(1, 1, 1, 1, (3, 3), spare=1),
    "one column": Case(9, 1, 2, 1, (4, 1), stride=(2, 1), pads=(0, 0, 3, 0)),
    "rows first needed later": Case(4, 4, 1, 1, (3, 3), pads=(2, 0, 2, 0)),
    "narrow queue": Case(4, 4, 1, 1, (2, 2), depth=1),
    "seven by seven": Case(8, 8, 1, 1, (7, 7), pads=(3, 3, 3, 3), stride=(2, 2)),
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
    before = [draw(st.integers(0, reach[k] - 1)) for k in (0, 1)]
    after = [max(0, reach[k] - sizes[k] - before[k]) + draw(st.integers(0, 2)) for k in (0, 1)]
    case = Case(
        *sizes, channels=draw(st.integers(1, 4)), lanes=draw(st.integers(1, 3)), kernel=kernel,
        stride=draw(st.tuples(st.integers(1, 4), st.integers(1, 4))), pads=(*before, *after), dilation=dilation,
        spare=draw(st.integers(0, 3)), depth=draw(st.integers(1, 7)),
    )  # fmt: skip
    assume(all(clipped_taps(case.geometry)))
    return case


@settings(
    max_examples=25, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(cases(), st.sampled_from(STALLS), st.integers(0, 99))
def test_any_geometry(case, stalls, seed):
    check(case, seed=seed, gap=stalls[0], stall=stalls[1])


def test_taps_by_hand():
    """Of a 4 by 4 image under 3 by 3 taps, 100 of 144: 2, 3, 3 and 2 in each direction."""
    geometry = Case(4, 4, 1, 1, (3, 3)).geometry
    assert geometry.inside(0) == ((1, 2), (0, 3), (0, 3), (0, 2))
    assert clipped_taps(geometry) == [4, 6, 6, 4, 6, 9, 9, 6, 6, 9, 9, 6, 4, 6, 6, 4]


def test_a_wrong_span_is_found(monkeypatch):
    """A twin that takes the last column of windows for whole differs."""
    inside = WindowGeometry.inside

    def wrong(geometry, axis):
        spans = inside(geometry, axis)
        return spans if axis == 0 else (*spans[:-1], (0, 3))

    case = Case(4, 4, 1, 1, (3, 3))
    with monkeypatch.context() as patched:
        patched.setattr(WindowGeometry, "inside", wrong)
        twin = case.build()
        with pytest.raises(AssertionError):
            check(case, twin)


@pytest.mark.parametrize("seed", range(4))
def test_reset_in_mid_frame(seed):
    case = Case(4, 4, 3, 2, (3, 3), spare=2)
    values = case.frames(2, seed)
    expected = case.expected(values)
    assert after_reset(case.build(), _beats(values, case.lanes), len(expected), seed=seed) == expected


def test_no_combinational_path():
    check_no_paths(Case(3, 3, 1, 1, (2, 2), depth=2).build(), cycles=100)


def test_refused():
    message = "^every window must have a pixel inside the image; do not clip these$"
    with pytest.raises(ValueError, match=message):
        Case(2, 2, 1, 1, (1, 1)).build()
