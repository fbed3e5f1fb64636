"""Decide whether a mismatch between the golden model and the evaluator is the evaluator's own rounding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.ir.graph import IntArray, Node, Value
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.functions.nearest_float import nearest_float
from hwflow.numerics.requantizers.stages import NoSteps, QuantizerStage, Stage, StepStage
from hwflow.onnxspec.reference.evaluation import AnyArray, Region
from hwflow.operators.float_errors.analysis import Bounds, analyse

Floats = npt.NDArray[np.float64]

PRECISIONS = (80, 320, 1280, 5120)
"""Bits to which an irrational quotient is computed, in turn until its level is certain."""

NOT_FINITE = "its float value is not finite"
"""The reason where the reference evaluator's own arithmetic overflows: the bound is unknown."""


class RegionBounds:
    """Float error bounds of a region, for the frames that need them. ``errors``: the feeds' error bounds;
    ``runtime``: as :func:`~hwflow.operators.float_errors.analysis.analyse` has it."""

    def __init__(
        self, region: Region, feeds: Mapping[str, AnyArray], errors: Mapping[str, Floats], *,
        runtime: bool = False,
    ) -> None:
        self._region, self._runtime = region, runtime
        self._feeds = {name: feeds[name] for name in region.feeds}
        self._errors = {name: errors[name] for name in region.feeds if name in errors}
        self._frames: dict[int, tuple[Bounds, int]] = {}

    def analyse(self, frames: list[int]) -> None:
        """Compute bounds of ``frames`` for :meth:`quotient` and :meth:`error`."""
        frames = [frame for frame in frames if frame not in self._frames]
        step = max(1, len(frames)) if self._region.framewise else 1
        for start in range(0, len(frames), step):
            part = frames[start : start + step]
            bounds = self._analyse(part)
            self._frames.update({frame: (bounds, index) for index, frame in enumerate(part)})

    def quotient(self, name: str, place: tuple[int, ...], shape: tuple[int, ...]) -> Fraction | str:
        """Return the bound on the quotient that a quantizer rounds at ``place`` of ``name`` (golden ``shape``), in
        levels, or why there is none."""
        bounds, index = self._frames[place[0]]
        return self._at(bounds, bounds.quotients.get(name), name, (index, *place[1:]), shape)

    def error(self, name: str, place: tuple[int, ...], shape: tuple[int, ...]) -> Fraction | str:
        """Return the bound on the error of ``name`` at ``place``, or why there is none."""
        bounds, index = self._frames[place[0]]
        return self._at(bounds, bounds.errors.get(name), name, (index, *place[1:]), shape)

    def all(self) -> Iterator[tuple[Bounds, slice]]:
        """Yield bounds of all frames, each with its slice of frames."""
        count = max((len(a) for a in self._feeds.values()), default=1)
        step = count if self._region.framewise else 1
        for start in range(0, count, step):
            part = slice(start, start + step)
            yield self._analyse(part), part

    def _analyse(self, part: list[int] | slice) -> Bounds:
        return analyse(
            self._region,
            {n: a[part] for n, a in self._feeds.items()},
            {n: a[part] for n, a in self._errors.items()}, runtime=self._runtime,
        )

    @staticmethod
    def _at(
        bounds: Bounds, errors: Floats | None, name: str, place: tuple[int, ...], shape: tuple[int, ...]
    ) -> Fraction | str:
        if errors is None:
            return "nothing is rounded there" if bounds.errors.get(name) is not None else no_bound(bounds)
        error = float(errors.reshape(-1, *shape[1:])[place])
        return Fraction(error) if np.isfinite(error) else NOT_FINITE


def no_bound(bounds: Bounds) -> str:
    operators = ", ".join(sorted(bounds.unbounded))
    return f"no bound is known for the float error of {operators}"


def level(stage: QuantizerStage, quotient: Fraction) -> int:
    """Return the level that a quantizer gives a quotient, before the zero point is added."""
    q = stage.quantizer
    return q(quotient * q.scale)


