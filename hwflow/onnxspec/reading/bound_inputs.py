"""Bind graph inputs to constants: ``--const NAME=VALUE``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx

from hwflow.display import show, show_path
from hwflow.errors import Finding, UsageError
from hwflow.onnxspec.reading.numpy_tensors import DTYPE_NAMES, to_tensor
from hwflow.suggestion import did_you_mean

InputConstants: TypeAlias = Mapping[str, npt.ArrayLike]
"""Values by input name. A text is a number, numbers between commas, or the name of a .npy or .npz file."""

OPTION = "option --const"
_FILES = (".npy", ".npz")
_TRUTH = {"true": True, "false": False}


class _Wrong(Exception):
    """What is wrong with a value, in words, and the remedy."""


def bind_inputs(model: onnx.ModelProto, constants: InputConstants) -> None:
    """Make initializers of the inputs that ``constants`` names, in place: the inputs disappear.

    A value has the input's element type and shape; one element fits every shape of sizes 1 and variables. Raises
    :class:`UsageError` with a finding for each name that is no input and each value that does not fit.
    """
    held = {tensor.name for tensor in model.graph.initializer}
    inputs = {info.name: info for info in model.graph.input if info.name not in held}
    findings, tensors = [], []
    for name, value in constants.items():
        try:
            if name not in inputs:
                known = ", ".join(map(show, inputs)) or "it has none"
                raise _Wrong(f"must name an input of the model ({known}), not {show(name)}", _suggested(name, inputs))
            tensors.append(_tensor(inputs[name], _array(name, value)))
        except _Wrong as wrong:
            findings.append(Finding("const-option", OPTION, *wrong.args))
    if findings:
        raise UsageError(findings)
    kept = [info for info in model.graph.input if info.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.graph.initializer.extend(tensors)


def digests_of(constants: Mapping[str, str]) -> dict[str, str]:
    """Return the texts, with the SHA-256 of a file's contents in place of its name, where it can be read."""
    result = {}
    for name, text in constants.items():
        path = Path(text)
        there = text.lower().endswith(_FILES) and path.is_file()
        result[name] = hashlib.sha256(path.read_bytes()).hexdigest() if there else text
    return result


def _suggested(name: str, inputs: Mapping[str, object]) -> str:
    return f"{did_you_mean(name, inputs)}choose one" if inputs else "leave it out"


def _array(name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return a value as an array; read a file, or parse a text."""
    if not isinstance(value, str | os.PathLike):
        return np.asarray(value)
    text = str(value).strip()
    if text.lower().endswith(_FILES):
        return _read(name, Path(text))
    parts = [part.strip() for part in text.removeprefix("[").removesuffix("]").split(",")]
    try:
        numbers = [_TRUTH[part.lower()] if part.lower() in _TRUTH else _number(part) for part in parts]
    except ValueError:
        raise _Wrong(
            f"must be a number, numbers between commas, or a .npy or .npz file, not {show(text)}",
            "for example --const sr=16000",
        ) from None
    return np.array(numbers if len(parts) > 1 or text.startswith("[") else numbers[0])


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _read(name: str, path: Path) -> npt.NDArray[Any]:
    """Read a .npy file, or the array called ``name``, or the only one, of a .npz file."""
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        with found:
            chosen = name if name in found.files else found.files[0] if len(found.files) == 1 else None
            if chosen is None:
                held = ", ".join(map(show, found.files)) or "none"
                raise _Wrong(f"{show_path(path)} must have an array {show(name)}, not {held}", "store it in the file")
            return np.asarray(found[chosen])
    except _Wrong:
        raise
    except Exception as error:  # whatever numpy and zipfile raise for a file that is none of theirs
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not one that numpy reads"
        message = f"{show_path(path)} must be a .npy or .npz file that can be read, but: {reason}"
        raise _Wrong(message, "give another file") from None


def _tensor(info: onnx.ValueInfoProto, array: npt.NDArray[Any]) -> onnx.TensorProto:
    """Return the value of an input as a tensor of its type and shape."""
    kind, place = info.type.tensor_type, f"{show(info.name)} must be"
    if info.type.WhichOneof("value") != "tensor_type" or kind.elem_type not in DTYPE_NAMES:
        raise _Wrong(f"{place} a tensor, which it is not", "leave it out")
    dtype = DTYPE_NAMES[kind.elem_type]
    if array.dtype.kind not in "biuf":
        raise _Wrong(f"{place} of numbers, not {array.dtype}", "give numbers")
    wanted = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    with np.errstate(all="ignore"):
        try:
            converted = array.astype(wanted)
            exact = np.array_equal(converted.astype(array.dtype), array) if wanted.kind in "biu" else True
        except (TypeError, ValueError, OverflowError):
            exact = False
    if not exact:
        raise _Wrong(f"{place} {dtype}, but {show(_said(array))} is not", f"give values of {dtype}")
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
    if kind.HasField("shape"):
        if array.size == 1 and all(size in (1, None) for size in sizes):
            converted = converted.reshape([1] * len(sizes))
        fits = len(sizes) == converted.ndim and all(s in (None, n) for s, n in zip(sizes, converted.shape, strict=True))
        if not fits:
            stated = ", ".join(dim.dim_param or str(dim.dim_value or "?") for dim in kind.shape.dim)
            raise _Wrong(f"{place} of shape [{stated}], not {list(array.shape)}", "give a value of that shape")
    return to_tensor(info.name, converted, dtype)


def _said(array: npt.NDArray[Any]) -> str:
    return str(array.reshape(-1)[0]) if array.size == 1 else f"an array of {array.dtype}"
