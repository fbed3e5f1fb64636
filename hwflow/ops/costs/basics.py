"""What all cores have: counters, adders, skid buffers, lanes."""

from __future__ import annotations

from math import ceil

from hwflow.ops.operator import Resources


def useful_lanes(channels: int) -> list[int]:
    """Lane counts worth looking at: the least one for each number of blocks; ascending."""
    return sorted({-(-channels // blocks) for blocks in range(1, channels + 1)})


MOST_LANES = 4096  # more fit no board


def stream_lanes(shape: tuple[int, ...]) -> list[int]:
    """Lane counts of a stream (pixels, channels) worth looking at: of a part of a pixel, then of whole pixels."""
    pixels, channels = shape
    whole = range(2, min(pixels, MOST_LANES // channels) + 1)
    return useful_lanes(channels) + [count * channels for count in whole if pixels % count == 0]


def bits(greatest: int) -> int:
    """Bits of a counter up to ``greatest``."""
    return max(1, greatest.bit_length())


def adders(width: int, count: int) -> Resources:
    """Registered adders; a carry cell takes two bits."""
    return Resources(lut=2 * ceil(width / 2) * count, ff=width * count)


def skid_buffer(width: int) -> Resources:
    """Two registers and what chooses between them."""
    return Resources(lut=width + 4, ff=2 * width + 2)
