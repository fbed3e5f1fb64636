"""Quantizers and quantized operators of every dialect."""

from __future__ import annotations

from onnx import TensorProto

from hwflow.frontend.frames import axes, matrix_products
from hwflow.onnxspec.dialect_operators import microsoft_operators, qonnx_operators, qoperator
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.onnxspec.reference import evaluator_defects, framewise, runtime_differences
from hwflow.onnxspec.shapes import dialect_forms, dialects, size_facts
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
        work=linear_work.convolution(1), frames=axes.IMAGE, error=quantizer_errors.exact_integers, tame=True,
        data=(0, 1), sizes=size_facts.convolution(0, 1), framewise=framewise.data(0),
        mended=evaluator_defects.INTEGER_CONV, differences=(runtime_differences.SATURATION,)
    ),
    Operator(
        names.DEQUANTIZE_LINEAR, lower=qdq.dequantize_linear, honours=attributes("axis", "block_size", "output_dtype"),
        limits=f"{phrases.SCALE}; blocked: constants", frames=axes.quantizer(), error=quantizer_errors.dequantize,
        tame=True, by_type=True, foldable=False, data=(0,), framewise=framewise.quantizer,
        mended=evaluator_defects.DEQUANTIZE, keeps_rank=True, dequantizes=True
    ),
    Operator(
        "DynamicQuantizeLinear", lower=qlinear.dynamic_quantize_linear,
        limits="never: the range must be known when the model is compiled", quantized=True, never=True, tame=True
    ),
    Operator(
        names.MAT_MUL_INTEGER, lower=qlinear.matmul_integer,
        limits=f"sums below 2**31; {phrases.MATRICES}", becomes=("dense", "matrix_product"), quantized=True,
        heavy=True, work=linear_work.product(0),
        frames=matrix_products.matmul(0, 1, columns=(3,)),
        error=quantizer_errors.exact_integers, tame=True, matrices=(0, 1), data=(0, 1), sizes=size_facts.product(0, 1),
        framewise=framewise.data(0), mended=evaluator_defects.INTEGER_PRODUCT,
        differences=(runtime_differences.SATURATION,)
    ),
    Operator(
        "QLinearConv", lower=qlinear.qlinear_conv, honours=attributes(*_WINDOW, "group", auto_pad=AUTO_PADS),
        limits=phrases.CONV, becomes=("conv2d",), quantized=True, heavy=True, work=linear_work.convolution(3),
        frames=axes.IMAGE, error=quantizer_errors.of_integers, tame=True,
        data=(0, 3, 8), sizes=size_facts.convolution(0, 3, 8), framewise=framewise.data(0),
        levels=qoperator.qlinear_conv, mended=evaluator_defects.QUANTIZED_CONV,
        differences=(runtime_differences.SATURATION, runtime_differences.FLOAT32)
    ),
    Operator(
        "QLinearMatMul", lower=qlinear.qlinear_matmul, limits=phrases.PRODUCT, becomes=("dense", "matrix_product"),
        quantized=True, heavy=True, work=linear_work.product(0),
        frames=matrix_products.matmul(0, 3, columns=(4, 5)),
        error=quantizer_errors.of_integers, tame=True, matrices=(0, 3), data=(0, 3),
        sizes=size_facts.product(0, 3), framewise=framewise.data(0), levels=qoperator.qlinear_matmul,
        mended=evaluator_defects.QUANTIZED_PRODUCT,
        differences=(runtime_differences.SATURATION, runtime_differences.FLOAT32)
    ),
    Operator(  # saturate: of float8 alone; precision: quotients are exact here, which a narrow one would round
        names.QUANTIZE_LINEAR, lower=qdq.quantize_linear,
        honours=attributes(
            "axis", "block_size", "output_dtype", "saturate",
            precision=(0, TensorProto.FLOAT, TensorProto.DOUBLE),
        ),
        limits=f"{phrases.SCALE}; to integers of at most 16 bits", becomes=("requantize",), quantized=True,
        frames=axes.quantizer(), error=quantizer_errors.quantize, tame=True, by_type=True, foldable=False, data=(0,),
        framewise=framewise.quantizer, mended=evaluator_defects.QUANTIZE, keeps_rank=True, quantizes=True
    ),
    Operator(
        names.DEQUANTIZE_LINEAR, domains=MICROSOFT, lower=qdq.dequantize_linear,
        honours=attributes("axis", "block_size"),
        limits=f"{phrases.SCALE}; blocked: constants", frames=axes.quantizer(),
        error=quantizer_errors.dequantize_contrib, data=(0,), framewise=framewise.quantizer,
        form=dialect_forms.DEQUANTIZE, shape=dialects.dequantize, evaluate=microsoft_operators.dequantize,
        keeps_rank=True, dequantizes=True
    ),
    Operator(
        "MatMulIntegerToFloat", domains=MICROSOFT, lower=microsoft.matmul_integer_to_float, quantized=True,
        limits=phrases.PRODUCT, becomes=("dense", "matrix_product"), heavy=True,
        work=linear_work.product(0),
        frames=matrix_products.matmul(0, 1, columns=(3, 5, 6)),
        error=quantizer_errors.matmul_contrib, matrices=(0, 1), data=(0, 1, 6), framewise=framewise.data(0),
        form=dialect_forms.MATRIX_PRODUCT, shape=dialects.matmul, evaluate=microsoft_operators.matmul_to_float
    ),
    Operator(
        "NhwcMaxPool", domains=MICROSOFT, lower=microsoft.nhwc_max_pool,
        honours=attributes(*_POOLED, "dilations", auto_pad=AUTO_PADS), quantized=True,
        limits=f"{phrases.POOL}; of integers; channels last", becomes=("max_pool2d",), heavy=True, frames=axes.IMAGE,
        error=quantizer_errors.exact_integers, form=dialect_forms.MAX_POOL, shape=dialects.nhwc_max_pool,
        evaluate=microsoft_operators.nhwc_max_pool, moves=True
    ),
    Operator(
        "QGemm", domains=MICROSOFT, lower=microsoft.qgemm, honours=attributes("alpha", "transA", "transB"),
        quantized=True,
        limits=f"{phrases.PRODUCT}; transA, and two streams, where no axis is that of frames; alpha other than 0",
        becomes=("dense", "matrix_product"),
        heavy=True, work=linear_work.product(0),
        frames=axes.BatchingRule(matrix_products.gemm_independent(0, 3, 6), matrix_products.qgemm_batched),
        error=quantizer_errors.gemm_contrib, data=(0, 3, 6), framewise=framewise.rows, form=dialect_forms.GEMM,
        shape=dialects.gemm, levels=microsoft_operators.gemm_levels, evaluate=microsoft_operators.gemm,
        differences=(runtime_differences.SATURATION, runtime_differences.FLOAT32)
    ),
    Operator(
        "QLinearAdd", domains=MICROSOFT, lower=microsoft.qlinear_add, quantized=True,
        limits="two streams of shapes that broadcast, or a constant", becomes=("scaled_add",),
        frames=axes.elementwise(0, 3), error=quantizer_errors.of_integers,
        data=(0, 3), framewise=framewise.data(0, 3), form=dialect_forms.BINARY, shape=dialects.binary,
        levels=microsoft_operators.sum_levels, differences=(runtime_differences.ROUNDING, runtime_differences.FLOAT32)
    ),
    Operator(
        "QLinearAveragePool", domains=MICROSOFT, lower=microsoft.qlinear_average_pool,
        honours=attributes(*_POOLED, "channels_last", "count_include_pad", auto_pad=AUTO_PADS), quantized=True,
        limits=f"{phrases.POOL}; channels first or last", becomes=("sum_pool2d",), heavy=True, frames=axes.IMAGE,
        error=quantizer_errors.of_integers,
        framewise=framewise.data(0), form=dialect_forms.AVERAGE_POOL, shape=dialects.average_pool,
        levels=microsoft_operators.average_pool_levels,
        differences=(runtime_differences.ROUNDING, runtime_differences.FLOAT32)
    ),
    Operator(
        "QLinearConcat", domains=MICROSOFT, lower=microsoft.qlinear_concat, honours=attributes("axis"), quantized=True,
        limits=f"streams, and constants between them; {phrases.AXES}", becomes=("concat",), frames=axes.concat(2, 3),
        error=quantizer_errors.of_integers, framewise=framewise.inner_axis,
        form=dialect_forms.CONCAT, shape=dialects.concat, levels=microsoft_operators.joined_levels,
        differences=(runtime_differences.FLOAT32,)
    ),
    Operator(
        "QLinearGlobalAveragePool", domains=MICROSOFT, lower=microsoft.qlinear_global_average_pool,
        honours=attributes("channels_last"), quantized=True,
        limits="channels first or last", becomes=("sum_pool2d",), heavy=True,
        frames=axes.IMAGE, error=quantizer_errors.of_integers,
        framewise=framewise.data(0), form=dialect_forms.unary(channels_last="integer"), shape=dialects.global_pool,
        levels=microsoft_operators.global_average_levels, differences=(runtime_differences.FLOAT32,)
    ),
    Operator(
        "QLinearLeakyRelu", domains=MICROSOFT, lower=microsoft.qlinear_leaky_relu, honours=attributes("alpha"),
        quantized=True,
        limits=phrases.SCALE, becomes=("requantize",), frames=axes.elementwise(0),
        error=quantizer_errors.of_integers, framewise=framewise.data(0),
        form=dialect_forms.unary(alpha="real"), shape=dialects.same, levels=microsoft_operators.leaky_relu_levels,
        differences=(runtime_differences.FLOAT32,)
    ),
    Operator(
        "QLinearMul", domains=MICROSOFT, lower=microsoft.qlinear_mul, quantized=True,
        limits="two streams of shapes that broadcast, or a constant", becomes=("product",),
        frames=axes.elementwise(0, 3), error=quantizer_errors.of_integers,
        data=(0, 3), framewise=framewise.data(0, 3), form=dialect_forms.BINARY, shape=dialects.binary,
        levels=microsoft_operators.product_levels,
        differences=(runtime_differences.ROUNDING, runtime_differences.FLOAT32)
    ),
    Operator(
        "QLinearReduceMean", domains=MICROSOFT, lower=microsoft.qlinear_reduce_mean,
        honours=attributes("axes", "keepdims"), quantized=True,
        limits=phrases.AXES, becomes=("sum_pool2d",), frames=axes.reduce(),
        error=quantizer_errors.of_integers,
        form=dialect_forms.unary(axes="integers", keepdims="integer"), shape=dialects.reduce_mean,
        levels=microsoft_operators.mean_levels, differences=(runtime_differences.FLOAT32,)
    ),
    Operator(
        "QLinearSigmoid", domains=MICROSOFT, lower=microsoft.qlinear_sigmoid, quantized=True, limits=phrases.SCALE,
        becomes=("requantize",), frames=axes.elementwise(0),
        error=quantizer_errors.of_integers, framewise=framewise.data(0),
        form=dialect_forms.unary(), shape=dialects.same, levels=microsoft_operators.sigmoid_levels,
        differences=(runtime_differences.FLOAT32,)
    ),
    Operator(
        "QLinearSoftmax", domains=MICROSOFT, lower=microsoft.qlinear_softmax, honours=attributes("axis", "opset"),
        quantized=True, limits="of reals of at most 16 bits",
        becomes=("elementwise", "max_pool2d", "quotient", "requantize", "sum_pool2d"),
        frames=axes.along(-1, before=(13, 1)), error=quantizer_errors.of_softmax,
        form=dialect_forms.unary(axis="integer", opset="integer"), shape=dialects.same,
        levels=microsoft_operators.softmax_levels,
        differences=(runtime_differences.SOFTMAX, runtime_differences.FLOAT32)
    ),
    Operator(
        "QLinearWhere", domains=MICROSOFT, lower=microsoft.qlinear_where, quantized=True,
        limits=f"a bool tensor in hardware, or constant; branches: {phrases.COMPARED}", becomes=("elementwise",),
        frames=axes.elementwise(0, 1, 4),
        error=quantizer_errors.of_integers,
        framewise=framewise.data(0, 1, 4), form=dialect_forms.WHERE, shape=dialects.where,
        levels=microsoft_operators.chosen_levels, differences=(runtime_differences.FLOAT32,)
    ),
    Operator(
        names.QUANTIZE_LINEAR, domains=MICROSOFT, lower=qdq.quantize_linear, honours=attributes("axis", "block_size"),
        quantized=True,
        limits=f"{phrases.SCALE}; to integers of at most 16 bits", becomes=("requantize",), frames=axes.quantizer(),
        error=quantizer_errors.quantize_contrib, data=(0,), framewise=framewise.quantizer, form=dialect_forms.QUANTIZE,
        shape=dialects.quantize, levels=microsoft_operators.quantizer_levels, keeps_rank=True, quantizes=True
    ),
    Operator(
        "BipolarQuant", domains=QONNX, lower=qonnx.bipolar_quant, quantized=True, limits="positive constant scale",
        becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=quantizer_errors.of_thresholds, data=(0,), framewise=framewise.data(0),
        form=dialect_forms.SIGNS, shape=dialects.same, levels=qonnx_operators.bipolar_quant
    ),
    Operator(
        "IntQuant", domains=QONNX, lower=qonnx.quant, honours=attributes(*_LEVELS), quantized=True,
        limits=f"{phrases.SCALE}; 1 to 16 bits", becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=quantizer_errors.of_quotients, data=(0,), framewise=framewise.data(0),
        form=dialect_forms.LEVELS, shape=dialects.same, levels=qonnx_operators.quant
    ),
    Operator(  # out_dtype: a name for what the numbers are
        "MultiThreshold", domains=QONNX, lower=qonnx.multi_threshold,
        honours=attributes("out_bias", "out_dtype", "out_scale", data_layout=qonnx.LAYOUTS), quantized=True,
        limits="constant thresholds, per tensor or per channel", becomes=("requantize",), frames=axes.IMAGE,
        error=quantizer_errors.of_thresholds, framewise=framewise.data(0),
        form=dialect_forms.THRESHOLDS, shape=dialects.multi_threshold, levels=qonnx_operators.multi_threshold,
        keeps_rank=True, remade=True
    ),
    Operator(
        "Quant", domains=QONNX, lower=qonnx.quant, honours=attributes(*_LEVELS), quantized=True,
        limits=f"{phrases.SCALE}; 1 to 16 bits; every rounding mode", becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=quantizer_errors.of_quotients, data=(0,), framewise=framewise.data(0),
        form=dialect_forms.LEVELS, shape=dialects.same, levels=qonnx_operators.quant
    ),
    Operator(
        "Trunc", domains=QONNX, lower=qonnx.trunc, honours=attributes(*_LEVELS), quantized=True,
        limits="constant scales whose ratio is a power of two, and bit widths", becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=quantizer_errors.of_quotients, data=(0,),
        framewise=framewise.data(0), form=dialect_forms.CUT_OFF, shape=dialects.same, levels=qonnx_operators.trunc,
        remade=True
    ),
)
