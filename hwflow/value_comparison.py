"""The golden model's values against ONNX's reference evaluator's.

Local: each quantized value is recomputed by the evaluator from the golden model's own integers, the nearest before it,
so that a difference does not cascade. A float evaluator rounds where the golden model is exact; a mismatch is
*explained* only if it proves to be that:

* the golden integer is the exact real value, rounded: with t the quotient before rounding, a rational number from the
  accumulator and the quantizer (``QuantizerStage.unrounded``), golden = saturate(round(t) + zero point); and
* the evaluator's integer is what some real within its own error bound E of t rounds to: it lies between
  saturate(round(t - E) + zero point) and saturate(round(t + E) + zero point).

E is derived for every element, see :mod:`hwflow.onnxspec.float_error`. All other mismatches are unexplained: hwflow, or
the model as hwflow understands it, is wrong. Float graph outputs are compared as reals: a difference from the exact
value of more than E is a mismatch, and unexplained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow import golden
from hwflow.compiler import Model
from hwflow.frontend.context import INTEGER_TYPES
from hwflow.host import port_inputs
from hwflow.ir.graph import Graph, IntArray, Node, Port, Value
from hwflow.numerics.rounding import round_half_even
from hwflow.numerics.stages import QuantizerStage
from hwflow.onnxspec.float_error import Bounds, analyse
from hwflow.onnxspec.reference import AnyArray, Region, RegionEvaluator
from hwflow.onnxspec.tensors import native


@dataclass
class Row:
    """One value. ``elements`` and counts are over all frames; ``max_lsb`` is the greatest difference, in levels (of a
    float output in units of its scale, rounded up). ``defects``: known defects of the evaluator that were gone around.
    ``first``: the first unexplained element, in words; "" if there is none."""

    name: str
    elements: int = 0
    mismatches: int = 0
    unexplained: int = 0
    max_lsb: int = 0
    defects: set[str] = field(default_factory=set)
    first: str = ""


@dataclass
class Drift:
    """End to end: the golden model's outputs against the whole model run by the evaluator. ``frames`` compared,
    ``differing`` ones (an output element differs by at least half a unit of its scale), the greatest difference in such
    units, and how many frames each classifies as labelled, where there are labels and one output."""

    frames: int = 0
    differing: int = 0
    max_lsb: int = 0
    right: int | None = None
    reference_right: int | None = None


class Comparer:
    """Rows and drift of one model, filled batch by batch."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.graph: Graph = model.quantized
        self.evaluator = RegionEvaluator(model.flat)
        self.producers = self.graph.producers()
        # the last value that stands for an ONNX integer tensor is that tensor
        self.integers: dict[str, Value] = {v.origin: v for v in self.graph.values() if self._is_integer(v.origin)}
        self.known = frozenset(self.integers)
        self.rows: dict[str, Row] = {}
        self.drift = Drift()

    def _is_integer(self, name: str) -> bool:
        info = self.model.resolved.values.get(name)
        return info is not None and info.dtype in INTEGER_TYPES

    def add(self, start: int, arrays: Mapping[str, AnyArray], labels: npt.NDArray[Any] | None) -> None:
        """Compare frames ``arrays``, the first of them being frame ``start``."""
        trace = golden.trace(self.graph, port_inputs(self.model, arrays))
        feeds = {name: self._onnx(name, trace[value]) for name, value in self.integers.items()}
        for name, value in self.integers.items():
            node = self.producers.get(value)
            if node is not None:
                self._integer_value(start, name, node, trace, feeds)
        for port in self.graph.outputs:
            if port.name in self.integers:
                continue
            if self._is_integer(port.name):  # another name of an integer value
                self._renamed(start, port, trace, feeds)
            else:
                self._float_output(start, port, trace, feeds)
        self._drift(arrays, labels, trace)

    def _onnx(self, name: str, array: IntArray) -> AnyArray:
        """Golden integers as the evaluator's tensor ``name``."""
        info = self.model.resolved.values[name]
        return native(array.reshape(len(array), *info.shape[1:]), info.dtype)

    def _integer_value(
        self, start: int, name: str, node: Node, trace: Mapping[Value, IntArray], feeds: Mapping[str, AnyArray]
    ) -> None:
        region = self.evaluator.region([name], self.known)
        reference = region.run(feeds)[name].astype(np.int64)
        row = self.rows.setdefault(name, Row(name))
        row.defects |= region.defects
        expected = trace[node.outputs[0]]
        found = reference.reshape(expected.shape)
        places = _count(row, expected, found)
        bounds = _Bounds(region, feeds)
        bounds.analyse(sorted({place[0] for place in places}))
        for place in places:
            reason = self._unexplained(node, place, expected, found, trace, bounds, name)
            if reason is not None:
                row.unexplained += 1
                row.first = row.first or f"frame {start + place[0]}, index {list(place[1:])}: {reason}"

    def _renamed(
        self, start: int, port: Port, trace: Mapping[Value, IntArray], feeds: Mapping[str, AnyArray]
    ) -> None:
        region = self.evaluator.region([port.name], self.known)
        row = self.rows.setdefault(port.name, Row(port.name))
        expected = trace[port.value]
        found = region.run(feeds)[port.name].astype(np.int64).reshape(expected.shape)
        row.defects |= region.defects
        places = _count(row, expected, found)
        row.unexplained += len(places)
        for place in places[:1]:
            where = f"frame {start + place[0]}, index {list(place[1:])}"
            row.first = row.first or f"{where}: golden {expected[place]}, reference {found[place]}"

    def _unexplained(
        self, node: Node, place: tuple[int, ...], expected: IntArray, found: IntArray, trace: Mapping[Value, IntArray],
        bounds: _Bounds, name: str,
    ) -> str | None:
        """Why the mismatch at ``place`` is not the evaluator's rounding; None if it is."""
        numbers = f"golden {expected[place]}, reference {found[place]}"
        stages = node.attributes.get("stages", ((),))
        chain: tuple[QuantizerStage, ...] = stages[0 if len(stages) == 1 else place[1:][node.attributes["axis"]]]
        if node.op != "requantize" or len(chain) != 1:
            return f"{numbers}; nothing is rounded there"
        (stage,) = chain
        exact = stage.unrounded(int(trace[node.inputs[0]][place]))
        numbers += f", exact {float(exact) + stage.out_zero_point:.9g}"
        if _level(stage, exact) != expected[place]:
            return f"{numbers}: the golden model does not round the exact value"
        error = bounds.quotient(name, place, expected.shape)
        if isinstance(error, str):
            return f"{numbers}; {error}"
        if not _level(stage, exact - error) <= found[place] <= _level(stage, exact + error):
            return f"{numbers}, float error at most {float(error):.3g}"
        return None

    def _float_output(
        self, start: int, port: Port, trace: Mapping[Value, IntArray], feeds: Mapping[str, AnyArray]
    ) -> None:
        region = self.evaluator.region([port.name], self.known)
        integers = trace[port.value]
        row = self.rows.setdefault(port.name, Row(port.name))
        row.elements += integers.size
        for values, part in _Bounds(region, feeds).all():
            row.defects |= region.defects
            found = np.asarray(values.values[port.name], dtype=np.float64).reshape(-1, *integers.shape[1:])
            error = values.errors[port.name]
            scale, zero_point = (_per_element(port, v, integers.shape[1:]) for v in (port.scale, port.zero_point))
            for place in _beyond(found, integers[part], port, error):
                exact = scale[place[1:]] * (int(integers[part][place]) - zero_point[place[1:]])
                value = float(found[place])
                lsb = ceil(abs(Fraction(value) - exact) / scale[place[1:]]) if np.isfinite(value) else 1 << 31
                if error is not None and np.isfinite(value):
                    bound = float(error.reshape(found.shape)[place])
                    if abs(Fraction(value) - exact) <= Fraction(bound):
                        continue
                    reason = f"float error at most {bound:.3g}"
                else:
                    reason = _no_bound(values)
                row.mismatches += 1
                row.unexplained += 1
                row.max_lsb = max(row.max_lsb, lsb)
                where = f"frame {start + part.start + place[0]}, index {list(place[1:])}"
                row.first = row.first or f"{where}: golden {float(exact):.9g}, reference {value:.9g}, {reason}"

    def _drift(
        self, arrays: Mapping[str, AnyArray], labels: npt.NDArray[Any] | None, trace: Mapping[Value, IntArray]
    ) -> None:
        drift = self.drift
        ports = self.graph.outputs
        names = [port.value.origin if port.value.origin in self.integers else port.name for port in ports]
        feeds = {name: native(array, self.model.resolved.values[name].dtype) for name, array in arrays.items()}
        whole = self.evaluator.run(list(dict.fromkeys(names)), feeds)
        count = len(next(iter(arrays.values())))
        differing = np.zeros(count, dtype=bool)
        scores = []
        for port, name in zip(ports, names, strict=True):
            integers = trace[port.value]
            scale, zero_point = (
                _per_element(port, v, integers.shape[1:]).astype(np.float64) for v in (port.scale, port.zero_point)
            )
            real = scale * (integers - zero_point)
            found = np.asarray(whole[name]).astype(np.float64).reshape(integers.shape)
            reference = scale * (found - zero_point) if name in self.integers else found
            with np.errstate(invalid="ignore"):
                lsb = np.nan_to_num(np.rint(np.abs(reference - real) / scale), nan=np.inf).reshape(count, -1)
            differing |= lsb.any(axis=1)
            drift.max_lsb = max(drift.max_lsb, int(min(lsb.max(initial=0), 1 << 31)))
            scores.append((real.reshape(count, -1), reference.reshape(count, -1)))
        drift.frames += count
        drift.differing += int(differing.sum())
        if labels is not None and len(scores) == 1:
            right, reference_right = (int((s.argmax(axis=1) == labels).sum()) for s in scores[0])
            drift.right = (drift.right or 0) + right
            drift.reference_right = (drift.reference_right or 0) + reference_right


