"""Operators without hardware: why not, and their facts for when the host runs them."""

from __future__ import annotations

from hwflow.frontend.frames import axes
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.onnxspec.reference import framewise
from hwflow.onnxspec.shapes import dialects, size_facts
from hwflow.operators.float_errors import move_errors
from hwflow.operators.linear import linear_work
from hwflow.operators.record import QONNX, Operator, Reason

_COUNT = Reason(
    "gives as many results as the data say, and streams have fixed lengths",
    "leave it to the host: end the hardware's model in front of it",
)
_SAMPLED = Reason(
    "reads its input at places that it computes at run time, and a stream passes once",
    "sample with Resize, Slice or Gather at constant places, or on the host",
)
SCATTERED = Reason(
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
_RANDOM = Reason("draws random numbers", "export the model for inference, or feed them as an input")
_SPECTRUM = Reason(
    "computes with complex numbers, of irrational weights",
    "compute the spectrum on the host, in front of the model, or as a MatMul by quantized constants",
)
_STRINGS = Reason("works on strings or sequences, and hardware on integers", "do it on the host, in front of the model")

RECORDS: tuple[Operator, ...] = (
    Operator("AffineGrid", refused=_SAMPLED),
    Operator("Bernoulli", refused=_RANDOM, foldable=False),
    Operator(names.CAST_LIKE, error=move_errors.cast, tame=True, framewise=framewise.always),
    Operator("CausalConvWithState", work=linear_work.convolution(1)),
    Operator("Compress", refused=_COUNT),
    Operator(names.CONSTANT, tame=True),
    Operator("ConstantOfShape", proportional=True),
    Operator("DFT", refused=_SPECTRUM),
    Operator(
        "DeformConv", refused=_SAMPLED, work=linear_work.convolution(1),
        sizes=size_facts.positive("group", "offset_group")
    ),
    Operator("DynamicQuantizeLSTM", refused=_DYNAMIC),
    Operator("DynamicQuantizeMatMul", refused=_DYNAMIC, work=linear_work.product(0)),
    Operator("GridSample", refused=_SAMPLED),
    Operator("LinearAttention", work=linear_work.linear_attention),
    Operator("MatMulNBits", refused=_BLOCKED),
    Operator("MaxRoiPool", refused=_SAMPLED),
    Operator("MelWeightMatrix", refused=_SPECTRUM),
    Operator("Multinomial", refused=_RANDOM, foldable=False),
    Operator("NonMaxSuppression", refused=_COUNT),
    Operator("NonZero", refused=_COUNT),
    Operator("RandomNormal", refused=_RANDOM, foldable=False),
    Operator("RandomNormalLike", refused=_RANDOM, foldable=False),
    Operator("RandomUniform", refused=_RANDOM, foldable=False),
    Operator("RandomUniformLike", refused=_RANDOM, foldable=False),
    Operator("RegexFullMatch", wild=True),
    Operator("RoiAlign", refused=_SAMPLED),
    Operator("STFT", refused=_SPECTRUM, wild=True),
    Operator("Scatter", refused=SCATTERED),
    Operator("ScatterElements", refused=SCATTERED),
    Operator("ScatterND", refused=SCATTERED),
    Operator(names.SHAPE, of_shapes=True),
    Operator("Shrink", frames=axes.ELEMENTWISE),
    Operator(names.SIZE, of_shapes=True),
    Operator("StringNormalizer", refused=_STRINGS),
    Operator("Swish", frames=axes.ELEMENTWISE),
    Operator("TfIdfVectorizer", refused=_STRINGS),
    Operator("Unique", refused=_COUNT),
    Operator(
        "FloatQuant", domains=QONNX, frames=axes.ELEMENTWISE, data=(0,), framewise=framewise.data(0),
        shape=dialects.same
    ),
)
