"""Convolutions, matrix products, pools and reductions."""

from __future__ import annotations

from hwflow.frontend.frames import axes, fused_products, matrix_products
from hwflow.frontend.views import Integers, Reals
from hwflow.onnxspec.dialect_operators import norm_operators
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.onnxspec.graphs import weight_axes
from hwflow.onnxspec.reference import evaluator_defects, framewise
from hwflow.onnxspec.shapes import dialect_forms, dialects, size_facts
from hwflow.operators.float_errors import linear_errors, move_errors
from hwflow.operators.linear import linear, linear_work, matmul, pools, reductions, transposed
from hwflow.operators.linear.window import AUTO_PADS
from hwflow.operators.record import MICROSOFT, Operator, attributes
from hwflow.operators.records import phrases

_BROADCAST = (0, 1)  # of operator sets before 7: C is broadcast or not
_WINDOW = ("dilations", "kernel_shape", "pads", "strides")
_REDUCED = ("axes", "keepdims", "noop_with_empty_axes")

def _frames_stay(node: framewise.FramedNode) -> bool:
    """Tell whether frames of the left matrix are neither rows nor columns of a product with a constant one."""
    moved = any(node.attributes.get(f"{name}A", 0) for name in ("trans", "transBatch"))
    return not moved and framewise.data(0)(node)


RECORDS: tuple[Operator, ...] = (
    Operator(
        "AveragePool", lower=pools.average_pool,
        honours=attributes(*_WINDOW, "ceil_mode", "count_include_pad", auto_pad=AUTO_PADS),
        limits=f"{phrases.POOL}; any count_include_pad", becomes=("pixel_product", "sum_pool2d"), heavy=True,
        frames=axes.IMAGE, error=move_errors.average, tame=True, framewise=framewise.always,
        mended=evaluator_defects.AVERAGE_POOL, images=1, keeps_rank=True, integer_operands=True, accumulates=True,
        homogeneous=True
    ),
    Operator(
        "Conv", lower=linear.conv, honours=attributes(*_WINDOW, "group", auto_pad=AUTO_PADS), limits=phrases.CONV,
        becomes=("conv2d",), heavy=True, work=linear_work.convolution(1), frames=axes.IMAGE, error=linear_errors.conv,
        tame=True, by_type=True, sizes=size_facts.convolution(0, 1, 2), framewise=framewise.data(0), images=2,
        keeps_rank=True, weights=weight_axes.convolution
    ),
    Operator(
        "ConvTranspose", lower=transposed.conv_transpose,
        honours=attributes(*_WINDOW, "group", "output_padding", "output_shape", auto_pad=AUTO_PADS),
        limits=f"any group, strides, dilations, pads and output_padding; {phrases.WEIGHTS}",
        becomes=("conv2d", "reindex"), heavy=True, work=linear_work.transposed, frames=axes.IMAGE,
        error=linear_errors.conv_transpose, tame=True, sizes=size_facts.transposed_convolution(0, 1, 2),
        mended=evaluator_defects.CONV_TRANSPOSE, weights=weight_axes.transposed_convolution
    ),
    Operator(
        "FusedMatMul", domains=MICROSOFT, lower=matmul.fused_matmul,
        honours=attributes("alpha", "transA", "transB", "transBatchA", "transBatchB"),
        limits=f"{phrases.PRODUCT}; alpha other than 0", becomes=("dense", "matrix_product"), needs=(Integers, Reals),
        heavy=True, work=linear_work.fused, frames=fused_products.FUSED, error=linear_errors.fused_matmul,
        framewise=_frames_stay, form=dialect_forms.FUSED, shape=dialects.fused_matmul,
        evaluate=norm_operators.fused_matmul
    ),
    Operator(
        names.GEMM, lower=linear.gemm, honours=attributes("alpha", "beta", "transA", "transB", broadcast=_BROADCAST),
        limits=f"{phrases.PRODUCT}; transA, and two streams, where no axis is that of frames; alpha other than 0",
        becomes=("dense", "matrix_product", "scaled_add"),
        real_only=True, heavy=True, work=linear_work.product(0),
        frames=axes.BatchingRule(matrix_products.gemm_independent(0, 1, 2), matrix_products.gemm_batched),
        error=linear_errors.gemm,
        tame=True, by_type=True, sizes=size_facts.GEMM, framewise=framewise.rows, weights=weight_axes.gemm
    ),
    Operator(
        "GlobalAveragePool", lower=pools.global_average_pool, limits="of images with any number of axes",
        becomes=("sum_pool2d",), heavy=True, frames=axes.IMAGE, error=move_errors.means, tame=True,
        framewise=framewise.always, images=1, integer_operands=True, accumulates=True, homogeneous=True
    ),
    Operator(
        "GlobalMaxPool", lower=pools.global_max_pool, limits="of images with any number of axes",
        becomes=("max_pool2d",), frames=axes.IMAGE, error=move_errors.moved, tame=True, framewise=framewise.always,
        mended=evaluator_defects.GLOBAL_MAX_POOL, images=1, moves=True, homogeneous=True
    ),
    Operator(
        names.MAT_MUL, lower=matmul.matmul, limits=phrases.PRODUCT, becomes=("dense", "matrix_product"),
        real_only=True, heavy=True,
        work=linear_work.product(0),
        frames=matrix_products.matmul(0, 1),
        error=linear_errors.matmul, tame=True, by_type=True, matrices=(0, 1), sizes=size_facts.product(0, 1),
        framewise=framewise.data(0), weights=weight_axes.matmul
    ),
    Operator(  # storage_order: of the indices alone, which are refused
        "MaxPool", lower=pools.max_pool, honours=attributes(*_WINDOW, "ceil_mode", "storage_order", auto_pad=AUTO_PADS),
        limits=f"{phrases.POOL}; no indices; one scale per channel", becomes=("max_pool2d",), heavy=True,
        frames=axes.IMAGE, error=move_errors.moved, tame=True, framewise=framewise.always,
        mended=evaluator_defects.MAX_POOL, images=1, keeps_rank=True, integer_operands=True, moves=True,
        homogeneous=True
    ),
    Operator(
        "ReduceMax", lower=reductions.reduce_max, honours=attributes(*_REDUCED),
        limits=f"constant {phrases.AXES}; {phrases.ORDERED}", becomes=("max_pool2d",), frames=axes.reduce(),
        error=move_errors.greatest, proportional=True, framewise=framewise.inner_axes, moves=True
    ),
    Operator(
        "ReduceMean", lower=reductions.reduce_mean, honours=attributes(*_REDUCED),
        limits=f"constant {phrases.AXES}; of reals; one scale per channel", becomes=("sum_pool2d",), real_only=True,
        frames=axes.reduce(), error=move_errors.means, framewise=framewise.inner_axes,
        integer_operands=True, accumulates=True
    ),
    Operator(
        "ReduceMin", lower=reductions.reduce_min, honours=attributes(*_REDUCED),
        limits=f"constant {phrases.AXES}; {phrases.ORDERED}", becomes=("max_pool2d",), frames=axes.reduce(),
        error=move_errors.least, proportional=True, framewise=framewise.inner_axes, moves=True
    ),
    Operator(
        "ReduceSum", lower=reductions.reduce_sum, honours=attributes(*_REDUCED),
        limits=f"constant {phrases.AXES}; of reals; one scale per channel", becomes=("sum_pool2d",),
        frames=axes.reduce(13), error=move_errors.sums, proportional=True, framewise=framewise.inner_axes,
        integer_operands=True, accumulates=True
    ),
)
