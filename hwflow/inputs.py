"""The frames that a command works on: of a file, or random ones; in the model's own terms."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hwflow.errors import Finding, UsageError
from hwflow.host import Arrays
from hwflow.random_inputs import float_dtype, integer_bounds, is_integer, random_inputs

if TYPE_CHECKING:
    from hwflow.compiler import Model

RANDOM_FRAMES = 16


@dataclass(frozen=True)
class Inputs:
    """Arrays by ONNX input name, frames first; where they came from; ``labels`` if the file had them."""

    arrays: Arrays
    origin: str
    labels: npt.NDArray[Any] | None = None

    @property
    def frames(self) -> int:
        return len(next(iter(self.arrays.values())))


def choose_inputs(
    model: Model, beside: Path | None, given: str | os.PathLike[str] | None, frames: int | None,
    rng: np.random.Generator,
) -> Inputs:
    """The inputs a command works on: ``given``, else ``inputs.npz`` beside the model, else random ones.

    ``beside``: the model's file, if there is one. Of a file all frames unless ``frames`` says how many. Raises
    :class:`UsageError` for a file that does not fit.
    """
    if frames is not None and frames < 1:
        raise UsageError(
            Finding(
                "positive-frames", "option --frames", f"must be at least 1, not {frames}", "give a number of frames"
            )
        )
    if given is not None:
        return _from_file(model, Path(given), frames)
    if beside is not None and (beside.parent / "inputs.npz").is_file():
        return _from_file(model, beside.parent / "inputs.npz", frames)
    return Inputs(random_inputs(model, RANDOM_FRAMES if frames is None else frames, rng), "random")


def _from_file(model: Model, path: Path, frames: int | None) -> Inputs:
    where = f"inputs '{path}'"
    there = _arrays(path, where)
    names = model.resolved.inputs
    if len(names) == 1 and names[0] not in there and "input" in there:
        there[names[0]] = there["input"]
    findings, arrays = [], {}
    for name in names:
        info = model.resolved.values[name]
        wanted = info.shape[1:]
        array = there.get(name)
        if array is None:
            listing = ", ".join(f"'{n}'" for n in there) or "nothing"
            findings.append(
                Finding(
                    "inputs-file",
                    where,
                    f"must hold an array '{name}', not only {listing}",
                    "name arrays by model input",
                )
            )
            continue
        if array.ndim != len(wanted) + 1 or array.shape[1:] != wanted:
            text = ", ".join(map(str, wanted))
            findings.append(
                Finding(
                    "inputs-file",
                    where,
                    f"'{name}' must have shape [frames, {text}], not {list(array.shape)}",
                    "reshape it",
                )
            )
        elif len(array) == 0 or (frames is not None and len(array) < frames):
            least = f"{frames} frames" if frames is not None and frames > 1 else "1 frame"
            message = f"'{name}' must hold at least {least}, not {len(array)}"
            findings.append(Finding("inputs-file", where, message, "ask for fewer" if len(array) else "add frames"))
        else:
            try:
                arrays[name] = _converted(array[:frames], info.dtype)
            except ValueError as error:
                findings.append(Finding("inputs-file", where, f"'{name}' {error}", "convert it"))
    if not findings and len({len(a) for a in arrays.values()}) > 1:
        findings.append(Finding("inputs-file", where, "all inputs must have the same number of frames", "cut them"))
    if findings:
        raise UsageError(findings)
    labels = there.get("label")
    fit = labels is not None and labels.dtype.kind in "iu" and labels.shape == (len(there[names[0]]),)
    return Inputs(arrays, str(path), labels[:frames] if labels is not None and fit else None)


def _arrays(path: Path, where: str) -> dict[str, npt.NDArray[Any]]:
    """Every array of an .npz file. Raises :class:`UsageError`."""
    reason = "it is no .npz file"
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
    raise UsageError(
        Finding("inputs-file", where, f"must be a readable .npz file, but: {reason}", "write it with numpy.savez")
    )


def _converted(array: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    """As the model takes it: floats of its type and finite, integers of any type within the range of the model's.

    Raises :class:`ValueError` saying what must be else.
    """
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
    if not np.isfinite(array).all():
        raise ValueError(f"must hold finite numbers of type {dtype} only")
    return array
