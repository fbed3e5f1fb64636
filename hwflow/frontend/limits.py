"""What the front end takes of each ONNX operator it has a handler for, in words: the column `limits` of ``hwflow ops``.

A handler's refusals are the limits; one that changes changes its line here.
"""

from __future__ import annotations

from collections.abc import Mapping

_FUNCTION = "in front of a quantizer, or where its values are multiples of one number"
_INTEGER = "integer tensors of at most 32 bits"
_LOGICAL = "bool tensors"
_ALIGNED = "reals whose scales are multiples of one number, of shapes that broadcast, or constants"
_ORDERED = "reals of at most 65,535 levels in all, or of scales that are multiples of one number"
_COMPARED = f"{_ORDERED}, of shapes that broadcast, or constants; {_INTEGER}"
_BITS = _INTEGER
_WEIGHTS = "constant quantized weights, of any scales with a common divisor"
_CONV = f"1-D to 3-D and more, any group, strides, dilations and pads; {_WEIGHTS}"
_PRODUCT = f"one constant quantized operand; not along the frame axis; {_WEIGHTS}"
_POOL = "1-D to 3-D and more, any strides, dilations and pads; no window in the padding alone"
_MOVED = "within a frame"
_AXES = "axes within a frame"
_FRONT = "a frame axis of variable length stays in front"
_RANKED = f"{_AXES}; {_ORDERED} along the axis; {_INTEGER}"
_RESIZED = f"nearest, linear and cubic, constant parameters, {_MOVED}; weights with a common denominator of 40 bits"
_SCALE = "constant scale, other than 0, and zero point, for the tensor or along one axis"

