"""The rules of the error analysis (:mod:`hwflow.onnxspec.reference.float_error`): one for each operator that has a
bound."""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.onnxspec.float_rules import function_errors, linear_errors, move_errors, quantizer_errors, resize_errors
from hwflow.onnxspec.float_rules.step_errors import Rule
from hwflow.onnxspec.shapes.dialects import MICROSOFT_DOMAIN, QONNX_DOMAINS

_ONNX: Mapping[str, Rule] = {
    **quantizer_errors.QOPERATOR,
    "Abs": move_errors.absolute,
    "Add": linear_errors.add,
    "ArgMax": move_errors.position,
    "ArgMin": move_errors.position,
    "AveragePool": move_errors.average,
    "BatchNormalization": linear_errors.batch_normalization,
    "Cast": move_errors.cast,
    "CastLike": move_errors.cast,
    "Ceil": move_errors.monotone,
    "Celu": function_errors.celu,
    "Clip": move_errors.monotone,
    "Concat": move_errors.joined,
    "Conv": linear_errors.conv,
    "ConvTranspose": linear_errors.conv_transpose,
    "DepthToSpace": move_errors.moved,
    "DequantizeLinear": quantizer_errors.dequantize,
    "Div": linear_errors.div,
    "Dropout": move_errors.dropout,
    "Elu": function_errors.elu,
    "Equal": move_errors.compared,
    "Erf": function_errors.erf,
    "Exp": function_errors.exp,
    "Expand": move_errors.moved,
    "Flatten": move_errors.moved,
    "Floor": move_errors.monotone,
    "Gather": move_errors.moved,
    "Gelu": function_errors.gelu,
    "Gemm": linear_errors.gemm,
    "GlobalAveragePool": move_errors.sums,
    "GlobalMaxPool": move_errors.moved,
    "Greater": move_errors.compared,
    "GreaterOrEqual": move_errors.compared,
    "HardSigmoid": function_errors.hard_sigmoid,
    "HardSwish": function_errors.hard_swish,
    "Identity": move_errors.identity,
    "LeakyRelu": function_errors.leaky_relu,
    "Less": move_errors.compared,
    "LessOrEqual": move_errors.compared,
    "Log": function_errors.log,
    "LogSoftmax": function_errors.log_softmax,
    "MatMul": linear_errors.matmul,
    "Max": linear_errors.extremum,
    "MaxPool": move_errors.moved,
    "Mean": linear_errors.mean,
    "Min": linear_errors.extremum,
    "Mish": function_errors.mish,
    "Mul": linear_errors.mul,
    "Neg": move_errors.absolute,
    "PRelu": function_errors.prelu,
    "Pad": move_errors.padded,
    "Pow": function_errors.power,
    "QuantizeLinear": quantizer_errors.quantize,
    "Reciprocal": function_errors.reciprocal,
    "ReduceMax": move_errors.greatest,
    "ReduceMean": move_errors.sums,
    "ReduceMin": move_errors.greatest,
    "ReduceSum": move_errors.sums,
    "Relu": move_errors.monotone,
    "Reshape": move_errors.moved,
    "Resize": resize_errors.resized,
    "Round": move_errors.monotone,
    "Selu": function_errors.selu,
    "Sigmoid": function_errors.sigmoid,
    "Sign": move_errors.monotone,
    "Slice": move_errors.moved,
    "Softmax": function_errors.softmax,
    "Softplus": function_errors.softplus,
    "Softsign": function_errors.softsign,
    "SpaceToDepth": move_errors.moved,
    "Split": move_errors.parts,
    "Sqrt": function_errors.square_root,
    "Squeeze": move_errors.moved,
    "Sub": linear_errors.add,
    "Sum": linear_errors.total,
    "Tanh": function_errors.tanh,
    "ThresholdedRelu": function_errors.thresholded_relu,
    "Tile": move_errors.moved,
    "TopK": move_errors.best,
    "Transpose": move_errors.moved,
    "Unsqueeze": move_errors.moved,
    "Upsample": resize_errors.resized,
    "Where": move_errors.chosen,
}

RULES: Mapping[str, Mapping[str, Rule]] = {
    "": _ONNX,
    MICROSOFT_DOMAIN: quantizer_errors.MICROSOFT,
    **dict.fromkeys(QONNX_DOMAINS, quantizer_errors.QONNX),
}
"""Rules by domain and operator."""


def rule(domain: str, op_type: str) -> Rule | None:
    """The rule of an operator; None if there is none."""
    return RULES.get("" if domain == "ai.onnx" else domain, {}).get(op_type)
