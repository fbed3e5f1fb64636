"""The cases of ONNX's own backend suite, made in a fifth of the time that the suite's loader takes by itself."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from onnx.backend.test.case import base
from onnx.backend.test.loader import load_node_model_tests
from onnx.reference.ops import op_pool_common

_SMALL = 50_000  # elements; three floating-point cases pool 98,304, one window after the other


@cache
def node_cases() -> tuple[Any, ...]:
    """All of them. What three large ones expect is not computed but NaN; no case has its text for the documentation."""
    pool = op_pool_common.pool

    def pooled(
        padded: npt.NDArray[Any], shape: tuple[int, ...], kernel: list[int], strides: list[int], sizes: list[int],
        *arguments: Any, **options: Any,
    ) -> npt.NDArray[Any]:
        if padded.size > _SMALL:
            return np.full((*shape[:2], *sizes), np.nan, padded.dtype)
        return pool(padded, shape, kernel, strides, sizes, *arguments, **options)

    with (
        patch.object(op_pool_common, "pool", pooled),
        patch.object(base, "process_snippet", lambda *_: ("", "")),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # the suite computes infinities and the like
        return tuple(load_node_model_tests())
