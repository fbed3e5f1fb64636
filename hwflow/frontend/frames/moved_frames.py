"""Models with a variable number of frames that move the axis of the frames away from the front and back: recurrent
networks of layout 0 behind a Transpose."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from hwflow.frontend.frames.batches import batched, independent, rewritten, rule_of, unused_variable
from hwflow.frontend.frames.following import transposed
from hwflow.frontend.frames.frame_model import Build
from hwflow.onnxspec.graphs.operator_names import RESHAPE
from hwflow.onnxspec.resolving.resolved_model import OnnxNode, ResolvedModel


def with_frames_first(model: onnx.ModelProto, resolved: ResolvedModel) -> onnx.ModelProto | None:
    """Return ``model`` with its frames along a new first axis of every value, the inputs and outputs as they are; None
    where no Transpose moves them, where an operator does not keep frames apart, or another axis of an output is that of
    the frames. ``resolved``: the model resolved for one frame."""
    build = Build(model, resolved)
    if not any(_moves_first(node) and build.streams(node.inputs) for node in resolved.nodes) or not _kept_apart(build):
        return None
    nodes, wrong = rewritten(build, batched)
    if wrong:
        return None
    ends = {*resolved.inputs, *resolved.outputs}
    inside = {name: build.fresh(name) for name in ends if not build.is_fixed(name)}
    for node in nodes:
        for names in (node.input, node.output):
            names[:] = [inside.get(name, name) for name in names]
    before = [_reshaped(build, n, n, inside[n], build.shape(n)) for n in resolved.inputs if n in inside]
    outputs = [n for n in dict.fromkeys(resolved.outputs) if n in inside and n not in resolved.inputs]
    after = [_reshaped(build, n, inside[n], n, build.shape(n)[1:]) for n in outputs]
    return build.finished([*before, *nodes, *after], [unused_variable(model)], replaced=1)


def _moves_first(node: OnnxNode) -> bool:
    """Tell whether a node is a Transpose that moves the first axis."""
    rule = rule_of(node)
    return rule is not None and rule.follow is transposed and node.integers("perm")[:1] != (0,)


def _reshaped(build: Build, base: str, name: str, result: str, shape: tuple[int, ...]) -> onnx.NodeProto:
    target = build.add(base, np.array([-1, *shape], np.int64))
    return helper.make_node(RESHAPE, [name, target], [result], name=f"{base}_as_frames")


def _kept_apart(build: Build) -> bool:
    """Tell whether every operator keeps frames apart, wherever their axis is, and outputs have it first."""
    resolved = build.resolved
    where: dict[str, int | None] = {name: 0 for name in resolved.inputs}
    for node in resolved.nodes:
        if not build.streams(node.outputs):
            continue
        axes = [where.get(name) for name in node.inputs]
        rule = rule_of(node)
        if rule is not None and rule.follow is not None:
            found = rule.follow(build, node, axes)
        else:
            copy = onnx.NodeProto(input=node.inputs, output=node.outputs)
            found = 0 if not any(axes) and independent(build, node, copy) else None
        if found is None:
            return False
        where.update((name, found) for name in node.outputs if name)
    return all(where.get(name, 0) == 0 for name in resolved.outputs)
