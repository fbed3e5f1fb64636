"""ONNX's node tests of normalizations, their tensors quantized (results to 16 bits): in simulated hardware
equal to the reference evaluator, all outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.onnx_node_tests.quantized_nodes import passes_in_rtl

PARAMETERS = {"W", "B", "scale", "bias", "s"}


@pytest.mark.parametrize(
    "name",
    [
        "test_group_normalization_example", "test_instancenorm_example", "test_layer_normalization_2d_axis1",
        "test_rms_normalization_2d_axis_negative_1",
    ],
)  # fmt: skip
def test_in_rtl(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path, PARAMETERS)
