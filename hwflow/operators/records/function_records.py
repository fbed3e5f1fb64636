"""Functions of one operand, element by element."""

from __future__ import annotations

from collections.abc import Callable

from hwflow.frontend.context import finite
from hwflow.frontend.frames import axes
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.hyperbolic import Acosh, Asinh, Atanh, Cosh, Sinh
from hwflow.numerics.functions.piecewise import HardSigmoid, LeakyRelu, Round, Sign, ThresholdedRelu
from hwflow.numerics.functions.power import Reciprocal, Sqrt
from hwflow.numerics.functions.smooth import (
    Celu,
    Elu,
    Erf,
    Gelu,
    HardSwish,
    Mish,
    Selu,
    Sigmoid,
    Softplus,
    Softsign,
    Tanh,
)
from hwflow.numerics.functions.trigonometric import Acos, Asin, Atan, Cos, Sin, Tan
from hwflow.numerics.rounding import Rounding
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.onnxspec.graphs.operator_facts import OutputMode
from hwflow.onnxspec.reference import evaluator_defects, framewise
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.onnxspec.shapes import size_facts
from hwflow.operators.elementwise import islands
from hwflow.operators.float_errors import function_errors, linear_errors, move_errors
from hwflow.operators.float_errors.step_errors import ErrorRule
from hwflow.operators.record import Attributes, Operator, attributes
from hwflow.operators.records import phrases

# Without training there are no statistics and no mask. Source: the texts of onnx's schemas.
_TEST = OutputMode("is_test", off=True, refused=False)
_NO_TRAINING = OutputMode("training_mode", off=False, refused=True)


def _function(
    name: str, function: Elementwise | Callable[[OnnxNode], Elementwise], error: ErrorRule,
    honours: Attributes | None = None, limits: str = phrases.FUNCTION, divisors: tuple[int, ...] = (),
    *, of_sums: bool = False, activation: bool = False, piecewise_linear: bool = False,
) -> Operator:
    """Return the record of a function of one operand, which becomes part of the next quantizer's."""
    make = (lambda node: function) if isinstance(function, Elementwise) else function
    return Operator(
        name, lower=islands.unary(make), honours=honours or {}, limits=limits, becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=error, divisors=divisors, of_sums=of_sums, activation=activation,
        piecewise_linear=piecewise_linear
    )


