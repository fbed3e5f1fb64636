"""The frames that a command works on, from a file or random, as the model's own inputs."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hwflow.display import show, show_path
from hwflow.errors import Finding, UsageError
from hwflow.host.boundary_models import Arrays, takes_any_float
from hwflow.host.model_maps import input_maps
from hwflow.host.random_inputs import float_dtype, integer_bounds, is_integer, random_inputs
from hwflow.host.runtime.tensors.map_rows import beside as maps_beside
from hwflow.host.runtime.tensors.map_rows import is_maps, read_maps

if TYPE_CHECKING:
    from hwflow.loaded_model import Model

RANDOM_FRAMES = 16
INPUTS = ("inputs.npz", "inputs.json")
"""Files beside a model, the first one that is there."""


@dataclass(frozen=True)
class Inputs:
    """Arrays by ONNX input name, frames first; where they came from; ``labels``, one integer per frame, if the file had
    them."""

    arrays: Arrays
    origin: str
    labels: npt.NDArray[Any] | None = None

    @property
    def frames(self) -> int:
        return len(next(iter(self.arrays.values())))


def choose_inputs(
    model: Model, beside: Path | None, given: str | os.PathLike[str] | None, frames: int | None,
    rng: np.random.Generator, *, labelled: bool = True,
) -> Inputs:
    """Choose the inputs a command works on: ``given``, else ``inputs.npz`` beside the model, else random ones.

    ``beside``: the model's file, if there is one. A file's first ``frames`` frames are taken, by default all.
    ``labelled``: read an array ``label``, too. Raises :class:`UsageError` for a file that does not fit.
    """
    if frames is not None and frames < 1:
        raise UsageError.of(
            "positive-frames", "option --frames", f"must be at least 1, not {frames}", "give a number of frames",
        )
    if given is not None:
        return _from_file(model, Path(given), frames, labelled)
    there = [] if beside is None else [file for name in INPUTS if (file := beside.parent / name).is_file()]
    if there:
        return _from_file(model, there[0], frames, labelled)
    return Inputs(random_inputs(model, RANDOM_FRAMES if frames is None else frames, rng), "random")


def _from_file(model: Model, path: Path, frames: int | None, labelled: bool) -> Inputs:
    where = f"inputs {show_path(path)}"
    there = _arrays_and_maps(model, path, where)
    names = model.resolved.inputs
    if len(names) == 1 and names[0] not in there and "input" in there:
        there[names[0]] = there["input"]
    findings, arrays = [], {}
    for name in names:
        info = model.resolved.values[name]
        wanted = info.shape[1:]
        array = there.get(name)
        if array is None:
            listing = ", ".join(show(n) for n in there) or "nothing"
            findings.append(
                Finding(
                    "inputs-file",
                    where,
                    f"must hold an array {show(name)}, not only {listing}",
                    "name arrays by model input",
                )
            )
            continue
        array = _frames_of(model, array, wanted)
        if array.ndim != len(wanted) + 1 or array.shape[1:] != wanted:
            text = ", ".join(map(str, wanted))
            findings.append(
                Finding(
                    "inputs-file",
                    where,
                    f"{show(name)} must have shape [frames, {text}], not {list(array.shape)}",
                    "reshape it",
                )
            )
        elif len(array) == 0 or (frames is not None and len(array) < frames):
            least = f"{frames} frames" if frames is not None and frames > 1 else "1 frame"
            message = f"{show(name)} must hold at least {least}, not {len(array)}"
            findings.append(Finding("inputs-file", where, message, "ask for fewer" if len(array) else "add frames"))
        else:
            try:
                arrays[name] = _converted(array[:frames], info.dtype, partial(takes_any_float, model, name))
            except ValueError as error:
                findings.append(Finding("inputs-file", where, f"{show(name)} {error}", "convert it"))
    if not findings and len({len(a) for a in arrays.values()}) > 1:
        message = "all inputs must have the same number of frames"
        findings.append(Finding("inputs-file", where, message, "shorten the longer arrays"))
    labels = there.get("label") if labelled and "label" not in names else None
    first = there.get(names[0]) if names else None
    if labels is not None and first is not None and first.ndim:
        first = _frames_of(model, first, model.resolved.values[names[0]].shape[1:])
        findings += _wrong_labels(labels, len(first), where)
    if findings:
        raise UsageError(findings)
    return Inputs(arrays, str(path), None if labels is None else labels[:frames])


def _wrong_labels(labels: npt.NDArray[Any], frames: int, where: str) -> list[Finding]:
    """Return what is wrong with an array `label`, which must have an integer per frame."""
    found: list[tuple[str, object, str]] = []
    if labels.dtype.kind not in "iu":
        found.append(("must be of an integer type", labels.dtype, "convert it to class numbers"))
    if labels.shape != (frames,):
        found.append((f"must have shape [{frames}], one label per frame", list(labels.shape), "give as many as frames"))
    return [
        Finding("inputs-file", where, f"'label' {wanted}, not {got}", f"{remedy}, or leave the array out")
        for wanted, got, remedy in found
    ]


def require_file(path: str | os.PathLike[str] | None) -> None:
    """Raise :class:`UsageError` if a given file of inputs cannot be opened: before a long run."""
    if path is not None:
        try:
            Path(path).open("rb").close()
        except OSError as error:
            raise _unreadable(f"inputs {show_path(path)}", error.strerror or "it cannot be opened") from None


def _frames_of(model: Model, array: npt.NDArray[Any], wanted: tuple[int, ...]) -> npt.NDArray[Any]:
    """Reshape an array to have frames along an axis of their own: where a frame is a model's whole inputs, they may
    also be concatenated along the inputs' first axis."""
    joined = model.whole and array.ndim == len(wanted) > 0 and array.shape[1:] == wanted[1:]
    return array.reshape(-1, *wanted) if joined and wanted[0] and len(array) % wanted[0] == 0 else array


