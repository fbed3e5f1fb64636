"""Functions of one operand, element by element."""

from __future__ import annotations

from hwflow.frontend.context import finite
from hwflow.frontend.frames import axes
from hwflow.numerics.functions.chains import HardSigmoid, LeakyRelu, Round, Sign, ThresholdedRelu
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
from hwflow.operators.elementwise import islands
from hwflow.operators.float_errors import function_errors, linear_errors, move_errors
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases

_BROADCAST = (0, 1)  # of operator sets before 7: without an axis the shapes are aligned at their ends, as ever since

RECORDS: tuple[Operator, ...] = (
    Operator(  # momentum: of training alone
        "BatchNormalization", lower=islands.batch_normalization,
        honours=attributes("epsilon", "is_test", "momentum", "training_mode", spatial=(1,)),
        limits="inference: constant scale, bias, mean and variance", becomes=("requantize",), frames=axes.IMAGE,
        error=linear_errors.batch_normalization
    ),
    Operator(  # all attributes but "to" are of float8 alone
        "Cast", lower=islands.cast, honours=attributes("round_mode", "saturate", "to"),
        limits="between real types; of integer and bool tensors; of reals to integers of at most 16 bits",
        becomes=("elementwise",), frames=axes.ELEMENTWISE, error=move_errors.cast
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
        becomes=("elementwise", "requantize"), frames=axes.elementwise(0), error=move_errors.monotone
    ),
    Operator(  # ratio, seed: of training alone
        "Dropout", lower=islands.dropout, honours=attributes("is_test", "ratio", "seed"),
        limits="inference: no mask, training_mode false", frames=axes.elementwise(0), error=move_errors.dropout
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
    Operator("Identity", lower=islands.identity, limits="", frames=axes.ELEMENTWISE, error=move_errors.identity),
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
        real_only=True, frames=axes.ELEMENTWISE, error=function_errors.prelu
    ),
    Operator(
        "Pow", lower=islands.power, honours=attributes(broadcast=_BROADCAST),
        limits=f"constant exponent; {phrases.FUNCTION}", becomes=("requantize",), real_only=True,
        frames=axes.ELEMENTWISE, error=function_errors.power
    ),
    Operator(
        "Reciprocal", lower=islands.unary(lambda node: Reciprocal()),
        limits=f"{phrases.FUNCTION}, of numbers other than 0", becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=function_errors.reciprocal
    ),
    Operator(
        "Relu", lower=islands.relu, limits=f"{phrases.FUNCTION}; {phrases.INTEGER}", becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=move_errors.monotone
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
