"""Exponentials of a row over their sum (:mod:`hdl_lib.norms.softmax_row`)."""

from __future__ import annotations

from collections.abc import Sequence

from hwflow.cores.costs.basics import adder, comparison, loop
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import asynchronous_memory, filled_rom, in_block_ram, queue
from hwflow.cores.operator import Resources

# Phases, the adder, what is known of the rest.
_CONTROL = {"ecp5": Resources(lut=55, ff=9), "ice40": Resources(lut=60, ff=9)}


def softmax_row(
    family: str, element: int, size: int, result: int, bits: int, exponentials: Sequence[int],
    thresholds: Sequence[int], digits: int, offset: int, depth: int,
) -> Resources:
    """Estimate the core with elements of so many bits, results likewise, and sums of ``bits``."""
    length, width = bits + 1, max(exponentials).bit_length()
    index, distance = (size - 1).bit_length(), (len(exponentials) - 1).bit_length()
    levels = (len(thresholds) - 1).bit_length()
    numbers = Resources(lut=width, ff=2 * length + digits + 1) + loop(length)
    elements = Resources(
        lut=comparison(family, element) + adder(family, distance) + index, ff=element + distance + index
    )
    moved = offset % (1 << result - 1) != 0  # else its top bit is another one at most
    search = Resources(
        lut=comparison(family, digits + 1) + (adder(family, levels) if moved else 0), ff=levels + 1
    )
    tables = filled_rom(family, exponentials, width, output_register=False)
    tables += filled_rom(family, thresholds, digits + 1, output_register=False)
    return (
        numbers + elements + search + tables + _row(family, size, element) + queue(family, result, depth)
        + _CONTROL[FAMILIES[family].basis]
    )


def _row(family: str, size: int, element: int) -> Resources:
    """Estimate the elements of a row, in a memory with a register behind it."""
    blocks = in_block_ram(family, size, element)
    if blocks:
        return Resources(bram=blocks)
    return asynchronous_memory(family, size, element) + Resources(ff=element)
