"""ReverseSequence as a function: Gather in the order that a length gives, selected by the length where it is known at
run time only."""

from __future__ import annotations

import numpy as np
import onnx

from hwflow.onnxspec.definitions.function_writer import Use, writer_for
from hwflow.onnxspec.graphs import operator_names as names

_MOST_LENGTHS = 256  # each is a selection of the whole tensor


def reverse_sequence(use: Use) -> onnx.FunctionProto | None:
    """Return the function of one use (:data:`~hwflow.onnxspec.definitions.function_writer.Definition`)."""
    x, lengths = use.input(0), use.constants[1]
    batch, time = use.attribute("batch_axis", 1), use.attribute("time_axis", 0)
    if x is None or len(x.shape) < 2 or {batch, time} != {0, 1}:
        return None
    steps, size = x.shape[time], x.shape[batch]
    writer = writer_for(use)

    def reversed_by(name: str, length: int) -> str:
        order = [*range(length - 1, -1, -1), *range(length, steps)]
        return str(writer.node(names.GATHER, name, writer.constant(order, np.int64), axis=time))

    if lengths is not None:
        known = [int(length) for length in lengths.reshape(-1)]
        if not all(0 <= length <= steps for length in known):
            return None
        if len(set(known)) == 1:
            result = reversed_by("X", known[0])
        else:
            parts = writer.split("X", batch, [1] * size)
            result = writer.node(names.CONCAT, *map(reversed_by, parts, known), axis=batch)
    elif steps > _MOST_LENGTHS:
        return None
    else:
        shape = [1] * len(x.shape)
        shape[batch] = -1
        given, result = writer.reshape("lengths", shape), "X"
        for length in range(2, steps + 1):
            found = writer.node(names.EQUAL, given, writer.constant(length, np.int64))
            result = writer.node(names.WHERE, found, reversed_by("X", length), result)
    writer.named(result, "Y")
    return writer.function(use, ["X", "lengths"], ["Y"])
