"""Well-known operators that no hardware is made of: why not, and what to do instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hwflow.errors import Finding


@dataclass(frozen=True)
class Reason:
    """``why`` follows "operator must be one that hardware can be made of, not X: it "."""

    why: str
    remedy: str


_NORM = Reason(
    "divides by a norm that it computes of each frame, a root of sums of squares; integers carry no such quotient "
    "exactly",
    "train with BatchNormalization, whose constants become part of the next quantizer",
)
_SOFTMAX = Reason(
    "divides exponentials by their sum; integers carry no such quotient exactly",
    "move it to the model's end, where the host runs it (ArgMax needs none), or use Sigmoid or HardSigmoid",
)
_STATE = Reason(
    "keeps a state from step to step, for which there is no hardware",
    "unroll the steps into MatMul, Add, Mul, Sigmoid and Tanh with quantizers between them, or take convolutions over "
    "time",
)
_CONTROL = Reason(
    "runs a graph of its own a number of times, or not at all, as the data say",
    "unroll the loop or choose the branch when the model is exported",
)
_COUNT = Reason(
    "gives as many results as the data say, and streams have fixed lengths",
    "leave it to the host: end the hardware's model in front of it",
)
_SAMPLED = Reason(
    "reads its input at places that it computes at run time, and a stream passes once",
    "sample with Resize, Slice or Gather at constant places, or on the host",
)
_SCATTERED = Reason(
    "moves elements to or from places that are known at run time only, and a stream passes once",
    "use Gather with constant indices, Slice, Concat, Pad or Where",
)
_DYNAMIC = Reason(
    "measures its input's range at run time, and hardware's scales must be known when it is compiled",
    "quantize statically, for example with 'hwflow quantize' and calibration data",
)
_BLOCKED = Reason(
    "multiplies float activations by packed weights, and hardware takes no floats",
    "quantize the activations too, for example with 'hwflow quantize' and calibration data",
)
_ATTENTION = Reason(
    "multiplies streams with each other as matrices and puts a Softmax between them",
    "leave it to the host, or use convolutions and dense layers",
)
_POWERS = Reason(
    "takes roots of sums of powers, which integers do not carry exactly",
    "use MaxPool, AveragePool or ReduceSum of Abs",
)
_RANDOM = Reason("draws random numbers", "export the model for inference, or feed them as an input")
_SPECTRUM = Reason(
    "computes with complex numbers, of irrational weights",
    "compute the spectrum on the host, in front of the model, or as a MatMul by quantized constants",
)
_NEVER = Reason(
    "asks for what reals carried by integers never are", "leave it out: the result is false everywhere"
)
_STRINGS = Reason("works on strings or sequences, and hardware on integers", "do it on the host, in front of the model")

REASONS: Mapping[str, Reason] = {
    "AffineGrid": _SAMPLED,
    "Attention": _ATTENTION,
    "Bernoulli": _RANDOM,
    "Compress": _COUNT,
    "CumProd": Reason(
        "carries a product along an axis, for which there is no core", "write it as Split and Mul with quantizers"
    ),
    "CumSum": Reason(
        "carries a sum along an axis, for which there is no core",
        "multiply by a constant matrix of ones on and below the diagonal",
    ),
    "DFT": _SPECTRUM,
    "DeformConv": _SAMPLED,
    "DynamicQuantizeLSTM": _DYNAMIC,
    "DynamicQuantizeMatMul": _DYNAMIC,
    "Einsum": Reason(
        "may be any sum of products, of which hardware has the usual ones under their own names",
        "write it as Transpose, Reshape, MatMul, Mul and ReduceSum",
    ),
    "GRU": _STATE,
    "GatherElements": _SCATTERED,
    "GatherND": _SCATTERED,
    "GlobalLpPool": _POWERS,
    "GridSample": _SAMPLED,
    "GroupNormalization": _NORM,
    "If": _CONTROL,
    "InstanceNormalization": _NORM,
    "IsInf": _NEVER,
    "IsNaN": _NEVER,
    "LRN": Reason(
        "divides each element by a power of a sum of its neighbours' squares; integers carry no such quotient exactly",
        "train without it, or with BatchNormalization, whose constants become part of the next quantizer",
    ),
    "LSTM": _STATE,
    "LayerNormalization": _NORM,
    "LogSoftmax": _SOFTMAX,
    "Loop": _CONTROL,
    "LpNormalization": _NORM,
    "LpPool": _POWERS,
    "MatMulNBits": _BLOCKED,
    "MaxRoiPool": _SAMPLED,
    "MaxUnpool": _SCATTERED,
    "MeanVarianceNormalization": _NORM,
    "MelWeightMatrix": _SPECTRUM,
    "MultiHeadAttention": _ATTENTION,
    "Multinomial": _RANDOM,
    "NonMaxSuppression": _COUNT,
    "NonZero": _COUNT,
    "OneHot": Reason(
        "spreads indices over a new axis, for which there is no core",
        "compare them by Equal with the constant 0, 1, 2, ... along that axis",
    ),
    "QAttention": _DYNAMIC,
    "QLinearSoftmax": _SOFTMAX,
    "RMSNormalization": _NORM,
    "RNN": _STATE,
    "RandomNormal": _RANDOM,
    "RandomNormalLike": _RANDOM,
    "RandomUniform": _RANDOM,
    "RandomUniformLike": _RANDOM,
    "ReverseSequence": _SCATTERED,
    "RoiAlign": _SAMPLED,
    "RotaryEmbedding": _ATTENTION,
    "STFT": _SPECTRUM,
    "Scan": _CONTROL,
    "Scatter": _SCATTERED,
    "ScatterElements": _SCATTERED,
    "ScatterND": _SCATTERED,
    "SimplifiedLayerNormalization": _NORM,
    "SkipLayerNormalization": _NORM,
    "Softmax": _SOFTMAX,
    "StringNormalizer": _STRINGS,
    "TfIdfVectorizer": _STRINGS,
    "Trilu": Reason("keeps a triangle of each matrix, for which there is no core", "multiply by a constant of 0 and 1"),
    "Unique": _COUNT,
}
"""By ONNX operator, whatever its domain."""


def unsupported(where: str, operator: str, said: str = "") -> Finding:
    """The finding about an operator, without its domain, that is called ``said`` (by default by its name)."""
    reason = REASONS.get(operator)
    message = f"operator must be one that hardware can be made of, not {said or operator}"
    remedy = "see 'hwflow ops' for those there are; replace the node or leave it out"
    if reason is not None:
        message, remedy = f"{message}: it {reason.why}", reason.remedy
    return Finding("supported-operator", where, message, remedy)


_DEFINED = re.compile(r" in the definition of (?P<node>node '.*' \((?P<operator>\w+)\).*)$")


def whole_operator(where: str) -> tuple[str, str] | None:
    """The node, and its operator, in whose definition a place is, where the table has that operator."""
    outer = _DEFINED.search(where)
    return (outer["node"], outer["operator"]) if outer is not None and outer["operator"] in REASONS else None


def of_whole_operators(findings: Iterable[Finding]) -> list[Finding]:
    """What is found in the definition of an operator of the table, as one finding about that operator."""
    result: dict[Finding, None] = {}
    for finding in findings:
        outer = whole_operator(finding.where)
        result[finding if outer is None else unsupported(*outer)] = None
    return list(result)
