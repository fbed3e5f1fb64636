"""Batching rules: how an operator changes where the model's first axis becomes a batch, or a batch axis is added.

A rule applies to nodes that read a stream, a value computed from inputs; everything else is fixed. ``independent`` is
called only where all streams that the node reads and writes have the same first size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from hwflow.frontend.frames import following
from hwflow.frontend.frames.following import Follow
from hwflow.frontend.frames.frame_model import Build, set_attribute
from hwflow.onnxspec.graphs.operator_names import IDENTITY, RESHAPE
from hwflow.onnxspec.resolving.resolved_model import OnnxNode

NodeRewrite = Callable[[Build, OnnxNode, onnx.NodeProto], bool]
"""Changes a copy of a node; returns False where that is impossible."""


@dataclass(frozen=True)
class BatchingRule:
    """``independent``: the entries along the first axis of all streams are processed independently and that axis stays
    first; the copy then takes any size of it. ``batched``: all streams get a batch axis in front; None where the
    operator cannot take one. ``follow``: where the axis of frames goes if it is another one than the first
    (:mod:`hwflow.frontend.frames.following`); None where it must be the first. ``elementwise``: operands broadcast, and
    an element depends on those at its place alone."""

    independent: NodeRewrite
    batched: NodeRewrite | None = None
    elementwise: bool = False
    follow: Follow | None = None


def elementwise(*places: int, batched_since: int = 1) -> BatchingRule:
    """Return the rule of broadcast operands: the inputs at ``places``, by default all; other inputs are scalar
    parameters. ``batched_since``: the operator set version before which no axis may come in front."""

    def operands(node: OnnxNode) -> list[int]:
        return [place for place in places or range(len(node.inputs)) if place < len(node.inputs)]

    def parameters(build: Build, node: OnnxNode) -> bool:
        taken = operands(node)
        placed = "axis" in node.attributes  # before operator set 7: where the second operand's axes begin
        return not placed and build.single(name for place, name in enumerate(node.inputs) if place not in taken)

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        rank = len(build.shape(node.result))
        for place in operands(node):
            name = node.inputs[place]
            if not build.is_fixed(name) and len(build.shape(name)) != rank:
                return False  # its frames would meet another axis
            if name and build.is_fixed(name) and len(build.shape(name)) == rank:
                first = build.first(name)
                if first is None:
                    return False
                copy.input[place] = first
        return parameters(build, node)

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        rank = len(build.shape(node.result))
        for place in operands(node):
            name = node.inputs[place]
            shape = build.shape(name) if name else ()
            if name and build.is_fixed(name) and 0 < len(shape) == rank:
                copy.input[place] = build.with_leading_axis(name)
            elif name and not build.is_fixed(name) and len(shape) < rank:  # else its frames would meet another axis
                copy.input[place] = build.reshaped(name, (-1, *(1,) * (rank - len(shape)), *shape))
        return parameters(build, node) and node.version >= batched_since

    return BatchingRule(independent, batched, elementwise=True, follow=following.broadcast)


def _first_alone(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Tell whether the first input is the only stream."""
    return not build.is_fixed(node.inputs[0]) and not build.streams(node.inputs[1:])


