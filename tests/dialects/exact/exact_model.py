"""ONNX models in exact rational arithmetic: a second implementation of what they mean, from the specifications.

It shares nothing with hwflow. Reals are Fractions (or :class:`~tests.dialects.exact.reals.Real` where they are
irrational) and integers are ints, in numpy object arrays; loops are plain. It rounds where the graph rounds and nowhere
else. Dialects: QDQ, QOperator, com.microsoft's QLinear operators, QONNX.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import helper, numpy_helper

from tests.dialects.exact.exact_call import Array, Call, Integers, Operator, objects
from tests.dialects.exact.exact_functions import FUNCTIONS
from tests.dialects.exact.exact_qonnx import QONNX
from tests.dialects.exact.exact_quantizers import MICROSOFT, QUANTIZERS

OPERATORS: dict[str, dict[str, Operator]] = {
    "": {**FUNCTIONS, **QUANTIZERS},
    "com.microsoft": MICROSOFT,
    "qonnx.custom_op.general": QONNX,
    "onnx.brevitas": QONNX,
    "finn.custom_op.general": QONNX,
}


def evaluate(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Every value of the graph for one frame (frame axis first, of length 1), by name."""
    graph = model.graph
    values = {t.name: objects(numpy_helper.to_array(t)) for t in graph.initializer}
    kinds = {t.name: t.data_type for t in graph.initializer}
    values |= {name: objects(array) for name, array in feeds.items()}
    kinds |= {i.name: i.type.tensor_type.elem_type for i in graph.input}
    (opset,) = (o.version for o in model.opset_import if o.domain == "")
    for node in graph.node:
        call = Call(
            {a.name: helper.get_attribute_value(a) for a in node.attribute},
            [values[name] if name else None for name in node.input],
            [kinds.get(name) for name in node.input],
            opset,
        )
        result = OPERATORS[node.domain][node.op_type](call)
        name = node.output[0]
        if isinstance(result, Integers):
            values[name], kinds[name] = result.array, result.kind
        else:
            values[name] = result
            if call.kinds and call.kinds[0] is not None:
                kinds[name] = call.kinds[0]
    return values
