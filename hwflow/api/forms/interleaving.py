"""How many frames to have in a loop at once (option ``--interleave auto``).

A round of a loop waits for the round before, so a frame alone leaves the cores of the body idle for most of the
latency of a round. With more frames they have work meanwhile, until the slowest core limits the interval.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hwflow.api.request import TOO_FAST, Request
from hwflow.api.scheduled import ScheduledModel
from hwflow.errors import ModelRefused, UsageError

_Made = TypeVar("_Made", bound=ScheduledModel)

COUNTS = (1, 2, 4, 8, 16, 32, 64)
_GAIN = 1.05  # what twice as many must gain


def as_many_as_pay(compiled: Callable[[int], _Made], request: Request) -> _Made:
    """Return the design with the fewest frames of :data:`COUNTS` that has the rate of the ``request``; without a rate,
    twice as many as long as a loop limits the interval and they gain a twentieth. ``compiled``: compiles with so many.

    Raises :class:`ModelRefused` where none fits, as ``compiled`` does for the most frames that are tried.
    """
    best: _Made | None = None
    refused: ModelRefused | UsageError | None = None
    for count in COUNTS:
        try:
            design = compiled(count)
        except (ModelRefused, UsageError) as why:
            if refused is None or isinstance(why, ModelRefused):
                refused = why
            if best is None and any(finding.rule == TOO_FAST for finding in why.findings):
                continue
            break
        if best is not None and design.frames_per_second < _GAIN * best.frames_per_second:
            break
        best = design
        if request.asks_rate or not design.schedule.limited_by_circuit:
            break
    if best is None:
        assert refused is not None, "there is a count"
        raise refused
    return best
