"""The arguments of a call of a dialect's operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

Inputs = Sequence[npt.NDArray[Any] | None]
Attributes = Mapping[str, Any]


def need(inputs: Inputs, index: int) -> npt.NDArray[Any]:
    """Return a required input; raise ValueError if it is absent."""
    array = inputs[index] if index < len(inputs) else None
    if array is None:
        raise ValueError(f"input {index} must be present, but it is absent")
    return array


def maybe(inputs: Inputs, index: int) -> npt.NDArray[Any] | None:
    """Return an optional input, None if it is absent."""
    return inputs[index] if index < len(inputs) else None
