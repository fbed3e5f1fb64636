"""The golden model's values against ONNX's reference evaluator's.

Local: the evaluator recomputes each quantized value from the golden model's nearest integers before it, so that a
difference does not cascade. Quantized values are integer tensors and the real tensors that QONNX's quantizers make,
compared level by level (:mod:`hwflow.verify.evaluators.known_values`). A float evaluator rounds where the golden model
is exact; a mismatch is *explained* only if it is proved to be that (:mod:`hwflow.verify.evaluators.explanation`):

* the golden integer is the exact real value, rounded: with t the quotient before rounding, from the accumulator and the
  quantizer (``QuantizerStage.enclosure``: a rational number, or one enclosed closely enough to be certain of its
  level), golden = saturate(round(t) + zero point); and
* the evaluator's integer is what some real within its own error bound E of t rounds to: it lies between
  saturate(round(t - E) + zero point) and saturate(round(t + E) + zero point). For a count of thresholds and a
  truncation, the evaluator's element differs from the golden one by no more than its bound. Where t is computed from
  approximations (:mod:`hwflow.frontend.approximation_bits`), their epsilon is a part of E.

E is derived for every element, see :mod:`hwflow.operators.float_errors.analysis`. All other mismatches are unexplained:
hwflow, or the model as hwflow understands it, is wrong. Real hardware outputs are compared as reals: a difference from
the exact value of more than E is an unexplained mismatch. So are the model's own outputs that the host computes from
these, by both sides, each within its bound. Integers there (an ArgMax) must be what some reals within the bounds give.

Where the evaluator cannot compute a value, its row says why, and all its elements count as unexplained mismatches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.display import show
from hwflow.errors import ModelRefused
from hwflow.host.boundary_models import boundary_value, constant_output, model_outputs, port_inputs
from hwflow.ir.graph import Graph, IntArray, Node, Port, Value
from hwflow.loaded_model import Model
from hwflow.numerics.functions.nearest_float import nearest_float, nearest_floats
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.reading.numpy_tensors import native
from hwflow.onnxspec.reference.evaluation import AnyArray, RegionEvaluator
from hwflow.verify import golden
from hwflow.verify.compared_layers import Element, Row
from hwflow.verify.evaluators.explanation import RegionBounds, differing, no_bound, unexplained
from hwflow.verify.evaluators.known_values import Floats, Known, known_values

_MOST_LSB = 1 << 31
_TEXTS = "OSU"  # kinds of numpy's types of texts


@dataclass
class Drift:
    """End to end: the golden model's outputs against the whole model run by the evaluator. ``frames`` compared,
    ``differing`` ones (an element of a hardware output differs by at least half a unit of its scale), the greatest
    difference in such units; ``outputs``: the greatest difference in each of the model's own outputs; and the frames
    that each side classifies correctly, with labels and one output. ``failed``: why there is no result."""

    frames: int = 0
    differing: int = 0
    max_lsb: int = 0
    outputs: dict[str, float] = field(default_factory=dict)
    right: int | None = None
    reference_right: int | None = None
    failed: str = ""


class Comparer:
    """Rows and drift of one model, filled batch by batch. ``outputs``: the model's own of the latest batch, as the
    golden model and the host have them; None where these cannot be computed."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.graph: Graph = model.quantized
        self.evaluator = RegionEvaluator(model.flat)
        self.producers = self.graph.producers()
        self.values = known_values(self.graph, model.resolved)
        self.known = frozenset((*self.values, *model.resolved.inputs))
        self.rows: dict[str, Row] = {}
        self.drift = Drift()
        self.outputs: dict[str, AnyArray] | None = None
        self._state = golden.State(self.graph)
        self._left = {
            tie.target: native(np.stack([tie.initial] * tie.frames), model.resolved.values[tie.target].dtype)
            for tie in model.resolved.ties
        }

    def add(self, start: int, arrays: Mapping[str, AnyArray], labels: npt.NDArray[Any] | None) -> None:
        """Compare frames ``arrays``, beginning with frame ``start``."""
        trace = golden.trace(self.graph, port_inputs(self.model, arrays), self._state)
        feeds: dict[str, AnyArray] = {
            name: native(np.asarray(array), self.model.resolved.values[name].dtype) for name, array in arrays.items()
        }
        errors: dict[str, Floats] = {}
        for name, known in self.values.items():
            feeds[name], error = known.feed(trace[known.value])
            if error is not None:
                errors[name] = error
        batch = _Batch(start, trace, feeds, errors)
        for known in self.values.values():
            node = self.producers.get(known.value)
            if node is not None:
                self._guard(known.name, trace[known.value].size, lambda k=known, n=node: self._level(batch, k, n))
        for port in self.graph.outputs:
            if port.name in self.values and self.values[port.name].value is port.value:
                continue
            compare = self._real_output if self._is_real(port.name) else self._renamed
            self._guard(port.name, trace[port.value].size, lambda c=compare, p=port: c(batch, p))
        ports = {port.name for port in self.graph.outputs}
        for name in self.model.resolved.outputs:
            if name in self.model.resolved.fixed:
                self._guard(name, 0, lambda n=name: self._constant_output(batch, n))
            elif name not in ports and name not in self.values:
                size = int(np.prod(self.model.resolved.values[name].shape[1:], dtype=np.int64)) * batch.frames
                self._guard(name, size, lambda n=name: self._host_output(batch, n))
        self._drift(arrays, labels, batch)

    def _is_real(self, name: str) -> bool:
        return "float" in self.model.resolved.values[name].dtype

    def _guard(self, name: str, size: int, compare: Any) -> None:
        """Compare one value; count it unexplained if the evaluator cannot compute it."""
        row = self.rows.setdefault(name, Row(name))
        before = row.elements
        try:
            compare()
        except ModelRefused as refusal:
            row.elements = before + size
            row.mismatches += size
            row.unexplained += size
            row.max_lsb = _MOST_LSB
            row.failed = row.failed or "; ".join(finding.message for finding in refusal.findings)
            row.first = row.first or row.failed

    def _level(self, batch: _Batch, known: Known, node: Node) -> None:
        """Compare a quantized value, level by level."""
        name, row = known.name, self.rows[known.name]
        region = self.evaluator.region([name], self.known)
        expected = batch.trace[known.value]
        found, wrong = known.levels(region.run(batch.feeds)[name])
        row.defects |= region.defects
        row.saw(expected)
        places = differing(expected, found, wrong)
        if not places:
            return
        row.mismatches += len(places)
        row.max_lsb = max(row.max_lsb, int(np.abs(expected - found).max(initial=0, where=~wrong)))
        bounds = RegionBounds(region, batch.feeds, batch.errors)
        bounds.analyse(sorted({place[0] for place in places}))
        remade = any(name in n.output and facts_of(n.domain, n.op_type).remade for n in region.nodes)
        worth = known.level_size() if remade else None
        for place in places:
            if wrong[place]:
                row.max_lsb = _MOST_LSB
                reason: str | None = f"golden {expected[place]}, but the reference's value is not a level"
            else:
                reason = unexplained(
                    node, place, expected, int(found[place]), batch.trace, bounds, name,
                    None if worth is None else Fraction(float(worth[place[1:]])),
                )
            if reason is not None:
                row.unexplained += 1
                row.first = row.first or f"{batch.where(place)}: {reason}"
            reference = None if wrong[place] else int(found[place])
            self._note(row, batch, place, expected.shape, int(expected[place]), reference, reason is None)

    def _renamed(self, batch: _Batch, port: Port) -> None:
        """Compare exactly an output's integer tensor that other integers represent, or another name of one."""
        row = self.rows[port.name]
        region = self.evaluator.region([port.name], self.known)
        integers = batch.trace[port.value]
        expected = boundary_value(self.model, port, integers).astype(np.int64).reshape(integers.shape)
        found = region.run(batch.feeds)[port.name].astype(np.int64).reshape(integers.shape)
        row.defects |= region.defects
        places = differing(expected, found)
        row.saw(expected)
        row.mismatches += len(places)
        row.max_lsb = max(row.max_lsb, int(np.abs(expected - found).max(initial=0)))
        row.unexplained += len(places)
        for place in places[:1]:
            row.first = row.first or f"{batch.where(place)}: golden {expected[place]}, reference {found[place]}"
            self._note(row, batch, place, expected.shape, int(expected[place]), int(found[place]))

    def _real_output(self, batch: _Batch, port: Port) -> None:
        """Compare a real tensor at an output: the evaluator's must lie within its bound of scale * (integer - zero
        point)."""
        region = self.evaluator.region([port.name], self.known)
        integers = batch.trace[port.value]
        row = self.rows[port.name]
        row.elements += integers.size
        for values, part in RegionBounds(region, batch.feeds, batch.errors).all():
            row.defects |= region.defects
            found = np.asarray(values.values[port.name], dtype=np.float64).reshape(-1, *integers.shape[1:])
            error = values.errors[port.name]
            scale, zero_point = (_per_element(port, v, integers.shape[1:]) for v in (port.scale, port.zero_point))
            for place in _beyond(found, integers[part], port, error):
                exact = scale[place[1:]] * (int(integers[part][place]) - zero_point[place[1:]])
                value = float(found[place])
                unit = abs(scale[place[1:]])
                lsb = ceil(abs(Fraction(value) - exact) / unit) if np.isfinite(value) and unit else _MOST_LSB
                reason = "the reference is not finite" if error is not None else no_bound(values)
                if error is not None and np.isfinite(value):
                    bound = float(error.reshape(found.shape)[place])
                    if np.isfinite(bound) and abs(Fraction(value) - exact) <= Fraction(bound):
                        continue
                    reason = f"float error at most {bound:.3g}"
                row.mismatches += 1
                row.unexplained += 1
                row.max_lsb = max(row.max_lsb, lsb)
                place = (part.start + place[0], *place[1:])
                self._note(row, batch, place, integers.shape, nearest_float(exact), value)
                where = batch.where(place)
                row.first = row.first or f"{where}: golden {nearest_float(exact):.9g}, reference {value:.9g}, {reason}"

    def _constant_output(self, batch: _Batch, name: str) -> None:
        """Compare exactly an output that is a constant."""
        row = self.rows[name]
        expected = constant_output(self.model, name, 1)[0]
        found = np.asarray(self.evaluator.region([name], frozenset()).run({})[name]).reshape(expected.shape)
        row.elements += expected.size * batch.frames
        same = (expected == found) | ((expected != expected) & (found != found))
        row.mismatches += int((~same).sum()) * batch.frames
        row.unexplained += int((~same).sum()) * batch.frames
        if not same.all():
            place = tuple(int(i) for i in np.argwhere(~same)[0])
            row.first = row.first or f"{batch.where((0, *place))}: golden {expected[place]}, reference {found[place]}"

    def _host_output(self, batch: _Batch, name: str) -> None:
        """Compare an output that the host computes: from the hardware outputs, and from the golden integers alone."""
        row = self.rows[name]
        ports = {port.name: port for port in self.graph.outputs}
        feeds, errors = dict(batch.feeds), dict(batch.errors)
        for port in ports.values():
            feeds[port.name] = boundary_value(self.model, port, batch.trace[port.value])
            if self._is_real(port.name):
                errors[port.name] = _rounding(feeds[port.name])
        hardware = self.evaluator.region([name], frozenset((*ports, *self.model.resolved.inputs)))
        reference = self.evaluator.region([name], self.known)
        golden_value, found = (
            np.asarray(region.run(given)[name]) for region, given in ((hardware, feeds), (reference, batch.feeds))
        )
        row.defects |= hardware.defects | reference.defects
        row.elements += found.size
        same = (golden_value == found) | ((golden_value != golden_value) & (found != found))
        places = [tuple(int(i) for i in place) for place in np.argwhere(~same)]
        if not places:
            return
        if found.dtype.kind in _TEXTS:
            row.mismatches += len(places)
            row.unexplained += len(places)
            row.max_lsb = _MOST_LSB
            a, b = golden_value[places[0]], found[places[0]]
            row.first = row.first or f"{batch.where(places[0])}: golden {show(a)}, reference {show(b)}"
            return
        frames = sorted({place[0] for place in places})
        sides = RegionBounds(hardware, feeds, errors), RegionBounds(reference, batch.feeds, batch.errors)
        for side in sides:
            side.analyse(frames)
        real = found.dtype.kind == "f"
        for place in places:
            limits = [side.error(name, place, found.shape) for side in sides]
            a, b = golden_value[place], found[place]
            reason = next((limit for limit in limits if isinstance(limit, str)), None)
            bound = sum((limit for limit in limits if isinstance(limit, Fraction)), Fraction(0))
            distance = abs(Fraction(float(a)) - Fraction(float(b))) if np.isfinite([a, b]).all() else None
            within = reason is None and distance is not None and distance <= bound
            if within and real:
                continue  # equal, as far as floats can say
            row.mismatches += 1
            lsb = _MOST_LSB
            if distance is not None:
                lsb = ceil(distance) if not real else ceil(distance / bound) if bound else _MOST_LSB
            row.max_lsb = max(row.max_lsb, min(lsb, _MOST_LSB))
            self._note(row, batch, place, found.shape, a.item(), b.item(), within)
            if not within:
                row.unexplained += 1
                reason = reason or f"float error at most {nearest_float(bound):.3g}"
                row.first = row.first or f"{batch.where(place)}: golden {a:.9g}, reference {b:.9g}, {reason}"

    def _note(
        self, row: Row, batch: _Batch, place: tuple[int, ...], shape: tuple[int, ...], golden_value: int | float,
        found: int | float | None, explained: bool = False,
    ) -> None:
        """Note in the row an element that differs, at ``place`` in tensors of ``shape``, frames first."""
        info = self.model.resolved.values[row.name].shape[1:]
        row.note(Element.at(place, batch.start, shape[1:], info, golden_value, found, explained))

    def _drift(self, arrays: Mapping[str, AnyArray], labels: npt.NDArray[Any] | None, batch: _Batch) -> None:
        drift = self.drift
        ports = self.graph.outputs
        outputs = [name for name in self.model.resolved.outputs if name not in self.model.resolved.fixed]
        names = list(dict.fromkeys((*(port.name for port in ports), *outputs)))
        feeds = {name: batch.feeds[name] for name in arrays}
        count = batch.frames
        drift.frames += count
        self.outputs = None
        try:
            whole = self._whole(names, feeds, count)
            integers = {port.name: batch.trace[port.value] for port in ports}
            self.outputs = own = model_outputs(self.model, integers, arrays)
        except ModelRefused as refusal:
            drift.failed = drift.failed or "; ".join(finding.message for finding in refusal.findings)
            return
        different = np.zeros(count, dtype=bool)
        for port in ports:
            known = self.values.get(port.name)
            expected = batch.trace[port.value]
            if known is not None and known.value is port.value:
                levels, wrong = known.levels(np.asarray(whole[port.name]))
                distance = np.where(wrong, np.inf, np.abs(levels - expected))
            else:
                scale, zero_point = (
                    nearest_floats(_per_element(port, v, expected.shape[1:])) for v in (port.scale, port.zero_point)
                )
                found = np.asarray(whole[port.name]).astype(np.float64).reshape(expected.shape)
                nearest = boundary_value(self.model, port, expected).astype(np.float64).reshape(expected.shape)
                with np.errstate(all="ignore"):
                    distance = np.rint(np.abs((found - scale * (expected - zero_point)) / scale))
                distance = np.where(nearest == found, 0, distance)  # a level may be finer than the tensor's type
            lsb = np.nan_to_num(distance, nan=np.inf).reshape(count, -1)
            different |= lsb.any(axis=1)
            drift.max_lsb = max(drift.max_lsb, int(min(lsb.max(initial=0), _MOST_LSB)))
        drift.differing += int(different.sum())
        for name in outputs:
            if own[name].dtype.kind in _TEXTS:
                drift.outputs[name] = max(drift.outputs.get(name, 0.0), float((own[name] != whole[name]).any()))
                continue
            with np.errstate(all="ignore"):
                apart = np.abs(own[name].astype(np.float64) - np.asarray(whole[name]).astype(np.float64))
            greatest = float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))
            drift.outputs[name] = max(drift.outputs.get(name, 0.0), greatest)
        if labels is not None and len(outputs) == 1:
            (name,) = outputs
            drift.right = (drift.right or 0) + _right(own[name], labels)
            drift.reference_right = (drift.reference_right or 0) + _right(np.asarray(whole[name]), labels)


    def _whole(self, names: list[str], feeds: Mapping[str, AnyArray], frames: int) -> dict[str, AnyArray]:
        """Run the whole model, frames that leave state to others one after the other."""
        ties = self.model.resolved.ties
        if not ties:
            return self.evaluator.run(names, feeds)
        parts: list[dict[str, AnyArray]] = []
        together = min(tie.frames for tie in ties)
        for first in range(0, frames, together):
            some = {name: array[first : first + together] for name, array in feeds.items()}
            held = {tie.target: self._left[tie.target] for tie in ties}
            count = min(together, frames - first)
            some |= {name: array[:count] for name, array in held.items()}
            made = self.evaluator.run([*dict.fromkeys((*names, *(tie.source for tie in ties)))], some)
            for tie in ties:
                self._left[tie.target] = np.concatenate([held[tie.target][count:], np.asarray(made[tie.source])])
            parts.append(made)
        return {name: np.concatenate([part[name] for part in parts]) for name in names}


