"""The golden model against integers that the benchmark networks' author computed with other code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.loaded_model import load
from hwflow.verify import golden

BENCH = Path(__file__).resolve().parents[2].parent / "shared" / "bench"

pytestmark = pytest.mark.skipif(not BENCH.is_dir(), reason="the benchmark networks are not here")


@pytest.mark.parametrize("name", ["jet", "jet6", "cnn", "tfc"])
def test_outputs_are_the_authors(name: str) -> None:
    model = load(BENCH / f"{name}_qdq.onnx")
    given = np.load(BENCH / f"{name}_io.npz")
    (inputs,) = port_inputs(model, {"x": given["x"]}).values()
    np.testing.assert_array_equal(inputs, given["x_codes"])

    (source,) = model.quantized.inputs
    integers = golden.evaluate(model.quantized, {source.name: given["x_codes"]})
    (outputs,) = model_outputs(model, integers).values()
    assert outputs.shape == given["y_codes"].shape
    # every scale is a power of two, and no sum takes more than the 24 bits of a float32: the host's part is exact
    np.testing.assert_array_equal(outputs, given["y_codes"] * given["y_scale"])
