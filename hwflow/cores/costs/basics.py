"""Costs of common parts: counters, adders, skid buffers, lanes."""

from __future__ import annotations

from math import ceil, gcd

from hdl_lib.blocks import SMALL_COUNT
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.operator import Resources


def useful_lanes(channels: int) -> list[int]:
    """Return the lane counts worth looking at: the least one for each number of blocks; ascending."""
    return sorted({-(-channels // blocks) for blocks in range(1, channels + 1)})


MOST_LANES = 4096  # more fit no board
MOST_KNOWN_BITS = 4096  # of a table that is looked at while a search asks for every folding
FEW = 16  # words of a table by which products of look-up tables are counted one by one


def stream_lanes(shape: tuple[int, ...]) -> list[int]:
    """Return the lane counts of a stream (pixels, channels) worth looking at: of a part of a pixel, then of whole
    pixels."""
    pixels, channels = shape
    whole = range(2, min(pixels, MOST_LANES // channels) + 1)
    return useful_lanes(channels) + [count * channels for count in whole if pixels % count == 0]


def bits(greatest: int) -> int:
    """Return the bits of a counter up to ``greatest``."""
    return max(1, greatest.bit_length())


def trailing_zeros(*numbers: int) -> int:
    """Count the bits at the low end that are 0 in all numbers; none if all are 0."""
    together = gcd(*numbers)
    return (together & -together).bit_length() - 1 if together else 0


def adders(width: int, count: int, family: str = "ecp5") -> Resources:
    """Estimate registered adders."""
    return Resources(lut=chain(family, width) * count, ff=width * count)


def comparison(family: str, width: int) -> int:
    """Count the look-up tables that tell which of two numbers of ``width`` bits is greater."""
    return width if FAMILIES[family].carry_bits == 1 else chain(family, width + 1)


SHORT = 4  # bits; carry chains of no more are made of look-up tables where a carry cell has two bits


def chain(family: str, width: int) -> int:
    """Count the look-up tables of an adder of ``width`` bits."""
    place = FAMILIES[family].carry_bits
    return place * ceil(max(0, width) / place)


def carried_chain(family: str, width: int) -> int:
    """Count the look-up tables of an adder of ``width`` bits with a carry, which a place below the others makes: a
    carry cell of one bit stands alone there. Without that jet6 is predicted 2.7 % below its look-up tables."""
    return chain(family, width + (FAMILIES[family].carry_bits > 1))


# Look-up tables of adders of 0 to SHORT bits that are made without carry cells, each bit by itself and with a slice's
# multiplexers where that is faster, as measured. (As chains they would be up to 23 % of a small core.)
SHORT_ADDERS = (0, 1, 2, 4, 10)


def adder(family: str, width: int) -> int:
    """Count the look-up tables of the sum of two numbers of which it takes ``width`` bits."""
    if width <= SHORT and FAMILIES[family].carry_bits > 1:
        return SHORT_ADDERS[max(0, width)]
    return chain(family, width)


def accumulating(family: str, width: int, term: int) -> int:
    """Count the look-up tables of an adder of ``width`` bits of a term of so many bits, whose results the next sum
    waits for."""
    return adder(family, width) if width <= SHORT and term > 2 else chain(family, width)


def difference(family: str, width: int) -> int:
    """Count the look-up tables of a difference to a constant of ``width`` bits of which the sign is taken."""
    if width <= SHORT or FAMILIES[family].carry_bits == 1:  # a carry cell of one bit has no look-up table of its own
        return max(0, min(width, 1))
    return chain(family, width)


def skid_buffer(width: int, family: str = "ecp5") -> Resources:
    """Estimate two registers and what chooses between them."""
    return Resources(lut=width + (5 if FAMILIES[family].carry_bits == 1 else 9), ff=2 * width + 1)


# Look-up tables of the step of one, two and three streams, beside what their skid buffers have by themselves: measured.
_JOINT_STEPS = {"ecp5": (-4, 7, 32), "ice40": (-1, 4, 5)}


def joint_step(family: str, streams: int) -> int:
    """Count the look-up tables of a step that waits for so many streams behind skid buffers."""
    known = _JOINT_STEPS[FAMILIES[family].basis]
    return known[min(streams, len(known)) - 1]


def loop(rounds: int) -> Resources:
    """Estimate :func:`hdl_lib.blocks.loop`: a counter down and a register that says which round is the last. Up to four
    bits every function is a few look-up tables; beyond, a carry chain, its load and a comparison."""
    if rounds == 1:
        return Resources()
    width = (rounds - 1).bit_length()
    return Resources(lut=width + 1 if width <= 4 else round(2.4 * width + 0.5), ff=width + 1)


def count_up(count: int) -> Resources:
    """Estimate :func:`hdl_lib.blocks.count_up`: a counter, with a register that says when to wrap unless ``count`` is a
    power of two."""
    width = (count - 1).bit_length()
    if count & (count - 1):
        return loop(count)
    return Resources(lut=width, ff=width)


def count_behind(count: int) -> Resources:
    """Estimate :func:`hdl_lib.blocks.count_behind`: a counter that is a step ahead, and the register behind it."""
    return count_up(count) + Resources(ff=(count - 1).bit_length() if count > SMALL_COUNT else 0)


def taking_turns(words: int, turns: tuple[int, int]) -> Resources:
    """Return what :func:`hdl_lib.blocks.count_in_turns` takes beyond a counter of all words: where the round's words
    begin, and loops that say when to return there."""
    if turns[0] == 1:
        return Resources()
    if words == 1:
        return loop(turns[1])
    width = (words * turns[0] - 1).bit_length()
    return sum(map(loop, (words, turns[1], turns[0])), Resources(lut=2 * width, ff=width))
