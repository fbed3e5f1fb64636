"""Quantizers and quantized operators of every dialect."""

from __future__ import annotations

from onnx import TensorProto

from hwflow.frontend.frames import axes, matrix_products
from hwflow.onnxspec.dialect_operators import microsoft_operators, qonnx_operators, qoperator
from hwflow.operators.float_errors import quantizer_errors
from hwflow.operators.linear import linear_work
from hwflow.operators.linear.window import AUTO_PADS
from hwflow.operators.quantizers import microsoft, qdq, qlinear, qonnx
from hwflow.operators.record import MICROSOFT, QONNX, Operator, attributes
from hwflow.operators.records import phrases

_WINDOW = ("dilations", "kernel_shape", "pads", "strides")
_POOLED = ("ceil_mode", "kernel_shape", "pads", "strides")
_LEVELS = ("narrow", "rounding_mode", "signed")

RECORDS: tuple[Operator, ...] = (
    Operator(
        "ConvInteger", lower=qlinear.conv_integer, honours=attributes(*_WINDOW, "group", auto_pad=AUTO_PADS),
        limits=f"{phrases.CONV}; sums below 2**31", becomes=("conv2d",), quantized=True, heavy=True,
        work=linear_work.convolution(1), frames=axes.IMAGE, error=quantizer_errors.exact_integers
    ),
    Operator(
        "DequantizeLinear", lower=qdq.dequantize_linear, honours=attributes("axis", "block_size", "output_dtype"),
        limits=f"{phrases.SCALE}; blocked: constants", frames=axes.quantizer(), error=quantizer_errors.dequantize
    ),
    Operator(
        "DynamicQuantizeLinear", lower=qlinear.dynamic_quantize_linear,
        limits="never: the range must be known when the model is compiled", quantized=True, never=True
    ),
    Operator(
        "MatMulInteger", lower=qlinear.matmul_integer,
        limits=f"one constant operand; sums below 2**31; {phrases.WEIGHTS}", becomes=("dense",), quantized=True,
        heavy=True, work=linear_work.product(0),
        frames=axes.Rule(matrix_products.matmul_apart(0, 1), matrix_products.matmul_raised(0, 1)),
        error=quantizer_errors.exact_integers
    ),
    Operator(
        "QLinearConv", lower=qlinear.qlinear_conv, honours=attributes(*_WINDOW, "group", auto_pad=AUTO_PADS),
        limits=phrases.CONV, becomes=("conv2d",), quantized=True, heavy=True, work=linear_work.convolution(3),
        frames=axes.IMAGE, error=quantizer_errors.of_integers(qoperator.LEVELS["QLinearConv"])
    ),
    Operator(
        "QLinearMatMul", lower=qlinear.qlinear_matmul, limits=phrases.PRODUCT, becomes=("dense",), quantized=True,
        heavy=True, work=linear_work.product(0),
        frames=axes.Rule(matrix_products.matmul_apart(0, 3), matrix_products.matmul_raised(0, 3)),
        error=quantizer_errors.of_integers(qoperator.LEVELS["QLinearMatMul"])
    ),
    Operator(  # saturate: of float8 alone; precision: quotients are exact here, which a narrow one would round
        "QuantizeLinear", lower=qdq.quantize_linear,
        honours=attributes(
            "axis", "block_size", "output_dtype", "saturate",
            precision=(0, TensorProto.FLOAT, TensorProto.DOUBLE),
        ),
        limits=f"{phrases.SCALE}; to integers of at most 16 bits", becomes=("requantize",), quantized=True,
        frames=axes.quantizer(), error=quantizer_errors.quantize
    ),
    Operator(
        "DequantizeLinear", domains=MICROSOFT, lower=qdq.dequantize_linear, honours=attributes("axis", "block_size"),
        limits=f"{phrases.SCALE}; blocked: constants", frames=axes.quantizer(),
        error=quantizer_errors.dequantize_contrib
    ),
    Operator(
        "MatMulIntegerToFloat", domains=MICROSOFT, lower=microsoft.matmul_integer_to_float,
        quantized=True,
        limits=f"one constant operand; not along the frame axis; {phrases.WEIGHTS}", becomes=("dense",), heavy=True,
        work=linear_work.product(0),
        frames=axes.Rule(matrix_products.matmul_apart(0, 1), matrix_products.matmul_raised(0, 1)),
        error=quantizer_errors.matmul_contrib
    ),
    Operator(
        "NhwcMaxPool", domains=MICROSOFT, lower=microsoft.nhwc_max_pool,
        honours=attributes(*_POOLED, "dilations", auto_pad=AUTO_PADS),
        quantized=True,
        limits=f"{phrases.POOL}; of integers; channels last", becomes=("max_pool2d",), heavy=True, frames=axes.IMAGE,
        error=quantizer_errors.exact_integers
    ),
    Operator(
        "QGemm", domains=MICROSOFT, lower=microsoft.qgemm, honours=attributes("alpha", "transA", "transB"),
        quantized=True,
        limits=f"{phrases.PRODUCT}; transA where no axis is that of frames; alpha other than 0", becomes=("dense",),
        heavy=True, work=linear_work.product(0),
        frames=axes.Rule(matrix_products.gemm_apart(0, 3, 6), matrix_products.qgemm_raised),
        error=quantizer_errors.gemm_contrib
    ),
    Operator(
        "QLinearAdd", domains=MICROSOFT, lower=microsoft.qlinear_add,
        quantized=True,
        limits="two streams of shapes that broadcast, or a constant", becomes=("scaled_add",),
        frames=axes.elementwise(0, 3), error=quantizer_errors.of_integers(microsoft_operators.LEVELS["QLinearAdd"])
    ),
    Operator(
        "QLinearAveragePool", domains=MICROSOFT, lower=microsoft.qlinear_average_pool,
        honours=attributes(*_POOLED, "channels_last", "count_include_pad", auto_pad=AUTO_PADS),
        quantized=True,
        limits=f"{phrases.POOL}; channels first or last", becomes=("sum_pool2d",), heavy=True, frames=axes.IMAGE,
        error=quantizer_errors.of_integers(microsoft_operators.LEVELS["QLinearAveragePool"])
    ),
    Operator(
        "QLinearConcat", domains=MICROSOFT, lower=microsoft.qlinear_concat, honours=attributes("axis"),
        quantized=True,
        limits=f"streams, and constants between them; {phrases.AXES}", becomes=("concat",), frames=axes.concat(2, 3),
        error=quantizer_errors.of_integers(microsoft_operators.LEVELS["QLinearConcat"])
    ),
    Operator(
        "QLinearGlobalAveragePool", domains=MICROSOFT, lower=microsoft.qlinear_global_average_pool,
        honours=attributes("channels_last"), quantized=True,
        limits="channels first or last", becomes=("sum_pool2d",), heavy=True,
        frames=axes.IMAGE, error=quantizer_errors.of_integers(microsoft_operators.LEVELS["QLinearGlobalAveragePool"])
    ),
    Operator(
        "QLinearLeakyRelu", domains=MICROSOFT, lower=microsoft.qlinear_leaky_relu, honours=attributes("alpha"),
        quantized=True,
        limits=phrases.SCALE, becomes=("requantize",), frames=axes.elementwise(0),
        error=quantizer_errors.of_integers(microsoft_operators.LEVELS["QLinearLeakyRelu"])
    ),
    Operator(
        "QLinearMul", domains=MICROSOFT, lower=microsoft.qlinear_mul,
        quantized=True,
        limits="two streams of shapes that broadcast, or a constant", becomes=("product",),
        frames=axes.elementwise(0, 3), error=quantizer_errors.of_integers(microsoft_operators.LEVELS["QLinearMul"])
    ),
    Operator(
        "QLinearReduceMean", domains=MICROSOFT, lower=microsoft.qlinear_reduce_mean,
        honours=attributes("axes", "keepdims"), quantized=True,
        limits=phrases.AXES, becomes=("sum_pool2d",), frames=axes.reduce(),
        error=quantizer_errors.of_integers(microsoft_operators.LEVELS["QLinearReduceMean"])
    ),
    Operator(
        "QLinearSigmoid", domains=MICROSOFT, lower=microsoft.qlinear_sigmoid, quantized=True, limits=phrases.SCALE,
        becomes=("requantize",), frames=axes.elementwise(0),
        error=quantizer_errors.of_integers(microsoft_operators.LEVELS["QLinearSigmoid"])
    ),
    Operator(
        "QLinearWhere", domains=MICROSOFT, lower=microsoft.qlinear_where,
        quantized=True,
        limits=f"a bool tensor in hardware, or constant; branches: {phrases.COMPARED}", becomes=("elementwise",),
        frames=axes.elementwise(0, 1, 4),
        error=quantizer_errors.of_integers(microsoft_operators.LEVELS["QLinearWhere"])
    ),
    Operator(
        "QuantizeLinear", domains=MICROSOFT, lower=qdq.quantize_linear, honours=attributes("axis", "block_size"),
        quantized=True,
        limits=f"{phrases.SCALE}; to integers of at most 16 bits", becomes=("requantize",), frames=axes.quantizer(),
        error=quantizer_errors.quantize_contrib
    ),
    Operator(
        "BipolarQuant", domains=QONNX, lower=qonnx.bipolar_quant, quantized=True, limits="positive constant scale",
        becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=quantizer_errors.of_reals(qonnx_operators.LEVELS["BipolarQuant"])
    ),
    Operator(
        "IntQuant", domains=QONNX, lower=qonnx.quant, honours=attributes(*_LEVELS),
        quantized=True,
        limits=f"{phrases.SCALE}; 1 to 16 bits", becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=quantizer_errors.of_reals(qonnx_operators.LEVELS["IntQuant"])
    ),
    Operator(  # out_dtype: a name for what the numbers are
        "MultiThreshold", domains=QONNX, lower=qonnx.multi_threshold,
        honours=attributes("out_bias", "out_dtype", "out_scale", data_layout=qonnx.LAYOUTS),
        quantized=True,
        limits="constant thresholds, for the tensor or a channel", becomes=("requantize",), frames=axes.IMAGE,
        error=quantizer_errors.of_reals(qonnx_operators.LEVELS["MultiThreshold"])
    ),
    Operator(
        "Quant", domains=QONNX, lower=qonnx.quant, honours=attributes(*_LEVELS),
        quantized=True,
        limits=f"{phrases.SCALE}; 1 to 16 bits; every rounding mode", becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=quantizer_errors.of_reals(qonnx_operators.LEVELS["Quant"])
    ),
    Operator(
        "Trunc", domains=QONNX, lower=qonnx.trunc, honours=attributes(*_LEVELS),
        quantized=True,
        limits="constant scales whose ratio is a power of two, and bit widths", becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=quantizer_errors.of_reals(qonnx_operators.LEVELS["Trunc"])
    ),
)
