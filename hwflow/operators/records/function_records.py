"""Functions of one operand, element by element."""

from __future__ import annotations

from hwflow.frontend.context import finite
from hwflow.frontend.frames import axes
from hwflow.numerics.functions.piecewise import HardSigmoid, LeakyRelu, Round, Sign, ThresholdedRelu
from hwflow.numerics.functions.power import Reciprocal, Sqrt
from hwflow.numerics.functions.smooth import (
    Celu,
    Elu,
    Erf,
    Exp,
    Gelu,
    HardSwish,
    Log,
    Mish,
    Selu,
    Sigmoid,
    Softplus,
    Softsign,
    Tanh,
)
from hwflow.numerics.rounding import Rounding
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.onnxspec.graphs.operator_facts import OutputMode
from hwflow.onnxspec.reference import evaluator_defects, framewise
from hwflow.onnxspec.shapes import size_facts
from hwflow.operators.elementwise import islands
from hwflow.operators.float_errors import function_errors, linear_errors, move_errors
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases

# Without training there are no statistics and no mask. Source: the texts of onnx's schemas.
_TEST = OutputMode("is_test", off=True, refused=False)
_NO_TRAINING = OutputMode("training_mode", off=False, refused=True)

RECORDS: tuple[Operator, ...] = (
    Operator(  # momentum: of training alone
        "BatchNormalization", lower=islands.batch_normalization,
        honours=attributes("epsilon", "is_test", "momentum", "training_mode", spatial=(1,)),
        limits="inference: constant scale, bias, mean and variance", becomes=("requantize",), frames=axes.IMAGE,
        error=linear_errors.batch_normalization, tame=True, long_vectors=True,
        output_counts={1: (1, 5), 6: (1, 5), 7: (1, 5), 9: (1, 5), 14: (1, 3), 15: (1, 3)},
        sizes=size_facts.statistics(), output_modes={1: _TEST, 6: _TEST, 14: _NO_TRAINING, 15: _NO_TRAINING},
        framewise=framewise.data(0), mended=evaluator_defects.BATCH_NORMALIZATION, images=1, keeps_rank=True,
        affine=True
    ),
    Operator(  # all attributes but "to" are of float8 alone
        names.CAST, lower=islands.cast, honours=attributes("round_mode", "saturate", "to"),
        limits="between real types; of integer and bool tensors; of reals to integers of at most 16 bits",
        becomes=("elementwise",), frames=axes.ELEMENTWISE, error=move_errors.cast, followed=True, keeps_elements=True
    ),
    Operator(
        "Ceil", lower=islands.unary(lambda node: Round(Rounding.CEIL)), limits=phrases.FUNCTION,
        becomes=("requantize",), frames=axes.ELEMENTWISE, error=move_errors.monotone
    ),
    Operator(
        "Celu", lower=islands.unary(lambda node: Celu(islands.divisor(node, "alpha", 1.0))),
        honours=attributes("alpha"), limits=phrases.FUNCTION, becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=function_errors.celu
    ),
    Operator(
        "Clip", lower=islands.clip, honours=attributes("max", "min"),
        limits=f"constant bounds, of reals: {phrases.FUNCTION}; bounds of one element, of {phrases.INTEGER}",
        becomes=("elementwise", "requantize"), frames=axes.elementwise(0), error=move_errors.monotone,
        integer_operands=True, affine=True
    ),
    Operator(  # ratio, seed: of training alone
        "Dropout", lower=islands.dropout, honours=attributes("is_test", "ratio", "seed"),
        limits="inference: no mask, training_mode false", frames=axes.elementwise(0), error=move_errors.dropout,
        output_modes={1: _TEST, 6: _TEST}
    ),
    Operator(
        "Elu", lower=islands.unary(lambda node: Elu(finite(node, "alpha", 1.0))), honours=attributes("alpha"),
        limits=phrases.FUNCTION, becomes=("requantize",), frames=axes.ELEMENTWISE, error=function_errors.elu
    ),
    Operator(
        "Erf", lower=islands.unary(lambda node: Erf()), limits=phrases.FUNCTION, becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=function_errors.erf
    ),
    Operator(
        "Exp", lower=islands.unary(lambda node: Exp()), limits=phrases.FUNCTION, becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=function_errors.exp
    ),
    Operator(
        "Floor", lower=islands.unary(lambda node: Round(Rounding.FLOOR)), limits=phrases.FUNCTION,
        becomes=("requantize",), frames=axes.ELEMENTWISE, error=move_errors.monotone
    ),
    Operator(
        "Gelu", lower=islands.unary(lambda node: Gelu(node.attributes.get("approximate", "none") == "tanh")),
        honours=attributes(approximate=("none", "tanh")), limits=phrases.FUNCTION, becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=function_errors.gelu
    ),
    Operator(
        "HardSigmoid",
        lower=islands.unary(lambda node: HardSigmoid(finite(node, "alpha", 0.2), finite(node, "beta", 0.5))),
        honours=attributes("alpha", "beta"), limits=phrases.FUNCTION, becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=function_errors.hard_sigmoid
    ),
    Operator(
        "HardSwish", lower=islands.unary(lambda node: HardSwish()), limits=phrases.FUNCTION, becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=function_errors.hard_swish
    ),
    Operator(
        names.IDENTITY, lower=islands.identity, limits="", frames=axes.ELEMENTWISE, error=move_errors.identity,
        keeps_elements=True
    ),
    Operator(
        "LeakyRelu", lower=islands.unary(lambda node: LeakyRelu(finite(node, "alpha", 0.01))),
        honours=attributes("alpha"), limits=phrases.FUNCTION, becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=function_errors.leaky_relu
    ),
    Operator(
        "Log", lower=islands.unary(lambda node: Log()), limits=f"{phrases.FUNCTION}, of positive numbers",
        becomes=("requantize",), frames=axes.ELEMENTWISE, error=function_errors.log
    ),
    Operator(
        "Mish", lower=islands.unary(lambda node: Mish()), limits=phrases.FUNCTION, becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=function_errors.mish
    ),
    Operator(
        "PRelu", lower=islands.prelu, limits=f"constant slope; {phrases.FUNCTION}", becomes=("requantize",),
        real_only=True, frames=axes.elementwise(raised_since=7), error=function_errors.prelu, sizes=size_facts.SLOPE
    ),
    Operator(
        "Reciprocal", lower=islands.unary(lambda node: Reciprocal()),
        limits=f"{phrases.FUNCTION}, of numbers other than 0", becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=function_errors.reciprocal
    ),
    Operator(
        "Relu", lower=islands.relu, limits=f"{phrases.FUNCTION}; {phrases.INTEGER}", becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=move_errors.monotone, by_type=True, integer_operands=True, affine=True
    ),
    Operator(
        "Round", lower=islands.unary(lambda node: Round(Rounding.ROUND)), limits=phrases.FUNCTION,
        becomes=("requantize",), frames=axes.ELEMENTWISE, error=move_errors.monotone
    ),
    Operator(
        "Selu",
        lower=islands.unary(lambda node: Selu(finite(node, "alpha", 1.67326319), finite(node, "gamma", 1.05070102))),
        honours=attributes("alpha", "gamma"), limits=phrases.FUNCTION, becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=function_errors.selu
    ),
    Operator(
        "Sigmoid", lower=islands.unary(lambda node: Sigmoid()), limits=phrases.FUNCTION, becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=function_errors.sigmoid
    ),
    Operator(
        "Sign", lower=islands.unary(lambda node: Sign()), limits=phrases.FUNCTION, becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=move_errors.monotone
    ),
    Operator(
        "Softplus", lower=islands.unary(lambda node: Softplus()), limits=phrases.FUNCTION, becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=function_errors.softplus
    ),
    Operator(
        "Softsign", lower=islands.unary(lambda node: Softsign()), limits=phrases.FUNCTION, becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=function_errors.softsign
    ),
    Operator(
        "Sqrt", lower=islands.unary(lambda node: Sqrt()),
        limits=f"{phrases.FUNCTION}, of numbers that are not negative", becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=function_errors.square_root
    ),
    Operator(
        "Tanh", lower=islands.unary(lambda node: Tanh()), limits=phrases.FUNCTION, becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=function_errors.tanh
    ),
    Operator(
        "ThresholdedRelu", lower=islands.unary(lambda node: ThresholdedRelu(finite(node, "alpha", 1.0))),
        honours=attributes("alpha"), limits=phrases.FUNCTION, becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=function_errors.thresholded_relu
    ),
)
