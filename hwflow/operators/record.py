"""What is true of one ONNX operator, in one place: :class:`Operator`. Every list of operators is made of these
(:mod:`hwflow.operators.onnx_operators`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hwflow.frontend.context import Handler
from hwflow.frontend.frames import axes
from hwflow.frontend.views import View
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.onnxspec.shapes.dialects import MICROSOFT_DOMAIN, QONNX_DOMAINS
from hwflow.operators.float_errors import step_errors
from hwflow.operators.linear.linear_work import Shapes

STANDARD = ("",)
MICROSOFT = (MICROSOFT_DOMAIN,)
QONNX = tuple(sorted(QONNX_DOMAINS))

Value = int | str
Attributes = Mapping[str, tuple[Value, ...] | None]


@dataclass(frozen=True)
class Reason:
    """Why no hardware is made of an operator, and what to do instead. ``why`` follows "operator must be one that
    hardware can be made of, not X: it "."""

    why: str
    remedy: str


@dataclass(frozen=True)
class Operator:
    """One ONNX operator, in all its versions.

    In hardware, where there is a handler (``lower``):

    * ``honours``: the attributes that the handler honours, in every version that has them, with the values that it
      takes (None: all that there are). Any other attribute that differs from its default is refused. One without a
      meaning for inference by integers is honoured by any handler that says so.
    * ``limits``: what it takes, in words: the column of ``hwflow ops``. A refusal that changes changes it.
    * ``becomes``: operators of the quantized graph that do its work; none where it only says what numbers mean.
    * ``needs``: one of these must be among its operands, or the host computes it.
    * ``real_only``: on integer tensors it does not do what it does on reals: products wrap around, quotients, means and
      powers are cut off.
    * ``quantized``: it makes integers of reals, or works on integers. ``heavy``: hardware is made for it.
    * ``never``: the handler says why hardware cannot be made of it.

    Else ``refused`` may say why not. ``whole``: a host has it, and hardware not all of the parts of its definition,
    which does not take its place.

    Around hardware: ``work`` counts its multiply-accumulates (linear operators), ``frames`` says what becomes of its
    axes where a model's first axis is a batch, or gets one more in front, and ``error`` bounds the error of the
    reference evaluator's floats. Without a rule the operator keeps no frames apart, and has no bound.
    """

    name: str
    domains: tuple[str, ...] = STANDARD
    lower: Handler | None = None
    honours: Attributes = field(default_factory=dict)
    limits: str = ""
    becomes: tuple[str, ...] = ()
    needs: tuple[type[View], ...] = ()
    real_only: bool = False
    quantized: bool = False
    heavy: bool = False
    never: bool = False
    whole: bool = False
    refused: Reason | None = None
    work: Callable[[OnnxNode, Shapes], int] | None = None
    frames: axes.Rule | None = None
    error: step_errors.Rule | None = None


def attributes(*names: str, **values: tuple[Value, ...]) -> Attributes:
    """Of :class:`Operator`: the attributes ``names`` with all their values, others with some ``values``."""
    return {**dict.fromkeys(names), **values}
