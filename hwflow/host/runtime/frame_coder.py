"""The model's own arrays to the bytes of frames, and the bytes of answers to the model's own outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .float_parts import Arrays, Evaluate, runtime_part
from .host_design import HostDesign, HostStream, HostTensor
from .host_errors import USAGE, HostError, HostFinding, shown
from .tensors.frame_bytes import Bytes, FrameBytes
from .tensors.levels import Levels, numpy_type
from .tensors.map_rows import is_maps

Array = npt.NDArray[Any]
Integers = dict[str, Array]
"""By the port's name, [frames, *shape]."""


class FrameCoder:
    """Conversions of one design. ``prefix``, ``suffix``: run these parts in onnxruntime's place. Raises
    :class:`HostError` where a part cannot be run."""

    def __init__(self, design: HostDesign, prefix: Evaluate | None = None, suffix: Evaluate | None = None) -> None:
        self.design = design
        self._prefix = prefix if prefix or design.prefix is None else runtime_part(design.prefix)
        self._suffix = suffix if suffix or design.suffix is None else runtime_part(design.suffix)
        self._inputs = [FrameBytes(stream) for stream in design.inputs]
        self._outputs = [FrameBytes(stream) for stream in design.outputs]
        before = (*design.model_inputs, *(() if design.prefix is None else design.prefix.outputs))
        after = (*design.model_outputs, *(() if design.suffix is None else design.suffix.inputs))
        self._sources = {tensor.port: Levels(tensor) for tensor in before if tensor.port}
        self._sinks = {tensor.name: Levels(tensor) for tensor in after if tensor.port}

    def check(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Return arrays, or lists of maps, as arrays in the model's types. Raises :class:`HostError` with all that is
        wrong with them."""
        findings: list[HostFinding] = []
        found: dict[str, Array] = {}
        for tensor in self.design.model_inputs:
            where = f"input {shown(tensor.name)}"
            if tensor.name not in arrays:
                there = ", ".join(map(shown, arrays)) or "nothing"
                message = f"must be given, not missing (there is {there})"
                findings.append(HostFinding("input-present", where, message, "name arrays by model input"))
                continue
            given: Any = arrays[tensor.name]
            try:
                array = np.asarray(given) if tensor.maps is None or not is_maps(given) else tensor.maps.rows(given)
            except ValueError as error:
                text = str(error) if tensor.maps is not None else "must be an array, not lists of unequal lengths"
                findings.append(HostFinding("input-maps", where, text, "give a map of each frame, or an array"))
                continue
            wrong = _wrong(tensor, array)
            if wrong is not None:
                findings.append(wrong)
            else:
                with np.errstate(over="ignore"):
                    found[tensor.name] = array.astype(numpy_type(tensor.type), copy=False)
        lengths = {name: len(array) for name, array in found.items()}
        if len(set(lengths.values())) > 1:
            message = f"must have the same number of frames, not {', '.join(map(str, lengths.values()))}"
            findings.append(HostFinding("input-frames", "inputs", message, "shorten the longer arrays"))
        known = [tensor.name for tensor in self.design.model_inputs]
        for name in arrays:
            if name not in known:
                message = f"must be an input of the model ({', '.join(map(shown, known))}), not another name"
                findings.append(HostFinding("input-known", f"input {shown(name)}", message, "leave it out"))
        if findings:
            raise HostError(*findings, exit_code=USAGE)
        return found

    def integers(self, arrays: Arrays) -> Integers:
        """Return what goes into the design for ``arrays`` that were checked."""
        made = arrays if self._prefix is None else {**arrays, **self._prefix(arrays)}
        return {stream.name: self._sources[stream.port].integers(made[self._sources[stream.port].tensor.name])
                for stream in self.design.inputs}  # fmt: skip

    def encode(self, integers: Mapping[str, Array]) -> Bytes:
        """Return uint8[frames, bytes of a frame of all inputs]."""
        return _side_by_side([layout.encode(integers[layout.stream.name]) for layout in self._inputs])

    def decode(self, data: Bytes) -> Integers:
        """Return what came out of the design as uint8[frames, bytes of a frame of all outputs]."""
        result, begin = {}, 0
        for layout in self._outputs:
            end = begin + layout.stream.frame_bytes
            result[layout.stream.name] = layout.decode(data[:, begin:end])
            begin = end
        return result

    def outputs(self, integers: Mapping[str, Array], arrays: Arrays) -> dict[str, Array]:
        """Return the model's outputs of the design's, in numpy's types; ``arrays``: the inputs, checked."""
        streams: dict[str, HostStream] = {stream.port: stream for stream in self.design.outputs}
        there = dict(arrays)
        for name, levels in self._sinks.items():
            there[name] = levels.tensor_of(integers[streams[levels.tensor.port].name])
        if self._suffix is not None:
            there |= self._suffix(there)
        frames = len(next(iter(integers.values())))
        return {tensor.name: _whole(tensor, there[tensor.name], frames) for tensor in self.design.model_outputs}

    def own(self, outputs: Mapping[str, Array]) -> dict[str, Any]:
        """Return the model's outputs in its own types: lists of maps where it has sequences of them."""
        forms = {tensor.name: tensor.maps for tensor in self.design.model_outputs}
        return {
            name: array if (form := forms[name]) is None else form.maps(array) for name, array in outputs.items()
        }

    def nothing(self) -> dict[str, Array]:
        """Return the model's outputs of no frames."""
        return {t.name: np.zeros((0, *t.shape), numpy_type(t.type)) for t in self.design.model_outputs}

    def lanes(self, vectors: Mapping[str, Array]) -> Bytes:
        """Return the bytes of a frame of all inputs for the test bench's vectors, by port: [frames, beats, lanes]."""
        flat = [(layout, vectors[layout.stream.port]) for layout in self._inputs]
        return _side_by_side([layout.cut(array.reshape(len(array), -1)) for layout, array in flat])

    def expected(self, vectors: Mapping[str, Array]) -> Integers:
        """Return the integers of the test bench's vectors of the outputs, by port: [frames, beats, lanes]."""
        return {
            layout.stream.name: layout.decode(layout.cut(vectors[layout.stream.port].reshape(
                len(vectors[layout.stream.port]), -1))) for layout in self._outputs
        }  # fmt: skip


def _side_by_side(parts: list[Bytes]) -> Bytes:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _whole(tensor: HostTensor, array: Array, frames: int) -> Array:
    if tensor.constant:
        array = np.broadcast_to(array, (frames, *tensor.shape))
    return array


def _wrong(tensor: HostTensor, array: Array) -> HostFinding | None:
    where, type_ = f"input {shown(tensor.name)}", numpy_type(tensor.type)
    if array.ndim != 1 + len(tensor.shape) or array.shape[1:] != tensor.shape:
        wanted = ", ".join(map(str, ("frames", *tensor.shape)))
        message = f"shape must be [{wanted}], not {list(array.shape)}"
        return HostFinding("input-shape", where, message, "reshape it; one frame is a batch of one")
    kinds = {"b": "iub", "i": "iu", "u": "iu", "O": "OSU"}.get(type_.kind, "iuf")
    if array.dtype.kind not in kinds:
        kind = {"f": "a real", "O": "a string"}.get(type_.kind, "an integer")
        message = f"elements must be of {kind} type ({tensor.type}), not {array.dtype}"
        return HostFinding("input-type", where, message, "convert it")
    if not array.size or type_.kind == "O":
        return None
    if type_.kind == "f":
        with np.errstate(over="ignore"):
            if tensor.finite and not np.isfinite(array.astype(type_, copy=False)).all():
                message = f"must hold finite numbers of type {tensor.type} only"
                return HostFinding("input-range", where, message, "give such frames")
        return None
    low, high = _bounds(tensor.type)
    least, most = int(array.min()), int(array.max())
    if least < low or most > high:
        message = f"must be within {tensor.type}, {low} to {high}, not {least} to {most}"
        return HostFinding("input-range", where, message, "give such frames")
    return None


def _bounds(type_: str) -> tuple[int, int]:
    if type_ == "bool":
        return 0, 1
    signed = not type_.startswith("u")
    bits = int(type_.removeprefix("u").removeprefix("int"))
    return -(1 << bits - 1) if signed else 0, (1 << bits - signed) - 1
