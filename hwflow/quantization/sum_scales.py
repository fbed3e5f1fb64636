"""Scales of what is added: the ratios between them are powers of two.

A sum of two streams works with the greatest number of which both scales are multiples. Of scales as calibration finds
them that number is tiny, so that a sum of bytes has some 25 bits, and a function behind it compares it with wide
thresholds. With ratios that are powers of two the sum has as many bits as the ranges ask for, and the function is a
small table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import onnx

from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, facts_of
from hwflow.quantization.calibration import Range, of_any_round


def added_together(
    graph: onnx.GraphProto, sources: Mapping[str, str], states: Mapping[str, str], known: Iterable[str]
) -> list[tuple[str, ...]]:
    """Return the groups of two or more quantized values of which elements are added to each other, in any round of a
    loop. ``sources``: as :class:`Placement` has them. ``states``: outputs that are inputs of later frames, by the
    inputs' names, which share their scales. ``known``: values whose ranges are known; there are no others in groups.
    """
    leaders: dict[str, str] = {}

    def leader(name: str) -> str:
        leaders.setdefault(name, name)
        while leaders[name] != name:
            leaders[name] = leaders[leaders[name]]
            name = leaders[name]
        return name

    def join(names: Sequence[str]) -> None:
        first, *others = (leader(of_any_round(name)) for name in names)
        leaders.update(dict.fromkeys(others, first))

    members = list(known)
    kept = set(members)
    for node in graph.node:
        operands = [sources[name] for name in node.input if name in sources]
        operands = [name for name in operands if name in kept]
        facts = facts_of(STANDARD_DOMAIN, node.op_type)
        if (facts.adds or facts.subtracts) and len(operands) > 1:
            join(operands)
    if leaders:
        for target, source in states.items():
            ends = [name for name in (target, sources.get(source, source)) if name in kept]
            if len(ends) > 1:
                join(ends)
    groups: dict[str, list[str]] = {}
    for name in members:
        if of_any_round(name) in leaders:
            groups.setdefault(leader(of_any_round(name)), []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def scales_of_sums(
    groups: Iterable[Sequence[str]], ranges: Mapping[str, Range], wide: Iterable[str], levels: int | Mapping[str, int]
) -> dict[str, float]:
    """Return the scales of the values of each group that are not ``wide``, of which each has ``levels`` steps (by name,
    or the same): the greatest as its range asks for, the others that one divided by powers of two. Scales of wide
    values are powers of two; in a group with one of them, so are all."""
    scales, apart = {}, set(wide)
    for group in groups:
        least = {
            name: _step(ranges[name], levels if isinstance(levels, int) else levels[name])
            for name in group if name not in apart
        }
        greatest = max(least.values(), default=0.0)
        if not greatest:
            continue
        if len(least) < len(group):
            greatest = 2.0 ** math.ceil(math.log2(greatest))
        for name, step in least.items():
            scales[name] = greatest / 2.0 ** math.floor(math.log2(greatest / step)) if step else greatest
    return scales


def _step(range_: Range, levels: int) -> float:
    low, high = min(range_[0], 0.0), max(range_[1], 0.0)
    return (high - low) / levels
