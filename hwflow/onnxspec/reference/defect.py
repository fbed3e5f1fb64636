"""A defect of ONNX's reference evaluator, an entry of :data:`hwflow.onnxspec.reference.evaluator_defects.DEFECTS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

AnyArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Defect:
    """``applies(attributes, inputs)``: whether evaluating a node of ``operator`` runs into it. ``attributes`` are those
    of the node with the schema's defaults; ``inputs`` the arrays it is evaluated on. None: an operator that is missing,
    not wrong; its substitute is the evaluator's own of a later operator set and is not noted."""

    name: str
    operator: str
    text: str
    applies: Callable[[Mapping[str, Any], Sequence[AnyArray | None]], bool] | None
