"""Find the frames of a model whose inputs have fixed first sizes.

Everything downstream sees any number of frames along the first axis. Three kinds of models are transformed to that:

* All inputs have the same first size above 1, and every operator processes the entries of that axis independently: a
  batch, whose members are frames (:func:`of_frames`).
* Inputs are whole tensors (time first, say, or of different first sizes), or operators work across the first axis: the
  model's inputs together are one frame, and every computed value gets an axis in front (:func:`with_frame_axis`).
* All first sizes are 1: frames already, unless an operator drops or moves that axis; then they are whole tensors.

The rules of the operators are in :mod:`hwflow.frontend.frames.axes`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

import onnx

from hwflow.frontend.frames.axes import BatchingRule
from hwflow.frontend.frames.frame_model import Build
from hwflow.onnxspec.resolving.resolved_model import OnnxNode, ResolvedModel
from hwflow.operators.onnx_operators import record_of

FRAMES = "frames"
"""The dimension variable of a batch that became frames."""


def first_sizes(model: onnx.ModelProto, dimensions: Mapping[str, int] | None = None) -> dict[str, int | None]:
    """Return the first size of each input, None for a scalar; an empty dict where one of them is not fixed, nor in
    ``dimensions``."""
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
        elif dimensions and kind.shape.dim[0].dim_param in dimensions:
            sizes[info.name] = dimensions[kind.shape.dim[0].dim_param]
        else:
            return {}
    return sizes


def whole_inputs(model: onnx.ModelProto) -> dict[str, list[int | str]]:
    """Return the inputs, with their shapes, that are no frame of a model without a frame axis: scalars, and those whose
    first size is not 1; none where an input's first size is not fixed."""
    sizes = first_sizes(model)
    return {
        info.name: [d.dim_value if d.HasField("dim_value") else d.dim_param for d in info.type.tensor_type.shape.dim]
        for info in model.graph.input
        if info.name in sizes and sizes[info.name] != 1
    }


def batch_size(resolved: ResolvedModel) -> int | None:
    """Return the common first size of all inputs if it is above 1 and none is a vector, else None. (The elements of a
    vector are no frames.)"""
    shapes = [resolved.values[name].shape for name in resolved.inputs]
    sizes = {shape[0] if len(shape) > 1 else 1 for shape in shapes}
    size = sizes.pop() if len(sizes) == 1 else 1
    return size if size > 1 else None


def keeps_frames(resolved: ResolvedModel, unknown: Container[str] = ()) -> bool:
    """Decide whether every operator of a model processes the entries of the first axis independently and keeps it
    first. ``unknown``: names of nodes to skip."""
    build = Build(onnx.ModelProto(), resolved)
    return all(
        node.name in unknown
        or not build.streams(node.outputs)
        or independent(build, node, onnx.NodeProto(input=node.inputs, output=node.outputs))
        for node in resolved.nodes
    )


def of_frames(model: onnx.ModelProto, resolved: ResolvedModel) -> onnx.ModelProto | list[OnnxNode]:
    """Return ``model`` with a variable as its batch size and constants folded, or the nodes that prevent that.
    ``resolved``: the model resolved with its batch, with all of its values."""
    build = Build(model, resolved)
    nodes, wrong = rewritten(build, independent)
    return wrong or build.finished(nodes, [unused_variable(model)], replaced=1)


def unused_variable(model: onnx.ModelProto) -> str:
    """Return a dimension variable for the number of frames."""
    variables = {d.dim_param for info in model.graph.input for d in info.type.tensor_type.shape.dim}
    return next(n for n in (FRAMES, *(f"{FRAMES}_{i}" for i in range(len(variables)))) if n not in variables)


def with_frame_axis(model: onnx.ModelProto, resolved: ResolvedModel) -> onnx.ModelProto | list[OnnxNode]:
    """Return ``model`` with an axis of length 1 in front of all inputs and everything computed from them, and constants
    folded, or the nodes that cannot take such an axis. ``resolved``: the model resolved with whole inputs, with all of
    its values."""
    build = Build(model, resolved)
    nodes, wrong = rewritten(build, batched)
    return wrong or build.finished(nodes, [1], replaced=0)


def rewritten(
    build: Build, change: Callable[[Build, OnnxNode, onnx.NodeProto], bool]
) -> tuple[list[onnx.NodeProto], list[OnnxNode]]:
    """Apply ``change`` to a copy of every node; return the new model's nodes, and the old nodes for which it fails."""
    producers = {name: node for node in build.model.graph.node for name in node.output if name}
    nodes: list[onnx.NodeProto] = []
    wrong: list[OnnxNode] = []
    for node in build.resolved.nodes:
        there = producers[node.result]
        copy = build.node(there)
        build.before, build.after = [], []
        if build.streams(node.outputs) and not change(build, node, copy):
            wrong.append(node)
        nodes += [*build.before, build.again(there, copy), *build.after]
    return nodes, wrong


def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Tell whether a node processes the entries of the first axis independently; its copy then takes any number."""
    rule = rule_of(node)
    shapes = [build.shape(name) for name in (*build.streams(node.inputs), *build.streams(node.outputs))]
    sizes = {shape[0] if shape else 0 for shape in shapes}
    if rule is None or len(sizes) > 1 or sizes == {0} or not build.streams(node.inputs):
        return False
    return rule.independent(build, node, copy)


def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Add the axis in front of a node's streams, unless their first axis has length 1 already and stays independent."""
    rule, tried = rule_of(node), onnx.NodeProto()
    tried.CopyFrom(copy)
    if rule is not None and rule.batched is not None and rule.batched(build, node, tried):
        copy.CopyFrom(tried)
        return True
    streams, results = build.streams(node.inputs), build.streams(node.outputs)
    build.before, build.after = [], []
    if any(build.shape(name)[:1] != (1,) for name in streams + results) or not independent(build, node, copy):
        return False
    for place, name in enumerate(copy.input):
        if name in streams:
            copy.input[place] = build.reshaped(name, (-1, *build.shape(name)[1:]))
    for place, name in enumerate(copy.output):
        if name:
            build.result_in(copy, place, (-1, *build.shape(name)))
    return True


def rule_of(node: OnnxNode) -> BatchingRule | None:
    """Return the batching rule of a node's operator."""
    record = record_of(node.domain, node.op_type)
    return None if record is None else record.frames
