"""What a comparison says where the golden model differs, which it never should: made to differ here."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hwflow.errors import ModelRefused
from hwflow.verify.comparison import compare
from hwflow.verify.evaluators import value_comparison
from hwflow.verify.evaluators.explanation import RegionBounds, no_bound, unexplained
from tests.models import Builder


def model(tmp_path: Path) -> Path:
    """Quantized "y", an integer tensor "same" that is another name of it, and a constant."""
    b = Builder(19, 9)
    q = b.quantize(b.node("Relu", b.requantize(b.input("x", ["N", 2]), 0.5, 3)), 0.25, name="y")
    b.output(q, b.node("Identity", q, name="same"), b.node("Identity", b.constant([1.5, 2.5]), name="fixed"))
    return b.save(tmp_path)


def text(tmp_path: Path) -> str:
    found = compare(model(tmp_path), frames=3)
    assert not found.ok
    return "\n".join(map(str, found.findings))


def test_an_equal_model(tmp_path: Path) -> None:
    assert compare(model(tmp_path), frames=3).ok


def test_a_constant_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_comparison, "constant_output", lambda model, name, frames: np.array([[1.5, 9.0]]))
    assert "index [1]: golden 9.0, reference 2.5" in text(tmp_path)


def test_an_integer_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = value_comparison.boundary_value
    monkeypatch.setattr(value_comparison, "boundary_value", lambda *arguments: own(*arguments).astype(int) + 1)
    assert "value 'same'" in text(tmp_path)


def test_the_end_to_end_comparison_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layers are compared all the same."""
    def refuse(*arguments: Any) -> Any:
        raise ModelRefused.of("odd", "here", "the host's part must run, but it does not", "run it")

    monkeypatch.setattr(value_comparison, "model_outputs", refuse)
    found = compare(model(tmp_path), frames=3)
    assert found.drift.failed == "the host's part must run, but it does not"
    assert "end to end: no reference: the host's part must run, but it does not" in list(found.lines())


@pytest.mark.parametrize("bound, found, reason", [
    (Fraction(0), 6, "golden 5, reference 6; nothing is rounded there"),
    ("no bound is known", 6, "golden 5, reference 6; nothing is rounded there"),
    (Fraction(2), 8, "golden 5, reference 8, float error at most 2"),
    (Fraction(2), 7, None),
])
def test_places(bound: Any, found: int, reason: str | None) -> None:
    """What is no requantizer (a place, a comparison) may be off by its bound."""
    node, bounds = SimpleNamespace(attributes=None), SimpleNamespace(error=lambda name, place, shape: bound)
    assert unexplained(node, (0,), np.array([5]), found, {}, bounds, "y", None) == reason  # type: ignore[arg-type]


def test_no_bound_is_known() -> None:
    """Of operators without a rule; or there is one, and nothing is rounded."""
    bounds: Any = SimpleNamespace(unbounded={"Sin", "Cos"}, errors={"y": None, "z": np.zeros(1)})
    assert no_bound(bounds) == "no bound is known for the float error of Cos, Sin"
    assert RegionBounds._at(bounds, None, "y", (0,), (1,)) == no_bound(bounds)
    assert RegionBounds._at(bounds, None, "z", (0,), (1,)) == "nothing is rounded there"