def possible_levels(stages: tuple[Stage, ...], integer: int) -> tuple[int, int]:
    """Return the least and greatest integer that ``stages`` can make of ``integer``: equal, unless a quotient lies
    closer to a rounding boundary than the last of :data:`PRECISIONS` can tell. Raises NoSteps where a function is
    undefined."""
    for bits in PRECISIONS:
        low = high = integer
        for stage in stages:
            ends = (_stage(stage, low, bits), _stage(stage, high, bits)) if low != high else (_stage(stage, low, bits),)
            low, high = min(e[0] for e in ends), max(e[1] for e in ends)
        if low == high:
            break
    return low, high


def _stage(stage: Stage, integer: int, bits: int) -> tuple[int, int]:
    if isinstance(stage, QuantizerStage):
        least, most = stage.enclosure(integer, bits)
        return level(stage, least), level(stage, most)
    assert isinstance(stage, StepStage)
    result = stage.function(integer)
    return result, result


def chain_of(node: Node, place: tuple[int, ...]) -> tuple[Stage, ...]:
    """Return the stages of a requantizer at ``place`` (frame first)."""
    stages: tuple[tuple[Stage, ...], ...] = node.attributes.stages
    return stages[0 if len(stages) == 1 else place[1:][node.attributes.axis]]


def unexplained(
    node: Node, place: tuple[int, ...], expected: IntArray, found: int, trace: Mapping[Value, IntArray],
    bounds: RegionBounds, name: str, per_level: Fraction | None,
) -> str | None:
    """Return why the mismatch at ``place`` of ONNX value ``name``, made by ``node``, is not the evaluator's rounding,
    or None if it is. ``found`` is the evaluator's integer; ``per_level`` is None where the ONNX quantizer rounds the
    same quotient as the node's only stage, else the size of a level in the ONNX tensor."""
    numbers = f"golden {expected[place]}, reference {found}"
    # A place, or what two sums compare as, is as sure as the reals before it.
    if not isinstance(node.attributes, RequantizeAttributes):
        bound = bounds.error(name, place, expected.shape)
        if isinstance(bound, str) or bound == 0:
            return f"{numbers}; nothing is rounded there"
        if abs(found - int(expected[place])) > bound:
            return f"{numbers}, float error at most {nearest_float(bound):.3g}"
        return None
    stages, integer = chain_of(node, place), int(trace[node.inputs[0]][place])
    first = stages[0]
    try:
        low, high = possible_levels(stages, integer)
        quotient = first.enclosure(integer) if isinstance(first, QuantizerStage) else None
    except NoSteps as reason:
        return f"{numbers}; the function must {reason}"
    if quotient is not None:
        offset = first.out_zero_point if isinstance(first, QuantizerStage) else 0
        numbers += f", exact {nearest_float(quotient[0] + offset):.9g}"
    if not low <= expected[place] <= high:
        return f"{numbers}: the golden model does not round the exact value"
    if len(stages) == 1 and isinstance(first, QuantizerStage) and quotient is not None and per_level is None:
        error = bounds.quotient(name, place, expected.shape)
        if isinstance(error, str):
            return f"{numbers}; {error}"
        error += node.attributes.epsilon
        if not level(first, quotient[0] - error) <= found <= level(first, quotient[1] + error):
            return f"{numbers}, float error at most {nearest_float(error):.3g}"
        return None
    error = bounds.error(name, place, expected.shape)
    if isinstance(error, str):
        return f"{numbers}; {error}"
    worth = Fraction(1) if per_level is None else per_level
    error += node.attributes.epsilon * worth
    if abs(found - int(expected[place])) * worth > error:
        return f"{numbers}, float error at most {nearest_float(error / worth):.3g} levels"
    return None


def differing(expected: IntArray, found: IntArray, wrong: npt.NDArray[Any] | None = None) -> list[tuple[int, ...]]:
    """Return the places where these differ, or where what was ``found`` is not an integer."""
    different = expected != found if wrong is None else (expected != found) | wrong
    return [tuple(int(i) for i in place) for place in np.argwhere(different)]