RECORDS: tuple[Operator, ...] = (
    _function("Acos", Acos(), function_errors.arc_cosine, limits=f"{phrases.FUNCTION}, of numbers from -1 to 1"),
    _function("Acosh", Acosh(), function_errors.arcosh, limits=f"{phrases.FUNCTION}, of numbers of 1 and more"),
    _function("Asin", Asin(), function_errors.arc_sine, limits=f"{phrases.FUNCTION}, of numbers from -1 to 1"),
    _function("Asinh", Asinh(), function_errors.arsinh),
    _function("Atan", Atan(), function_errors.arc_tangent),
    _function("Atanh", Atanh(), function_errors.artanh, limits=f"{phrases.FUNCTION}, of numbers between -1 and 1"),
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
        becomes=("elementwise",), frames=axes.ELEMENTWISE, error=move_errors.cast, followed=True, keeps_elements=True,
        masks=True
    ),
    _function("Ceil", Round(Rounding.CEIL), move_errors.monotone),
    _function(
        "Celu", lambda node: Celu(islands.divisor(node, "alpha", 1.0)), function_errors.celu, attributes("alpha")
    ),
    Operator(
        names.CLIP, lower=islands.clip, honours=attributes("max", "min"),
        limits=f"constant bounds, of reals: {phrases.FUNCTION}; bounds of one element, of {phrases.INTEGER}",
        becomes=("elementwise", "requantize"), frames=axes.elementwise(0), error=move_errors.monotone,
        integer_operands=True, affine=True
    ),
    _function("Cos", Cos(), function_errors.sine),
    _function("Cosh", Cosh(), function_errors.hyperbolic_cosine),
    Operator(  # ratio, seed: of training alone
        "Dropout", lower=islands.dropout, honours=attributes("is_test", "ratio", "seed"),
        limits="inference: no mask, training_mode false", frames=axes.elementwise(0), error=move_errors.dropout,
        output_modes={1: _TEST, 6: _TEST}
    ),
    _function(
        "Elu", lambda node: Elu(finite(node, "alpha", 1.0)), function_errors.elu, attributes("alpha"), activation=True
    ),
    _function("Erf", Erf(), function_errors.erf),
    Operator(
        "Exp", lower=islands.exponential, limits=phrases.FUNCTION, becomes=("requantize",), frames=axes.ELEMENTWISE,
        error=function_errors.exp,
    ),
    _function("Floor", Round(Rounding.FLOOR), move_errors.monotone),
    _function(
        "Gelu", lambda node: Gelu(node.attributes.get("approximate", "none") == "tanh"),
        function_errors.gelu, attributes(approximate=("none", "tanh"))
    ),
    _function(
        "HardSigmoid", lambda node: HardSigmoid(finite(node, "alpha", 0.2), finite(node, "beta", 0.5)),
        function_errors.hard_sigmoid, attributes("alpha", "beta"), activation=True, piecewise_linear=True
    ),
    _function("HardSwish", HardSwish(), function_errors.hard_swish),
    Operator(
        names.IDENTITY, lower=islands.identity, limits="", frames=axes.ELEMENTWISE, error=move_errors.identity,
        keeps_elements=True
    ),
    _function(
        "LeakyRelu", lambda node: LeakyRelu(finite(node, "alpha", 0.01)),
        function_errors.leaky_relu, attributes("alpha"), activation=True, piecewise_linear=True
    ),
    _function("Mish", Mish(), function_errors.mish),
    Operator(
        "PRelu", lower=islands.prelu, limits=f"constant slope; {phrases.FUNCTION}", becomes=("requantize",),
        real_only=True, frames=axes.elementwise(batched_since=7), error=function_errors.prelu, sizes=size_facts.SLOPE
    ),
    _function(
        "Reciprocal", Reciprocal(), function_errors.reciprocal, limits=f"{phrases.FUNCTION}, of numbers other than 0",
        divisors=(0,),
    ),
    Operator(
        "Relu", lower=islands.relu, limits=f"{phrases.FUNCTION}; {phrases.INTEGER}", becomes=("requantize",),
        frames=axes.ELEMENTWISE, error=move_errors.monotone, by_type=True, integer_operands=True, affine=True,
        homogeneous=True, activation=True, piecewise_linear=True
    ),
    _function("Round", Round(Rounding.ROUND), move_errors.monotone),
    _function(
        "Selu", lambda node: Selu(finite(node, "alpha", 1.67326319), finite(node, "gamma", 1.05070102)),
        function_errors.selu, attributes("alpha", "gamma")
    ),
    _function(names.SIGMOID, Sigmoid(), function_errors.sigmoid, activation=True),
    _function("Sin", Sin(), function_errors.sine),
    _function("Sinh", Sinh(), function_errors.hyperbolic_sine),
    _function("Sign", Sign(), move_errors.monotone),
    _function("Softplus", Softplus(), function_errors.softplus, activation=True),
    _function("Softsign", Softsign(), function_errors.softsign, activation=True),
    _function(
        "Sqrt", Sqrt(), function_errors.square_root, limits=f"{phrases.FUNCTION}, of numbers that are not negative",
        of_sums=True,
    ),
    _function("Tan", Tan(), function_errors.tangent),
    _function(names.TANH, Tanh(), function_errors.tanh, activation=True),
    _function(
        "ThresholdedRelu", lambda node: ThresholdedRelu(finite(node, "alpha", 1.0)),
        function_errors.thresholded_relu, attributes("alpha"), activation=True, piecewise_linear=True
    ),
)
