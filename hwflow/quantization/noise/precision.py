"""Choose the activations that get 16 bits: as few as keep the outputs' signal to noise ratio.

Noise of roundings adds up, nearly: each value's share at the outputs is measured by quantizing it alone. The greatest
shares are taken away until the rest is below the limit, and the model that comes of it is measured as a whole.
A value of a loop's body is one choice for all rounds of the loop, so that one body can stand for them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import onnx

from hwflow.quantization.calibration import of_any_round
from hwflow.quantization.sessions import Arrays, State, run_frames

_FRAMES_OF_SEQUENCES = 64
_FRAMES_OF_SHARES = 8  # enough for which values matter; the whole is measured on all frames

Noise = npt.NDArray[np.float64]
"""For each float output, the power of the difference over that of the float model's values."""


class ModelQuantizer(Protocol):
    """Makes a model whose activations ``wide`` have 16 bits; or one with only the values ``only`` quantized."""

    def __call__(self, wide: Collection[str], only: Collection[str] | None = None) -> onnx.ModelProto: ...


@dataclass(frozen=True)
class FidelityTarget:
    """The float ``model``'s results on ``frames``, which a quantized one shall keep with ``snr`` dB or more; or with
    ``accuracy`` so that the share of frames whose class is that of ``labels`` is no more than so many percentage points
    lower (-0.5: half a point).

    With ``states`` the frames are a sequence, in which noise comes back.
    """

    model: onnx.ModelProto
    frames: Sequence[Arrays]
    outputs: Sequence[str]
    snr: float
    states: Sequence[State] = ()
    accuracy: float | None = None
    labels: npt.NDArray[Any] | None = None

    def keeps(self, model: onnx.ModelProto) -> bool:
        """Measure whether ``model`` keeps what is asked for."""
        if self.accuracy is None:
            return not _exceeds(self.noise(model), self)
        assert self.labels is not None, "a target of accuracy has labels"
        found = run_frames(model, self.frames, [*self._accuracies], self.states)
        lowest = {name: share + self.accuracy / 100 - 1e-9 for name, share in self._accuracies.items()}
        return all((accuracy_of(found[name], self.labels) or 0.0) >= least for name, least in lowest.items())

    @cached_property
    def _accuracies(self) -> dict[str, float]:
        assert self.labels is not None, "a target of accuracy has labels"
        found = run_frames(self.model, self.frames, self.outputs, self.states)
        shares = {name: accuracy_of(values, self.labels) for name, values in found.items()}
        return {name: share for name, share in shares.items() if share is not None}

    def noise_alone(self, model: onnx.ModelProto) -> float:
        """Measure the noise of ``model`` at the outputs together, on a few frames."""
        noise = self.noise(model, _FRAMES_OF_SEQUENCES if self.states else _FRAMES_OF_SHARES)
        return float(noise[np.isfinite(noise)].sum())

    @property
    def limit(self) -> float:
        """The most noise that keeps the ratio."""
        return float(10 ** (-self.snr / 10))

    @cached_property
    def _reference(self) -> dict[str, npt.NDArray[Any]]:
        results = run_frames(self.model, self.frames, self.outputs, self.states)
        return {name: values.astype(np.float64) for name, values in results.items() if values.dtype.kind == "f"}

    def noise(self, model: onnx.ModelProto, frames: int | None = None) -> Noise:
        """Measure the noise of ``model`` on all frames, or on the first ones."""
        results = run_frames(model, self.frames[:frames], list(self._reference), self.states)
        signals = {name: values[:frames] for name, values in self._reference.items()}
        powers = ((float((v**2).sum()), float(((v - results[name]) ** 2).sum())) for name, v in signals.items())
        return np.array([noise / signal if signal else (np.inf if noise else 0.0) for signal, noise in powers])


def accuracy_of(values: npt.NDArray[Any], labels: npt.NDArray[Any]) -> float | None:
    """Return the share of frames whose class is the label: the index of the greatest element, or the only element of
    integers; None where an output, [frames, elements], has no classes."""
    if values.shape[1] > 1:
        classes = values.argmax(axis=1)
    elif values.shape[1] == 1 and values.dtype.kind in "iu":
        classes = values[:, 0]
    else:
        return None
    return float((classes == labels[: len(classes)]).mean())


def choose_wide(values: Sequence[str], quantized: ModelQuantizer, target: FidelityTarget) -> tuple[str, ...]:
    """Return which of ``values`` get 16 bits, in their order: none where the target is met without, all where it cannot
    be met. A value of a loop's body gets them in all rounds or in none."""
    narrow = target.noise(quantized(()))
    if not _exceeds(narrow, target):
        return ()
    least = target.noise(quantized(values))
    if _exceeds(least, target):
        return tuple(values)
    frames = None if target.states else _FRAMES_OF_SHARES  # of a sequence, the first few are the least noisy ones
    groups: dict[str, list[str]] = {}
    for name in values:
        groups.setdefault(of_any_round(name), []).append(name)
    shares = {key: target.noise(quantized((), group), frames) for key, group in groups.items()}
    total = sum(shares.values(), np.zeros(len(narrow)))
    scales = (narrow - least) / np.where(total > 0, total, 1.0)  # so that all of them add up to what was measured
    shares = {key: share * scales for key, share in shares.items()}
    estimate, chosen, left = narrow, list[str](), list(groups)

    def wide(keys: Collection[str]) -> tuple[str, ...]:
        return tuple(name for name in values if of_any_round(name) in keys)

    def widen_next() -> None:
        nonlocal estimate
        worst = int(np.argmax(estimate))
        key = max(left, key=lambda k: float(shares[k][worst]))
        left.remove(key)
        chosen.append(key)
        estimate = estimate - shares[key]

    while left and _exceeds(estimate, target):
        widen_next()
    while left and _exceeds(target.noise(quantized(wide(chosen))), target):
        widen_next()
    for key in reversed(tuple(chosen)):  # shares are estimates: some have been chosen for nothing
        others = [k for k in chosen if k != key]
        if others and not _exceeds(target.noise(quantized(wide(others))), target):
            chosen = others
    return wide(chosen)


def _exceeds(noise: Noise, target: FidelityTarget) -> bool:
    return bool((noise > target.limit).any())
