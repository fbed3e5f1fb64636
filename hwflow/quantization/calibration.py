"""Calibrate: the ranges of values of a float model on frames."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx.numpy_helper import to_array

from hwflow.quantization.sessions import Arrays, open_session, plain

Range: TypeAlias = tuple[float, float]
"""The least and the greatest element met."""

_ROUND = re.compile(r"/round_\d+/")


def calibrate(
    model: onnx.ModelProto, frames: Sequence[Arrays], values: Sequence[str],
    round_constants: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Range]:
    """Return the range of each of ``values`` that is no constant of ``model`` on ``frames``; the same in all rounds of
    a loop that was unrolled. ``round_constants``: as :class:`~hwflow.quantization.placement.Placement` has them."""
    ranges: dict[str, Range] = {}

    def meet(name: str, array: npt.NDArray[Any]) -> None:
        low, high = float(array.min()), float(array.max())
        before = ranges.get(name, (low, high))
        ranges[name] = min(low, before[0]), max(high, before[1])

    for name, array in observed(model, frames, values):
        meet(name, array)
    constants = {i.name: i for i in model.graph.initializer}
    for name, source in round_constants.items():
        meet(source, to_array(constants[name]))
    return _of_all_rounds(ranges)


def observed(
    model: onnx.ModelProto, frames: Sequence[Arrays], values: Sequence[str]
) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield each of ``values`` that is no constant of ``model``, for each of ``frames``."""
    constants = {i.name for i in model.graph.initializer}
    names = [name for name in values if name not in constants]
    shown = plain(model)
    outputs = {o.name for o in shown.graph.output}
    inputs = {i.name for i in shown.graph.input}
    shown.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in names if name not in outputs and name not in inputs
    )
    made = [name for name in names if name not in inputs]
    session = open_session(shown)
    for frame in frames:
        found = dict(zip(made, session.run(made, dict(frame)) if made else [], strict=True))
        for name in names:
            yield name, np.asarray(frame[name] if name in inputs else found[name])


def of_any_round(name: str) -> str:
    """Return what the names of a value have in common in all rounds of a loop that was unrolled."""
    return _ROUND.sub("//", name)


def _of_all_rounds(ranges: Mapping[str, Range]) -> dict[str, Range]:
    """Return ranges that are the same in all rounds of a loop: the least and the greatest of all. So one body, with one
    scale for each of its values, is all that the rounds need."""
    together: dict[str, Range] = {}
    for name, (low, high) in ranges.items():
        key = of_any_round(name)
        before = together.get(key, (low, high))
        together[key] = min(low, before[0]), max(high, before[1])
    return {name: together[of_any_round(name)] for name in ranges}
