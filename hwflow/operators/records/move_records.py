"""Operators that move, repeat, join or select elements."""

from __future__ import annotations

from hwflow.frontend.frames import axes
from hwflow.operators.float_errors import move_errors, resize_errors
from hwflow.operators.moves import joins, moves, ranking, reshapes, resize
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases

_MODES = ("DCR", "CRD")

RECORDS: tuple[Operator, ...] = (
    Operator(
        "ArgMax", lower=ranking.arg_extreme, honours=attributes("axis", "keepdims", "select_last_index"),
        limits=phrases.RANKED, becomes=("top_k",), frames=axes.along(0), error=move_errors.position
    ),
    Operator(
        "ArgMin", lower=ranking.arg_extreme, honours=attributes("axis", "keepdims", "select_last_index"),
        limits=phrases.RANKED, becomes=("top_k",), frames=axes.along(0), error=move_errors.position
    ),
    Operator(
        "Concat", lower=joins.concat, honours=attributes("axis"),
        limits=f"streams, and constants between them; {phrases.AXES}", becomes=("concat",), frames=axes.concat(0, 1),
        error=move_errors.joined
    ),
    Operator(
        "DepthToSpace", lower=moves.depth_to_space, honours=attributes("blocksize", mode=_MODES), limits="both modes",
        becomes=("reindex",), frames=axes.IMAGE, error=move_errors.moved
    ),
    Operator(
        "Expand", lower=moves.expand, limits=f"constant shape, {phrases.MOVED}", becomes=("reindex",),
        frames=axes.expand(), error=move_errors.moved
    ),
    Operator(
        "Flatten", lower=reshapes.reshape, honours=attributes("axis"), limits=phrases.FRONT, becomes=("reshape",),
        frames=axes.reshape(), error=move_errors.moved
    ),
    Operator(
        "Gather", lower=moves.gather, honours=attributes("axis"), limits=f"constant indices, {phrases.AXES}",
        becomes=("reindex",), frames=axes.along(0), error=move_errors.moved
    ),
    Operator(
        "Pad", lower=moves.pad, honours=attributes("paddings", "pads", "value", mode=moves.PAD_MODES),
        limits=f"constant pads, {phrases.MOVED}: constant (a multiple of the scale), edge, reflect, wrap",
        becomes=("reindex",), frames=axes.pad(), error=move_errors.padded
    ),
    Operator(
        "Reshape", lower=reshapes.reshape, honours=attributes("allowzero", "shape"),
        limits=f"constant shape; {phrases.FRONT}", becomes=("reshape",), frames=axes.reshape(), error=move_errors.moved
    ),
    Operator(
        "Resize", lower=resize.resize,
        honours=attributes(
            "antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
            "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode",
        ),
        limits=f"{phrases.RESIZED}; linear and cubic of one scale along the axes", becomes=("interpolate", "reindex"),
        frames=axes.resize(), error=resize_errors.resized
    ),
    Operator(
        "Slice", lower=moves.slice_, honours=attributes("axes", "ends", "starts"),
        limits=f"constant starts, ends, axes and steps, {phrases.MOVED}", becomes=("reindex",), frames=axes.slice_(),
        error=move_errors.moved
    ),
    Operator(
        "SpaceToDepth", lower=moves.space_to_depth, honours=attributes("blocksize", mode=_MODES), limits="both modes",
        becomes=("reindex",), frames=axes.IMAGE, error=move_errors.moved
    ),
    Operator(
        "Split", lower=moves.split, honours=attributes("axis", "num_outputs", "split"),
        limits=f"constant sizes, {phrases.AXES}", becomes=("reindex",), frames=axes.along(0), error=move_errors.parts
    ),
    Operator(
        "Squeeze", lower=reshapes.reshape, honours=attributes("axes"), limits=phrases.FRONT, becomes=("reshape",),
        frames=axes.reshape(), error=move_errors.moved
    ),
    Operator(
        "Tile", lower=moves.tile, limits=f"constant repeats, {phrases.MOVED}", becomes=("reindex",), frames=axes.tile(),
        error=move_errors.moved
    ),
    Operator(
        "TopK", lower=ranking.top_k, honours=attributes("axis", "k", "largest", "sorted"),
        limits=f"constant k of at most 64; {phrases.RANKED}", becomes=("top_k",), frames=axes.along(-1),
        error=move_errors.best
    ),
    Operator(
        "Transpose", lower=reshapes.transpose, honours=attributes("perm"), limits=phrases.FRONT, becomes=("transpose",),
        frames=axes.transpose(), error=move_errors.moved
    ),
    Operator(
        "Unsqueeze", lower=reshapes.reshape, honours=attributes("axes"), limits=phrases.FRONT, becomes=("reshape",),
        frames=axes.reshape(), error=move_errors.moved
    ),
    Operator(
        "Upsample", lower=resize.upsample, honours=attributes("height_scale", "mode", "scales", "width_scale"),
        limits=f"{phrases.RESIZED}; scales of at least 1", becomes=("interpolate", "reindex"), frames=axes.resize(),
        error=resize_errors.resized
    ),
)
