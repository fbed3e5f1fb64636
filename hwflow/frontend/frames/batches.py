"""Where frames are in a model whose inputs' first axes are numbers.

Everything behind this sees frames along the first axis, of any number. Three kinds of models are brought there:

* All inputs have the same first size above 1, and every operator keeps what lies along that axis apart: a batch, whose
  members are frames (:func:`of_frames`).
* Inputs are whole tensors (time first, say, or of different first sizes), or operators work across the first axis: all
  of a model's inputs are one frame, and the model gets an axis in front of every value that is computed
  (:func:`with_frame_axis`).
* All first sizes are 1: frames already, unless an operator drops that axis or moves it; then they are whole tensors.

What becomes of each operator's axes is in :mod:`hwflow.frontend.frames.axes`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Container

import onnx

from hwflow.frontend.frames.axes import Rule
from hwflow.frontend.frames.frame_model import Build
from hwflow.onnxspec.resolving.resolved_model import OnnxNode, ResolvedModel
from hwflow.operators.onnx_operators import record_of

FRAMES = "frames"
"""The variable of a batch that has become frames."""


def first_sizes(model: onnx.ModelProto) -> dict[str, int | None]:
    """The first size of each input, None for a scalar's; empty where one of them has no number there."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    sizes: dict[str, int | None] = {}
    for info in model.graph.input:
        if info.name in initializers:
            continue
        kind = info.type.tensor_type
        if info.type.WhichOneof("value") != "tensor_type" or not kind.HasField("shape"):
            return {}
        if not kind.shape.dim:
            sizes[info.name] = None
        elif kind.shape.dim[0].HasField("dim_value"):
            sizes[info.name] = kind.shape.dim[0].dim_value
        else:
            return {}
    return sizes


def whole_inputs(model: onnx.ModelProto) -> dict[str, list[int | str]]:
    """The inputs, with their shapes, of a model without a frame axis that are no frame: scalars, and those whose first
    axis has another size than 1. None of a model where the first axis of an input has no number as its size."""
    sizes = first_sizes(model)
    return {
        info.name: [d.dim_value if d.HasField("dim_value") else d.dim_param for d in info.type.tensor_type.shape.dim]
        for info in model.graph.input
        if info.name in sizes and sizes[info.name] != 1
    }


def batch_size(resolved: ResolvedModel) -> int | None:
    """The first size that all inputs have, if it is above 1 and none of them is a vector; else None. (A vector's
    elements are no frames.)"""
    shapes = [resolved.values[name].shape for name in resolved.inputs]
    sizes = {shape[0] if len(shape) > 1 else 1 for shape in shapes}
    size = sizes.pop() if len(sizes) == 1 else 1
    return size if size > 1 else None


def keeps_frames(resolved: ResolvedModel, unknown: Container[str] = ()) -> bool:
    """Whether every operator of a model keeps what lies along the first axis apart, and that axis in front.
    ``unknown``: names of nodes that are not looked at."""
    build = Build(onnx.ModelProto(), resolved)
    return all(
        node.name in unknown
        or not build.streams(node.outputs)
        or _apart(build, node, onnx.NodeProto(input=node.inputs, output=node.outputs))
        for node in resolved.nodes
    )


def of_frames(model: onnx.ModelProto, resolved: ResolvedModel) -> onnx.ModelProto | list[OnnxNode]:
    """``model``, of which ``resolved`` is the resolution with the batch as it is, and which has all of its values, with
    a variable in the place of the batch's size; constants are folded. Else the nodes for which that cannot be done."""
    build = Build(model, resolved)
    nodes, wrong = _rewritten(build, _apart)
    variables = {d.dim_param for info in model.graph.input for d in info.type.tensor_type.shape.dim}
    name = next(n for n in (FRAMES, *(f"{FRAMES}_{i}" for i in range(len(variables)))) if n not in variables)
    return wrong or build.finished(nodes, [name], replaced=1)


def with_frame_axis(model: onnx.ModelProto, resolved: ResolvedModel) -> onnx.ModelProto | list[OnnxNode]:
    """``model``, of which ``resolved`` is the resolution with whole inputs and which has all of its values, with an
    axis of length 1 in front of all inputs and of all that is computed from them; constants are folded. Else the nodes
    that cannot be given such an axis."""
    build = Build(model, resolved)
    nodes, wrong = _rewritten(build, _raised)
    return wrong or build.finished(nodes, [1], replaced=0)


def _rewritten(
    build: Build, change: Callable[[Build, OnnxNode, onnx.NodeProto], bool]
) -> tuple[list[onnx.NodeProto], list[OnnxNode]]:
    """All nodes of the new model, and those of the old one for which ``change``, which works on a copy, fails."""
    makers = {name: node for node in build.model.graph.node for name in node.output if name}
    nodes: list[onnx.NodeProto] = []
    wrong: list[OnnxNode] = []
    for node in build.resolved.nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(makers[node.result])
        build.before, build.after = [], []
        is_call = copy.op_type != node.op_type  # of what stands for a node of another version
        if is_call or (build.streams(node.outputs) and not change(build, node, copy)):
            wrong.append(node)
        nodes += [*build.before, copy, *build.after]
    return nodes, wrong


def _apart(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Whether a node keeps what lies along the first axis apart; its copy then does it for any number of frames."""
    rule = _rule_of(node)
    shapes = [build.shape(name) for name in (*build.streams(node.inputs), *build.streams(node.outputs))]
    sizes = {shape[0] if shape else 0 for shape in shapes}
    if rule is None or len(sizes) > 1 or sizes == {0} or not build.streams(node.inputs):
        return False
    return rule.apart(build, node, copy)


def _raised(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Give a node the axis in front. Where its own first axis has length 1 and it keeps what is along that apart, it
    may do without."""
    rule, tried = _rule_of(node), onnx.NodeProto()
    tried.CopyFrom(copy)
    if rule is not None and rule.raised is not None and rule.raised(build, node, tried):
        copy.CopyFrom(tried)
        return True
    streams, results = build.streams(node.inputs), build.streams(node.outputs)
    build.before, build.after = [], []
    if any(build.shape(name)[:1] != (1,) for name in streams + results) or not _apart(build, node, copy):
        return False
    for place, name in enumerate(copy.input):
        if name in streams:
            copy.input[place] = build.reshaped(name, (-1, *build.shape(name)[1:]))
    for place, name in enumerate(copy.output):
        if name:
            build.result_in(copy, place, (-1, *build.shape(name)))
    return True


def _rule_of(node: OnnxNode) -> Rule | None:
    record = record_of(node.domain, node.op_type)
    return None if record is None else record.frames
