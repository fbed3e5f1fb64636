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
    """All but line buffer, registers of pixels, and queue; ``rows``: of the line buffer."""
    words = steps.words
    latency = WindowRows.latency_of(steps)
    stages = latency - 1 - int(steps.masked)  # from a step to the cycle in which its word is in the registers
    total = Resources(lut=5) + count_up(rows)
    if words > 1:
        place = bits(words - 1)
        total += loop(words) + count_up(words) + Resources(lut=rows, ff=2 * place + rows + 1)
    always = steps.steps == steps.geometry.out_height * steps.beats
    total += _walk(steps, rows) + _outputs(steps, always, stages)
    total += Resources(ff=latency - 1)
    return total + _inputs(steps, rows, stages) + _counts(family, steps, rows)


def _walk(steps: WindowSteps, rows: int) -> Resources:
    """Word and output row of the step ahead."""
    g, long = steps.geometry, steps.row_steps + steps.tail
    place = bits(long - 1) if long > 1 else 0
    row = bits(g.out_height - 1) if g.out_height > 1 else 0
    return Resources(lut=round(1.5 * (place + row)), ff=place + row)


def _outputs(steps: WindowSteps, always: bool, stages: int) -> Resources:
    """Return the cost of telling which steps send a beat, and which of its columns are inside the image."""
    spans = {span for span in steps.columns.values() if span != (0, steps.beats - 1)}
    total = Resources(lut=len(spans), ff=len(spans) * (1 + stages))
    if always and not spans:
        return total
    final, period = (steps.row_steps - 1) // steps.period, steps.period
    beat, part = bits(final) if final else 0, bits(period - 1) if period > 1 else 0
    begun = int(-steps.delay % steps.row_steps > 0 and not always)
    return total + Resources(lut=2 * (beat + part) + 2 * begun + int(not always), ff=beat + part + begun + (not always))


def _inputs(steps: WindowSteps, rows: int, stages: int) -> Resources:
    """For each kernel row whether it is inside the image, and its bank."""
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
    """The counts of words through which writer and reader wait for each other, and what steps add to them."""
    g, words = steps.geometry, steps.words
    needs = [
        (g.needed_rows(y + 1) if y + 1 < g.out_height else g.height + g.needed_rows(0)) - g.needed_rows(y)
        for y in range(g.out_height)
    ]
    frees = [g.released_rows(y) - (g.released_rows(y - 1) if y else 0) for y in range(g.out_height)]
    seen = []  # for each kind of step what it adds to the one count, to the other, and to that less one
    for needed, released in zip(needs, frees, strict=True):
        added = 1 + (released - 1) * words if released else 0
        seen.append((words - 1 - needed * words, added, added - 1))
        if words > 1:
            seen.append((-1, int(released > 0), int(released > 0) - 1))
    least, most = min(change[0] for change in seen), max(change[1] for change in seen)
    first = (g.needed_rows(0) - 1) * words + 1
    bound = (rows + max(g.greatest_lead, g.greatest_surplus, 0) + 2) * words
    lead = Shape.cast(range(min(least, -first, -1) - 1, bound)).width
    spare = Shape.cast(range(-1, bound)).width
    shapes = range(min(least, -1), max(words, 2)), range(most + 2), range(-1, most + 1)
    columns = set()
    for index, shape in enumerate(shapes):
        for bit in range(Shape.cast(shape).width):
            columns.add(tuple(change[index] >> bit & 1 for change in seen))
    changing = [column for column in columns if len(set(column)) > 1]
    registers = len(changing)
    luts = 3 * chain(family, spare) + 2 * spare + 3 * chain(family, lead) + lead
    return Resources(lut=luts + registers, ff=spare + lead + registers)