class _Bounds:
    """Float error bounds of a region, of the frames that need them."""

    def __init__(self, region: Region, feeds: Mapping[str, AnyArray]) -> None:
        self._region = region
        self._feeds = {name: feeds[name] for name in region.feeds}
        self._frames: dict[int, tuple[Bounds, int]] = {}

    def analyse(self, frames: list[int]) -> None:
        """Have bounds of ``frames`` ready for :meth:`quotient`."""
        step = max(1, len(frames)) if self._region.framewise else 1
        for start in range(0, len(frames), step):
            part = frames[start : start + step]
            bounds = analyse(self._region, {n: a[part] for n, a in self._feeds.items()})
            self._frames.update({frame: (bounds, index) for index, frame in enumerate(part)})

    def quotient(self, name: str, place: tuple[int, ...], shape: tuple[int, ...]) -> Fraction | str:
        """The bound on the quotient that QuantizeLinear rounds at ``place`` of ``name``, or why there is none."""
        bounds, index = self._frames[place[0]]
        errors = bounds.quotients.get(name)
        if errors is None:
            return "nothing is rounded there" if bounds.errors.get(name) is not None else _no_bound(bounds)
        error = float(errors.reshape(-1, *shape[1:])[(index, *place[1:])])
        return Fraction(error) if np.isfinite(error) else "its float value is not finite"

    def all(self) -> Iterator[tuple[Bounds, slice]]:
        """Bounds of all frames, and which frames they are of."""
        count = max((len(a) for a in self._feeds.values()), default=1)
        step = count if self._region.framewise else 1
        for start in range(0, count, step):
            part = slice(start, start + step)
            yield analyse(self._region, {n: a[part] for n, a in self._feeds.items()}), part


