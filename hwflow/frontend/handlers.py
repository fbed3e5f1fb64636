"""The table of ONNX operators that hardware can be made of, dialect by dialect: the legality table of the Imported
stage."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import TensorProto

from hwflow.frontend import islands
from hwflow.frontend.context import Handler
from hwflow.frontend.honoured_attributes import Taken, honours, taken
from hwflow.frontend.unquantized import STANDARD_QUANTIZERS
from hwflow.onnxspec.shapes.dialects import MICROSOFT_DOMAIN, QONNX_DOMAINS
from hwflow.operators.elementwise import arithmetic, integers, ordering
from hwflow.operators.linear import linear, matmul, pools, reductions, transposed
from hwflow.operators.linear.window import AUTO_PADS
from hwflow.operators.moves import joins, moves, ranking, reshapes, resize
from hwflow.operators.quantizers import microsoft, qdq, qlinear, qonnx

Operator = tuple[str, str]  # domain, type

_BROADCAST = (0, 1)  # of operator sets before 7: without an axis the shapes are aligned at their ends, as ever since
_WINDOW = ("dilations", "kernel_shape", "pads", "strides")
_REDUCED = ("axes", "keepdims", "noop_with_empty_axes")
_MODES = ("DCR", "CRD")

STANDARD: Mapping[str, Handler | Taken] = {
    "Abs": integers.or_real("Abs", islands.absolute),
    "Add": honours(integers.or_real("Add", arithmetic.add), broadcast=_BROADCAST),
    "And": honours(integers.or_real("And"), broadcast=_BROADCAST),
    "ArgMax": honours(ranking.arg_extreme, "axis", "keepdims", "select_last_index"),
    "ArgMin": honours(ranking.arg_extreme, "axis", "keepdims", "select_last_index"),
    "AveragePool": honours(pools.average_pool, *_WINDOW, "ceil_mode", "count_include_pad", auto_pad=AUTO_PADS),
    # momentum: of training alone
    "BatchNormalization": honours(
        islands.batch_normalization, "epsilon", "is_test", "momentum", "training_mode", spatial=(1,)
    ),
    "BitShift": honours(integers.or_real("BitShift"), direction=("LEFT", "RIGHT")),
    "BitwiseAnd": integers.or_real("BitwiseAnd"),
    "BitwiseNot": integers.or_real("BitwiseNot"),
    "BitwiseOr": integers.or_real("BitwiseOr"),
    "BitwiseXor": integers.or_real("BitwiseXor"),
    "Cast": honours(islands.cast, "round_mode", "saturate", "to"),  # all but "to" are of float8 alone
    "Clip": honours(islands.clip, "max", "min"),
    "Concat": honours(joins.concat, "axis"),
    "Conv": honours(linear.conv, *_WINDOW, "group", auto_pad=AUTO_PADS),
    "ConvInteger": honours(qlinear.conv_integer, *_WINDOW, "group", auto_pad=AUTO_PADS),
    "ConvTranspose": honours(
        transposed.conv_transpose, *_WINDOW, "group", "output_padding", "output_shape", auto_pad=AUTO_PADS
    ),
    "DepthToSpace": honours(moves.depth_to_space, "blocksize", mode=_MODES),
    "DequantizeLinear": honours(qdq.dequantize_linear, "axis", "block_size", "output_dtype"),
    "Div": honours(integers.or_real("Div", arithmetic.div), broadcast=_BROADCAST),
    "Dropout": honours(islands.dropout, "is_test", "ratio", "seed"),  # ratio, seed: of training alone
    "DynamicQuantizeLinear": qlinear.dynamic_quantize_linear,
    "Equal": honours(integers.or_real("Equal", ordering.comparison), broadcast=_BROADCAST),
    "Expand": moves.expand,
    "Flatten": honours(reshapes.reshape, "axis"),
    "Gather": honours(moves.gather, "axis"),
    "Gemm": honours(linear.gemm, "alpha", "beta", "transA", "transB", broadcast=_BROADCAST),
    "GlobalAveragePool": pools.global_average_pool,
    "GlobalMaxPool": pools.global_max_pool,
    "Greater": honours(integers.or_real("Greater", ordering.comparison), broadcast=_BROADCAST),
    "GreaterOrEqual": integers.or_real("GreaterOrEqual", ordering.comparison),
    "Identity": islands.identity,
    "Less": honours(integers.or_real("Less", ordering.comparison), broadcast=_BROADCAST),
    "LessOrEqual": integers.or_real("LessOrEqual", ordering.comparison),
    "MatMul": matmul.matmul,
    "MatMulInteger": qlinear.matmul_integer,
    "Max": integers.or_real("Max", ordering.extreme),
    # storage_order: of the indices alone, which are refused
    "MaxPool": honours(pools.max_pool, *_WINDOW, "ceil_mode", "storage_order", auto_pad=AUTO_PADS),
    "Mean": integers.or_real("Mean", ordering.total),
    "Min": integers.or_real("Min", ordering.extreme),
    "Mod": honours(integers.or_real("Mod"), "fmod"),
    "Mul": honours(integers.or_real("Mul", arithmetic.mul), broadcast=_BROADCAST),
    "Neg": arithmetic.neg,
    "Not": integers.or_real("Not"),
    "Or": honours(integers.or_real("Or"), broadcast=_BROADCAST),
    "PRelu": islands.prelu,
    "Pad": honours(moves.pad, "paddings", "pads", "value", mode=moves.PAD_MODES),
    "Pow": honours(islands.power, broadcast=_BROADCAST),
    "QLinearConv": honours(qlinear.qlinear_conv, *_WINDOW, "group", auto_pad=AUTO_PADS),
    "QLinearMatMul": qlinear.qlinear_matmul,
    # saturate: of float8 alone; precision: quotients are exact here, which a narrow one would round
    "QuantizeLinear": honours(
        qdq.quantize_linear, "axis", "block_size", "output_dtype", "saturate",
        precision=(0, TensorProto.FLOAT, TensorProto.DOUBLE),
    ),
    "Relu": islands.relu,
    "ReduceMax": honours(reductions.reduce_max, *_REDUCED),
    "ReduceMean": honours(reductions.reduce_mean, *_REDUCED),
    "ReduceMin": honours(reductions.reduce_min, *_REDUCED),
    "ReduceSum": honours(reductions.reduce_sum, *_REDUCED),
    "Reshape": honours(reshapes.reshape, "allowzero", "shape"),
    "Resize": honours(
        resize.resize, "antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
        "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode",
    ),
    "Slice": honours(moves.slice_, "axes", "ends", "starts"),
    "SpaceToDepth": honours(moves.space_to_depth, "blocksize", mode=_MODES),
    "Split": honours(moves.split, "axis", "num_outputs", "split"),
    "Squeeze": honours(reshapes.reshape, "axes"),
    "Sub": honours(integers.or_real("Sub", arithmetic.sub), broadcast=_BROADCAST),
    "Sum": integers.or_real("Sum", ordering.total),
    "Tile": moves.tile,
    "TopK": honours(ranking.top_k, "axis", "k", "largest", "sorted"),
    "Transpose": honours(reshapes.transpose, "perm"),
    "Unsqueeze": honours(reshapes.reshape, "axes"),
    "Upsample": honours(resize.upsample, "height_scale", "mode", "scales", "width_scale"),
    "Where": integers.or_real("Where", ordering.where),
    "Xor": honours(integers.or_real("Xor"), broadcast=_BROADCAST),
    **islands.UNARY,
}
"""By type, those of ai.onnx, each with the attributes that its handler honours."""

HANDLERS: Mapping[Operator, Taken] = {
    **{("", name): entry for name, entry in taken(STANDARD).items()},
    **{(MICROSOFT_DOMAIN, name): entry for name, entry in taken(microsoft.HANDLERS).items()},
    **{(domain, name): entry for domain in sorted(QONNX_DOMAINS) for name, entry in taken(qonnx.HANDLERS).items()},
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
