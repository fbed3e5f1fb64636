"""Which results of a sweep no other one is better than."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Result = Mapping[str, Any]

MORE, LESS = 1, -1

GOALS: Mapping[str, int] = {
    "frames_per_second": MORE, "lut": LESS, "dsp": LESS, "bram": LESS, "snr_db": MORE, "accuracy": MORE,
}
"""Figures that the front is made of, and what is better."""


def fronts(results: Sequence[Result], goals: Mapping[str, int] = GOALS) -> tuple[int, ...]:
    """Return the numbers of the results on the Pareto front of ``goals``: designs that meet their clock, as far as that
    is known, and than which no other one of the same quantity of figures is better in one goal and as good in all. Of
    equal ones each is on it; of one design's seeds only the one with the best clock."""
    designs: dict[tuple[Any, ...], int] = {}
    for number, result in enumerate(results):
        if result["status"] != "done" or result["figures"].get("timing_met") is False:
            continue
        point = {name: value for name, value in result["point"].items() if name != "seed"}
        key = tuple(map(str, point.values()))
        best = designs.get(key)
        if best is None or _clock(result) > _clock(results[best]):
            designs[key] = number
    scores = {number: _scores(results[number], goals) for number in designs.values()}
    better = _better_of(scores)
    return tuple(sorted(number for number in scores if not better(number)))


def _clock(result: Result) -> float:
    return float(result["figures"].get("fmax_mhz") or 0.0)


def _scores(result: Result, goals: Mapping[str, int]) -> tuple[float, ...]:
    """Return a number for each goal, more being better; what is not known is equal."""
    figures = result["figures"]
    return tuple(0.0 if figures.get(name) is None else sign * float(figures[name]) for name, sign in goals.items())


def _better_of(scores: Mapping[int, tuple[float, ...]]) -> Callable[[int], bool]:
    """Return what tells whether another one is better. Scores are compared in falling order: only one that stands
    before, and is itself on the front, can be better."""
    front: list[tuple[float, ...]] = []
    behind = set()
    for number, score in sorted(scores.items(), key=lambda item: item[1], reverse=True):
        if any(other != score and all(a >= b for a, b in zip(other, score, strict=True)) for other in front):
            behind.add(number)
        else:
            front.append(score)
    return behind.__contains__
