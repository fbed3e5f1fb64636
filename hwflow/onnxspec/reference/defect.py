"""Defects of ONNX's reference evaluator (seen in onnx 1.23.2), and substitutes that avoid them.

An operator's record names the defects of the evaluator's (:class:`Mended`); a test shows each in the installed onnx.
The substitutes replace the evaluator's operator where it is wrong, so that a comparison stays meaningful, and note the
name of each defect that they avoided, so that it is reported and the model is not blamed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy.typing as npt
import onnx
from onnx.reference.op_run import OpRun

AnyArray = npt.NDArray[Any]
Attributes: TypeAlias = Mapping[str, Any]
Inputs: TypeAlias = Sequence[AnyArray | None]
Tell: TypeAlias = Callable[[Attributes, Inputs], bool]
"""Notes the defects that evaluating a node would run into; returns whether there are any."""


@dataclass(frozen=True)
class Defect:
    """``applies(attributes, inputs)``: whether evaluating a node runs into it. ``attributes`` are those of the node
    with the schema's defaults; ``inputs``: its input arrays. None: the operator is missing, not wrong; its substitute
    is the evaluator's own of a later operator set, which is not noted."""

    name: str
    text: str
    applies: Callable[[Attributes, Inputs], bool] | None


@dataclass(frozen=True)
class Mended:
    """``defects``: those of the evaluator's operator. ``substitute``: returns the operator to use, from its name, the
    version of its operator set and the callback that notes defects; None where the evaluator's own is right in that
    version."""

    defects: tuple[Defect, ...]
    substitute: Callable[[str, int, Tell], type[OpRun] | None]


def operator_class(
    name: str, version: int, bases: tuple[type, ...], run: Callable[..., tuple[AnyArray, ...]], domain: str = ""
) -> type[OpRun]:
    """Make an operator class: the evaluator finds it by its name and takes default attributes from ``op_schema``."""
    schema = onnx.defs.get_schema(name, version, domain)
    return type(name, bases, {"op_domain": domain, "op_schema": schema, "_run": run})


def exactly(
    result: Callable[[Inputs, Attributes], AnyArray], *, before: int | None = None, domain: str = ""
) -> Callable[[str, int, Tell], type[OpRun] | None]:
    """Return a substitute for :class:`Mended` that computes ``result``, in operator sets of ``domain`` before
    ``before``."""

    def substitute(name: str, version: int, tell: Tell) -> type[OpRun] | None:
        def run(self: OpRun, *inputs: AnyArray | None, **attributes: Any) -> tuple[AnyArray]:
            tell(attributes, inputs)
            return (result(inputs, attributes),)

        return operator_class(name, version, (OpRun,), run, domain) if before is None or version < before else None

    return substitute
