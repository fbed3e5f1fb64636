"""The range of an activation that its integers stand for: all that calibration met, or less, so that steps are finer.

What lies outside saturates. The methods are those that quantizers know: ``minmax``, all; ``percentile``, all but a
hundredth of a percent; ``mse``, the range of least squared error; ``entropy``, the range whose levels tell most of
the distribution (the least Kullback-Leibler divergence). They look at a histogram.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx

from hwflow.quantization.calibration import Range, observed, of_any_round
from hwflow.quantization.sessions import Arrays

MINMAX, PERCENTILE, ENTROPY, MSE = METHODS = ("minmax", "percentile", "entropy", "mse")

OUTSIDE = 1e-4
"""Share of the elements that ``percentile`` lets saturate, on both sides together."""

BINS = 2048
_SHRUNK = np.linspace(1.0, 0.1, 37)

Floats = npt.NDArray[np.float64]


@dataclass
class Histogram:
    """How many elements lie in each of :data:`BINS` equal parts of ``range``; of those that are exactly 0, which every
    grid has, none are counted but in ``zeros``."""

    range: Range
    counts: Floats = field(default_factory=lambda: np.zeros(BINS))
    zeros: int = 0

    def add(self, values: npt.NDArray[np.floating]) -> None:
        """Count elements."""
        others = values[values != 0]
        self.zeros += values.size - others.size
        self.counts += np.histogram(others, BINS, self.range)[0]

    @property
    def middles(self) -> Floats:
        low, high = self.range
        return np.asarray(low + (np.arange(BINS) + 0.5) * ((high - low) / BINS), np.float64)


@dataclass(frozen=True)
class Ranges:
    """The ranges of activations by ``method``, from what was met: ``whole``, and ``histograms`` unless that is minmax.
    ``shared``: groups of values that have one range."""

    method: str
    whole: Mapping[str, Range]
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    shared: Sequence[Sequence[str]] = ()

    def of(self, name: str, steps: int) -> Range:
        """Return the range of a value whose integers have so many ``steps`` between them."""
        group = next((group for group in self.shared if name in group), (name,))
        found = [self._of_one(other, steps) for other in group if other in self.whole]
        return min(low for low, _ in found), max(high for _, high in found)

    def _of_one(self, name: str, steps: int) -> Range:
        histogram = self.histograms.get(of_any_round(name))
        low, high = self.whole[name]
        if histogram is None or not high > low:
            return low, high
        return clipped(histogram, self.method, steps)


def histograms(model: onnx.ModelProto, frames: Sequence[Arrays], ranges: Mapping[str, Range]) -> dict[str, Histogram]:
    """Return histograms of the values that ``ranges`` names, together in all rounds of a loop."""
    found = {of_any_round(name): Histogram(range_) for name, range_ in ranges.items() if range_[1] > range_[0]}
    for name, array in observed(model, frames, list(ranges)):
        histogram = found.get(of_any_round(name))
        if histogram is not None:
            histogram.add(array.astype(np.float64).reshape(-1))
    return found


def clipped(histogram: Histogram, method: str, steps: int) -> Range:
    """Return the range that ``method`` chooses for integers with so many ``steps``."""
    low, high = min(histogram.range[0], 0.0), max(histogram.range[1], 0.0)
    if not histogram.counts.any():
        return histogram.range
    if method == PERCENTILE:
        return _percentile(histogram)
    if method == MSE:
        lows, highs = _SHRUNK * low if low < 0 else [0.0], _SHRUNK * high if high > 0 else [0.0]
        tried = [(float(a), float(b)) for a in lows for b in highs]
        return min(tried, key=lambda ends: _squared_error(histogram, ends[0], ends[1], steps))
    limits = _SHRUNK * max(-low, high)  # of magnitudes: both ends at a time, as the measure takes longer
    tried = [(max(low, -float(limit)), min(high, float(limit))) for limit in limits]
    return min(tried, key=lambda ends: _divergence(histogram, ends[0], ends[1], steps))


def _percentile(histogram: Histogram) -> Range:
    """Cut half of :data:`OUTSIDE` on each side of 0 that has elements, or all of it where one side has none."""
    low, high = histogram.range
    edges = low + np.arange(BINS + 1) * ((high - low) / BINS)
    total = histogram.counts.sum() + histogram.zeros
    outside = total * OUTSIDE / (2 if low < 0 < high else 1)
    above, below = np.cumsum(histogram.counts[::-1])[::-1], np.cumsum(histogram.counts)
    first = int(np.searchsorted(below, outside, side="right")) if low < 0 else 0
    last = BINS - int(np.searchsorted(above[::-1], outside, side="right")) if high > 0 else BINS
    return min(float(edges[first]), max(low, 0.0)), max(float(edges[last]), min(high, 0.0))


def _squared_error(histogram: Histogram, low: float, high: float, steps: int) -> float:
    step = (high - low) / steps
    middles = histogram.middles
    rounded = np.clip(np.rint((middles - low) / step), 0, steps) * step + low
    inside = np.maximum(np.abs(middles - rounded), 0.0) ** 2
    width = (histogram.range[1] - histogram.range[0]) / BINS
    fine = (middles >= low) & (middles <= high) & (step < 2 * width)  # levels closer than bins: the error is uniform
    return float((histogram.counts * np.where(fine, step**2 / 12, inside)).sum())


def _divergence(histogram: Histogram, low: float, high: float, steps: int) -> float:
    """Return the divergence of the distribution that the levels tell from the one that was met, both over the bins."""
    counts, middles = histogram.counts, histogram.middles
    met = counts / counts.sum()
    levels = np.clip(np.rint((middles - low) / (high - low) * steps), 0, steps).astype(np.int64)
    held = np.bincount(levels, met, steps + 1)
    inside = (middles >= low) & (middles <= high) & (counts > 0)
    many = np.bincount(levels[inside], minlength=steps + 1)
    told = np.where(inside, held[levels] / np.maximum(many[levels], 1), 0.0)
    told = np.where(counts > 0, np.maximum(told, 1e-9), 0.0)
    some = counts > 0
    return float((met[some] * np.log(met[some] / (told[some] / told.sum()))).sum())
