# amaranth: UnusedElaboratable=no
"""Sliding windows that reach no padding: what the convolution pads with need not fit the stream's type."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.operator import Folding
from tests.cores.cases.case_parts import U4, stream
from tests.cores.harness import GENEROUS, Bench, Case, random_frames

GEOMETRY = WindowGeometry(3, 4, (2, 2), (1, 2), (0, 0, 0, 0), (1, 1))


@pytest.mark.parametrize(
    "folding", [Folding(1, 1), Folding(2, 4), Folding(4, 8), Folding(12, 16)], ids=["serial", "pair", "row", "image"]
)
@pytest.mark.parametrize("pad_value", [200, -1])
@pytest.mark.parametrize(("gap", "stall"), [(0.0, 0.0), (0.4, 0.0), (0.0, 0.6), (0.4, 0.6)])
def test_a_pad_value_beyond_the_type(folding: Folding, pad_value: int, gap: float, stall: float) -> None:
    attributes = {"geometry": GEOMETRY, "pad_value": pad_value}
    case = Case("unpadded", "sliding_window", attributes, stream(12, 1, U4), (folding,))
    core = Bench(case, folding, GENEROUS)
    frames = random_frames(case, 2, 1)
    images = frames[0].reshape(-1, 3, 4)
    # Windows row by row, two columns apart; of each its taps row by row.
    taps = [images[:, y : y + 2, x : x + 2].reshape(len(images), 4) for y in range(2) for x in (0, 2)]
    expected = np.concatenate(taps, axis=1)[:, :, None]
    (trace,) = core.run([(frames, gap, stall)])
    assert np.array_equal(core.values(trace.beats), expected)


@pytest.mark.parametrize("folding", [Folding(1, 1), Folding(4, 20), Folding(12, 80)], ids=["serial", "row", "image"])
@pytest.mark.parametrize("pad_value", [200, -1])
@pytest.mark.parametrize(("gap", "stall"), [(0.0, 0.0), (0.4, 0.6)])
def test_a_pad_value_that_widens_the_type(folding: Folding, pad_value: int, gap: float, stall: float) -> None:
    """What comes in is as narrow as before: the core takes it so, and sends what holds both."""
    attributes = {"geometry": WindowGeometry(3, 4, (2, 2), (1, 1), (1, 1, 1, 1), (1, 1)), "pad_value": pad_value}
    case = Case("padded", "sliding_window", attributes, stream(12, 1, U4), (folding,))
    core = Bench(case, folding, GENEROUS)
    (port,), (payload,) = core.build().inputs, [core.node.inputs[0].typed.element.bits * folding.input_lanes]
    assert len(port.payload.as_value()) == payload
    frames = random_frames(case, 2, 1)
    images = np.pad(frames[0].reshape(-1, 3, 4), ((0, 0), (1, 1), (1, 1)), constant_values=pad_value)
    taps = [images[:, y : y + 2, x : x + 2].reshape(len(images), 4) for y in range(4) for x in range(5)]
    (trace,) = core.run([(frames, gap, stall)])
    assert np.array_equal(core.values(trace.beats), np.concatenate(taps, axis=1)[:, :, None])