@dataclass(frozen=True)
class _Batch:
    """Frames that are compared at once: the golden values, the same as ONNX tensors, and their rounding errors."""

    start: int
    trace: Mapping[Value, IntArray]
    feeds: Mapping[str, AnyArray]
    errors: Mapping[str, Floats]

    @property
    def frames(self) -> int:
        return len(next(iter(self.trace.values())))

    def where(self, place: tuple[int, ...]) -> str:
        return f"frame {self.start + place[0]}, index {list(place[1:])}"


def _right(output: AnyArray, labels: npt.NDArray[Any]) -> int:
    """Count the frames that an output classifies correctly: by its greatest element, or by itself if it is a class."""
    flat = output.reshape(len(output), -1)
    classes = flat.argmax(axis=1) if flat.shape[1] > 1 else flat[:, 0]
    return int((classes == labels).sum())


def _rounding(array: AnyArray) -> Floats:
    """Bound the difference between a tensor and the reals that were rounded to it."""
    kind = array.dtype if array.dtype.kind == "f" else np.dtype(np.float16)  # bfloat16 is coarser than that
    unit = float(np.finfo(kind).eps) * (1.0 if array.dtype.kind == "f" else 16.0)
    result: Floats = unit / 2 * (1 + 2.0**-20) * np.abs(array.astype(np.float64)) + float(np.finfo(kind).tiny)
    return result


def _per_element(port: Port, values: tuple[Fraction, ...], shape: tuple[int, ...]) -> npt.NDArray[np.object_]:
    """Return the exact scale or zero point of each element of a port's frame."""
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
    """Return the places where ``found`` may exceed the bound; all others are certainly within it (by float64)."""
    if error is None:
        return iter([tuple(int(i) for i in p) for p in np.ndindex(found.shape)])
    scale, zero_point = (
        nearest_floats(_per_element(port, v, integers.shape[1:])) for v in (port.scale, port.zero_point)
    )
    exact = scale * (integers - zero_point)
    # conversions, difference and product round in float64: at most 6 roundings of the magnitudes involved
    slack = 2.0**-50 * (np.abs(scale) * (np.abs(integers) + np.abs(zero_point)) + np.abs(found))
    limit = np.where(np.isfinite(error), error, -1.0).reshape(found.shape)
    sure = np.abs(found - exact) + slack <= limit
    return iter([tuple(int(i) for i in place) for place in np.argwhere(~sure)])
