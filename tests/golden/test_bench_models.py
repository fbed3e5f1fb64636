"""The golden model against integers that the benchmark networks' author computed with other code."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hwflow import golden
from hwflow.compiler import load
from hwflow.host import port_inputs

BENCH = Path(__file__).resolve().parents[2].parent / "shared" / "bench"

pytestmark = pytest.mark.skipif(not BENCH.is_dir(), reason="the benchmark networks are not here")


@pytest.mark.parametrize("name", ["jet", "jet6", "cnn", "tfc"])
def test_outputs_are_the_authors(name: str) -> None:
    model = load(BENCH / f"{name}_qdq.onnx")
    given = np.load(BENCH / f"{name}_io.npz")
    (inputs,) = port_inputs(model, {"x": given["x"]}).values()
    np.testing.assert_array_equal(inputs, given["x_codes"])

    (source,), (port,) = model.quantized.inputs, model.quantized.outputs
    outputs = golden.evaluate(model.quantized, {source.name: given["x_codes"]})[port.name]
    assert outputs.shape == given["y_codes"].shape
    unit = Fraction(float(given["y_scale"]))
    assert port.axis == 0
    for channel in range(outputs.shape[1]):
        scale = port.scale[channel % len(port.scale)]
        zero_point = port.zero_point[channel % len(port.zero_point)]
        found = [scale * (int(q) - zero_point) for q in outputs[:, channel]]
        assert found == [unit * int(code) for code in given["y_codes"][:, channel]]
