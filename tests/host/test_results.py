"""The model's own outputs: which one classifies, against labels, shown, written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.host.results import accuracy, classes, lines, numpy_types, write_results
from hwflow.loaded_model import Model
from tests.host.networks import classifier
from tests.models import Array, Builder


def model_with(tmp_path: Path, *tails: str) -> Model:
    """Outputs by what makes them: "image" [N, 2, 3], "row" [N, 1, 3], "number" [N, 1], "class" [N, 1] by ArgMax."""
    b = Builder(19, ir_version=9)
    x = b.requantize(b.input("x", ["N", 2, 3]), 0.5, 3)
    first = b.node("Slice", x, *(b.constant([n], "int64") for n in (0, 1, 1)))
    for tail in tails:
        match tail:
            case "image":
                b.output(b.node("Identity", x, name="image"))
            case "row":
                b.output(b.node("Identity", first, name="row"))
            case "number":
                b.output(b.node("ReduceSum", x, b.constant([1, 2], "int64"), name="number", keepdims=0))
            case "class":
                best = b.node("ArgMax", first, axis=2)
                b.output(b.node("Cast", b.node("Squeeze", best, b.constant([2], "int64")), name="class", to=6))
    return b.load(tmp_path)


IMAGE = np.arange(12.0).reshape(2, 2, 3)
ROW = np.array([[[1.0, 7.0, 7.0]], [[3.0, 2.0, 1.0]]])
NUMBER = np.array([[5.0], [6.0]])
CLASS = np.array([[2], [0]], dtype=np.int32)


@pytest.mark.parametrize(
    ("outputs", "found"),
    [
        ({"image": IMAGE}, None),
        ({"number": NUMBER}, None),
        ({"row": ROW}, ("row", [1, 0])),  # the first of equal ones
        ({"class": CLASS}, ("class", [2, 0])),
        ({"image": IMAGE, "number": NUMBER, "class": CLASS, "row": ROW}, ("class", [2, 0])),
    ],
)
def test_what_classifies(tmp_path: Path, outputs: dict[str, Array], found: tuple[str, list[int]] | None) -> None:
    model = model_with(tmp_path, *outputs)
    result = classes(model, outputs)
    assert (None if result is None else (result[0], result[1].tolist())) == found


def test_accuracy() -> None:
    assert accuracy(np.array([1, 2, 3, 4]), np.array([1, 0, 3, 4, 9, 9])) == 0.75
    assert accuracy(np.array([1]), None) is None


def test_outputs_in_words(tmp_path: Path) -> None:
    model = model_with(tmp_path, "image", "row")
    many = np.concatenate([IMAGE, IMAGE]).astype(np.float32) / 3
    results = {"image": many, "row": np.concatenate([ROW, ROW])}
    assert list(lines(model, results, np.array([1, 1, 0, 2]))) == [
        "output 'image' (float32 [2, 3])",
        "  frame 0: 0 0.333333 0.666667 1 1.33333 1.66667",
        "  frame 1: 2 2.33333 2.66667 3 3.33333 3.66667",
        "  frame 2: 0 0.333333 0.666667 1 1.33333 1.66667",
        "output 'row' (float32 [1, 3])",
        "  frame 0: 1 7 7; greatest: 1; label: 1",
        "  frame 1: 3 2 1; greatest: 0; label: 1",
        "  frame 2: 1 7 7; greatest: 1; label: 0",
    ]


def test_a_long_output_is_cut(tmp_path: Path) -> None:
    b = Builder()
    b.output(b.node("Identity", b.requantize(b.input("x", ["N", 12]), 0.5, 3), name="y"))
    (_, line) = lines(b.load(tmp_path), {"y": np.arange(12.0).reshape(1, 12)})
    assert line == "  frame 0: 0 1 2 3 4 5 6 7 8 9 ... (12 values); greatest: 11"


def test_a_class_has_no_greatest(tmp_path: Path) -> None:
    model = classifier("arg_max").load(tmp_path)
    assert list(lines(model, {"class": np.array([3, 1])}, np.array([3, 2]))) == [
        "output 'class' (int64 [])", "  frame 0: 3; label: 3", "  frame 1: 1; label: 2",
    ]


def test_written_by_any_name(tmp_path: Path) -> None:
    """Names that numpy.savez has another use for, too."""
    results = {"file": np.array([[1.5]]), "a/b": np.array([2], dtype=np.int8), "allow_pickle": np.array([True])}
    write_results(tmp_path / "y.npz", results)
    with np.load(tmp_path / "y.npz") as written:
        assert written.files == list(results)
        for name, array in results.items():
            np.testing.assert_array_equal(written[name], array)
            assert written[name].dtype == array.dtype
    assert [p.name for p in tmp_path.iterdir()] == ["y.npz"]


def test_types_that_numpy_lacks(tmp_path: Path) -> None:
    import ml_dtypes

    b = Builder(21, ir_version=10)
    x = b.dequantize(b.input("x", ["N", 2], "int4"), 0.5, 0, "int4")
    b.output(b.quantize(x, 1.0, 0, "int4", name="y"))
    found = numpy_types(b.load(tmp_path), {"y": np.array([[-8, 7]], dtype=ml_dtypes.int4)})
    assert found["y"].dtype == np.int8 and found["y"].tolist() == [[-8, 7]]
