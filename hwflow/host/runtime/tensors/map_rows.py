"""Rows of a tensor as maps: what ends a model of ai.onnx.ml that takes dictionaries, or gives a score for each class.

In files maps are JSON, whose keys are texts: beside ``x.npz``, ``x.json`` has a list of objects by the tensor's name,
an object a frame.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Map = dict[Any, Any]


@dataclass(frozen=True)
class MapRows:
    """How each row of a tensor of element type ``type`` is a map. ``keys``: of the columns, all integers or all texts;
    None: a map has ``columns`` integers as keys, whichever, in ascending order."""

    keys: tuple[int, ...] | tuple[str, ...] | None
    columns: int
    type: str

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> MapRows:
        """Return those that :meth:`table` describes."""
        keys = table["keys"]
        return cls(None if keys is None else tuple(keys), int(table["columns"]), str(table["type"]))

    def table(self) -> dict[str, Any]:
        """Return what the manifest has of them."""
        return {"keys": None if self.keys is None else [*self.keys], "columns": self.columns, "type": self.type}

    def rows(self, maps: Sequence[Mapping[Any, Any]]) -> npt.NDArray[Any]:
        """Return the tensor, [frames, columns], of maps: 0 (of texts the empty one) where a key is missing. Raises
        ValueError, "must be X, not Y", for a key that there is not."""
        place = None if self.keys is None else {key: column for column, key in enumerate(self.keys)}
        texts = self.keys is not None and isinstance(next(iter(self.keys), 0), str)
        kind = object if self.type == "string" else np.dtype(self.type)
        result = np.full((len(maps), self.columns), "" if self.type == "string" else 0, kind)
        for frame, each in enumerate(maps):
            if not isinstance(each, Mapping):
                raise ValueError(f"must be a map of each frame, not {type(each).__name__} in frame {frame}")
            try:
                known = {str(key) if texts else int(key): value for key, value in each.items()}
            except (TypeError, ValueError):
                raise ValueError(f"must have integers as keys, not those of frame {frame}") from None
            if place is None and len(known) != self.columns:
                raise ValueError(f"must have {self.columns} entries in a map, not {len(known)} in frame {frame}")
            columns = {key: column for column, key in enumerate(sorted(known))} if place is None else place
            for key, value in known.items():
                if key not in columns:
                    raise ValueError(f"must have keys that the model has, not {key!r} in frame {frame}")
                result[frame, columns[key]] = self._element(value, frame)
        return result

    def _element(self, value: Any, frame: int) -> Any:
        try:
            if self.type == "string":
                return str(value)
            cut = "int" in self.type and not isinstance(value, int)
            return np.dtype(self.type).type(int(float(value)) if cut else value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"must have values of type {self.type}, not {value!r} in frame {frame}") from None

    def maps(self, rows: npt.NDArray[Any]) -> list[Map]:
        """Return the maps of a tensor, [frames, columns]."""
        keys = range(self.columns) if self.keys is None else self.keys
        return [dict(zip(keys, row, strict=True)) for row in np.asarray(rows).tolist()]


def is_maps(value: Any) -> bool:
    """Tell whether a model's input is given as maps, not as an array."""
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(each, Mapping) for each in value)


def beside(path: Path) -> Path:
    """Return the file of maps beside a file of arrays."""
    return path.with_suffix(".json")


def read_maps(path: Path) -> dict[str, Any]:
    """Return what a JSON file has by name: maps as lists of them, others as arrays. Raises OSError, and ValueError
    where it is no such file."""
    table = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(table, dict) or not all(isinstance(value, list) for value in table.values()):
        raise ValueError("it is not an object of lists")
    return {name: value if is_maps(value) else _array(value) for name, value in table.items()}


def _array(value: list[Any]) -> npt.NDArray[Any]:
    found = np.asarray(value)
    if found.dtype == object:
        raise ValueError("its lists are not arrays")
    return found.astype(object) if found.dtype.kind == "U" else found


def plain_text(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array without objects, as files have them: texts as fixed-width ones."""
    return array.astype(np.str_) if array.dtype == object else array


def map_text(each: Map) -> str:
    """Return a map for people, cut where it is long."""
    entries = [f"{key}: {value:.6g}" if isinstance(value, float) else f"{key}: {value}" for key, value in each.items()]
    more = f", ... ({len(entries)} entries)" if len(entries) > _SHOWN else ""
    return ascii("{" + ", ".join(entries[:_SHOWN]) + more + "}")[1:-1]


_SHOWN = 10


def write_maps(path: Path, maps: Mapping[str, list[Map]]) -> None:
    """Write maps by name as JSON. Raises OSError."""
    path.write_text(json.dumps(maps) + "\n", encoding="utf-8")
