"""The table of ONNX operators that hardware can be made of, dialect by dialect: the legality table of the Imported
stage."""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.frontend import (
    arithmetic,
    integers,
    islands,
    linear,
    matmul,
    microsoft,
    moves,
    ordering,
    pools,
    qdq,
    qlinear,
    qonnx,
    ranking,
    reductions,
    resize,
    shapes,
    transposed,
)
from hwflow.frontend.context import Handler
from hwflow.frontend.unquantized import STANDARD_QUANTIZERS
from hwflow.onnxspec.dialects import MICROSOFT_DOMAIN, QONNX_DOMAINS

Operator = tuple[str, str]  # domain, type

STANDARD: Mapping[str, Handler] = {
    "Add": integers.or_real("Add", arithmetic.add),
    "ArgMax": ranking.arg_extreme,
    "ArgMin": ranking.arg_extreme,
    "AveragePool": pools.average_pool,
    "BatchNormalization": islands.batch_normalization,
    "Cast": islands.cast,
    "Clip": islands.clip,
    "Concat": shapes.concat,
    "Conv": linear.conv,
    "ConvInteger": qlinear.conv_integer,
    "DepthToSpace": moves.depth_to_space,
    "ConvTranspose": transposed.conv_transpose,
    "DequantizeLinear": qdq.dequantize_linear,
    "Div": integers.or_real("Div", arithmetic.div),
    "Dropout": islands.dropout,
    "DynamicQuantizeLinear": qlinear.dynamic_quantize_linear,
    "Expand": moves.expand,
    "Flatten": shapes.reshape,
    "Gather": moves.gather,
    "Gemm": linear.gemm,
    "GlobalAveragePool": pools.global_average_pool,
    "GlobalMaxPool": pools.global_max_pool,
    "Identity": islands.identity,
    "MatMul": matmul.matmul,
    "MatMulInteger": qlinear.matmul_integer,
    "MaxPool": pools.max_pool,
    "Mul": integers.or_real("Mul", arithmetic.mul),
    "Neg": arithmetic.neg,
    "PRelu": islands.prelu,
    "Pad": moves.pad,
    "Pow": islands.power,
    "QLinearConv": qlinear.qlinear_conv,
    "QLinearMatMul": qlinear.qlinear_matmul,
    "QuantizeLinear": qdq.quantize_linear,
    "Relu": islands.relu,
    "ReduceMax": reductions.reduce_max,
    "ReduceMean": reductions.reduce_mean,
    "ReduceMin": reductions.reduce_min,
    "ReduceSum": reductions.reduce_sum,
    "Reshape": shapes.reshape,
    "Resize": resize.resize,
    "Slice": moves.slice_,
    "SpaceToDepth": moves.space_to_depth,
    "Split": moves.split,
    "Squeeze": shapes.reshape,
    "Sub": integers.or_real("Sub", arithmetic.sub),
    "Tile": moves.tile,
    "TopK": ranking.top_k,
    "Transpose": shapes.transpose,
    "Unsqueeze": shapes.reshape,
    "Upsample": resize.upsample,
    **islands.UNARY,
    "Abs": integers.or_real("Abs", islands.UNARY["Abs"]),
    **{name: integers.or_real(name) for name in integers.INTEGER_ONLY},
    **{name: integers.or_real(name, handler) for name, handler in ordering.HANDLERS.items()},
}

HANDLERS: Mapping[Operator, Handler] = {
    **{("", name): handler for name, handler in STANDARD.items()},
    **{(MICROSOFT_DOMAIN, name): handler for name, handler in microsoft.HANDLERS.items()},
    **{(domain, name): handler for domain in sorted(QONNX_DOMAINS) for name, handler in qonnx.HANDLERS.items()},
}

REAL_ONLY = frozenset({"Div", "Gemm", "MatMul", "Mul", "PRelu", "Pow", "ReduceMean"})
"""Operators of ai.onnx that on integer tensors do not do what they do on reals: products wrap around, quotients, means
and powers are cut off."""

NEVER = frozenset({("", "DynamicQuantizeLinear")})
"""Those whose handler says why hardware cannot be made of them."""

_WHOLE = frozenset({("", "LogSoftmax"), ("", "Softmax")})  # a host has them, and hardware not all of their parts

KEPT = frozenset(HANDLERS) | _WHOLE
"""The operators to keep when a model is resolved: others may be replaced by their definition."""


def makes_integers(operator: Operator) -> bool:
    """Whether an operator turns reals into integers, or works on integers: what stands behind the last one is the
    host's, what stands before the first one too."""
    domain, name = operator
    if domain == "":
        return name in STANDARD_QUANTIZERS
    return operator in HANDLERS and name != "DequantizeLinear"
