"""``compare --layers``: the compared values in the model's order, and the first frame and element that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hwflow.display import show
from hwflow.ir.graph import IntArray
from hwflow.onnxspec.resolving.resolved_model import ResolvedModel


@dataclass(frozen=True)
class Element:
    """A mismatching element; ``index``: in a frame of the ONNX value. ``reference``: None where the evaluator's real is
    no level of the value. ``explained``: by the evaluator's own rounding."""

    frame: int
    index: tuple[int, ...]
    golden: int | float
    reference: int | float | None
    explained: bool

    @classmethod
    def at(
        cls, place: tuple[int, ...], start: int, shape: tuple[int, ...], info: tuple[int, ...], golden: int | float,
        reference: int | float | None, explained: bool,
    ) -> Element:
        """Return the element at ``place`` (frame first, of a batch that starts with frame ``start``) in tensors whose
        frames have ``shape``; the ONNX value's have the shape ``info``, with the same elements in the same order."""
        flat = np.ravel_multi_index(place[1:], shape) if shape else 0
        index = tuple(int(i) for i in np.unravel_index(int(flat), info)) if info else ()
        return cls(start + place[0], index, golden, reference, explained)

    def table(self) -> dict[str, Any]:
        """Return the row of ``--format json``; non-finite numbers as text."""
        numbers = {"golden": self.golden, "reference": self.reference}
        finite = {k: v if v is None or np.isfinite(v) else str(v) for k, v in numbers.items()}
        return {"frame": self.frame, "index": list(self.index), **finite, "explained": self.explained}


@dataclass
class Row:
    """One value. ``elements`` and counts are over all frames; ``max_lsb`` is the greatest difference, in levels (of a
    real value in units of its scale, or, where it has none, of its error bound, rounded up). ``defects``: known defects
    of the evaluator that were worked around. ``first``: the first unexplained element as text, or "". ``failed``: why
    the evaluator has no value at all; all elements are unexplained then. ``element``: the first unexplained element,
    or, without one, the first that differs. ``least`` and ``greatest``: of the golden model's integers, None of
    reals and constants."""

    name: str
    elements: int = 0
    mismatches: int = 0
    unexplained: int = 0
    max_lsb: int = 0
    defects: set[str] = field(default_factory=set)
    first: str = ""
    failed: str = ""
    element: Element | None = None
    least: int | None = None
    greatest: int | None = None

    def saw(self, integers: IntArray) -> None:
        """Count the elements of a batch."""
        self.elements += integers.size
        if integers.size:
            low, high = int(integers.min()), int(integers.max())
            self.least = low if self.least is None else min(self.least, low)
            self.greatest = high if self.greatest is None else max(self.greatest, high)

    def note(self, element: Element) -> None:
        """Note an element that differs."""
        if self.element is None or (self.element.explained and not element.explained):
            self.element = element


@dataclass(frozen=True)
class ComparedLayer:
    """A value with the node that makes it; ``node`` and ``op`` are "" for a graph input that is an output, too."""

    row: Row
    node: str
    op: str

    def table(self) -> dict[str, Any]:
        """Return it for ``--format json``."""
        row = self.row
        return {
            "name": row.name, "node": self.node, "op": self.op, "elements": row.elements,
            "mismatches": row.mismatches, "unexplained": row.unexplained, "failed": row.failed,
            "first": None if row.element is None else row.element.table(),
        }


@dataclass(frozen=True)
class ComparedLayers:
    """The layers in the order of the model's nodes: what a layer reads comes before it."""

    layers: tuple[ComparedLayer, ...]

    @classmethod
    def of(cls, model: ResolvedModel, rows: Mapping[str, Row]) -> ComparedLayers:
        """Collect the rows of a comparison."""
        made = [
            ComparedLayer(rows[name], node.name, node.op_type)
            for node in model.nodes for name in node.outputs if name in rows
        ]
        names = {layer.row.name for layer in made}
        return cls((*(ComparedLayer(row, "", "") for name, row in rows.items() if name not in names), *made))

    @property
    def first(self) -> ComparedLayer | None:
        """The first layer with an unexplained difference, or failing that the first that differs at all."""
        wrong = [layer for layer in self.layers if layer.row.unexplained]
        differ = [layer for layer in self.layers if layer.row.mismatches]
        return next(iter((*wrong, *differ)), None)

    def table(self) -> dict[str, Any]:
        """Return what ``compare --layers --format json`` prints beside the verdict."""
        first = self.first
        return {
            "layers": [layer.table() for layer in self.layers],
            "first_difference": None if first is None else first.table(),
        }

    def lines(self) -> Iterator[str]:
        """Yield the verdict on the layers as text."""
        first = self.first
        if first is None:
            yield f"all {len(self.layers)} layers equal the reference evaluator's"
            return
        row, producer = first.row, f", node {show(first.node)} ({first.op})" if first.node else ""
        kind = "the first layer that differs" if row.unexplained else "the first layer that differs, by float rounding"
        if row.element is None:
            yield f"{kind}: value {show(row.name)}{producer}: {row.failed}"
            return
        element = row.element
        found = "no level of it" if element.reference is None else f"{element.reference:.9g}"
        yield (
            f"{kind}: value {show(row.name)}{producer}, frame {element.frame}, element {list(element.index)}: golden "
            f"{element.golden:.9g}, reference {found}"
        )
