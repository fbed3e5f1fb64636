"""Files of inputs that do not fit the model, and frames that the host's end of a board refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hwflow.errors import UsageError
from hwflow.host.inputs import _from_file
from hwflow.host.runtime.frame_coder import _bounds, _whole
from hwflow.host.runtime.host_design import HostTensor, _link
from hwflow.loaded_model import Model
from tests.models import Array, Builder


@pytest.fixture
def model(tmp_path: Path) -> Model:
    b = Builder()
    b.output(*(b.dequantize(b.input(name, ["N", 2], "int8"), 0.5, 0, "int8") for name in ("a", "b")))
    return b.load(tmp_path)


@pytest.mark.parametrize("arrays, message", [
    ({"a": np.zeros((3, 2), int), "b": np.zeros((4, 2), int)}, "all inputs must have the same number of frames"),
    ({"a": np.zeros((3, 2), int), "b": np.full((3, 2), 128)}, "'b' must be within int8, -128 to 127, not 128 to 128"),
    ({"a": np.zeros((3, 2), int), "b": np.zeros((3, 2))}, "'b' must be of an integer type (int8), not float64"),
])
def test_refused(model: Model, tmp_path: Path, arrays: dict[str, Array], message: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(UsageError) as refused:
        _from_file(model, tmp_path / "x.npz", None, True)
    assert message in str(refused.value)


def test_a_folder_is_no_file(model: Model, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must be a readable \.npz file, but: Is a directory"):
        _from_file(model, tmp_path, None, True)


def test_the_host_s_end(tmp_path: Path) -> None:
    """Bounds of types; a constant output is there for each frame; a link that is none."""
    assert [_bounds(name) for name in ("bool", "uint4", "int8")] == [(0, 1), (0, 15), (-128, 127)]
    assert _whole(HostTensor("c", "float32", (2,), constant=True), np.array([1, 2]), 3).tolist() == [[1, 2]] * 3
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "board.json").write_text(json.dumps({"link": [1]}))
    with pytest.raises(TypeError):
        _link(tmp_path)
