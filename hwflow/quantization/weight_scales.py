"""Scales of weights, one for each channel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hwflow.quantization.integer_kinds import IntegerKind

Floats = npt.NDArray[np.float64]

MANY_BITS = 8
"""With so many, the scale is that of the greatest weight; with fewer, the one of least squared error."""

_SHRUNK = np.linspace(1.0, 0.4, 181)
_AT_ONCE = 1 << 22  # elements


def weight_scales(weights: Floats, kind: IntegerKind) -> Floats:
    """Return the scale of each channel, a row of ``weights``; integers go from -``kind.most`` to ``kind.most``."""
    greatest = np.abs(weights).max(axis=1, initial=0.0)
    whole = np.where(greatest > 0, greatest / kind.most, 1.0)
    whole = np.where(whole < float(np.finfo(np.float32).tiny), 1.0, whole)
    if kind.bits >= MANY_BITS or not weights.size:
        return whole
    best, least = whole.copy(), np.full(len(weights), np.inf)
    rows = max(1, _AT_ONCE // weights.shape[1])
    for begin in range(0, len(weights), rows):
        part = slice(begin, begin + rows)
        for factor in _SHRUNK:
            scales = factor * whole[part, np.newaxis]
            integers = np.clip(np.rint(weights[part] / scales), -kind.most, kind.most)
            errors = ((weights[part] - scales * integers) ** 2).sum(axis=1)
            better = errors < least[part] * (1 - 1e-9)
            best[part] = np.where(better, scales[:, 0], best[part])
            least[part] = np.where(better, errors, least[part])
    return best
