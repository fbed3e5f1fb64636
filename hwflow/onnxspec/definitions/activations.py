"""The activation functions of recurrent operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hwflow.onnxspec.definitions.function_writer import Use, Writer
from hwflow.onnxspec.graphs import operator_names as names

_AFFINE, _SCALED_TANH = "Affine", "ScaledTanh"  # no operators

# The defaults of alpha and beta, of those that a function has: those of the operator of its name.
_DEFAULTS: Mapping[str, tuple[float, ...]] = {
    names.RELU: (),
    names.TANH: (),
    names.SIGMOID: (),
    _AFFINE: (1.0, 0.0),
    names.LEAKY_RELU: (0.01,),
    names.THRESHOLDED_RELU: (1.0,),
    _SCALED_TANH: (1.0, 1.0),
    names.HARD_SIGMOID: (0.2, 0.5),
    names.ELU: (1.0,),
    names.SOFTSIGN: (),
    names.SOFTPLUS: (),
}
_PIECEWISE_LINEAR = {names.RELU, _AFFINE, names.LEAKY_RELU, names.THRESHOLDED_RELU, names.HARD_SIGMOID}
_BY_NAME = {name.casefold(): name for name in _DEFAULTS}


@dataclass(frozen=True)
class Activation:
    """One activation function. ``parameters``: alpha, and beta, of those that have them."""

    kind: str
    parameters: tuple[float, ...]

    @property
    def piecewise_linear(self) -> bool:
        """Whether it makes numbers of a common divisor of such numbers."""
        return self.kind in _PIECEWISE_LINEAR

    def write(self, writer: Writer, name: str, clip: float | None = None) -> str:
        """Apply the function to a value, limited to -``clip`` to ``clip``."""
        if clip is not None:
            low, high = (writer.constant(limit, np.float32) for limit in (-clip, clip))
            name = writer.node(names.CLIP, name, low, high)
        if self.kind not in (_AFFINE, _SCALED_TANH):
            attributes: dict[str, Any] = dict(zip(("alpha", "beta"), self.parameters, strict=False))
            return str(writer.node(self.kind, name, **attributes))
        alpha, beta = (writer.constant(each, np.float32) for each in self.parameters)
        if self.kind == _AFFINE:
            return str(writer.node(names.ADD, writer.node(names.MUL, name, alpha), beta))
        return str(writer.node(names.MUL, writer.node(names.TANH, writer.node(names.MUL, name, beta)), alpha))


def activations(use: Use, default: Sequence[str], directions: int) -> list[tuple[Activation, ...]] | None:
    """Return the functions of each direction; None if they are not as ONNX says. Each takes the next alpha and beta if
    it has one, its default where none is left."""
    stated = use.attribute("activations", None) or [*default] * directions
    if len(stated) != len(default) * directions or not all(each.casefold() in _BY_NAME for each in stated):
        return None
    alphas, betas = (iter(use.attribute(f"activation_{name}", None) or ()) for name in ("alpha", "beta"))
    found = [_activation(_BY_NAME[each.casefold()], alphas, betas) for each in stated]
    size = len(default)
    return [tuple(found[size * number : size * (number + 1)]) for number in range(directions)]


def _activation(kind: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation:
    lists = zip(_DEFAULTS[kind], (alphas, betas), strict=False)
    return Activation(kind, tuple(next(values, default) for default, values in lists))
