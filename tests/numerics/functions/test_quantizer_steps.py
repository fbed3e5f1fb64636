"""Step functions of quantizers after chains of functions, value by value against a second implementation."""

from __future__ import annotations

from fractions import Fraction as F
from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp

from hwflow.numerics.functions import subdivision
from hwflow.numerics.functions.combination import Combination
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.hyperbolic import Acosh, Asinh, Atanh, Cosh, Sinh
from hwflow.numerics.functions.piecewise import (
    Abs,
    Affine,
    Clip,
    HardSigmoid,
    LeakyRelu,
    Ranked,
    Relu,
    Round,
    Sign,
    ThresholdedRelu,
)
from hwflow.numerics.functions.power import Pow, Reciprocal, Sqrt
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
from hwflow.numerics.functions.trigonometric import Acos, Asin, Atan, Cos, Sin, Tan
from hwflow.numerics.requantizers.stages import NoSteps, QuantizerStage
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.numerics.rounding import Rounding
from tests.numerics.functions.reals import BITS, NoValue, Unsure, position, rounded, value


def level(stage: QuantizerStage, q: int) -> int:
    """By the definition, with many digits."""
    y = value(stage.functions, stage.scale * (q - stage.zero_point))
    before, after = (stage.out_zero_point, 0) if stage.zero_point_inside else (0, int(stage.out_zero_point))
    n = rounded(position(y, stage.out_scale, before), stage.rounding) + after
    return min(max(n, stage.low), stage.high)


def check(stage: QuantizerStage, lo: int, hi: int) -> StepFunction | None:
    """None: undefined somewhere, and refused for that."""
    try:
        with mp.workprec(BITS):
            expected = [level(stage, q) for q in range(lo, hi + 1)]
    except Unsure:
        assume(False)
    except NoValue:
        for few in FEW:
            with patch.object(subdivision, "FEW_POINTS", few), pytest.raises(NoSteps, match="have a value everywhere"):
                stage.steps(lo, hi)
        return None
    for few in FEW:
        with patch.object(subdivision, "FEW_POINTS", few):
            steps = stage.steps(lo, hi)
        assert [steps(q) for q in range(lo, hi + 1)] == expected
    return steps


FEW = (1 << 12, -(1 << 30))
"""Integer by integer, and by parts of the reals."""


dyadic = st.builds(lambda n, k: F(n, 1 << k), st.sampled_from([1, 3, 4]), st.integers(0, 5))
positive = dyadic | st.fractions(F(1, 50), 4, max_denominator=50) | st.floats(1 / 64, 4, width=32).map(F)
scales = st.just(F(0)) | st.builds(lambda s, sign: s * sign, positive, st.sampled_from([-1, 1]))
numbers = st.fractions(-6, 6, max_denominator=8)
rational: st.SearchStrategy[Elementwise] = st.one_of(
    st.builds(Affine, st.fractions(-4, 4, max_denominator=8), numbers),
    st.builds(Clip, st.none() | numbers, st.none() | numbers),
    st.builds(LeakyRelu, numbers),
    st.builds(ThresholdedRelu, numbers),
    st.builds(HardSigmoid, numbers, numbers),
    st.builds(Round, st.sampled_from(Rounding)),
    st.sampled_from([Relu(), Abs(), Sign()]),
    st.lists(numbers, min_size=1, max_size=6, unique=True).map(lambda levels: Ranked(tuple(sorted(levels)))),
)
gentle = st.one_of(
    st.builds(Affine, st.sampled_from([F(-1), F(1, 2), F(1), F(3, 2)]), st.fractions(-1, 1, max_denominator=4)),
    st.builds(Clip, st.none() | st.integers(-9, -3).map(F), st.none() | st.integers(3, 9).map(F)),
    st.builds(LeakyRelu, st.sampled_from([F(1, 3), F(-1, 2)])),
    st.sampled_from([Abs(), Round(Rounding.FLOOR)]),
)
"""Functions that leave something after many of them."""
smooth: st.SearchStrategy[Elementwise] = st.one_of(
    st.sampled_from(
        [
            HardSwish(), Sigmoid(), Tanh(), Gelu(), Gelu(True), Softplus(), Softsign(), Mish(), Erf(), Exp(), Sqrt(),
            Log(), Reciprocal(), Sin(), Cos(), Tan(), Asin(), Acos(), Atan(), Sinh(), Cosh(), Asinh(), Acosh(), Atanh(),
        ]
    ),
    st.builds(Pow, st.integers(-3, 4).map(F) | st.sampled_from([F(1, 2), F(-1, 2), F(3, 2), F(1, 3), F(5, 4)])),
    st.builds(Elu, numbers),
    st.builds(Selu, numbers, numbers),
    st.builds(Celu, numbers.filter(bool)),
)  # fmt: skip
either = rational | smooth
combinations = st.builds(
    Combination, st.sampled_from(["add", "sub", "mul", "div", "min", "max"]),
    st.lists(either, max_size=2).map(tuple), st.lists(either, max_size=2).map(tuple),
)  # fmt: skip


def stages(
    functions: st.SearchStrategy[Elementwise], most: int, least: int = 0
) -> st.SearchStrategy[QuantizerStage]:
    return st.builds(
        QuantizerStage, scales, st.fractions(-20, 20, max_denominator=16),
        st.lists(functions, min_size=least, max_size=most).map(tuple), positive, st.integers(-9, 9),
        st.integers(-20, 0), st.integers(0, 20), st.sampled_from(Rounding), st.booleans(),
    )


@settings(max_examples=250, deadline=None)
@given(stages(rational, 4), st.integers(-70, 40), st.integers(0, 90))
def test_rational_chains(stage: QuantizerStage, lo: int, extent: int) -> None:
    check(stage, lo, lo + extent)


@settings(max_examples=60, deadline=None)
@given(stages(gentle, 30, 17), st.integers(-70, 40), st.integers(0, 60))
def test_long_chains(stage: QuantizerStage, lo: int, extent: int) -> None:
    """Of more functions than levels are pulled back through at once."""
    check(stage, lo, lo + extent)


@settings(max_examples=150, deadline=None)
@given(stages(either | combinations, 3), st.integers(-40, 20), st.integers(0, 40))
def test_any_chain(stage: QuantizerStage, lo: int, extent: int) -> None:
    check(stage, lo, lo + extent)


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(smooth, combinations), st.builds(lambda n, k: F(n, 1 << k), st.integers(1, 9), st.integers(0, 4)),
    st.sampled_from([-2, -1, 1]), st.sampled_from(Rounding), dyadic,
)  # fmt: skip
def test_ties_on_purpose(f: Elementwise, step: F, sign: int, mode: Rounding, out_scale: F) -> None:
    check(QuantizerStage(sign * step, F(0), (f,), out_scale, 1, -30, 30, mode), -16, 16)
