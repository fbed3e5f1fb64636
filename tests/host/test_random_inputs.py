"""Random frames reach what the hardware tells apart, whatever the host does first."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hwflow.host.boundary_models import port_inputs
from hwflow.host.categories import categories
from hwflow.host.random_inputs import random_inputs
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


def test_categories_that_an_operator_takes_no_others_than(tmp_path: Path) -> None:
    """Columns by way of moves have their own categories; what is computed of a column leaves it alone."""
    ml = {"domain": "ai.onnx.ml"}
    b = Builder(15, ir_version=8)
    x, names = b.input("x", ["N", 3], "int64"), b.input("names", ["N", 2], "string")
    parts = []
    of_numbers, of_texts = {"cats_int64s": [70_000, 7]}, {"cats_strings": ["u", "v"]}
    for source, places, listed in ((x, [2, 0], of_numbers), (names, [1], of_texts)):
        picked = b.node("Gather", source, b.constant(places, "int64"), axis=1)
        encoded = b.node("OneHotEncoder", picked, zeros=0, **listed, **ml)
        parts.append(b.node("Reshape", encoded, b.constant([-1, 2 * len(places)], "int64")))
    free = b.node("Add", b.node("Gather", x, b.constant([1], "int64"), axis=1), b.constant([5], "int64"))
    encoded = b.node("OneHotEncoder", free, zeros=1, cats_int64s=[1, 2], **ml)
    parts.append(b.node("Reshape", encoded, b.constant([-1, 2], "int64")))
    real = b.dequantize(b.quantize(b.node("Concat", *parts, axis=1), 1.0, 0), 1.0, 0)
    b.output(b.requantize(b.node("Relu", b.declare(real, ["N", 8])), 0.5, 7))
    model = b.load(tmp_path)
    assert {name: dict(places) for name, places in categories(model).items()} == {
        "x": {0: (70_000, 7), 2: (70_000, 7)}, "names": {1: ("u", "v")},
    }
    found = frames(model, 40)
    assert {*found["x"][:, 0].tolist()} == {*found["x"][:, 2].tolist()} == {7, 70_000}
    assert {*found["names"][:, 1].tolist()} == {"u", "v"}
    (integers,) = port_inputs(model, found).values()
    assert (integers[:, :6].sum(axis=1) == 3).all()


def test_computed_categories_are_not_known(tmp_path: Path) -> None:
    b = Builder(15, ir_version=8)
    x = b.node("Mul", b.input("x", ["N", 4], "int64"), b.constant([2], "int64"))
    encoded = b.node("OneHotEncoder", x, zeros=0, cats_int64s=[2, 4], domain="ai.onnx.ml")
    real = b.dequantize(b.quantize(b.declare(encoded, ["N", 4, 2]), 1.0, 0), 1.0, 0)
    b.output(b.requantize(b.node("Relu", real), 0.5, 7))
    assert categories(b.load(tmp_path)) == {}
