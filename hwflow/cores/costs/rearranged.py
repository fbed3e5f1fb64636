"""Costs of reordered frames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from amaranth.hdl import Shape

from hdl_lib.memories.address_walk import AddressWalk
from hdl_lib.memories.pad_crop import Frame, Sent
from hdl_lib.memories.rearrange import RearrangePlan
from hdl_lib.memories.storage import REGISTER_DEPTH
from hwflow.cores.costs.basics import adder, bits, chain, count_up, difference, loop, trailing_zeros
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import buffer_memory, filled_rom, queue
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def lane_map(
    family: str, sources: Sequence[int | None], source: IntType, result: IntType, fill: int, depth: int
) -> Resources:
    """Estimate a queue. In registers a constant is the reset of a bit that else were chosen (ones too where a flip-flop
    may be set that is 0 at first); memories have neither the fill value's zeros nor the copies of a sign, and those
    made of flip-flops each input lane and the fill value's ones once."""
    ones = (fill & (1 << result.bits) - 1).bit_count()
    taken = [lane for lane in sources if lane is not None]
    fills, flat = len(sources) - len(taken), FAMILIES[family].lutram is None
    if depth <= REGISTER_DEPTH:
        resets = fills * (result.bits - (0 if flat else ones)) if depth > 1 else 0
        return queue(family, len(sources) * result.bits, depth) + Resources(lut=-resets)
    if flat:
        width = len(set(taken)) * source.bits + int(fills > 0 and ones > 0)
    else:
        width = len(taken) * source.bits + fills * ones
    return queue(family, max(1, width), depth)


def beat_run(family: str, width: int, beats: int, depth: int) -> Resources:
    """Estimate a count of a frame's beats, comparisons with both ends of the run, a queue. ``width``: bits of a
    beat."""
    compared = 2 * (1 if beats <= 16 else 2)
    # Where carry cells have tables of their own, the counter keeps what compares it apart; more so without a wrap.
    spread = 0 if FAMILIES[family].carry_bits == 1 else 4 if beats & (beats - 1) else 12
    return count_up(beats) + Resources(lut=compared + 4 + spread, ff=1) + queue(family, width, depth)


def pad_crop(
    family: str, frame: Frame, lanes: int, source: IntType, result: IntType, depth: int
) -> Resources:
    """Estimate a count of the steps of each run, a choice of what is sent, a queue. ``source``, ``result``: an element
    before and behind."""
    runs, width, flat = frame.runs, lanes * result.bits, FAMILIES[family].lutram is None
    counter = bits(max(run.steps for run in runs) - 1)
    index = bits(len(runs) - 1)
    # What is loaded into the counter: up to four runs a table of two levels a bit; of more, multiplexers.
    if flat:
        control = 4 * counter + 6 + len(runs)
    elif len(runs) <= 4:
        control = 2 * counter + 12
    else:
        control = 7 * counter + 3 + 5 * (len(runs) - 5) // 2
    chosen = 0
    if any(run.sends == Sent.PADDING for run in runs):
        in_registers = depth <= REGISTER_DEPTH
        # A queue in registers has tables that choose, too.
        chosen = width * (1 + (frame.holds_first and in_registers)) // (1 + (flat and in_registers))
    held = lanes * source.bits if frame.holds_first else 0
    total = Resources(lut=control + chosen, ff=counter + 1 + index + held)
    return total + queue(family, width, depth)


def rearrange(
    family: str, plan: RearrangePlan, lanes: int, source: IntType, result: IntType, depth: int
) -> Resources:
    """Estimate a buffer, the loops of its addresses and their tables, counts of beats, a queue. ``source``, ``result``:
    an element before and behind."""
    width, rows = lanes * source.bits, max(2, plan.rows)
    store = buffer_memory(family, rows, width) + Resources(ff=width)
    if not store.bram and FAMILIES[family].lutram is None and plan.walk.steps == 1 and plan.beats % rows == 0:
        store = Resources(lut=1, ff=4 * width)  # of flip-flops those of the row that is ever read are left
    queued = lanes * result.bits
    # A queue in registers has room for the choice of what fills holes in its tables.
    holes = Resources(lut=0 if depth <= REGISTER_DEPTH else queued, ff=4) if plan.has_holes else Resources()
    return store + holes + _control(family, plan) + queue(family, queued, depth)


