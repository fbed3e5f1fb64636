"""Shorten the multipliers of sums that are only quantized. Requires: types. Ensures: types.

An optimisation: exact multipliers are as long as the scales' mantissas. Where one requantize alone reads a
``scaled_add``, both together are a function of two small integers. Shorter multipliers and a plain shift replace them
(see :mod:`hwflow.numerics.requantizers.sum_shift`) where these give the same value for every pair, which is proved by
enumeration. Where none are found, or there are too many pairs, the exact form stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hwflow.ir.graph import Graph, Node
from hwflow.ir.node_attributes import RequantizeAttributes, ScaledAddAttributes
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.numerics.requantizers.stages import Stage, StepStage, chain
from hwflow.numerics.requantizers.sum_shift import GREATEST_SHIFT, Grid, SumShift, find_sum_shift, sums_of
from hwflow.passes.infer_types import infer_types

MOST_POINTS = 1 << 22  # among more pairs some always lie so near to a step that multipliers cannot be much shorter
SHORT = 10  # bits of multipliers that are not worth shortening


@dataclass(frozen=True)
class _Channel:
    """What makes channels of a sum equal: exact multipliers and stages."""

    multipliers: tuple[int, int]
    stages: tuple[Stage, ...]


def rescale_sums(graph: Graph) -> Graph:
    """Return a copy of the graph with short multipliers wherever they exist, and types inferred again."""
    graph = graph.copy()
    consumers = graph.consumers()
    outputs = {p.value for p in graph.outputs}
    for node in graph.nodes:
        (total,) = node.outputs if isinstance(node.attributes, ScaledAddAttributes) else (None,)
        if total is None or node.attributes.held is not None or total in outputs or len(consumers[total]) != 1:
            continue
        reader, _ = consumers[total][0]
        if isinstance(reader.attributes, RequantizeAttributes):
            _rescale(node, reader)
    return infer_types(graph)


def _rescale(add: Node[ScaledAddAttributes], requantize: Node[RequantizeAttributes]) -> None:
    """Replace both forms by ones with short multipliers, if any exist."""
    channels = _channels(add, requantize)
    if channels is None or max(abs(m) for c in channels for m in c.multipliers).bit_length() <= SHORT:
        return
    a, b = ((v.typed.interval.lo, v.typed.interval.hi) for v in add.inputs)
    distinct = list(dict.fromkeys(channels))
    if len(distinct) * (a[1] - a[0] + 1) * (b[1] - b[0] + 1) > MOST_POINTS:
        return
    grids = []
    for channel in distinct:
        lo, hi = sums_of(channel.multipliers, a, b)
        steps, multipliers = chain(channel.stages, lo, hi), channel.multipliers
        if steps.direction == -1:
            steps, multipliers = steps.mirrored(), (-multipliers[0], -multipliers[1])
        if steps.direction != 1:
            return
        grids.append(Grid(a, b, multipliers, steps))
    found = _shortest(tuple(grids))
    if found is None:
        return
    forms = dict(zip(distinct, found, strict=True))
    of = [forms[channel] for channel in channels]
    stages = {form: (StepStage(form.steps(*sums_of(form.multipliers, a, b))),) for form in found}
    if len(distinct) == 1:
        of = of[:1]
    axis = add.attributes.axis if len(requantize.attributes.stages) == 1 < len(distinct) else requantize.attributes.axis
    short = tuple(tuple(form.multipliers[k] for form in of) for k in range(2))
    add.attributes = ScaledAddAttributes(axis if len(of) > 1 else add.attributes.axis, short)
    requantize.attributes = RequantizeAttributes(
        axis, tuple(stages[form] for form in of), epsilon=requantize.attributes.epsilon
    )


def _channels(
    add: Node[ScaledAddAttributes], requantize: Node[RequantizeAttributes]
) -> list[_Channel] | None:
    """Return every channel's multipliers and stages; None where the two vary along different axes."""
    shape = add.outputs[0].typed.shape
    values, stages = add.attributes.multipliers, requantize.attributes.stages
    axes = [add.attributes.axis % len(shape)] * any(len(v) > 1 for v in values)
    axes += [requantize.attributes.axis % len(shape)] * (len(stages) > 1)
    if len(set(axes)) > 1:
        return None
    count = shape[axes[0]] if axes else 1
    columns = [tuple(column) * (count if len(column) == 1 else 1) for column in (*values, stages)]
    return [_Channel((int(x), int(y)), tuple(s)) for x, y, s in zip(*columns, strict=True)]


@lru_cache(maxsize=64)  # sums repeat in a network
def _shortest(grids: tuple[Grid, ...]) -> list[SumShift] | None:
    """Find forms of one rounding for all channels, with the smallest sufficient shift; None if there are none."""
    best: list[SumShift] | None = None
    for rounding in ShiftRounding:
        most = GREATEST_SHIFT if best is None else max(f.shift for f in best) - 1
        found: list[SumShift] = []
        for grid in grids:
            form = find_sum_shift(grid, rounding, greatest_shift=most)
            if form is None:
                break
            found.append(form)
        else:
            best = found
    return best
