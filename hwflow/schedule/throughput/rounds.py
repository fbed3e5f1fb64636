"""Rounds of events that follow each other: what follows what follows an event, and so on, found by powers of two."""

from __future__ import annotations

import numpy as np

from hwflow.cores.timing import Steps

_FEWER = 0.8  # of the events: then it is worth while to go on with those alone


def in_order(values: Steps, origins: Steps) -> tuple[Steps, Steps]:
    """The greatest of the values up to each place, and the origin that goes with it."""
    if not (values[1:] < values[:-1]).any():
        return values, origins
    most = np.maximum.accumulate(values)
    places = np.maximum.accumulate(np.where(values == most, np.arange(len(values)), 0))
    return most, origins.take(places)


def rounds(base: Steps, follows: Steps, delays: Steps) -> Steps | None:
    """The least values from ``base`` on of which each is ``delays[k]`` more than that at ``follows[k]``; None if there
    are none. ``base`` itself, where it is these."""
    if (base.take(follows) + delays <= base).all():
        return base
    followed = np.zeros(len(base), dtype=np.bool_)
    followed[follows] = True
    origins = followed.nonzero()[0]
    if len(origins) > _FEWER * len(base):
        return _doubled(base, follows, delays)
    # What nothing follows takes no part in the rounds.
    number = np.cumsum(followed) - 1
    found = rounds(base.take(origins), number.take(follows.take(origins)), delays.take(origins))
    return None if found is None else np.maximum(base, found.take(number.take(follows)) + delays)


def _doubled(base: Steps, follows: Steps, delays: Steps) -> Steps | None:
    """The same: one round, two, four and so on."""
    done = 1
    while True:
        least = base.take(follows) + delays
        if (least <= base).all():
            return base
        if done > len(base):  # who goes on so long has come by the same place with more
            return None
        base = np.maximum(base, least)
        delays = delays + delays.take(follows)
        follows, done = follows.take(follows), 2 * done
