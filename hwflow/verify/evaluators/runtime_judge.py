"""The golden model's outputs against onnxruntime's, end to end, of models with operators of ai.onnx.ml: a second judge.

onnxruntime runs the model as it is. Where an output differs, the difference is explained if it is at most what both
sides may have rounded: twice the bound of :mod:`hwflow.operators.float_errors.analysis`, from the model's inputs on,
for an evaluator that adds trees in float32. A label is explained, too, where the decision for it lies within such a
bound in that frame: a tie, as far as floats can say. All other differences are unexplained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hwflow.display import cell, show
from hwflow.errors import Finding, ModelRefused, ToolError
from hwflow.loaded_model import Model
from hwflow.onnxspec.graphs.attribute_values import python_attributes
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.scopes import node_names, plain_domain, scopes
from hwflow.onnxspec.reading.numpy_tensors import native
from hwflow.onnxspec.reference.evaluation import AnyArray, RegionEvaluator
from hwflow.onnxspec.shapes.dialects import ML_DOMAIN
from hwflow.operators.float_errors.analysis import Bounds
from hwflow.quantization import sessions
from hwflow.verify.evaluators.explanation import NOT_FINITE, RegionBounds, no_bound

NAME = "onnxruntime"
_SIDES = 2  # both may have rounded
_ROUNDED_UP = 1 + 2.0**-50  # times a distance, it is no less than the exact one


@dataclass
class RuntimeRow:
    """One output of the model. Counts are over all frames; reals that are equal within their bounds are no mismatches.
    ``greatest``: the greatest difference of numbers. ``first``: the first unexplained element as text, or "".
    ``unjudged``: why nothing can be said of elements that differ, or ""."""

    name: str
    elements: int = 0
    mismatches: int = 0
    unexplained: int = 0
    greatest: float = 0.0
    first: str = ""
    unjudged: str = ""

    @property
    def finding(self) -> Finding | None:
        """Return the mismatch finding, if any."""
        if not self.unexplained:
            return None
        return Finding(
            "golden-equals-onnxruntime", f"output {show(self.name)}",
            f"must equal onnxruntime's except for its float rounding, not differ in {self.unexplained} of "
            f"{self.elements} elements; the first: {self.first}",
            "where the reference evaluator's is equal, onnxruntime deviates from the definition, else hwflow does: "
            "report the model as a defect of that",
        )


class RuntimeJudge:
    """Rows of one model, filled batch by batch. ``absent``: why there are none, or ""."""

    def __init__(self, model: Model) -> None:
        self.rows: dict[str, RuntimeRow] = {}
        self._model = model
        self._session: Any = None
        self.absent = "frames depend on those before" if model.resolved.ties else _deviation(model)
        if not self.absent:
            self._attempt(self._open)

    @staticmethod
    def of(model: Model) -> RuntimeJudge | None:
        """Return the judge of a model, None where the operators are not those that it is for."""
        nodes = (node for scope in scopes(model.proto) for node in scope.nodes)
        return RuntimeJudge(model) if any(node.domain == ML_DOMAIN for node in nodes) else None

    def add(self, start: int, arrays: Mapping[str, AnyArray], own: Mapping[str, AnyArray]) -> None:
        """Judge the outputs ``own`` of frames ``arrays``, beginning with frame ``start``."""
        if self.absent:
            return
        values = self._model.resolved.values
        feeds = {name: native(np.asarray(arrays[name]), values[name].dtype) for name in self._model.resolved.inputs}
        names = [name for name in self._model.resolved.outputs if name not in self._model.resolved.fixed]
        found: dict[str, AnyArray] = {}
        self._attempt(lambda: found.update(self._run(names, feeds)))
        for name in names if found else ():
            row = self.rows.setdefault(name, RuntimeRow(name))
            if found[name].shape != own[name].shape:
                row.unjudged = f"its shape is {[*found[name].shape]} there"
                continue
            self._compare(row, start, feeds, own[name], found[name])

    def table(self) -> dict[str, Any]:
        """Return what ``compare --format json`` has of it."""
        keys = ("name", "elements", "mismatches", "unexplained", "greatest")
        rows = self.rows.values()
        return {
            "values": [{**{key: getattr(row, key) for key in keys}, "unjudged": row.unjudged or None} for row in rows],
            "mismatches": sum(row.mismatches for row in rows),
            "unexplained": sum(row.unexplained for row in rows),
            "absent": self.absent or None,
        }

    def lines(self) -> Iterator[str]:
        """Yield it as text."""
        if self.absent:
            yield f"{NAME}: not compared: {self.absent}"
            return
        for row in self.rows.values():
            rest = f"; not all judged: {row.unjudged}" if row.unjudged else ""
            yield (
                f"{NAME}, output {cell(row.name)}: {row.mismatches} of {row.elements} elements differ, "
                f"{row.unexplained} unexplained; the greatest difference is {row.greatest:.6g}{rest}"
            )

    def _attempt(self, work: Callable[[], None]) -> None:
        """Do it, or note why it cannot be done."""
        try:
            work()
        except (ModelRefused, ToolError) as refusal:
            self.absent = "; ".join(f"{f.where}: {f.message} ({f.remedy})" for f in refusal.findings)
            self.rows.clear()

    def _open(self) -> None:
        sessions.imported(NAME)
        with sessions.refusing(self._model.proto, f"run in {NAME}"):
            self._session = sessions.open_session(sessions.plain(self._model.proto))

    def _run(self, names: list[str], feeds: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        with sessions.refusing(self._model.proto, f"run in {NAME}"):
            made = self._session.run(names, dict(feeds))
        return dict(zip(names, map(np.asarray, made), strict=True))

    def _compare(
        self, row: RuntimeRow, start: int, feeds: Mapping[str, AnyArray], own: AnyArray, found: AnyArray
    ) -> None:
        row.elements += own.size
        same = (own == found) | ((own != own) & (found != found))
        if same.all():
            return
        real, number = own.dtype.kind == "f", own.dtype.kind not in "OSU"
        region = RegionEvaluator(self._model.flat).region([row.name], frozenset(self._model.resolved.inputs))
        for bounds, part in RegionBounds(region, feeds, {}, runtime=True).all():
            error = bounds.errors.get(row.name)
            limit = np.zeros(own[part].shape) if error is None else _SIDES * error.reshape(own[part].shape)
            apart = np.where(same[part], 0.0, _distances(own[part], found[part]) if number else np.inf)
            row.greatest = max(row.greatest, float(apart.max(initial=0.0)))
            within = (apart * _ROUNDED_UP <= limit) & np.isfinite(limit)
            for place in map(tuple, np.argwhere(~same[part] & ~(within & real)).tolist()):
                row.mismatches += 1
                if within[place] or (not real and _undecided(bounds, place[0])):
                    continue
                if real and not (error is not None and np.isfinite(limit[place])):
                    row.unjudged = no_bound(bounds) if error is None else NOT_FINITE
                    continue
                row.unexplained += 1
                where = f"frame {start + part.start + place[0]}, index {list(place[1:])}"
                numbers = f"golden {_text(own[part][place])}, {NAME} {_text(found[part][place])}"
                row.first = row.first or f"{where}: {numbers}, float error at most {limit[place]:.3g}"


def _distances(a: AnyArray, b: AnyArray) -> AnyArray:
    """Return the distances of numbers; infinity where one is not finite."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return np.where(np.isfinite(apart), apart, np.inf)


def _undecided(bounds: Bounds, frame: int) -> bool:
    """Tell whether an integer or a decision on the way may be another one, given the errors."""
    return any(
        bounds.values[name].dtype.kind in "biu" and error[frame : frame + 1].any()
        for name, error in bounds.errors.items() if error is not None and np.ndim(error)
    )


def _text(value: Any) -> str:
    return show(value) if isinstance(value, str) else f"{value:.9g}"


def _deviation(model: Model) -> str:
    """Return which node of the model onnxruntime computes in another way than the operator is defined, or ""."""
    for scope in scopes(model.proto):
        for name, node in zip(node_names(scope.nodes), scope.nodes, strict=True):
            proto = node.proto
            attributes, where = python_attributes(proto, None), f"node {show(name)} ({proto.op_type})"
            for difference in facts_of(plain_domain(proto.domain), proto.op_type).differences:
                if difference.applies(attributes):
                    return f"it deviates at {where}: {difference.text}"
    return ""
