"""Rows of a tensor as maps, in memory and in JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwflow.host.runtime.tensors.map_rows import MapRows, is_maps, map_text, read_maps, write_maps

TEXTS, NUMBERS = MapRows(("a", "b", "c"), 3, "float32"), MapRows((7, -1), 2, "int64")


def test_rows_of_maps() -> None:
    rows = TEXTS.rows([{"b": 2.5, "a": -1}, {}, {"c": np.float64(0.1)}])
    assert rows.dtype == np.float32 and rows.tolist() == [[-1, 2.5, 0], [0, 0, 0], [0, 0, np.float32(0.1)]]
    assert NUMBERS.rows([{"-1": 3, np.int32(7): "4"}]).tolist() == [[4, 3]], "files have texts as keys"
    assert MapRows((1, 2), 2, "string").rows([{2: "x"}]).tolist() == [["", "x"]]
    assert MapRows(None, 2, "float64").rows([{9: 1.5, -3: 2.5}]).tolist() == [[2.5, 1.5]], "in ascending order"
    assert NUMBERS.rows([]).shape == (0, 2)


def test_maps_of_rows() -> None:
    assert TEXTS.maps(np.array([[0.5, 1, 2]], np.float32)) == [{"a": 0.5, "b": 1.0, "c": 2.0}]
    assert NUMBERS.maps(np.array([[1, 2], [3, 4]])) == [{7: 1, -1: 2}, {7: 3, -1: 4}]


@pytest.mark.parametrize(
    ("form", "maps", "message"),
    [
        (TEXTS, [{}, {"d": 1}], "must have keys that the model has, not 'd' in frame 1"),
        (NUMBERS, [{"x": 1}], "must have integers as keys, not those of frame 0"),
        (TEXTS, [{"a": "much"}], "must have values of type float32, not 'much' in frame 0"),
        (TEXTS, [{"a": 1}, [1, 2, 3]], "must be a map of each frame, not list in frame 1"),
        (MapRows(None, 2, "float32"), [{1: 1}], "must have 2 entries in a map, not 1 in frame 0"),
        (MapRows((1,), 1, "int8"), [{1: 400}], "must have values of type int8, not 400 in frame 0"),
    ],
)
def test_what_is_no_map_of_the_model(form: MapRows, maps: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        form.rows(maps)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_maps(path, {"z": [{7: 0.5, -1: 2.0}]})
    assert read_maps(path) == {"z": [{"7": 0.5, "-1": 2.0}]}
    path.write_text('{"x": [[1, 2], [3, 4]], "t": [["a"], ["bc"]]}')
    found = read_maps(path)
    assert found["x"].tolist() == [[1, 2], [3, 4]] and found["t"].dtype == object
    for text in ("[1]", '{"x": 3}', '{"x": [[1], [2, 3]]}', "{"):
        path.write_text(text)
        with pytest.raises(ValueError):
            read_maps(path)


def test_texts() -> None:
    assert map_text({"a": 1 / 3, "b": 2}) == "{a: 0.333333, b: 2}"
    assert map_text({k: k for k in range(12)}).endswith("9: 9, ... (12 entries)}")
    assert map_text({"\x1b[1m": 1}) == "{\\x1b[1m: 1}"
    assert MapRows.of(NUMBERS.table()) == NUMBERS and MapRows.of(MapRows(None, 2, "int64").table()).keys is None
    assert is_maps([{}]) and not is_maps([[1]]) and not is_maps([]) and not is_maps(np.zeros(3))
