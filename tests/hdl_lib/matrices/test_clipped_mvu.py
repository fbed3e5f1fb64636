# amaranth: UnusedElaboratable=no
"""Mvu with clipped windows: exact sums over the taps inside the image, for every geometry."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pytest
from amaranth.hdl import Shape, signed
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hdl_lib.matrices.mvu import Mvu
from hdl_lib.memories.rom import Table
from hdl_lib.windows.clipped_taps import clipped_taps
from hdl_lib.windows.window_geometry import WindowGeometry
from tests.hdl_lib.bench import STALLS, drive, pack, unpack


@dataclass(frozen=True)
class Case:
    """Windows of an image, in ``blocks`` beats per tap, times a matrix."""

    geometry: WindowGeometry
    blocks: int = 1
    simd: int = 2
    pe: int = 2
    neuron: int = 2
    multiplier: str = "dsp"
    depth: int = 10
    frames: int = 2
    seed: int = 0

    @property
    def taps(self):
        return self.geometry.kernel[0] * self.geometry.kernel[1]

    @cached_property
    def weights(self):
        """[neuron, taps, blocks, pe, simd]"""
        shape = self.neuron, self.taps, self.blocks, self.pe, self.simd
        return np.random.default_rng(self.seed).integers(-8, 8, shape)

    @cached_property
    def windows(self):
        """For each window and tap whether it is inside, and its elements: 0 elsewhere."""
        g = self.geometry
        count = self.frames * g.out_height * g.out_width
        values = np.random.default_rng(self.seed + 1).integers(-8, 8, (count, self.taps, self.blocks, self.simd))
        inside = np.array([
            0 <= y * g.stride[0] + ky * g.dilation[0] - g.pads[0] < g.height
            and 0 <= x * g.stride[1] + kx * g.dilation[1] - g.pads[1] < g.width
            for _ in range(self.frames) for y in range(g.out_height) for x in range(g.out_width)
            for ky in range(g.kernel[0]) for kx in range(g.kernel[1])
        ]).reshape(count, self.taps)  # fmt: skip
        return inside, values * inside[:, :, None, None]

    @property
    def outputs(self):
        """[windows * neuron, pe]"""
        return np.einsum("wtbs,ntbps->wnp", self.windows[1], self.weights).reshape(-1, self.pe)

    def build(self):
        words = [pack([int(w) for w in word.ravel()], 4) for word in self.weights.reshape(-1, self.pe, self.simd)]
        return Mvu(
            signed(4), signed(4), signed(16), pe=self.pe, simd=self.simd, synapse_fold=self.taps * self.blocks,
            neuron_fold=self.neuron, weights=Table.of_words(words, self.pe * self.simd * 4),
            multiplier=self.multiplier, depth=self.depth, clipped=self.geometry,
        )  # fmt: skip

    def run(self, **how):
        inside, values = self.windows
        beats = [pack([int(x) for x in beat], 4) for beat in values[inside].reshape(-1, self.simd)]
        trace = drive(self.build(), beats, len(self.outputs), **how)
        assert [unpack(word, 16, self.pe, signed=True) for word in trace.beats] == self.outputs.tolist()
        return trace


def windows(size, kernel, pads, stride=(1, 1), dilation=(1, 1)):
    return WindowGeometry(*size, kernel, stride, pads, dilation)


SAME = windows((4, 4), (3, 3), (1, 1, 1, 1))
CASES = {
    "3x3": Case(SAME),
    "blocks": Case(SAME, blocks=3, multiplier="lut"),
    "one pass": Case(SAME, neuron=1),
    "two taps at least": Case(windows((3, 3), (3, 2), (1, 1, 1, 0)), simd=1, neuron=3),
    "one tap of two beats": Case(windows((2, 2), (3, 3), (2, 2, 2, 2)), blocks=2),
    "strided": Case(windows((6, 5), (3, 3), (0, 0, 1, 1), stride=(2, 2))),
    "dilated": Case(windows((7, 7), (3, 2), (2, 0, 1, 3), dilation=(2, 3))),
    "one column": Case(windows((6, 1), (3, 1), (1, 0, 1, 0))),
    "one row": Case(windows((1, 6), (1, 3), (0, 1, 0, 1))),
    "one window": Case(windows((2, 2), (4, 4), (1, 1, 1, 1)), frames=3),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("gap", "stall"), [STALLS[0], STALLS[3]])
def test_exact(name, gap, stall):
    CASES[name].run(gap=gap, stall=stall)


def test_cycles_by_hand():
    """100 of 144 taps, in two passes: 200 cycles a frame."""
    trace = Case(SAME, frames=3).run()
    ends = trace.out_cycles[31::32]
    assert [b - a for a, b in pairwise(ends)] == [200, 200]


@st.composite
def cases(draw):
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    dilation = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    reach = [(kernel[k] - 1) * dilation[k] + 1 for k in (0, 1)]
    size = [draw(st.integers(1, 5)) for _ in range(2)]
    before = [draw(st.integers(0, reach[k] - 1)) for k in (0, 1)]
    after = [max(0, reach[k] - size[k] - before[k]) + draw(st.integers(0, 2)) for k in (0, 1)]
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    geometry = windows(size, kernel, (*before, *after), stride, dilation)
    case = Case(
        geometry, blocks=draw(st.integers(1, 3)), neuron=draw(st.integers(1, 3)), depth=draw(st.integers(1, 10)),
        simd=1, pe=1, seed=draw(st.integers(0, 99)),
    )  # fmt: skip
    assume(min(clipped_taps(geometry)) * case.blocks > 1)
    return case


@settings(max_examples=20, deadline=None, derandomize=True)
@given(cases(), st.sampled_from(STALLS))
def test_any_geometry(case, stalls):
    case.run(gap=stalls[0], stall=stalls[1], seed=case.seed)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (Case(windows((2, 2), (3, 3), (2, 2, 2, 2))), "must leave each window at least 2 beats, not 1"),
        (Case(windows((2, 2), (1, 1), (1, 1, 1, 1))), "must leave each window at least 2 beats, not 0"),
    ],
)  # fmt: skip
def test_refused(case, message):
    with pytest.raises(ValueError, match=f"^Mvu clipped {message}; do not clip it$"):
        case.build()


@pytest.mark.parametrize("change", [{"synapse_fold": 8}, {"multiplier": "xnor"}, {"words": 18}])
def test_refused_without_taps(change):
    arguments = dict(synapse_fold=9, multiplier="dsp", words=9) | change
    shape = Shape(1) if arguments["multiplier"] == "xnor" else signed(4)
    words = arguments["words"] if arguments["synapse_fold"] == 9 else 8
    with pytest.raises(ValueError, match=r"^Mvu clipped must be None for bits, for beats that mix taps"):
        Mvu(
            shape, shape, signed(16), pe=1, simd=1, synapse_fold=arguments["synapse_fold"], neuron_fold=1,
            weights=Table.of_words([0] * words, shape.width), multiplier=arguments["multiplier"], depth=4,
            clipped=SAME,
        )  # fmt: skip
