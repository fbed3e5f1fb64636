"""Random frames reach what the hardware tells apart, whatever the host does first."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hwflow.host.boundary_models import port_inputs
from hwflow.verify.random_inputs import random_inputs
from tests.host.networks import branches, classifier
from tests.models import Array, Builder


def frames(model, count: int = 8) -> dict[str, Array]:
    return random_inputs(model, count, np.random.default_rng(3))


def test_through_preprocessing(tmp_path: Path) -> None:
    """(image / 255 - mean) * 128 + 3, saturated at 127: all that matters is in images of about -300 to 400."""
    model = classifier("softmax").load(tmp_path)
    found = frames(model)
    assert {name: (array.shape, array.dtype) for name, array in found.items()} == {
        "image": ((8, 3, 4, 2), np.dtype("float32"))
    }
    (integers,) = port_inputs(model, found).values()
    assert len(np.unique(integers)) > 60


def test_integers_through_preprocessing(tmp_path: Path) -> None:
    b = Builder(19, ir_version=9)
    x = b.node("Cast", b.input("x", ["N", 50], "uint8"), to=1)
    b.output(b.quantize(b.node("Div", x, b.constant(255.0)), 1 / 255, 0, name="q"))
    b.output(b.requantize(b.node("Relu", b.dequantize("q", 1 / 255, 0)), 1 / 100, 7))
    model = b.load(tmp_path)
    found = frames(model)["x"]
    assert found.min() >= 0 and found.max() <= 255 and len(np.unique(found)) > 100


def test_each_input_by_what_reads_it(tmp_path: Path) -> None:
    model = branches().load(tmp_path)
    found = frames(model, 100)
    assert found["y"].min() >= 0 and found["y"].max() <= 255 and len(np.unique(found["y"])) > 150
    integers = port_inputs(model, found)
    assert all(len(np.unique(array)) > 50 for array in integers.values())


def test_the_same_seed_gives_the_same_frames(tmp_path: Path) -> None:
    model = classifier("softmax").load(tmp_path)
    np.testing.assert_array_equal(frames(model)["image"], frames(model)["image"])