@cache
def _control(family: str, plan: RearrangePlan) -> Resources:
    """Estimate all but the buffer and the queue."""
    rows, walk = plan.rows, plan.walk
    place, wraps = bits(max(2, rows) - 1), rows & (rows - 1) != 0
    step = plan.beats % rows if rows > 1 else 0  # from frame to frame in the buffer
    total = count_up(rows) + _address(family, walk, rows, plan.rounds == 1 or step > 0)
    # The place of a frame's first beat: none of the zeros below.
    idle = trailing_zeros(step, rows) if step else place
    base = place - idle
    total += Resources(ff=base + 2 * place)
    if wraps:
        even = trailing_zeros(rows)  # zeros below, where a difference to the rows is the number itself
        total += Resources(lut=difference(family, place + 2 - even) + place - even)
        if base:
            total += Resources(lut=adder(family, base) + base)
    # Delays of steps and of ends of rounds; those that say the same are one.
    released = _distinct([phase.released for phase in plan.phases])
    several, latency = len(plan.phases) > 1, walk.latency
    delays = latency + 4 + (latency + 1) * (int(plan.steps > 1) + (released if several else 0))
    total += Resources(ff=delays)
    return total + _counts(family, plan, released)


def _counts(family: str, plan: RearrangePlan, released: int) -> Resources:
    """Estimate the counts through which writer and reader wait for each other; ``released``: bits of the numbers of
    beats released that differ."""
    phases, ahead = plan.phases, plan.beats + plan.skipped
    greatest = max(plan.beats + plan.needed[0], *(phase.needed for phase in phases))
    spare = Shape.cast(range(-1, plan.rows + ahead)).width
    lead = Shape.cast(range(-greatest, plan.rows + ahead + 1)).width
    total = Resources(lut=5, ff=spare + lead + 1)  # what a beat writes, a cycle later
    # What rounds add has zeros below, where a sum is what it is without them.
    added = spare - trailing_zeros(*[phase.released for phase in phases])
    taken = lead - trailing_zeros(*[phase.needed for phase in phases])
    total += Resources(lut=2 * chain(family, spare) + chain(family, added) + chain(family, lead) + chain(family, taken))
    if len(phases) == 1:
        return total + Resources(lut=round(1.3 * spare) + lead)
    index = bits(len(phases) - 1)
    total += Resources(lut=spare + added + 3 * taken + released * (1 + (index > 3)))
    return total + loop(max(phase.count for phase in phases)) + Resources(lut=index + len(phases), ff=index)


def _address(family: str, walk: AddressWalk, rows: int, outermost: bool) -> Resources:
    """Estimate the loops, sums and tables of an address of which a buffer of ``rows`` takes what it needs;
    ``outermost``: whether the end of a frame is looked at."""
    needed = bits(rows - 1) if rows & (rows - 1) == 0 else bits(2 * rows - 1)
    mask = (1 << needed) - 1
    spans = [axis.stride * (axis.count - 1) for axis in walk.axes]
    changes = [axis.stride - sum(spans[number + 1 :]) for number, axis in enumerate(walk.axes)]
    moves = [-sum(spans) & mask, *(change & mask for change in changes)]
    total = Resources()
    outermost = outermost or moves[0] != moves[1] or walk.steps == 1
    for number, axis in enumerate(walk.axes):
        if number or outermost:
            total += loop(axis.count)
    low = walk.start + sum(min(0, span) for span in spans)
    high = walk.start + sum(max(0, span) for span in spans)
    present = [move for move, axis in zip(moves[1:], walk.axes, strict=True) if axis.count > 1] + [moves[0]]
    zeros = trailing_zeros(*present) if any(present) else needed
    width = max(0, min(needed, Shape.cast(range(min(low, 0), max(high, 0) + 1)).width) - zeros)
    total += Resources(lut=adder(family, width) + width, ff=width)
    if walk.tables:
        total += Resources(ff=2 * width)
    for axis in walk.tables:
        words = [1 << needed if at is None else at & mask for at in axis.table]
        total += filled_rom(family, words, needed + 1) + count_up(axis.count)
        total += Resources(lut=adder(family, needed), ff=needed)
    return total


def _distinct(numbers: Sequence[int]) -> int:
    """Count the bits of the numbers that are not 0 in all of them and not the same as another bit in all of them."""
    columns = {tuple(number >> bit & 1 for number in numbers) for bit in range(max(numbers).bit_length())}
    return len([column for column in columns if any(column)])
