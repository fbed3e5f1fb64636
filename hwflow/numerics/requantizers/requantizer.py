"""The choice between the hardware forms of a requantizer.

A requantizer is a step function per channel. It becomes a multiply-add-shift, parallel thresholds, a binary search, a
ROM, or piecewise quadratics; each form's ``evaluate`` matches its core exactly, and each form is proved equal to the
step functions over their whole intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hwflow.errors import InternalError
from hwflow.numerics.requantizers.form import Form, ceil_div
from hwflow.numerics.requantizers.lookup_form import lookup_form
from hwflow.numerics.requantizers.multiply_add_shift import (
    MAX_SHIFT,
    find_multiply_add_shift,
    find_rounding_multiply_add_shift,
)
from hwflow.numerics.requantizers.quadratics import find_quadratics
from hwflow.numerics.requantizers.search_form import search_form
from hwflow.numerics.requantizers.staircase import LIMIT, MAX_LEVELS
from hwflow.numerics.requantizers.step_function import StepFunction, all_alike
from hwflow.numerics.requantizers.threshold_form import ThresholdForm, threshold_form

MAX_LOOKUP_BITS = 12  # widest input interval of a ROM, except through ``lookup_form`` itself
MANY_LUTS = 2048  # tables of two block RAMs
CHANNELS_PER_LANE = 16  # of a typical folding: the form is chosen before the folding is known


def realise(steps: Sequence[StepFunction], input_bits: int, input_signed: bool) -> Form:
    """Return the cheapest form by its ``cost``, proved equal to ``steps`` (one per channel) over their whole intervals.

    ``input_bits, input_signed`` is the type of the requantizer's input; every interval must fit in it (ValueError).
    A rounding multiply-add-shift is searched where its shift may be smaller than that of rounding down. A search, which
    exists for all functions that are not constant, is considered only if there is no multiply-add-shift, whose
    multiplier is cheap in a DSP; the cost is then that of a lane per CHANNELS_PER_LANE channels, otherwise of one lane.
    A ROM is considered up to MAX_LOOKUP_BITS bits of interval, piecewise quadratics beyond if all channels are alike
    and the other forms cost more than MANY_LUTS.
    Results that differ by MAX_LEVELS or more have tables only. On a tie the order is multiply-add-shift, thresholds,
    search, ROM.
    """
    if not steps:
        raise ValueError("steps must be one per channel, not none")
    lo, hi = min(s.lo for s in steps), max(s.hi for s in steps)
    least = -1 << (input_bits - 1) if input_signed else 0
    greatest = least + (1 << input_bits) - 1
    if lo < least or hi > greatest:
        raise ValueError(f"intervals must lie within the input type [{least}, {greatest}], not [{lo}, {hi}]")
    forms: list[Form] = []
    wide = max(s.travel for s in steps) >= MAX_LEVELS  # a table of long results: no thresholds for each unit
    far = max(-lo, hi) > LIMIT  # keys of float64: compared, not multiplied
    if far and not any(s.count for s in steps):
        forms.append(ThresholdForm(tuple(s.first for s in steps), ((hi + 1,),) * len(steps), ((False,),) * len(steps)))
    found = None if wide or far else find_multiply_add_shift(steps)
    if found is not None:
        forms.append(found)
    most = MAX_SHIFT if found is None else found.shift - 1
    rounding = None if wide or far else find_rounding_multiply_add_shift(steps, most)
    if rounding is not None:
        forms.append(rounding)
    least_cost = min((form.cost(input_bits) for form in forms), default=None)
    # A comparator per unit that a function rises or falls is a lower bound on the cost of parallel thresholds.
    if not wide and (least_cost is None or max(s.travel for s in steps) * (input_bits + 1) < least_cost):
        parallel = (threshold_form(steps, one_base=True), threshold_form(steps, one_base=False))
        forms += [form for form in parallel if form is not None and form.levels]
    if least_cost is None:
        searches = (None if wide else search_form(steps, with_values=False), search_form(steps, with_values=True))
        forms += [form for form in searches if form is not None]
    if hi - lo < 1 << MAX_LOOKUP_BITS:
        forms.append(lookup_form(steps))
    elif least_cost is None and all(form.cost(input_bits) >= MANY_LUTS for form in forms) and all_alike(steps):
        quadratics = find_quadratics(steps[0])
        forms += [] if quadratics is None else [replace(quadratics, channels=len(steps))]
    # One comparator per level against one per stage depends on the number of lanes: that of a typical folding.
    lanes = ceil_div(len(steps), CHANNELS_PER_LANE) if least_cost is None else 1
    best = min(forms, key=lambda form: form.cost(input_bits, lanes))
    if not best.proves(steps):
        raise InternalError.of(
            "requantizer-proved", f"requantizer of {len(steps)} channels",
            f"{type(best).__name__} must equal its step functions on the whole interval, not differ",
            "report this model as a defect of hwflow",
        )
    return best
