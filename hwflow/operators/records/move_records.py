"""Operators that move, repeat, join or select elements."""

from __future__ import annotations

from hwflow.frontend.frames import axes, following
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.onnxspec.reference import framewise, resize_defects, runtime_differences
from hwflow.onnxspec.shapes import size_facts
from hwflow.operators.float_errors import move_errors, resize_errors
from hwflow.operators.moves import joins, moves, ranking, reshapes, resize
from hwflow.operators.norms import masked
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases

_MODES = ("DCR", "CRD")

RECORDS: tuple[Operator, ...] = (
    Operator(
        "ArgMax", lower=ranking.arg_max, honours=attributes("axis", "keepdims", "select_last_index"),
        limits=phrases.RANKED, becomes=("top_k",), frames=axes.along(0), error=move_errors.greatest_position,
        framewise=framewise.inner_axis, class_number=True
    ),
    Operator(
        "ArgMin", lower=ranking.arg_min, honours=attributes("axis", "keepdims", "select_last_index"),
        limits=phrases.RANKED, becomes=("top_k",), frames=axes.along(0), error=move_errors.least_position,
        framewise=framewise.inner_axis
    ),
    Operator(
        names.CONCAT, lower=joins.concat, honours=attributes("axis"),
        limits=f"streams, and constants between them; {phrases.AXES}", becomes=("concat",), frames=axes.concat(0, 1),
        error=move_errors.joined, proportional=True, sizes=size_facts.CONCAT, framewise=framewise.inner_axis,
        keeps_rank=True, integer_operands=True, moves=True
    ),
    Operator(
        "DepthToSpace", lower=moves.depth_to_space, honours=attributes("blocksize", mode=_MODES), limits="both modes",
        becomes=("reindex",), frames=axes.IMAGE, error=move_errors.moved, tame=True,
        sizes=size_facts.blocks(1, power=2), moves=True
    ),
    Operator(
        "Expand", lower=moves.expand, limits=f"constant shape, {phrases.MOVED}", becomes=("reindex",),
        frames=axes.expand(), error=move_errors.moved, proportional=True, moves=True, masks=True
    ),
    Operator(
        "Flatten", lower=reshapes.reshape, honours=attributes("axis"), limits=phrases.FRONT, becomes=("reshape",),
        frames=axes.reshape(), error=move_errors.moved, tame=True, proportional=True, sizes=size_facts.RESHAPED,
        framewise=framewise.flattened, integer_operands=True, keeps_elements=True, masks=True
    ),
    Operator(
        "Pad", lower=masked.padded, honours=attributes("paddings", "pads", "value", mode=moves.PAD_MODES),
        limits=f"constant pads, {phrases.MOVED}: constant (a multiple of the scale), edge, reflect, wrap",
        becomes=("reindex",), frames=axes.pad(), error=move_errors.padded, keeps_rank=True, moves=True
    ),
    Operator(
        names.RESHAPE, lower=reshapes.reshape, honours=attributes("allowzero", "shape"),
        limits=f"constant shape; {phrases.FRONT}", becomes=("reshape",), frames=axes.reshape(), error=move_errors.moved,
        tame=True, shape_input=1, proportional=True, sizes=size_facts.RESHAPED, framewise=framewise.reshaped,
        integer_operands=True, keeps_elements=True, masks=True
    ),
    Operator(
        "Resize", lower=resize.resize,
        honours=attributes(
            "antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
            "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode",
        ),
        limits=f"{phrases.RESIZED}; linear and cubic of one scale along the axes", becomes=("interpolate", "reindex"),
        frames=axes.resize(), error=resize_errors.resized, framewise=framewise.resized, mended=resize_defects.RESIZE,
        differences=(runtime_differences.RESIZE,), keeps_rank=True, integer_operands=True, moves=True,
        accumulates=True
    ),
    Operator(
        "Slice", lower=moves.slice_, honours=attributes("axes", "ends", "starts"),
        limits=f"constant starts, ends, axes and steps, {phrases.MOVED}", becomes=("reindex",), frames=axes.slice_(),
        error=move_errors.moved, proportional=True, keeps_rank=True, moves=True, masks=True
    ),
    Operator(
        "SpaceToDepth", lower=moves.space_to_depth, honours=attributes("blocksize", mode=_MODES), limits="both modes",
        becomes=("reindex",), frames=axes.IMAGE, error=move_errors.moved, tame=True,
        sizes=size_facts.blocks(2, 3, power=1), moves=True
    ),
    Operator(
        names.SPLIT, lower=moves.split, honours=attributes("axis", "num_outputs", "split"),
        limits=f"constant sizes, {phrases.AXES}", becomes=("reindex",), frames=axes.along(0), error=move_errors.parts,
        wild=True, proportional=True, sizes=size_facts.SPLIT, keeps_rank=True, moves=True, masks=True
    ),
    Operator(
        names.SQUEEZE, lower=reshapes.reshape, honours=attributes("axes"), limits=phrases.FRONT, becomes=("reshape",),
        frames=axes.reshape(following.squeezed), error=move_errors.moved, proportional=True,
        framewise=framewise.inner_axes, integer_operands=True, keeps_elements=True, masks=True
    ),
    Operator(
        "Tile", lower=moves.tile, limits=f"constant repeats, {phrases.MOVED}", becomes=("reindex",), frames=axes.tile(),
        error=move_errors.moved, proportional=True, moves=True, masks=True
    ),
    Operator(
        "TopK", lower=ranking.top_k, honours=attributes("axis", "k", "largest", "sorted"),
        limits=f"constant k of at most 64; {phrases.RANKED}", becomes=("top_k",), frames=axes.along(-1),
        error=move_errors.best
    ),
    Operator(
        names.TRANSPOSE, lower=reshapes.transpose, honours=attributes("perm"), limits=phrases.FRONT,
        becomes=("transpose",), frames=axes.transpose(), error=move_errors.moved, tame=True, proportional=True,
        framewise=framewise.transposed, keeps_rank=True, integer_operands=True, moves=True, masks=True
    ),
    Operator(
        names.UNSQUEEZE, lower=reshapes.reshape, honours=attributes("axes"), limits=phrases.FRONT, becomes=("reshape",),
        frames=axes.reshape(following.unsqueezed), error=move_errors.moved, proportional=True,
        framewise=framewise.inner_axes, integer_operands=True, keeps_elements=True, masks=True
    ),
    Operator(
        "Upsample", lower=resize.upsample, honours=attributes("height_scale", "mode", "scales", "width_scale"),
        limits=f"{phrases.RESIZED}; scales of at least 1", becomes=("interpolate", "reindex"), frames=axes.resize(),
        error=resize_errors.resized, framewise=framewise.resized, mended=resize_defects.UPSAMPLE, keeps_rank=True,
        moves=True
    ),
)
