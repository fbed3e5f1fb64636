"""The host's side: inputs in the model's own terms, and the float nodes before the hardware."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hwflow.errors import Finding, UsageError
from hwflow.ir.graph import IntArray
from hwflow.onnxspec.reference import RegionEvaluator

if TYPE_CHECKING:
    from hwflow.compiler import Model

Arrays = Mapping[str, npt.NDArray[Any]]
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
    count = RANDOM_FRAMES if frames is None else frames
    return Inputs({name: _random(model, name, count, rng) for name in model.resolved.inputs}, "random")


def port_inputs(model: Model, arrays: Arrays) -> dict[str, IntArray]:
    """The integers of each hardware input: the nodes left to the host before it, run by the reference evaluator."""
    evaluator = RegionEvaluator(model.flat)
    result: dict[str, IntArray] = {}
    for port in model.quantized.inputs:
        origin = port.value.origin
        if origin in arrays:
            result[port.name] = np.asarray(arrays[origin]).astype(np.int64)
            continue
        result[port.name] = evaluator.run([origin], arrays)[origin].astype(np.int64)
    return result


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
            findings.append(Finding("inputs-file", where, message, "ask for fewer"))
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
    integer = "int" in dtype
    if array.dtype.kind not in ("iu" if integer else "iuf"):
        raise ValueError(f"must be of {'an integer' if integer else 'a real'} type ({dtype}), not {array.dtype}")
    if integer:
        bits, signed = int(dtype.split("int")[1]), not dtype.startswith("u")
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        least, most = int(array.min()), int(array.max())
        if least < low or most > high:
            raise ValueError(f"must be within {dtype}, {low} to {high}, not {least} to {most}")
        return array
    with np.errstate(over="ignore"):
        array = array.astype(_float_dtype(dtype))
    if not np.isfinite(array).all():
        raise ValueError(f"must hold finite numbers of type {dtype} only")
    return array


def _float_dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:  # bfloat16 and smaller: numpy has none of them
        return np.dtype("float32")


def _random(model: Model, name: str, frames: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Random frames of an input: over the whole range of its type, or (float) of what its quantizers take."""
    info = model.resolved.values[name]
    shape = (frames, *info.shape[1:])
    ports = [p for p in model.quantized.inputs if p.name == name]
    if ports and ports[0].value.origin == name:
        interval = ports[0].value.typed.interval
        return rng.integers(interval.lo, interval.hi + 1, shape)
    low, high = _float_range(model, name)
    return rng.uniform(low, high, shape).astype(_float_dtype(info.dtype))


def _float_range(model: Model, name: str) -> tuple[float, float]:
    """A little more than the reals a quantizer right behind the input tells apart; [-1, 1] where there is none."""
    for node in model.resolved.nodes:
        if node.op_type == "QuantizeLinear" and node.inputs[0] == name and node.inputs[1] in model.resolved.constants:
            scale = float(model.resolved.constants[node.inputs[1]].reshape(-1)[0])
            zero = node.inputs[2] if len(node.inputs) > 2 else ""
            zero_point = int(model.resolved.constants[zero].reshape(-1)[0]) if zero in model.resolved.constants else 0
            port = next(p for p in model.quantized.inputs if p.value.origin == node.outputs[0])
            element = port.value.typed.element
            return scale * (element.min - 4 - zero_point), scale * (element.max + 4 - zero_point)
    return -1.0, 1.0
