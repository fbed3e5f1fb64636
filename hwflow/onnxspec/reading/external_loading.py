"""Load tensors' external data into the model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import onnx

from hwflow.errors import Finding, ModelRefused, Severity
from hwflow.onnxspec.graphs.scopes import scopes
from hwflow.onnxspec.graphs.sites import TensorSite, tensor_sites
from hwflow.onnxspec.reading.external_files import ExternalFiles
from hwflow.onnxspec.reading.reader import read_model
from hwflow.onnxspec.reading.stored import StoredTensor, stored_tensors
from hwflow.onnxspec.reading.writer import write_model

LARGE = 2**31 - 2**24  # bytes that certainly fit into one message, which has less than 2 GiB
PAGE = 4096  # bytes: offsets are multiples of it (EXT-08)

Folders = Sequence[str | os.PathLike[str]]


def load_external_data(model: onnx.ModelProto, path: str | os.PathLike[str] | None, trusted: Folders = ()) -> int:
    """Load the data of every external tensor into ``model`` as raw data; return the number of bytes.

    ``path`` is the model's own file (None: it has none, and there must be no external data), ``trusted`` as for
    :func:`hwflow.onnxspec.validate`. Raises ModelRefused with all findings if data is unavailable or contradicts the
    model, which may then be loaded in part.
    """
    files = ExternalFiles(None if path is None else Path(path).parent, trusted)
    findings: list[Finding] = []
    loaded = 0
    for stored in stored_tensors(tensor_sites(scopes(model))):
        if stored.reference is None:
            continue
        wrong = [problem for problem in stored.external_problems(files) if problem.severity == Severity.ERROR]
        if wrong:
            findings += [Finding(p.clause, stored.where, p.message, p.remedy) for p in wrong]
        elif not _load(stored, files):
            findings.append(_unloaded(stored, path is not None))
        else:
            loaded += len(stored.tensor.raw_data)
    if findings:
        raise ModelRefused(findings)
    return loaded


def external_locations(model: onnx.ModelProto) -> list[str]:
    """Return the files of external tensors as the model names them, each once."""
    references = (stored.reference for stored in stored_tensors(tensor_sites(scopes(model))))
    return sorted({reference.location for reference in references if reference is not None and reference.location})


def _unloaded(stored: StoredTensor, has_file: bool) -> Finding:
    if has_file:
        message, remedy = "the tensor's external data must be readable, but it is not", "check the file"
    else:
        message = "external data must be stored beside the model's file, but this model was not read from a file"
        remedy = "load the data into the model, or give the path of its file"
    return Finding("EXT-02", stored.where, message, remedy)


def _load(stored: StoredTensor, files: ExternalFiles) -> bool:
    data = stored.raw(files)
    if data is None:
        return False
    tensor = stored.tensor
    for field in stored.fields:
        tensor.ClearField(field)
    tensor.raw_data = data
    tensor.ClearField("data_location")  # DEFAULT
    tensor.ClearField("external_data")
    return True


def write_complete(model: onnx.ModelProto, source: Path, target: Path) -> None:
    """Write ``model``, read from ``source`` and completed by :func:`load_external_data`, to ``target`` without
    references to files elsewhere.

    The data is stored in the model or, if that is too large for protobuf (2 GiB), in one file beside it. Raises what
    :func:`hwflow.onnxspec.write_model` raises.
    """
    original = read_model(source)
    pairs = [
        (there.tensor, here.tensor)
        for there, here in zip(_sites(original), _sites(model), strict=True)
        if there.tensor.data_location == onnx.TensorProto.EXTERNAL
    ]
    if source.stat().st_size + sum(len(tensor.raw_data) for _, tensor in pairs) < LARGE:
        write_model(model, target)
        return
    beside = target.with_name(target.name + ".data")
    with beside.open("wb") as stream:
        for there, here in pairs:
            stream.seek(-(-stream.tell() // PAGE) * PAGE)
            entries = {"location": beside.name, "offset": stream.tell(), "length": len(here.raw_data)}
            stream.write(here.raw_data)
            del there.external_data[:]
            for key, value in entries.items():
                there.external_data.add(key=key, value=str(value))
    write_model(original, target)


def _sites(model: onnx.ModelProto) -> list[TensorSite]:
    return list(tensor_sites(scopes(model)))
