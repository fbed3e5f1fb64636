"""IsInf and IsNaN: false everywhere, since reals in hardware are finite numbers."""

from __future__ import annotations

import numpy as np

from hwflow.frontend.context import Lowering, reals
from hwflow.frontend.frames import axes
from hwflow.frontend.stream_types import COMPUTED_TYPES
from hwflow.frontend.views import Integers, Reals, View
from hwflow.ir.integer_functions import Simple
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.lattice import plain
from hwflow.operators.float_errors.step_errors import Errors, Step
from hwflow.operators.record import Operator, attributes


def never(state: Lowering, node: OnnxNode) -> View:
    """Lower to a bool tensor of zeros. Functions in front have values everywhere, or the node is refused."""
    view = plain(state, node, reals(state, node, 0))
    stream = Integers(view.value, view.shape, 0, 0)
    return integers.step(state, node, Simple("and"), [stream, 0], COMPUTED_TYPES["bool"])


def _error(step: Step) -> Errors:
    """Return zero: a number near another finite one is finite."""
    return np.zeros(step.output.shape)


RECORDS = tuple(
    Operator(
        name, lower=never, honours=attributes(*honours), limits="of reals: false everywhere", becomes=("elementwise",),
        needs=(Integers, Reals), frames=axes.ELEMENTWISE, error=_error, tells_nan=tells
    )
    for name, honours, tells in (("IsInf", ("detect_negative", "detect_positive"), False), ("IsNaN", (), True))
)
