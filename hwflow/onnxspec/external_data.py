"""Loading tensors' data from the files beside a model into the model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import onnx

from hwflow.errors import Finding, ModelRefused
from hwflow.onnxspec import element_types
from hwflow.onnxspec.external_files import ExternalFiles, Need, fetch, read_reference, verify
from hwflow.onnxspec.graph import scopes
from hwflow.onnxspec.sites import tensor_sites
from hwflow.onnxspec.stored import StoredTensor, element_count, stored_tensors

SMALL = 1 << 16  # bytes: shapes, axes, scales and the like

Folders = Sequence[str | os.PathLike[str]]


def load_external_data(model: onnx.ModelProto, path: str | os.PathLike[str], trusted: Folders = ()) -> int:
    """Put the data of every external tensor into ``model``, as raw data; returns how many there were.

    ``path`` is the model's own file, ``trusted`` as for :func:`hwflow.onnxspec.validate`. Raises ModelRefused with all
    findings if data cannot be had, or is not what the model says; the model may be loaded in part then.
    """
    files = ExternalFiles(Path(path).parent, trusted)
    findings: list[Finding] = []
    loaded = 0
    for stored in stored_tensors(tensor_sites(scopes(model))):
        if stored.reference is None:
            continue
        wrong = [problem for problem in stored.external_problems(files) if problem.severity == "error"]
        if wrong:
            findings += [Finding(p.clause, stored.where, p.message, p.remedy) for p in wrong]
        elif not _load(stored, files):
            message = "the tensor's external data must be readable, but it is not"
            findings.append(Finding("EXT-02", stored.where, message, "check the file"))
        loaded += 1
    if findings:
        raise ModelRefused(findings)
    return loaded


def _load(stored: StoredTensor, files: ExternalFiles) -> bool:
    data = stored.raw(files)
    if data is None:
        return False
    tensor = stored.tensor
    for field in stored.fields:
        tensor.ClearField(field)
    tensor.raw_data = data
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]
    return True


def read_small(
    tensor: onnx.TensorProto, folder: Path | None, trusted: Folders = (), most: int = SMALL
) -> onnx.TensorProto | None:
    """A copy of an external tensor with its data inside, for shape inference, which looks at values of a few elements.

    None if it takes more than ``most`` bytes, cannot be had (clauses EXT-* say why), or ``folder`` (the model's) is
    None.
    """
    element, count = element_types.BY_CODE.get(tensor.data_type), element_count(tensor.dims)
    if tensor.data_location != onnx.TensorProto.EXTERNAL or element is None or count is None or element.bits == 0:
        return None
    need = Need(element.raw_bytes(count), element.name)
    reference, files = read_reference(tensor), ExternalFiles(folder, trusted)
    if need.size > most or any(problem.severity == "error" for problem in verify(reference, need, files)):
        return None
    data = fetch(reference, need, files)
    if data is None:
        return None
    return onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=data)