def _no_bound(bounds: Bounds) -> str:
    operators = ", ".join(sorted(bounds.unbounded))
    return f"no bound is known for the float error of {operators}"


def _count(row: Row, expected: IntArray, found: IntArray) -> list[tuple[int, ...]]:
    """Count elements and mismatches; the places of the latter."""
    difference = np.abs(expected - found)
    places = [tuple(int(i) for i in place) for place in np.argwhere(difference)]
    row.elements += expected.size
    row.mismatches += len(places)
    row.max_lsb = max(row.max_lsb, int(difference.max(initial=0)))
    return places


def _level(stage: QuantizerStage, quotient: Fraction) -> int:
    """What QuantizeLinear makes of a quotient."""
    return max(stage.low, min(stage.high, round_half_even(quotient) + stage.out_zero_point))


def _per_element(port: Port, values: tuple[Fraction, ...], shape: tuple[int, ...]) -> npt.NDArray[np.object_]:
    """Scale or zero point of each element of a frame of a port, exactly."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    if len(values) > 1:
        array = array.reshape([-1 if axis == port.axis else 1 for axis in range(len(shape))])
    else:
        array = array.reshape((1,) * len(shape))
    return np.broadcast_to(array, shape)


def _beyond(
    found: npt.NDArray[np.float64], integers: IntArray, port: Port, error: npt.NDArray[np.float64] | None
) -> Iterator[tuple[int, ...]]:
    """Places where ``found`` may lie beyond the bound; those left out lie within it for sure (decided in float64)."""
    if error is None:
        return iter([tuple(int(i) for i in p) for p in np.ndindex(found.shape)])
    scale, zero_point = (
        _per_element(port, v, integers.shape[1:]).astype(np.float64) for v in (port.scale, port.zero_point)
    )
    exact = scale * (integers - zero_point)
    # conversions, difference and product round in float64: at most 6 roundings of the magnitudes involved
    slack = 2.0**-50 * (scale * (np.abs(integers) + np.abs(zero_point)) + np.abs(found))
    sure = np.abs(found - exact) + slack <= error.reshape(found.shape)
    return iter([tuple(int(i) for i in place) for place in np.argwhere(~sure)])
