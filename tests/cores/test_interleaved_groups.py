"""Groups that a stream interleaves along an axis, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.cores.logical.top_k import interleaved_groups


@pytest.mark.parametrize(
    ("order", "shape", "axis", "groups"),
    [
        ([0, 1, 2, 3, 4, 5], (2, 3), 1, 1),  # one group behind the other
        ([0, 3, 1, 4, 2, 5], (2, 3), 1, 2),  # both at once
        ([0, 1, 2, 3, 4, 5], (2, 3), 0, 3),  # a row holds three groups
        ([0, 3, 1, 4, 2, 5], (2, 3), 0, 1),
        ([0, 2, 4, 6, 1, 3, 5, 7], (4, 2), 1, 4),
        ([0, 2, 1, 3, 4, 6, 5, 7], (4, 2), 1, 2),  # two and two
        ([0, 2, 4, 1, 6, 3, 5, 7], (4, 2), 1, None),  # three of four
        ([1, 0, 3, 2], (2, 2), 1, None),  # backwards
        ([0, 2, 3, 1], (2, 2), 1, None),  # the groups change places
        ([2, 0, 1], (3, 1), 1, 1),  # an axis of one element
    ],
)
def test_groups(order, shape, axis, groups):
    assert interleaved_groups(np.array(order), shape, axis) == groups
