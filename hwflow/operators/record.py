"""The record of one ONNX operator: :class:`Operator`. All tables of operators are derived from records
(:mod:`hwflow.operators.onnx_operators`), including the facts that :mod:`hwflow.onnxspec` needs
(:mod:`hwflow.onnxspec.graphs.operator_facts`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hwflow.frontend.context import Handler
from hwflow.frontend.frames import axes
from hwflow.frontend.views import View
from hwflow.onnxspec.graphs.operator_facts import OperatorFacts
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.onnxspec.shapes.dialects import MICROSOFT_DOMAIN, ML_DOMAIN, QONNX_DOMAINS
from hwflow.operators.float_errors import step_errors
from hwflow.operators.linear.linear_work import Shapes

MICROSOFT = (MICROSOFT_DOMAIN,)
ML = (ML_DOMAIN,)
QONNX = tuple(sorted(QONNX_DOMAINS))

Value = int | str
Attributes = Mapping[str, tuple[Value, ...] | None]


@dataclass(frozen=True)
class Reason:
    """Why an operator is not supported, and what to do instead. ``why`` follows "operator must be one that hwflow
    supports, not X: it "."""

    why: str
    remedy: str


@dataclass(frozen=True)
class Operator(OperatorFacts):
    """One ONNX operator in all its versions. :class:`OperatorFacts` holds what :mod:`hwflow.onnxspec` needs.

    In hardware, if it has a handler (``lower``):

    * ``honours``: the attributes that the handler honours, in every version that has them, with the accepted values
      (None: all). Any other attribute that differs from its default is refused. A handler may honour an attribute that
      does not affect integer inference.
    * ``limits``: what it accepts, in words: the column of ``hwflow ops``. Keep it in step with the refusals.
    * ``becomes``: operators of the quantized graph that do its work; none where it only changes what numbers mean.
    * ``needs``: one of its operands must be one of these, else the host computes it.
    * ``real_only``: it differs on integer tensors from reals: products wrap around, quotients, means and powers are
      truncated.
    * ``quantized``: it quantizes reals or works on integers. ``heavy``: hardware exists to run it.
    * ``never``: the handler always refuses it, with the reason.
    * ``masks``: it takes elements of its first input that a mask has made minus infinity as it takes any others.
    * ``approximates``: a quantizer behind it must say how precisely it is computed; else the host computes it.

    Otherwise ``defined`` may say what its definition may hold, which hardware then runs, and ``partly`` what is wrong
    with a node whose definition hardware cannot run; or ``refused`` says why there is none. ``whole``: it is not
    replaced by its definition, which contains unsupported operators, because a host can run it.

    ``indexed``: by input, the size n of an axis that its elements index, which are not defined beyond -n to n - 1.

    Around hardware: ``work`` counts its multiply-accumulates (linear operators), ``frames`` transforms its axes where a
    model's first axis is a batch or a batch axis is added, and ``error`` bounds the error of the reference evaluator's
    floats. Without these the operator does not process frames independently, and has no bound.
    """

    lower: Handler | None = None
    honours: Attributes = field(default_factory=dict)
    limits: str = ""
    becomes: tuple[str, ...] = ()
    needs: tuple[type[View], ...] = ()
    real_only: bool = False
    quantized: bool = False
    heavy: bool = False
    never: bool = False
    masks: bool = False
    approximates: bool = False
    whole: bool = False
    defined: str = ""
    partly: Reason | None = None
    refused: Reason | None = None
    indexed: Callable[[OnnxNode, Shapes], Mapping[int, int]] | None = None
    work: Callable[[OnnxNode, Shapes], int] | None = None
    frames: axes.BatchingRule | None = None
    error: step_errors.ErrorRule | None = None

    @property
    def elementwise(self) -> bool:
        """Whether ``frames`` is the rule of elementwise operators."""
        return self.frames is not None and self.frames.elementwise


def attributes(*names: str, **values: tuple[Value, ...]) -> Attributes:
    """Return the ``honours`` of :class:`Operator`: ``names`` with all values, others with some ``values``."""
    return {**dict.fromkeys(names), **values}
