"""Resize and Upsample: nearest moves elements, linear and cubic are exact weighted sums, axis by axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import (
    Lowering,
    Refusal,
    constant,
    exact_constant,
    finite,
    given,
    made,
    reals,
    refuse,
)
from hwflow.frontend.views import Integers, Reals, View, as_array, as_reals, fractions
from hwflow.ir.node_attributes import InterpolateAttributes
from hwflow.onnxspec.resolving.resolved_model import Attribute, OnnxNode
from hwflow.operators.elementwise.lattice import plain
from hwflow.operators.moves import moves
from hwflow.operators.moves.resampling import (
    CROP,
    CUBIC,
    HALF,
    LINEAR,
    MAX_DIVISOR_BITS,
    NEAREST,
    ROUNDINGS,
    WHOLE,
    AxisResize,
    Interpolation,
    Windows,
    transformations,
    windows,
)
from hwflow.operators.quantizers.quantizers import Quantization, requantize


def resize(state: Lowering, node: OnnxNode) -> View:
    """Lower Resize of every operator set."""
    if node.version < 11:
        return _resized(state, node, _axes(state, node, None, 1, None))
    roi, scales, sizes = (index if given(node, index) else None for index in (1, 2, 3))
    return _resized(state, node, _axes(state, node, roi, scales, sizes))


def upsample(state: Lowering, node: OnnxNode) -> View:
    """Lower Upsample: as Resize 10, but no axis shrinks."""
    if node.version < 9:
        shape = state.model.values[node.inputs[0]].shape
        values = node.attributes["scales"] if node.version >= 7 else _image_scales(node)
        assert isinstance(values, tuple)
        found = _by_scales(shape, range(len(shape)), [Fraction(v) for v in values if isinstance(v, int | float)])
    else:
        found = _axes(state, node, None, 1, None)
    small = [float(line.scale) for line in found if line.scale < 1]
    if small:
        raise refuse(
            node, "upsample-scale", f"scales must be at least 1, not {small[0]:.9g}", "use Resize to shrink an axis"
        )
    return _resized(state, node, found)


def _image_scales(node: OnnxNode) -> tuple[Attribute, ...]:
    """Return the scales of all axes of an image from the attributes of Upsample 1."""
    return 1, 1, node.attributes["height_scale"], node.attributes["width_scale"]


def _axes(
    state: Lowering, node: OnnxNode, roi: int | None, scales: int | None, sizes: int | None
) -> list[AxisResize]:
    """Read each axis from the inputs at these places; an empty tensor counts as absent."""
    shape = state.model.values[node.inputs[0]].shape
    axes = [int(a) % len(shape) for a in node.integers("axes")] or list(range(len(shape)))
    if sizes is not None and constant(state, node, sizes, "sizes").array.size:
        lines = _by_sizes(node, shape, axes, [int(v) for v in constant(state, node, sizes, "sizes").array.reshape(-1)])
    else:
        assert scales is not None, "shape inference needs scales or sizes"
        lines = _by_scales(shape, axes, list(exact_constant(state, node, scales, "scales").reshape(-1)))
    if roi is None or node.attributes.get("coordinate_transformation_mode") != CROP:
        return lines
    ends = [Fraction(v) for v in exact_constant(state, node, roi, "roi").reshape(-1)]
    if len(ends) != 2 * len(axes):
        raise refuse(
            node, "resize-roi", f"roi must have {2 * len(axes)} elements, a start and an end for each axis, not "
            f"{len(ends)}", "correct the constant",
        )
    pairs = zip(ends[: len(axes)], ends[len(axes) :], strict=True)
    return [replace(line, roi=pair) for line, pair in zip(lines, pairs, strict=True)]


def _by_scales(shape: tuple[int, ...], axes: Any, scales: list[Fraction]) -> list[AxisResize]:
    return [
        AxisResize(axis, shape[axis], floor(shape[axis] * scale), scale)
        for axis, scale in zip(axes, scales, strict=True)
    ]


def _by_sizes(node: OnnxNode, shape: tuple[int, ...], axes: list[int], sizes: list[int]) -> list[AxisResize]:
    ratios = [Fraction(size, shape[axis]) for size, axis in zip(sizes, axes, strict=True)]
    policy = node.attributes.get("keep_aspect_ratio_policy", "stretch")
    if policy in ("not_larger", "not_smaller"):
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        return [AxisResize(axis, shape[axis], floor(shape[axis] * ratio + HALF), ratio) for axis in axes]
    return [
        AxisResize(axis, shape[axis], size, ratio) for axis, size, ratio in zip(axes, sizes, ratios, strict=True)
    ]


def _interpolation(node: OnnxNode) -> Interpolation:
    mode = _one_of(node, "mode", (NEAREST, LINEAR, CUBIC))
    if node.version < 11:  # of Upsample, all
        return Interpolation(mode, "asymmetric", None)
    return Interpolation(
        mode, _one_of(node, "coordinate_transformation_mode", transformations(node.version)),
        _one_of(node, "nearest_mode", ROUNDINGS), finite(node, "cubic_coeff_a", -0.75),
        bool(node.integer("antialias")), bool(node.integer("exclude_outside")),
    )


def _one_of(node: OnnxNode, name: str, legal: tuple[str, ...]) -> str:
    """Return an attribute with named values, the first of which is the default."""
    value = str(node.attributes.get(name, legal[0]))
    if value not in legal:
        raise refuse(
            node, "resize-mode", f"{name} must be {', '.join(legal[:-1])} or {legal[-1]}, not {show(value)}",
            "correct the attribute",
        )
    return value


def _resized(state: Lowering, node: OnnxNode, lines: list[AxisResize]) -> View:
    _require_sizes(state, node, lines)
    lines = [line for line in lines if not line.is_identity]
    if any(line.axis == 0 for line in lines):
        raise refuse(
            node, "frame-axis", "the frame axis 0 must keep its scale of 1", "resize within a frame: leave axis 0 out"
        )
    how = _interpolation(node)
    fill = finite(node, "extrapolation_value", 0.0)
    view = state.view(node.inputs[0])
    if how.mode == NEAREST or not lines:
        places = [(line, _nearest(node, line, how)) for line in lines]
        return _copied(state, node, view, places, how, fill, state.model.values[node.inputs[0]].shape)
    if not isinstance(view, Integers):
        return _interpolated(state, node, reals(state, node, 0), lines, how, fill)
    if state.model.values[node.inputs[0]].dtype == "bool":
        raise refuse(
            node, "resize-bool", f"mode must be nearest for a bool tensor, not {how.mode}", "resize integers or reals"
        )
    # Integers: the means are rounded, ties to even, and saturate, as ONNX's reference evaluator casts them.
    fill = min(max(fill, Fraction(view.low)), Fraction(view.high))
    result = _interpolated(state, node, as_reals(view, node.inputs[0]), lines, how, fill)
    saturated = Quantization(fractions(1), fractions(0), view.low, view.high)
    value = requantize(state, node, result, saturated, origin=node.outputs[0])
    return Integers(value, result.shape, view.low, view.high)


def _require_sizes(state: Lowering, node: OnnxNode, lines: list[AxisResize]) -> None:
    """Refuse a result whose inferred shape differs from the specification, as with a region of interest in onnx's shape
    inference and the evaluators."""
    inferred = state.model.values[node.outputs[0]].shape
    for line in lines:
        said = line.output
        if line.roi != WHOLE and not given(node, 3):
            said = floor(line.size * (line.roi[1] - line.roi[0]) * line.scale)
        if said != inferred[line.axis]:
            raise refuse(
                node, "resize-size",
                f"axis {line.axis} of the result must have {said} elements, not {inferred[line.axis]} as by onnx's "
                "shape inference", "give sizes instead of scales",
            )


def _nearest(node: OnnxNode, line: AxisResize, how: Interpolation) -> list[int]:
    places = line.nearest(how)
    if how.exclude_outside and not all(0 <= place < line.size for place in places):
        raise refuse(
            node, "resize-outside",
            "exclude_outside must be 0 where the nearest element is outside: no weight is left to normalize",
            "leave the attribute out",
        )
    return [min(max(place, 0), line.size - 1) for place in places]


def _copied(
    state: Lowering, node: OnnxNode, view: View, places: Sequence[tuple[AxisResize, list[int]]], how: Interpolation,
    fill: Fraction, whole: tuple[int, ...],
) -> View:
    """Copy elements of ``view``, of ``whole`` shape, from the ``places`` along the axes, or the extrapolation value."""

    def move(array: Any) -> Any:
        for line, along in places:
            array = np.take(array, along, axis=line.axis)
        return array

    holes = np.zeros(move(np.zeros(whole, dtype=bool)).shape, dtype=bool)
    for line, _ in places:
        holes[(slice(None),) * line.axis + (line.outside(how),)] = True
    if isinstance(view, Integers):
        fill = min(max(fill, Fraction(view.low)), Fraction(view.high))
    return moves.placed(state, node, view, whole, move, holes, fill)


def _interpolated(
    state: Lowering, node: OnnxNode, view: Reals, lines: list[AxisResize], how: Interpolation, fill: Fraction
) -> Reals:
    """Apply weighted sums axis by axis, shrinking axes first; then copies."""
    # Growing axes from the outside in, because a buffer holds all inner axes; shrinking ones from the inside out.
    by_growth = sorted(lines, key=lambda line: (line.scale, line.axis if line.scale >= 1 else -line.axis))
    sums = [(line, _windows(node, line, how)) for line in by_growth]
    wide = [(line, window) for line, window in sums if window.width > 1]
    moving = [(line, window.starts.tolist()) for line, window in sums if window.width == 1]
    places = [*moving, *((line, list(range(line.output))) for line, _ in wide)]
    moves_behind = bool(moving) or any(any(line.outside(how)) for line in lines)
    if wide:
        view = plain(state, node, view)
        if any(v.ndim and v.shape[line.axis - 1] > 1 for v in (view.scale, view.zero_point) for line, _ in wide):
            raise refuse(
                node, "resize-scale",
                "a resized tensor must have one scale and zero point along the resized axes, not several",
                "quantize per tensor or per channel before the node",
            )
        if sum(window.divisor.bit_length() for _, window in wide) > MAX_DIVISOR_BITS:
            raise _too_wide(node)
    for line, window in wide:
        last = line is wide[-1][0] and not moves_behind
        view = _weighted(state, node, view, line, window, state.real_origin(node) if last else "")
    if not moves_behind:
        return view
    result = _copied(state, node, view, places, how, fill, (1, *view.shape))
    assert isinstance(result, Reals), "reals stay reals"
    if not wide:
        return result
    whole = made(result.value, result.shape, result.scale, result.zero_point, node)
    return replace(whole, low=result.low, high=result.high)


def _windows(node: OnnxNode, line: AxisResize, how: Interpolation) -> Windows:
    means = line.mean(how)
    if not all(means):
        raise refuse(
            node, "resize-weights", "weights must have a nonzero sum, by which they are divided",
            "give cubic_coeff_a another value, or leave exclude_outside out",
        )
    found = windows(means, line.size)
    if found is None:
        raise _too_wide(node)
    return found


def _too_wide(node: OnnxNode) -> Refusal:
    return refuse(
        node, "resize-weights",
        "weights must have a small common denominator, as for scales such as 2, 1.5 or 0.5, not one of more "
        f"than {MAX_DIVISOR_BITS} bits in all", "give sizes instead of scales: their ratios are exact",
    )


def _weighted(state: Lowering, node: OnnxNode, view: Reals, line: AxisResize, window: Windows, origin: str) -> Reals:
    """Return the sums along one axis. Weights sum to the divisor, which multiplies the zero point."""
    axis = line.axis - 1
    shape = (*view.shape[:axis], line.output, *view.shape[axis + 1 :])
    attributes = InterpolateAttributes(axis, window.starts, window.weights)
    value = state.add(node, [view.value], attributes, view.nodes, origin=origin)
    result = made(value, shape, as_array(view.scale / window.divisor), as_array(view.zero_point * window.divisor), node)
    if view.low is None or view.high is None:
        return result
    below, above = (np.clip(window.weights, *ends).sum(axis=1) for ends in ((None, 0), (0, None)))
    low = int((above * view.low + below * view.high).min())
    return replace(result, low=low, high=int((above * view.high + below * view.low).max()))
