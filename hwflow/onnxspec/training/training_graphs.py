"""The graph that a training step evaluates."""

from __future__ import annotations

import onnx


def combined(main: onnx.GraphProto, algorithm: onnx.GraphProto) -> onnx.GraphProto:
    """Return the main graph followed by the algorithm graph, list by list (comments of TrainingInfoProto in
    onnx.proto).

    Outputs of both appear once. Neither argument is changed.
    """
    whole = onnx.GraphProto()
    whole.CopyFrom(main)
    whole.MergeFrom(algorithm)  # appends lists
    whole.name, whole.doc_string = main.name, main.doc_string
    outputs: dict[str, onnx.ValueInfoProto] = {}
    for output in (*main.output, *algorithm.output):
        outputs.setdefault(output.name, output)
    if len(outputs) < len(whole.output):
        del whole.output[:]
        whole.output.extend(outputs.values())
    return whole
