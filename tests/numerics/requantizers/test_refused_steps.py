"""Step functions that are none are refused, and what is asked of them beyond their interval."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hwflow.numerics.requantizers.form import Form
from hwflow.numerics.requantizers.lookup_form import LookupForm
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.requantizer import realise
from hwflow.numerics.requantizers.staircase import Staircase
from hwflow.numerics.requantizers.step_function import StepFunction

STEPS = StepFunction(0, 9, [4], [1, 0])

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "empty": (lambda: StepFunction(1, 0, [], [0]), r"must not be empty, not \[1, 0\]"),
    "wide": (lambda: StepFunction(0, 1 << 63, [], [0]), "must lie within int64"),
    "values": (lambda: StepFunction(0, 9, [4], [0]), "1 breaks need 2 values, not 1"),
    "falling breaks": (lambda: StepFunction(0, 9, [4, 3], [0, 1, 2]), r"must rise strictly within \(0, 9\], not be"),
    "first break": (lambda: StepFunction(0, 9, [0], [0, 1]), r"must rise strictly within \(0, 9\], not be \(0,\)"),
    "no step": (lambda: StepFunction(0, 9, [4], [1, 1]), "neighbouring values of a step function must differ"),
    "place": (lambda: STEPS(10), r"must lie in \[0, 9\], not 10"),
    "places": (lambda: STEPS.evaluate([3, -1]), r"must lie in \[0, 9\], not \[-1, 3\]"),
    "falling": (lambda: STEPS.staircase(), "a staircase must be non-decreasing"),
    "no channel": (lambda: realise([], 8, True), "steps must be one per channel, not none"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_places_of_steps() -> None:
    assert [STEPS(x) for x in (0, 3, 4, 9)] == [1, 1, 0, 0] == STEPS.evaluate([0, 3, 4, 9]).tolist()


def test_a_staircase_is_no_number() -> None:
    assert Staircase.__eq__(STEPS.mirrored().staircase(), 1) is NotImplemented


RISING = StepFunction(0, 9, [4], [0, 1])
MAS = MultiplyAddShift((1,), (0,), 2, 0, 1)  # x >> 2, at most 1


@pytest.mark.parametrize("form, steps, proved", [
    (MAS, [RISING], True),
    (MAS, [RISING, RISING], False),  # of one channel
    (MAS, [StepFunction(0, 9, [4], [1, 0])], False),  # it falls
    (MAS, [StepFunction(0, 9, [4, 8], [0, 1, 0])], False),  # neither
    (MAS, [StepFunction(0, 9, [5], [0, 1])], False),  # later
    (MAS, [StepFunction(0, 9, [4, 8], [0, 1, 2])], False),  # higher than the clamp
    (LookupForm(0, ((0, 0, 0, 0, 1, 1, 1, 1, 1, 1),)), [RISING], True),
    (LookupForm(0, ((0, 0, 0, 0, 1, 1, 1, 1, 1),)), [RISING], False),  # one entry is missing
    (LookupForm(0, ((0, 0, 0, 0, 1, 1, 1, 1, 1, 1),)), [RISING, RISING], False),
])
def test_proofs(form: Form, steps: list[StepFunction], proved: bool) -> None:
    assert form.proves(steps) == proved


def test_nothing_to_evaluate() -> None:
    assert MAS.evaluate([]).shape == (0,) and MAS.evaluate([3, 4, 9]).tolist() == [0, 1, 1]