def _arrays_and_maps(model: Model, path: Path, where: str) -> dict[str, npt.NDArray[Any]]:
    """Read an .npz, and maps from the JSON beside it, or a JSON file alone; maps as rows of their tensor."""
    there: dict[str, Any] = {} if path.suffix == ".json" else _arrays(path, where)
    maps, forms = maps_beside(path), input_maps(model)
    if path.suffix != ".json" and not (forms and maps.is_file()):
        return there
    try:
        found = read_maps(maps)
    except OSError as error:
        raise _unreadable(where, error.strerror or "it cannot be opened", JSON) from None
    except ValueError as error:
        raise _unreadable(f"inputs {show_path(maps)}", str(error), JSON) from None
    for name, value in found.items():
        try:
            there[name] = forms[name].rows(value) if is_maps(value) and name in forms else np.asarray(value)
        except ValueError as error:
            raise UsageError.of("inputs-file", where, f"{show(name)} {error}", "correct the maps") from None
    return there


NPZ, JSON = (".npz", "numpy.savez"), (".json", "json.dump, a list by input name")


def _arrays(path: Path, where: str) -> dict[str, npt.NDArray[Any]]:
    """Read every array of an .npz file. Raises :class:`UsageError`."""
    reason = "it is not an .npz file"
    try:
        with path.open("rb") as stream:
            file = np.load(stream, allow_pickle=False)
            if isinstance(file, np.lib.npyio.NpzFile):
                return {name: file[name] for name in file.files}
        reason = "it is one array (.npy)"
    except OSError as error:
        reason = error.strerror or reason
    except Exception as error:  # zipfile, zlib and numpy raise many kinds for damaged files
        if zipfile.is_zipfile(path):
            reason = str(error) or type(error).__name__
    raise _unreadable(where, reason)


def _unreadable(where: str, reason: str, kind: tuple[str, str] = NPZ) -> UsageError:
    message = f"must be a readable {kind[0]} file, but: {reason}"
    return UsageError.of("inputs-file", where, message, f"write it with {kind[1]}")


def _converted(array: npt.NDArray[Any], dtype: str, takes_any: Callable[[], bool]) -> npt.NDArray[Any]:
    """Convert to the model's type: floats must be finite unless it ``takes_any``, integers of any type within its
    range.

    Raises :class:`ValueError` saying what must be, otherwise.
    """
    if dtype == "string":
        if array.dtype.kind not in "OSU":
            raise ValueError(f"must be strings, not {array.dtype}")
        return np.asarray([str(text) for text in array.reshape(-1)], object).reshape(array.shape)
    integer = is_integer(dtype)
    if array.dtype.kind not in ("iub" if dtype == "bool" else "iu" if integer else "iuf"):
        raise ValueError(f"must be of {'an integer' if integer else 'a real'} type ({dtype}), not {array.dtype}")
    if integer:
        low, high = integer_bounds(dtype)
        least, most = int(array.min()), int(array.max())
        if least < low or most > high:
            raise ValueError(f"must be within {dtype}, {low} to {high}, not {least} to {most}")
        return array
    with np.errstate(over="ignore"):
        array = array.astype(float_dtype(dtype))
    if not np.isfinite(array).all() and not takes_any():
        raise ValueError(f"must hold finite numbers of type {dtype} only")
    return array
