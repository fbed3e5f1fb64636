"""The activation functions of recurrent operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hwflow.onnxspec.definitions.function_writer import LEAST_VERSION, Use, Writer
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, all_facts, facts_of
from hwflow.onnxspec.graphs.schemas import find_schema

_PARAMETERS = ("alpha", "beta")

_AFFINE, _SCALED_TANH = "Affine", "ScaledTanh"  # no operators
_DEFAULTS: Mapping[str, tuple[float, ...]] = {_AFFINE: (1.0, 0.0), _SCALED_TANH: (1.0, 1.0)}
"""Of alpha and beta."""


@dataclass(frozen=True)
class Activation:
    """One activation function. ``parameters``: alpha, and beta, of those that have them."""

    kind: str
    parameters: tuple[float, ...]

    @property
    def piecewise_linear(self) -> bool:
        """Whether it makes numbers of a common divisor of such numbers."""
        return self.kind == _AFFINE or facts_of(STANDARD_DOMAIN, self.kind).piecewise_linear

    def write(self, writer: Writer, name: str, clip: float | None = None) -> str:
        """Apply the function to a value, limited to -``clip`` to ``clip``."""
        if clip is not None:
            low, high = (writer.constant(limit, np.float32) for limit in (-clip, clip))
            name = writer.node(names.CLIP, name, low, high)
        if self.kind not in _DEFAULTS:
            attributes: dict[str, Any] = dict(zip(_PARAMETERS, self.parameters, strict=False))
            return str(writer.node(self.kind, name, **attributes))
        alpha, beta = (writer.constant(each, np.float32) for each in self.parameters)
        if self.kind == _AFFINE:
            return str(writer.node(names.ADD, writer.node(names.MUL, name, alpha), beta))
        return str(writer.node(names.MUL, writer.node(names.TANH, writer.node(names.MUL, name, beta)), alpha))


def activations(use: Use, default: Sequence[str], directions: int) -> list[tuple[Activation, ...]] | None:
    """Return the functions of each direction; None if they are not as ONNX says. Each takes the next alpha and beta if
    it has one, its default where none is left."""
    stated = use.attribute("activations", None) or [*default] * directions
    kinds = [_named(each) for each in stated]
    if len(stated) != len(default) * directions or None in kinds:
        return None
    given = [iter(use.attribute(f"activation_{name}", None) or ()) for name in _PARAMETERS]
    found = [
        Activation(kind, tuple(next(values, each) for each, values in zip(_defaults(kind), given, strict=False)))
        for kind in kinds if kind is not None
    ]
    size = len(default)
    return [tuple(found[size * number : size * (number + 1)]) for number in range(directions)]


def _named(name: str) -> str | None:
    """Return the function of a name in any case, None if there is none."""
    known = (op_type for (domain, op_type), facts in all_facts() if not domain and facts.activation)
    return next((each for each in (*known, *_DEFAULTS) if each.casefold() == name.casefold()), None)


def _defaults(kind: str) -> tuple[float, ...]:
    """Return the defaults of alpha and beta, of those that a function has: those of the operator of its name."""
    schema = find_schema(kind, LEAST_VERSION, STANDARD_DOMAIN)
    if schema is None:
        return _DEFAULTS[kind]
    return tuple(schema.attributes[name].default_value.f for name in _PARAMETERS if name in schema.attributes)
