"""The greatest of groups of pixels, and their places."""

from __future__ import annotations

from math import ceil

from hdl_lib.streams.top_k import index_bits
from hwflow.cores.costs.basics import adder, comparison, count_up, loop
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import asynchronous_memory, in_block_ram, queue
from hwflow.cores.operator import Resources
from hwflow.ir.node_attributes import Take

# Look-up tables per bit, as measured, where they come with a slice's multiplexers: with places, of values alone.
CIRCULATING = (5, 4)
CARRIED, CARRIED_LANE = 6, 1  # more look-up tables where a carry cell is of one bit, as measured: in all, of a lane


def _comparison(family: str, element: int) -> int:
    return 1 if element <= 2 and FAMILIES[family].carry_bits > 1 else comparison(family, element)


def top_k(
    family: str, lanes: int, element: int, blocks: int, window: int, k: int, take: Take, depth: int
) -> Resources:
    """Estimate the best so far in registers, of many blocks in a small memory; each element is compared with all of
    them."""
    place = 0 if take == Take.VALUE else index_bits(window)
    held = element + place
    taken = {"index": place, "value": element, "both": held}[take]
    compare = Resources(lut=lanes * k * _comparison(family, element) if window > 1 else 0)
    # Each is kept, or what comes is put in its place, or the one before moves there: where the best so far circulate,
    # and are not kept by their registers, that is a function of five and more bits.
    wide = FAMILIES[family].carry_bits > 1
    a_bit = CIRCULATING[place == 0] if blocks > 1 and wide else 1
    shifted = Resources(lut=lanes * (k - 1) * held * a_bit)
    total = compare + shifted + loop(blocks) + loop(window) + Resources(lut=3, ff=3)
    if window > 1:
        total += Resources(lut=1, ff=2)
    else:  # as measured, where an element goes on into the queue's registers
        total += Resources(lut=3 * lanes * taken // 2)
    total += count_up(window) + Resources(ff=index_bits(window))
    total += Resources(lut=k - 1)  # whether there is one in each place
    if k > 1 and wide:  # a place is the count, or the one before
        total += Resources(lut=lanes * k * place)
    if k < 3 and not wide:
        total += Resources(lut=CARRIED + CARRIED_LANE * lanes)
    running = lanes * k * held
    if blocks <= 4:
        store = Resources(lut=running if blocks > 1 else 0, ff=lanes * element + blocks * running)
    else:
        store = Resources(lut=running, ff=2 * lanes * element + 3 * running + 2) + count_up(blocks).times(2)
        block = in_block_ram(family, blocks, running)
        store += Resources(bram=block) if block else asynchronous_memory(family, blocks, running)
    return total + store + queue(family, lanes * k * taken, depth)


def top_tree(
    family: str, channels: int, element: int, pixels: int, window: int, take: Take, depth: int
) -> Resources:
    """Estimate a tree of comparisons, of each pixel of a beat; behind it the best of the beats so far."""
    together = min(pixels, window)
    places = 0 if take == Take.VALUE else 1
    left, level, tree = together, 0, Resources()
    while left > 1:
        pairs, level = left // 2, level + 1
        width = element + places * level
        tree += Resources(
            lut=pairs * (_comparison(family, element) + element + places * (level - 1)), ff=ceil(left / 2) * width
        )
        left = ceil(left / 2)
    if take == Take.INDEX and pixels >= window:  # the best value itself is not needed
        tree += Resources(lut=-element, ff=-element)
    place = places * index_bits(window)
    control = Resources(lut=3, ff=level + (pixels < window))
    if pixels < window:
        rounds = window // pixels
        control += loop(rounds) + Resources(ff=2 * level + 1)
        tree += Resources(lut=_comparison(family, element), ff=element + place)
        if places and pixels & (pixels - 1):
            tree += Resources(lut=adder(family, place))
            control += Resources(lut=2 * place, ff=place)
    taken = {"index": place, "value": element, "both": element + place}[take]
    lanes = channels * max(1, pixels // window)
    if FAMILIES[family].carry_bits == 1:
        control += Resources(lut=CARRIED + CARRIED_LANE * lanes)
    return tree.times(lanes) + control + queue(family, lanes * taken, depth)
