"""Pow: powers of reals with constant exponents are functions before the next quantizer, with others exponentials of
products with logarithms; powers of integers are computed by repeated squaring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, behind, exact_constant, reals, refuse
from hwflow.frontend.frames import axes
from hwflow.frontend.stream_types import COMPUTED_TYPES, REAL_TYPES
from hwflow.frontend.views import Constant, Integers, QuantizedConstant, Reals, View, as_array, elementwise
from hwflow.ir.integer_functions import Function, Simple
from hwflow.ir.wrapping import wrapped
from hwflow.numerics.functions.piecewise import Affine
from hwflow.numerics.functions.power import Pow
from hwflow.numerics.functions.smooth import Log
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.onnxspec.reference import integer_powers
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.approximations.real_powers import constant, exponential
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.arithmetic import product_of
from hwflow.operators.elementwise.integers import Operand
from hwflow.operators.float_errors import function_errors
from hwflow.operators.float_errors.step_errors import Errors, Step, is_integer
from hwflow.operators.moves.moves import broadcast, with_constant
from hwflow.operators.norms.approximations import operand
from hwflow.operators.norms.logarithms import logarithm
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases
from hwflow.types import IntType


def power(state: Lowering, node: OnnxNode) -> View:
    """Lower Pow of reals with a constant exponent, or of integers, which wrap around as in ONNX."""
    if state.model.values[node.outputs[0]].dtype in REAL_TYPES:
        views = [state.view(name) for name in node.inputs]
        if isinstance(views[1], Reals):
            return _of_streams(state, node, views)
        view, real = with_constant(state, node, 1, "exponent")
        return behind(view, node, elementwise(Pow, real))
    base, exponent = integers.operand(state, node, 0), _exponent(state, node)
    type_ = COMPUTED_TYPES[state.model.values[node.outputs[0]].dtype]
    plan = _Plan(type_)
    if isinstance(plan.of(base, exponent), _Made):
        return plan.made(state, node)
    assert isinstance(base, Integers), "the base itself"
    return integers.expanded(state, node, base, state.frame_shape(node.outputs[0]))


def _of_streams(state: Lowering, node: OnnxNode, views: Sequence[View]) -> View:
    """Return powers with exponents that are computed at run time, of positive reals: e to the power of products with
    logarithms."""
    exponents = operand(state, node, reals(state, node, 1))
    wholes = [state.model.values[name].shape for name in node.inputs]
    target = np.broadcast_shapes(*wholes)
    exponents = broadcast(state, node, exponents, wholes[1], target)
    if isinstance(views[0], Constant | QuantizedConstant):
        base = exact_constant(state, node, 0, "base")
        if base.size > 1 or base.reshape(-1)[0] <= 0:
            raise refuse(
                node, "power-base", "a constant base must be one positive number, not several or one below",
                "write the power by other operators",
            )
        factor = constant(Log(), base.reshape(-1)[0])
        product = replace(exponents, scale=as_array(exponents.scale * factor)) if factor else None
    else:
        logarithms = logarithm(state, node, operand(state, node, reals(state, node, 0)))
        product = product_of(state, node, broadcast(state, node, logarithms, wholes[0], target), exponents)
    if product is None:
        return behind(exponents, node, as_array(Affine(Fraction(0), Fraction(1))))
    result = exponential(state, node, product)
    return replace(result, anchor=exponents.anchor, after=tuple(dict.fromkeys((*exponents.after, node.name))))


def _exponent(state: Lowering, node: OnnxNode) -> Operand:
    """Return the exponents, integers of at least 0."""
    name = node.inputs[1]
    view = state.view(name)
    if isinstance(view, Constant) and view.array.dtype.kind == "f":
        array = view.array
        wrong = array[~(np.abs(array) < 1 << 62) | (array != np.trunc(array))].reshape(-1)
        if wrong.size:
            raise refuse(
                node, "integer-exponent", f"exponents {show(name)} of integers must be whole numbers, not {wrong[0]}",
                "cast the base to float and quantize the result",
            )
        whole = array.astype(np.int64)
        found: Operand = int(whole.reshape(-1)[0]) if (whole == whole.reshape(-1)[0]).all() else whole
    else:
        found = integers.operand(state, node, 1)
    least = found.low if isinstance(found, Integers) else int(np.min(found))
    if least < 0:
        raise refuse(
            node, "integer-exponent", f"exponents {show(name)} of integers must be at least 0, not down to {least}",
            "give them an unsigned type, or cast the base to float and quantize the result",
        )
    return found


class _Made(NamedTuple):
    """The result of a step of a plan."""

    number: int


Term = Operand | _Made


class _Plan:
    """Functions of operands and of one another, in order; the last one gives the powers."""

    def __init__(self, type_: IntType) -> None:
        self.type = type_
        self.steps: list[tuple[Function | integers.Product, tuple[Term, ...]]] = []

    def add(self, function: Function | integers.Product, *operands: Term) -> _Made:
        self.steps.append((function, operands))
        return _Made(len(self.steps) - 1)

    def product(self, a: Term, b: Term) -> Term:
        if isinstance(a, Integers | _Made) or isinstance(b, Integers | _Made):
            return self.add(integers.Product(), a, b)
        product = wrapped(np.asarray(a, dtype=np.int64) * np.asarray(b, dtype=np.int64), self.type)
        return int(product) if product.ndim == 0 else product

    def chosen(self, exponent: Operand, place: int, square: Term) -> Term | None:
        """Return ``square`` where the exponents have a bit at ``place``, else 1; None if none has it."""
        if isinstance(exponent, Integers):
            return self.add(Simple("where"), self.add(Simple("and"), exponent, 1 << place), square, 1)
        bits = np.asarray(exponent) >> place & 1
        if bits.all():
            return square
        if not bits.any():
            return None
        return self.add(Simple("where"), bits, square, 1)

    def of(self, base: Operand, exponent: Operand) -> Term:
        """Plan the powers, by repeated squaring; return the last step's result."""
        most = exponent.high if isinstance(exponent, Integers) else int(np.max(exponent))
        square: Term = base
        result: Term | None = None
        for place in range(most.bit_length()):
            if place:
                square = self.product(square, square)
            factor = self.chosen(exponent, place, square)
            if factor is not None:
                result = factor if result is None else self.product(result, factor)
        return self.add(Simple("where"), 0, base, 1) if result is None else result

    def made(self, state: Lowering, node: OnnxNode) -> Integers:
        """Add the steps' nodes; return the last result."""
        found: list[Integers] = []
        for number, (function, terms) in enumerate(self.steps):
            operands = [found[term.number] if isinstance(term, _Made) else term for term in terms]
            last = number == len(self.steps) - 1
            found.append(integers.step(state, node, function, operands, self.type, last=last))
        return found[-1]


def _error(step: Step) -> Errors:
    """Bound Pow; powers of exact integers are exact."""
    if is_integer(step.output):
        step.exact(0, 1)
        return np.zeros(step.output.shape)
    return function_errors.power(step)


RECORDS = (
    Operator(
        names.POW, lower=power, honours=attributes(broadcast=(0, 1)),
        limits=f"{phrases.FUNCTION}; of streams, positive bases in front of a quantizer; {phrases.INTEGER}, by "
        "integers of at least 0",
        becomes=("elementwise", "product", "requantize"), real_only=True, frames=axes.ELEMENTWISE,
        error=_error, mended=integer_powers.POW, raises=True
    ),
)