LIMITS: Mapping[str, str] = {
    "Abs": f"{_FUNCTION}; {_INTEGER}",
    "Add": f"streams of shapes that broadcast, or constants; {_INTEGER}",
    "And": _LOGICAL,
    "ArgMax": _RANKED,
    "ArgMin": _RANKED,
    "AveragePool": f"{_POOL}; any count_include_pad",
    "BatchNormalization": "inference: constant scale, bias, mean and variance",
    "BipolarQuant": "positive constant scale",
    "BitShift": _BITS,
    "BitwiseAnd": _BITS,
    "BitwiseNot": _INTEGER,
    "BitwiseOr": _BITS,
    "BitwiseXor": _BITS,
    "Cast": "between real types; of integer and bool tensors; of reals to integers of at most 16 bits",
    "Ceil": _FUNCTION,
    "Celu": _FUNCTION,
    "Clip": f"constant bounds, of reals: {_FUNCTION}; bounds of one element, of {_INTEGER}",
    "Concat": f"streams, and constants between them; {_AXES}",
    "Conv": _CONV,
    "ConvInteger": f"{_CONV}; sums below 2**31",
    "ConvTranspose": f"any group, strides, dilations, pads and output_padding; {_WEIGHTS}",
    "DepthToSpace": "both modes",
    "DequantizeLinear": f"{_SCALE}; blocked: constants",
    "Div": f"of reals by a constant other than 0, or of a constant by reals; {_INTEGER}",
    "Dropout": "inference: no mask, training_mode false",
    "DynamicQuantizeLinear": "never: the range must be known when the model is compiled",
    "Elu": _FUNCTION,
    "Equal": _COMPARED,
    "Erf": _FUNCTION,
    "Exp": _FUNCTION,
    "Expand": f"constant shape, {_MOVED}",
    "Flatten": _FRONT,
    "Floor": _FUNCTION,
    "Gather": f"constant indices, {_AXES}",
    "Gelu": _FUNCTION,
    "Gemm": f"{_PRODUCT}; transA where no axis is that of frames; alpha other than 0",
    "GlobalAveragePool": "of images with any number of axes",
    "GlobalMaxPool": "of images with any number of axes",
    "Greater": _COMPARED,
    "GreaterOrEqual": _COMPARED,
    "HardSigmoid": _FUNCTION,
    "HardSwish": _FUNCTION,
    "Identity": "",
    "IntQuant": f"{_SCALE}; 1 to 16 bits",
    "LeakyRelu": _FUNCTION,
    "Less": _COMPARED,
    "LessOrEqual": _COMPARED,
    "Log": f"{_FUNCTION}, of positive numbers",
    "MatMul": _PRODUCT,
    "MatMulInteger": f"one constant operand; sums below 2**31; {_WEIGHTS}",
    "MatMulIntegerToFloat": f"one constant operand; not along the frame axis; {_WEIGHTS}",
    "Max": f"any number: {_COMPARED}",
    "MaxPool": f"{_POOL}; no indices; one scale a channel",
    "Mean": f"any number of {_ALIGNED}",
    "Min": f"any number: {_COMPARED}",
    "Mish": _FUNCTION,
    "Mod": f"{_INTEGER}, fmod too",
    "Mul": f"streams of shapes that broadcast and one zero point each, or constants; {_INTEGER}",
    "MultiThreshold": "constant thresholds, for the tensor or a channel",
    "Neg": f"of reals and {_INTEGER}",
    "NhwcMaxPool": f"{_POOL}; of integers; channels last",
    "Not": "bool tensors",
    "Or": _LOGICAL,
    "PRelu": f"constant slope; {_FUNCTION}",
    "Pad": f"constant pads, {_MOVED}: constant (a multiple of the scale), edge, reflect, wrap",
    "Pow": f"constant exponent; {_FUNCTION}",
    "QGemm": f"{_PRODUCT}; transA where no axis is that of frames; alpha other than 0",
    "QLinearAdd": "two streams of shapes that broadcast, or a constant",
    "QLinearAveragePool": f"{_POOL}; channels first or last",
    "QLinearConcat": f"streams, and constants between them; {_AXES}",
    "QLinearConv": _CONV,
    "QLinearGlobalAveragePool": "channels first or last",
    "QLinearLeakyRelu": _SCALE,
    "QLinearMatMul": _PRODUCT,
    "QLinearMul": "two streams of shapes that broadcast, or a constant",
    "QLinearReduceMean": _AXES,
    "QLinearSigmoid": _SCALE,
    "QLinearWhere": f"a bool tensor in hardware, or constant; branches: {_COMPARED}",
    "Quant": f"{_SCALE}; 1 to 16 bits; every rounding mode",
    "QuantizeLinear": f"{_SCALE}; to integers of at most 16 bits",
    "Reciprocal": f"{_FUNCTION}, of numbers other than 0",
    "ReduceMax": f"constant {_AXES}; {_ORDERED}",
    "ReduceMean": f"constant {_AXES}; of reals; one scale a channel",
    "ReduceMin": f"constant {_AXES}; {_ORDERED}",
    "ReduceSum": f"constant {_AXES}; of reals; one scale a channel",
    "Relu": f"{_FUNCTION}; {_INTEGER}",
    "Reshape": f"constant shape; {_FRONT}",
    "Resize": f"{_RESIZED}; linear and cubic of one scale along the axes",
    "Round": _FUNCTION,
    "Selu": _FUNCTION,
    "Sigmoid": _FUNCTION,
    "Sign": _FUNCTION,
    "Slice": f"constant starts, ends, axes and steps, {_MOVED}",
    "Softplus": _FUNCTION,
    "Softsign": _FUNCTION,
    "SpaceToDepth": "both modes",
    "Split": f"constant sizes, {_AXES}",
    "Sqrt": f"{_FUNCTION}, of numbers that are not negative",
    "Squeeze": _FRONT,
    "Sub": f"streams of shapes that broadcast, or constants; {_INTEGER}",
    "Sum": f"any number of {_ALIGNED}",
    "Tanh": _FUNCTION,
    "ThresholdedRelu": _FUNCTION,
    "Tile": f"constant repeats, {_MOVED}",
    "TopK": f"constant k of at most 64; {_RANKED}",
    "Transpose": _FRONT,
    "Trunc": "constant scales whose ratio is a power of two, and bit widths",
    "Unsqueeze": _FRONT,
    "Upsample": f"{_RESIZED}; scales of at least 1",
    "Where": f"a bool tensor in hardware, or constant; branches: {_COMPARED}",
    "Xor": _LOGICAL,
}
"""By ONNX operator, whatever its domain."""
