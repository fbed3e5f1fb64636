"""Lanes up to a pixel's channels, and lanes of whole pixels."""

import pytest

from hwflow.cores.operator import beats, grouped


@pytest.mark.parametrize(
    ("lanes", "pixels", "channels", "count"),
    [(1, 12, 6, 72), (4, 12, 6, 24), (5, 12, 6, 24), (6, 12, 6, 12), (12, 6, 12, 6), (18, 4, 18, 4), (72, 1, 72, 1)],
)
def test_beats(lanes, pixels, channels, count):
    assert grouped((12, 6), lanes) == (pixels, channels)
    assert beats((12, 6), lanes) == count


@pytest.mark.parametrize("lanes", [7, 30, 48, 144])
def test_other_lanes_are_refused(lanes):
    with pytest.raises(ValueError, match=f"^lanes must be at most 6 .the channels. or whole pixels .*, not {lanes}$"):
        beats((12, 6), lanes)
