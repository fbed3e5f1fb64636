"""Quantizers of 16 bits: exact at the integers next to every kind of place, in a work that follows what is crossed."""

from __future__ import annotations

import random
import sys
from fractions import Fraction as F

import numpy as np
import pytest
from mpmath import mp

from hwflow.numerics.functions.combination import combination
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.piecewise import Abs, Affine, Clip, LeakyRelu, Relu, Round
from hwflow.numerics.functions.power import RootMultiply
from hwflow.numerics.functions.smooth import Erf, Gelu, HardSwish, Mish, Sigmoid, Tanh
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.numerics.requantizers.step_function import StepFunction, compose
from hwflow.numerics.rounding import Rounding
from tests.numerics.functions.reals import BITS
from tests.numerics.functions.test_quantizer_steps import level

INT16 = (-(1 << 15), (1 << 15) - 1)
INT8 = (-128, 127)
SMALL, LARGE = (-128, 127), (-(1 << 23), 1 << 23)
CHAINS: dict[str, tuple[Elementwise, ...]] = {
    "none": (),
    "relu": (Relu(),),
    "affine": (Affine(F(-3, 7), F(1, 9)), Clip(F(-2), F(5, 3))),
    "leaky": (LeakyRelu(F(1, 3)),),
    "normalized": (RootMultiply(F(5, 7)), Affine(F(11, 13), F(-1, 5)), Relu()),
    "hard swish": (HardSwish(),),
    "swish": (combination("mul", (), (Sigmoid(),)),),
    "gelu": (Gelu(),),
    "hard swish of operators": (combination("mul", (), (Affine(F(1), F(3)), Clip(F(0), F(6)))), Affine(F(1, 6), F(0))),
    "gelu of operators": (combination("mul", (), (Affine(F(181, 256), F(0)), Erf(), Affine(F(1, 2), F(1, 2)))),),
    "wave": (combination("mul", (Tanh(),), (Affine(F(2), F(1)), Tanh())), Affine(F(3), F(-1, 3))),
    "kinks": (combination("min", (Abs(),), (Affine(F(-2), F(7)),)), Mish()),
    "jumps": (Affine(F(16), F(0)), Round(Rounding.ROUND), Clip(F(-128), F(127)), Affine(F(1, 16), F(0)), HardSwish()),
    "quotient": (combination("div", (), (Abs(), Affine(F(1), F(1)))),),
}


def stage(chain: tuple[Elementwise, ...], span: int, levels: tuple[int, int], channel: int = 0) -> QuantizerStage:
    """Over ``span`` integers the reals go from about -4 to 4, and the levels span them."""
    scale, width = F(8, span) * F(1000 + channel, 1001), F(8, levels[1] - levels[0])
    return QuantizerStage(scale, F(channel, 3), chain, width * F(997, 1009), 3, *levels)


@pytest.mark.parametrize("span", [SMALL, LARGE], ids=["8 bits in", "24 bits in"])
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
@pytest.mark.parametrize("sign", [1, -1])
def test_exact(chain: tuple[Elementwise, ...], span: tuple[int, int], sign: int) -> None:
    of = stage(chain, (span[1] - span[0]) * sign, INT16)
    steps = of.steps(*span)
    rng = random.Random(1)
    breaks = rng.sample(steps.breaks, min(60, steps.count))
    places = {*span, *(q for b in breaks for q in (b - 1, b)), *(rng.randint(*span) for _ in range(60))}
    with mp.workprec(BITS):
        assert [steps(q) for q in sorted(places)] == [level(of, q) for q in sorted(places)]


@pytest.mark.parametrize("mode", Rounding)
@pytest.mark.parametrize("inside", [False, True])
def test_ties(mode: Rounding, inside: bool) -> None:
    """Where every other integer lies exactly between two levels."""
    of = QuantizerStage(F(1, 4), F(0), (), F(1, 2), 5, *INT16, mode, inside)
    steps = of.steps(-100_000, 100_000)
    for q in (*range(-20, 20), -65_546, -65_547, 65_524, 65_525, 99_999):
        assert steps(q) == of.quantizer(F(q, 4))


def calls(chain: tuple[Elementwise, ...], span: tuple[int, int], levels: tuple[int, int]) -> int:
    """Python calls for the steps of 16 channels."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        for channel in range(16):
            stage(chain, span[1] - span[0], levels, channel).steps(*span)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("span", [SMALL, LARGE], ids=["8 bits in", "24 bits in"])
@pytest.mark.parametrize("name", ["none", "relu", "normalized", "swish", "gelu", "hard swish of operators"])
def test_work(name: str, span: tuple[int, int]) -> None:
    """What is done number by number in Python is no more than for 8 bits, but for a few integers beside cuts."""
    narrow, wide = (calls(CHAINS[name], span, levels) for levels in (INT8, INT16))
    assert wide <= 2 * narrow + 16 * 1000


def test_composed() -> None:
    """A function of a function of 16 bits, against both one after the other."""
    inner = stage((), LARGE[1] - LARGE[0], INT16).steps(*LARGE)
    outer = stage(CHAINS["leaky"], 1 << 16, INT8).steps(inner.low, inner.high)
    both = compose(outer, inner)
    for q in (LARGE[0], -4321, -1, 0, 1, 987_654, LARGE[1]):
        assert both(q) == outer(inner(q))
    assert both == StepFunction.of(*LARGE, [(LARGE[0], both.first), *((b, both(b)) for b in both.breaks)])


@pytest.mark.parametrize("scale", [F(1, 10**30), F(10**30, 7), F(3, 2**90)])
@pytest.mark.parametrize("offset", [F(0), F(1, 3), F(-(10**9), 7)])
def test_numbers_beyond_64_bits(scale: F, offset: F) -> None:
    """One cut at 0, or none, whose numbers do not fit into a machine word."""
    of = QuantizerStage(scale, offset, (), scale * 1000, 0, 0, 1)
    steps = of.steps(-(1 << 40), 1 << 40)
    for q in (-(1 << 40), -1, 0, 499, 500, 501, 10**9, 1 << 40, *steps.breaks, *(b - 1 for b in steps.breaks)):
        assert steps(q) == of.quantizer(scale * (q - offset))


def test_pieces_keep_their_own_units() -> None:
    """A slope of 24 bits, a scale of 24 bits: in one unit of both pieces 65,535 numbers would not fit into words."""
    quantizer = stage((), 1 << 16, INT16).quantizer
    levels = LeakyRelu(F(13421773, 1 << 27)).pull(quantizer.levels).affine(F(16777213, 1 << 33), F(1, 12345))
    assert len(levels) == (1 << 16) - 1
    assert all(run.numerators.dtype == np.int64 for run in levels.runs)
