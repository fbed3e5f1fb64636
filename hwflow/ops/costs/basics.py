"""What all cores have: counters, adders, skid buffers, lanes."""

from __future__ import annotations

from math import ceil

from hwflow.ops.operator import Resources


def useful_lanes(channels: int) -> list[int]:
    """Lane counts worth looking at: the least one for each number of blocks; ascending."""
    return sorted({-(-channels // blocks) for blocks in range(1, channels + 1)})


def bits(greatest: int) -> int:
    """Bits of a counter up to ``greatest``."""
    return max(1, greatest.bit_length())


def adders(width: int, count: int) -> Resources:
    """Registered adders; a carry cell takes two bits."""
    return Resources(lut=2 * ceil(width / 2) * count, ff=width * count)


def skid_buffer(width: int) -> Resources:
    """Two registers and what chooses between them."""
    return Resources(lut=width + 4, ff=2 * width + 2)
