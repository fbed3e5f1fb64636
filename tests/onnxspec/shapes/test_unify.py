"""Dimension variables."""

from __future__ import annotations

from hwflow.onnxspec.shapes.unify import Conflict, SizeBinding, Unifier


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
    assert unifier.add_equal("N", 4, "c") == Conflict(SizeBinding("N", 3, "a"), SizeBinding("N", 4, "c"), "c")
    assert unifier.add_equal("N", "M", "d") == Conflict(SizeBinding("N", 3, "a"), SizeBinding("M", 4, "b"), "d")
    assert unifier.add_equal(1, 2, "e") == Conflict(SizeBinding(None, 1, "e"), SizeBinding(None, 2, "e"), "e")
    assert unifier.sizes() == {"N": 3, "M": 4}


def test_a_trial_leaves_nothing() -> None:
    """Of what is added in it, of trials inside it, and of paths that looking for roots made shorter."""
    unifier = Unifier()
    for a, b in (("A", "B"), ("C", "A"), ("D", "C")):
        unifier.add_equal(a, b, "before")
    with unifier.trial():
        assert unifier.size("B") is None
        with unifier.trial():
            unifier.add_equal("B", 3, "inner")
            unifier.add_equal("E", "A", "inner")
            assert unifier.sizes() == dict.fromkeys("ABCDE", 3)
        unifier.add_equal("F", "D", "outer")
        unifier.add_equal("A", 4, "outer")
        assert unifier.sizes() == dict.fromkeys("ABCDF", 4)
    assert unifier.sizes() == {}
    assert unifier.root("B") == unifier.root("D") != unifier.root("E")
    unifier.add_equal("B", 5, "behind")
    assert unifier.sizes() == dict.fromkeys("ABCD", 5)
