"""BitCast: the bits of integers, reinterpreted as integers of another type."""

from __future__ import annotations

from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.frames import axes
from hwflow.frontend.stream_types import COMPUTED_TYPES
from hwflow.frontend.views import Integers, Reals, View
from hwflow.ir.integer_functions import Simple
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.float_errors.step_errors import of_exact
from hwflow.operators.record import Operator, attributes


def bit_cast(state: Lowering, node: OnnxNode) -> View:
    """Lower BitCast between integer types of equal width, which wraps around, and from bool."""
    source, target = (state.model.values[name].dtype for name in (node.inputs[0], node.outputs[0]))
    for dtype in (source, target):
        if dtype not in COMPUTED_TYPES:
            raise refuse(
                node, "bit-cast-type",
                f"types must be of integers, not {dtype}: in hardware its bits are not those of an integer",
                "use Cast, or leave the node to the host, before the first or after the last quantizer",
            )
    if target == "bool" != source:
        raise refuse(
            node, "bit-cast-type",
            f"the type must be an integer one, not bool: bytes of {source} may be other than 0 and 1",
            "use Cast",
        )
    operand = integers.operand(state, node, 0)
    assert isinstance(operand, Integers), "constants are folded"
    type_ = COMPUTED_TYPES[target]
    if type_.min <= operand.low and operand.high <= type_.max:
        return operand
    return integers.combined(state, node, Simple("wrap"), [operand])


RECORDS = (
    Operator(
        "BitCast", lower=bit_cast, honours=attributes("to"), limits="between integer types, and from bool",
        becomes=("elementwise",), needs=(Integers, Reals), frames=axes.ELEMENTWISE, error=of_exact
    ),
)
