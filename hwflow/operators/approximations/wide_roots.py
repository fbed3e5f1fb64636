"""Roots of wide integers before quantizers of many levels: a digit recurrence instead of a search.

The levels of a quantizer behind a root are a step function of the integers, exactly, but no line: a search compares
them with a threshold for each level. Of 16 bits, these fill some hundred block RAMs.
"""

from __future__ import annotations

from dataclasses import replace

from hwflow.frontend.context import Lowering, Refusal
from hwflow.frontend.views import Reals
from hwflow.numerics.functions.power import Pow, Sqrt
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.norms.approximations import root

MOST_SEARCHED = 1 << 12
"""Levels: the thresholds of as many integers of 32 bits fill eight block RAMs."""


def with_roots(state: Lowering, node: OnnxNode, view: Reals, levels: int) -> Reals:
    """Return ``view`` with its root, if a root is what comes first, taken by hardware of its own, where a quantizer
    with ``levels`` would search for them; else as it is."""
    interval = state.bound(view.value).interval
    if not view.functions or interval is None or min(levels, interval.hi - interval.lo) <= MOST_SEARCHED:
        return view
    if not all(isinstance(f, Sqrt) or (isinstance(f, Pow) and 2 * f.exponent == 1) for f in view.functions[0].flat):
        return view
    try:
        taken = root(state, node, replace(view, functions=()))
    except Refusal:  # of what may be negative, for example
        return view
    return replace(taken, functions=view.functions[1:])
