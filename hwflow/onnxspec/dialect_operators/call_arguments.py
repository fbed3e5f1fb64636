"""What an operator of a dialect is called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

Inputs = Sequence[npt.NDArray[Any] | None]
Attributes = Mapping[str, Any]


def need(inputs: Inputs, index: int) -> npt.NDArray[Any]:
    """An input that must be there."""
    array = inputs[index] if index < len(inputs) else None
    if array is None:
        raise ValueError(f"input {index} must be there, but it is absent")
    return array


def maybe(inputs: Inputs, index: int) -> npt.NDArray[Any] | None:
    """An input that may be absent."""
    return inputs[index] if index < len(inputs) else None