def _image_independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Allow image operators, unless indices of maxima count through the batch or training statistics span it."""
    allowed = len(build.streams(node.outputs)) == 1 and not node.attributes.get("training_mode", 0)
    return allowed and _first_alone(build, node, copy)


IMAGE = BatchingRule(_image_independent)
"""The first axis is a batch by definition; parameters follow the first input."""


def reshape(follow: Follow = following.reshaped) -> BatchingRule:
    """Return the rule of Reshape, Flatten, Squeeze and Unsqueeze, all written as a Reshape. ``follow``: as of the
    rule."""

    def into(build: Build, node: OnnxNode, copy: onnx.NodeProto, shape: Sequence[int]) -> bool:
        copy.op_type = RESHAPE
        del copy.attribute[:], copy.input[1:]
        copy.input.append(build.add(node.result, np.array([-1, *shape], dtype=np.int64)))
        return node.version >= 5 and not build.streams(node.inputs[1:])  # the shape was an attribute before

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        return into(build, node, copy, build.shape(node.result)[1:])

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        return into(build, node, copy, build.shape(node.result))

    return BatchingRule(independent, batched, follow=follow)


def transpose() -> BatchingRule:
    def order(build: Build, node: OnnxNode) -> tuple[int, ...]:
        return node.integers("perm") or tuple(range(len(build.shape(node.inputs[0])))[::-1])

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        return order(build, node)[:1] == (0,)

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        set_attribute(copy, "perm", [0, *(axis + 1 for axis in order(build, node))])
        return True

    return BatchingRule(independent, batched, follow=following.transposed)


def along(default: int, *, before: tuple[int, int] | None = None, added: int = 0) -> BatchingRule:
    """Return the rule of an attribute ``axis`` with ``default``, which was another one ``before`` a version (its own
    or that of its attribute ``opset``). A negative axis counts from the end, over the first input's axes and the
    ``added`` ones. All but the first input are fixed."""

    def axis_of(node: OnnxNode) -> int:
        older = before is not None and node.integer("opset", node.version) < before[0]
        return node.integer("axis", before[1] if older and before is not None else default)

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        rank = len(build.shape(node.inputs[0])) + added
        return axis_of(node) % rank > 0 and _first_alone(build, node, copy)

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        axis = axis_of(node)
        set_attribute(copy, "axis", axis + 1 if axis >= 0 else axis)
        return _first_alone(build, node, copy)

    return BatchingRule(independent, batched, follow=None if added or before else following.first_along(default))


def along_input(place: int) -> BatchingRule:
    """Return the rule of an axis given by input ``place``, a constant of one element; negative counts from the end."""

    def axis_of(build: Build, node: OnnxNode) -> int | None:
        found = _vector(build, node, place)
        return found[0] if found is not None and len(found) == 1 else None

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        axis = axis_of(build, node)
        return axis is not None and axis % len(build.shape(node.inputs[0])) > 0 and _first_alone(build, node, copy)

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        axis = axis_of(build, node)
        if axis is not None and axis >= 0:
            copy.input[place] = build.add(copy.input[place], np.array(axis + 1, dtype=np.int64))
        return axis is not None and _first_alone(build, node, copy)

    return BatchingRule(independent, batched)


def _matrices_independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    return len(build.shape(node.inputs[0])) > 2 and _first_alone(build, node, copy)


ROWS = BatchingRule(_first_alone)
"""The first axis of the only input, and of all outputs, is a batch by definition."""

NOT_INDEPENDENT = BatchingRule(lambda build, node, copy: False)
"""One frame of a stream alone does not determine the result."""

MATRICES = BatchingRule(_matrices_independent, _first_alone)
"""The last two axes form matrices; all but the first input are fixed."""


def concat(first: int, step: int) -> BatchingRule:
    """Return the rule of a concatenation of every ``step``-th input from ``first`` on; other inputs are parameters."""

    def parts(node: OnnxNode) -> range:
        return range(first, len(node.inputs), step)

    def axis_of(node: OnnxNode) -> int:
        return node.integer("axis", 1)  # required since operator set 4

    def parameters(build: Build, node: OnnxNode) -> bool:
        return build.single(name for place, name in enumerate(node.inputs) if place not in parts(node))

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        for place in parts(node):
            if build.is_fixed(node.inputs[place]):
                name = build.first(node.inputs[place])
                if name is None:
                    return False
                copy.input[place] = name
        return axis_of(node) % len(build.shape(node.result)) > 0 and parameters(build, node)

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        for place in parts(node):
            if build.is_fixed(node.inputs[place]):
                copy.input[place] = build.with_leading_axis(node.inputs[place])
        axis = axis_of(node)
        set_attribute(copy, "axis", axis + 1 if axis >= 0 else axis)
        return parameters(build, node)

    return BatchingRule(independent, batched, follow=following.joined)


def quantizer() -> BatchingRule:
    """Return the rule of quantizers: scale and zero point per tensor, per axis, or in blocks (of the tensor's rank)."""

    def scalar(build: Build, node: OnnxNode) -> bool:
        return build.shape(node.inputs[1]) in ((), (1,))

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        if scalar(build, node):
            return _first_alone(build, node, copy)
        blocked = len(build.shape(node.inputs[1])) > 1
        for place, name in enumerate(node.inputs):
            if blocked and place and name:
                first = build.first(name) if build.is_fixed(name) else None
                if first is None:
                    return False
                copy.input[place] = first
        return along(1).independent(build, node, copy)

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        if scalar(build, node):
            return _first_alone(build, node, copy)
        if len(build.shape(node.inputs[1])) > 1:
            for place, name in enumerate(node.inputs):
                if place and name:
                    if not build.is_fixed(name):
                        return False
                    copy.input[place] = build.with_leading_axis(name)
        translate = along(1).batched
        return translate is not None and translate(build, node, copy)

    return BatchingRule(independent, batched, follow=following.quantized)


def _vector(build: Build, node: OnnxNode, place: int) -> list[int] | None:
    """Return input ``place`` if it is a constant vector."""
    name = node.inputs[place] if place < len(node.inputs) else ""
    return [int(v) for v in build.constant(name).reshape(-1)] if name and build.is_constant(name) else None


def _put(build: Build, node: OnnxNode, copy: onnx.NodeProto, place: int, values: Sequence[int]) -> None:
    while len(copy.input) <= place:
        copy.input.append("")
    copy.input[place] = build.add(copy.input[place] or node.result, np.array(values, dtype=np.int64))


def _up(axes: Sequence[int]) -> list[int]:
    return [axis + 1 if axis >= 0 else axis for axis in axes]


def _optional(build: Build, node: OnnxNode, place: int, default: Sequence[int]) -> list[int] | None:
    """Return input ``place`` as by :func:`_vector`; ``default`` where it is absent."""
    there = place < len(node.inputs) and node.inputs[place] != ""
    return _vector(build, node, place) if there else list(default)


def slice_() -> BatchingRule:
    def parts(build: Build, node: OnnxNode) -> tuple[list[int], list[Sequence[int]]] | None:
        """Return the axes, and starts, ends and steps."""
        starts: Sequence[int] | None
        ends: Sequence[int] | None
        if node.version < 10:  # attributes
            starts, ends = node.integers("starts"), node.integers("ends")
        else:
            starts, ends = _vector(build, node, 1), _vector(build, node, 2)
        if starts is None or ends is None:
            return None
        axes = _optional(build, node, 3, node.integers("axes") or range(len(starts)))
        steps = _optional(build, node, 4, [1] * len(starts))
        if axes is None or steps is None or not len(axes) == len(starts) == len(ends) == len(steps):
            return None
        return axes, [starts, ends, steps]

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        found, shape = parts(build, node), build.shape(node.inputs[0])
        if found is None:
            return False
        axes, (starts, ends, steps) = found
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
            if axis % len(shape) == 0 and (start not in (0, -shape[0]) or end < shape[0] or step != 1):
                return False
        inner = [place for place, axis in enumerate(axes) if axis % len(shape)]
        if not inner:
            copy.op_type = IDENTITY
            del copy.attribute[:], copy.input[1:]
        else:
            store(build, node, copy, *([values[i] for i in inner] for values in (axes, starts, ends, steps)))
        return True

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        found = parts(build, node)
        if found is None:
            return False
        axes, (starts, ends, steps) = found
        store(build, node, copy, _up(axes), starts, ends, steps)
        return True

    def store(
        build: Build, node: OnnxNode, copy: onnx.NodeProto, axes: Sequence[int], starts: Sequence[int],
        ends: Sequence[int], steps: Sequence[int],
    ) -> None:
        if node.version < 10:
            for name, values in (("axes", axes), ("starts", starts), ("ends", ends)):
                set_attribute(copy, name, values)
        else:
            for place, values in enumerate((starts, ends, axes, steps), start=1):
                _put(build, node, copy, place, values)

    return BatchingRule(independent, batched)


def pad() -> BatchingRule:
    def parts(build: Build, node: OnnxNode) -> tuple[list[int], Sequence[int]] | None:
        """Return the axes, and the padding before and then after each."""
        pads = _vector(build, node, 1) if node.version >= 11 else node.integers("pads") or None
        axes = _optional(build, node, 3, range(len(build.shape(node.inputs[0]))))
        if pads is None or axes is None or len(pads) != 2 * len(axes) or not build.single(node.inputs[2:3]):
            return None
        return axes, pads

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        found, rank = parts(build, node), len(build.shape(node.inputs[0]))
        if found is None:
            return False
        axes, pads = found
        return not any(pads[i] or pads[i + len(axes)] for i, axis in enumerate(axes) if axis % rank == 0)

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        found = parts(build, node)
        if found is None:
            return False
        axes, pads = found
        half = len(pads) // 2
        if len(node.inputs) > 3 and node.inputs[3]:
            _put(build, node, copy, 3, _up(axes))
        elif node.version >= 11:
            _put(build, node, copy, 1, [0, *pads[:half], 0, *pads[half:]])
        else:
            set_attribute(copy, "pads", [0, *pads[:half], 0, *pads[half:]])
        return True

    return BatchingRule(independent, batched)


def tile() -> BatchingRule:
    def repeats(build: Build, node: OnnxNode) -> list[int] | None:
        return _vector(build, node, 1) if node.version >= 6 else None

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        return (repeats(build, node) or [0])[0] == 1

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        found = repeats(build, node)
        if found is not None:
            _put(build, node, copy, 1, [1, *found])
        return found is not None

    return BatchingRule(independent, batched)


def expand() -> BatchingRule:
    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        source, target = build.shape(node.inputs[0]), build.shape(node.result)
        _put(build, node, copy, 1, [1, *target[1:]])
        return len(source) == len(target) and build.is_constant(node.inputs[1])

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        _put(build, node, copy, 1, [1, *build.shape(node.result)])
        return build.is_constant(node.inputs[1])

    return BatchingRule(independent, batched)


def reduce(input_since: int = 18) -> BatchingRule:
    """Return the rule of reductions. Axes are an attribute or, since version ``input_since`` of ai.onnx, an input;
    without any, all axes are reduced, or none."""

    def axes_of(build: Build, node: OnnxNode) -> Sequence[int] | None:
        axes: Sequence[int] | None
        if len(node.inputs) > 1 and node.inputs[1] and node.domain == "":
            axes = _vector(build, node, 1)
        else:
            axes = node.integers("axes")
        if axes or axes is None or node.integer("noop_with_empty_axes"):
            return axes
        return range(len(build.shape(node.inputs[0])))

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        axes, rank = axes_of(build, node), len(build.shape(node.inputs[0]))
        return axes is not None and all(axis % rank for axis in axes) and build.single(_parameters(node))

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        axes = axes_of(build, node)
        if node.domain == "" and not build.shape(node.inputs[0]):  # nothing to reduce
            copy.op_type = IDENTITY
            del copy.attribute[:], copy.input[1:]
        elif axes and node.domain == "" and node.version >= input_since:
            _put(build, node, copy, 1, _up(axes))
        elif axes:
            set_attribute(copy, "axes", _up(axes))
        return axes is not None and build.single(_parameters(node))

    def _parameters(node: OnnxNode) -> Sequence[str]:
        return () if node.domain == "" else node.inputs[1:]

    return BatchingRule(independent, batched)


def resize() -> BatchingRule:
    """Return the rule of Resize: later versions name the axes; scales, sizes and region of interest of earlier ones
    cover all axes."""

    def parameters(build: Build, node: OnnxNode) -> list[tuple[int, str]] | None:
        """Return the nonempty inputs after the first; None where one of them is not constant."""
        there = [(place, name) for place, name in enumerate(node.inputs[1:], start=1) if name]
        if not all(build.is_constant(name) for _, name in there):
            return None
        return [(place, name) for place, name in there if build.constant(name).size]

    def independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        found, rank = parameters(build, node), len(build.shape(node.inputs[0]))
        scales = node.attributes.get("scales", (1.0,))
        assert isinstance(scales, tuple)
        if found is None or rank < 2 or scales[0] != 1:
            return False
        axes = [axis % rank for axis in node.integers("axes")] or list(range(rank))
        if 0 not in axes:
            return True
        first = axes.index(0)
        for place, name in found:
            old = build.constant(name)
            if old.size != len(axes) * (2 if kind(node, place) == "roi" else 1):
                return False
            if kind(node, place) == "scales":
                if old[first] != 1:
                    return False
            elif kind(node, place) == "sizes":
                # The policies depend on all axes that have a size.
                if node.attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
                    return False
                new = np.array(old)
                new[first] = 1
                copy.input[place] = build.add(name, new)
            elif old[first] != 0 or old[first + len(axes)] != 1:
                return False
        return build.shape(node.inputs[0])[0] == build.shape(node.result)[0]

    def kind(node: OnnxNode, place: int) -> str:
        return "scales" if node.version < 11 else ("roi", "scales", "sizes")[place - 1]

    def batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        found, rank = parameters(build, node), len(build.shape(node.inputs[0]))
        if node.version < 9:  # Upsample
            if node.version < 7:  # images only
                return False
            scales = node.attributes["scales"]
            assert isinstance(scales, tuple)
            set_attribute(copy, "scales", [1.0, *scales])
            return True
        if found is None:
            return False
        if node.version >= 18:
            set_attribute(copy, "axes", _up(node.integers("axes") or range(rank)))
            return True
        for place, name in found:
            old = build.constant(name)
            new = np.concatenate([[1], old])
            if place == 1 and node.version >= 11:  # region of interest: all starts, then all ends
                new = np.concatenate([[0], old[:rank], [1], old[rank:]])
            copy.input[place] = build.add(name, new.astype(old.dtype), build.resolved.values[name].dtype)
        return True

    return BatchingRule(independent, batched)


ELEMENTWISE = elementwise()
