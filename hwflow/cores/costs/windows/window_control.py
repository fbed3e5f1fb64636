"""The control of whole windows per beat (:mod:`hdl_lib.windows.window_rows`): counters, banks, counts of words,
delays."""

from __future__ import annotations

from functools import cache
from math import gcd

from amaranth.hdl import Shape

from hdl_lib.windows.window_rows import WindowRows
from hdl_lib.windows.window_steps import WindowSteps
from hwflow.cores.costs.basics import bits, chain, count_up, loop
from hwflow.cores.operator import Resources


@cache
def rows_control(family: str, steps: WindowSteps, rows: int) -> Resources:
    """Estimate all but line buffer, registers of pixels, and queue; ``rows``: of the line buffer."""
    words = steps.words
    latency = WindowRows.latency_of(steps)
    stages = latency - 1 - int(steps.masked)  # from a step to the cycle in which its word is in the registers
    total = Resources(lut=5) + count_up(rows)
    if words > 1:
        place = bits(words - 1)
        total += loop(words) + count_up(words) + Resources(lut=rows, ff=2 * place + rows + 1)
    total += _outputs(steps, stages) + Resources(ff=latency - 1)
    # Word and output row of the step ahead.
    ahead = (steps.row_steps + steps.tail - 1).bit_length() + (steps.geometry.out_height - 1).bit_length()
    total += Resources(lut=round(1.5 * ahead), ff=ahead)
    return total + _inputs(steps, rows, stages) + _counts(family, steps, rows)


def _outputs(steps: WindowSteps, stages: int) -> Resources:
    """Return the cost of telling which of a beat's columns are inside the image."""
    spans = {span for span in steps.columns.values() if span != (0, steps.beats - 1)}
    return Resources(lut=len(spans), ff=len(spans) * (1 + stages))


def _inputs(steps: WindowSteps, rows: int, stages: int) -> Resources:
    """Estimate for each kernel row whether it is inside the image, and its bank."""
    g = steps.geometry
    spans = {span for span in steps.kernel_rows.values() if span != (0, g.out_height - 1)}
    total = Resources(lut=len(spans), ff=len(spans) * stages)
    over = (g.height - (g.out_height - 1) * g.stride[0]) % rows
    turn = gcd(g.stride[0] % rows, over, rows) if g.out_height > 1 else gcd(over, rows)
    if turn == rows:  # banks never change
        return total
    bank = bits(rows - 1)
    several = g.out_height > 1 and over != g.stride[0] % rows
    long = steps.row_steps + steps.tail
    total += Resources(lut=1, ff=int(long > 1) + int(several))
    return total + Resources(lut=bank * (1 + several), ff=bank * stages).times(len(steps.kernel_rows))


def _counts(family: str, steps: WindowSteps, rows: int) -> Resources:
    """Estimate the counts of words through which writer and reader wait for each other, and what steps add to them."""
    g, words = steps.geometry, steps.words
    needs = [
        (g.needed_rows(y + 1) if y + 1 < g.out_height else g.height + g.needed_rows(0)) - g.needed_rows(y)
        for y in range(g.out_height)
    ]
    frees = [g.released_rows(y) - (g.released_rows(y - 1) if y else 0) for y in range(g.out_height)]
    least = min(words - 1 - max(needs) * words, -int(words > 1))
    most = 1 + (max(frees) - 1) * words if max(frees) else 0
    first = (g.needed_rows(0) - 1) * words + 1
    bound = (rows + max(g.greatest_lead, g.greatest_surplus, 0) + 2) * words
    lead = Shape.cast(range(min(least, -first, -1) - 1, bound)).width
    spare = Shape.cast(range(-1, bound)).width
    added = range(min(least, -1), max(words, 2)), range(most + 2)
    registers = sum(Shape.cast(shape).width for shape in added)
    luts = 3 * chain(family, spare) + 2 * spare + 3 * chain(family, lead) + lead
    return Resources(lut=luts + registers, ff=spare + lead + registers)
