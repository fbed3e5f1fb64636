"""Several frames of a model as one: what a loop's round waits for is then the round before of its own frame, while
other frames keep the cores busy.

This is the interleaving of independent computations in one pipeline (C-slow retiming: Leiserson, Saxe, "Retiming
synchronous circuitry", Algorithmica 6, 1991). Here it needs no hardware of its own: each round has as many rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.display import show
from hwflow.errors import UsageError
from hwflow.onnxspec import ModelProto

OPTION = "option --interleave"


def interleaved(proto: ModelProto, dimensions: Mapping[str, int], count: int) -> ModelProto:
    """Return a copy of a model in which the dimension variable that counts frames is ``count``. ``dimensions`` binds
    other variables.

    Raises :class:`UsageError` unless exactly one is left in the inputs.
    """
    initializers = {tensor.name for tensor in proto.graph.initializer}
    found = dict.fromkeys(
        dim.dim_param
        for info in proto.graph.input if info.name not in initializers
        for dim in info.type.tensor_type.shape.dim if dim.dim_param and dim.dim_param not in dimensions
    )
    if len(found) != 1:
        raise UsageError.of(
            "interleave-frames", OPTION,
            "the model must have one dimension variable in its inputs, which counts frames, not "
            + (", ".join(map(show, found)) or "none"),
            "bind the other ones (option --dim)" if found else "export the model with a batch of any size",
        )
    (variable,) = found
    made = ModelProto()
    made.CopyFrom(proto)
    for info in (*made.graph.input, *made.graph.output, *made.graph.value_info):
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param == variable:
                dim.dim_value = count
    return made
