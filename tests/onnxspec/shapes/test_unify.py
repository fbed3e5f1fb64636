"""Dimension variables."""

from __future__ import annotations

from hwflow.onnxspec.shapes.unify import Bound, Conflict, Unifier


def test_sizes_spread_over_equal_variables() -> None:
    unifier = Unifier()
    assert unifier.add_equal("N", "M", "a") is None
    assert unifier.add_equal("K", 5, "b") is None
    assert unifier.add_equal(3, "M", "c") is None
    assert unifier.sizes() == {"N": 3, "M": 3, "K": 5}
    assert unifier.size("L") is None


def test_a_conflict_names_both_places_and_changes_nothing() -> None:
    unifier = Unifier()
    unifier.add_equal("N", 3, "a")
    unifier.add_equal("M", 4, "b")
    assert unifier.add_equal("N", 4, "c") == Conflict(Bound("N", 3, "a"), Bound("N", 4, "c"), "c")
    assert unifier.add_equal("N", "M", "d") == Conflict(Bound("N", 3, "a"), Bound("M", 4, "b"), "d")
    assert unifier.add_equal(1, 2, "e") == Conflict(Bound(None, 1, "e"), Bound(None, 2, "e"), "e")
    assert unifier.sizes() == {"N": 3, "M": 4}
