"""The rules of the error analysis (:mod:`hwflow.onnxspec.float_error`): one for each operator that has a bound."""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.onnxspec.dialects import MICROSOFT_DOMAIN, QONNX_DOMAINS
from hwflow.onnxspec.float_rules import functions, linear, moves, quantizers, resized
from hwflow.onnxspec.float_rules.step import Rule

_ONNX: Mapping[str, Rule] = {
    **quantizers.QOPERATOR,
    "Abs": moves.absolute,
    "Add": linear.add,
    "ArgMax": moves.position,
    "ArgMin": moves.position,
    "AveragePool": moves.average,
    "BatchNormalization": linear.batch_normalization,
    "Cast": moves.cast,
    "CastLike": moves.cast,
    "Ceil": moves.monotone,
    "Celu": functions.celu,
    "Clip": moves.monotone,
    "Concat": moves.joined,
    "Conv": linear.conv,
    "ConvTranspose": linear.conv_transpose,
    "DepthToSpace": moves.moved,
    "DequantizeLinear": quantizers.dequantize,
    "Div": linear.div,
    "Dropout": moves.dropout,
    "Elu": functions.elu,
    "Equal": moves.compared,
    "Erf": functions.erf,
    "Exp": functions.exp,
    "Expand": moves.moved,
    "Flatten": moves.moved,
    "Floor": moves.monotone,
    "Gather": moves.moved,
    "Gelu": functions.gelu,
    "Gemm": linear.gemm,
    "GlobalAveragePool": moves.sums,
    "GlobalMaxPool": moves.moved,
    "Greater": moves.compared,
    "GreaterOrEqual": moves.compared,
    "HardSigmoid": functions.hard_sigmoid,
    "HardSwish": functions.hard_swish,
    "Identity": moves.identity,
    "LeakyRelu": functions.leaky_relu,
    "Less": moves.compared,
    "LessOrEqual": moves.compared,
    "Log": functions.log,
    "LogSoftmax": functions.log_softmax,
    "MatMul": linear.matmul,
    "Max": linear.extremum,
    "MaxPool": moves.moved,
    "Mean": linear.mean,
    "Min": linear.extremum,
    "Mish": functions.mish,
    "Mul": linear.mul,
    "Neg": moves.absolute,
    "PRelu": functions.prelu,
    "Pad": moves.padded,
    "Pow": functions.power,
    "QuantizeLinear": quantizers.quantize,
    "Reciprocal": functions.reciprocal,
    "ReduceMax": moves.greatest,
    "ReduceMean": moves.sums,
    "ReduceMin": moves.greatest,
    "ReduceSum": moves.sums,
    "Relu": moves.monotone,
    "Reshape": moves.moved,
    "Resize": resized.resized,
    "Round": moves.monotone,
    "Selu": functions.selu,
    "Sigmoid": functions.sigmoid,
    "Sign": moves.monotone,
    "Slice": moves.moved,
    "Softmax": functions.softmax,
    "Softplus": functions.softplus,
    "Softsign": functions.softsign,
    "SpaceToDepth": moves.moved,
    "Split": moves.parts,
    "Sqrt": functions.square_root,
    "Squeeze": moves.moved,
    "Sub": linear.add,
    "Sum": linear.total,
    "Tanh": functions.tanh,
    "ThresholdedRelu": functions.thresholded_relu,
    "Tile": moves.moved,
    "TopK": moves.best,
    "Transpose": moves.moved,
    "Unsqueeze": moves.moved,
    "Upsample": resized.resized,
    "Where": moves.chosen,
}

RULES: Mapping[str, Mapping[str, Rule]] = {
    "": _ONNX,
    MICROSOFT_DOMAIN: quantizers.MICROSOFT,
    **dict.fromkeys(QONNX_DOMAINS, quantizers.QONNX),
}
"""Rules by domain and operator."""


def rule(domain: str, op_type: str) -> Rule | None:
    """The rule of an operator; None if there is none."""
    return RULES.get("" if domain == "ai.onnx" else domain, {}).get(op_type)
