"""Run what is left to the host, ``prefix.onnx`` and ``suffix.onnx``, with onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .host_design import HostPart
from .host_errors import HostError, HostFinding, shown

Arrays = Mapping[str, npt.NDArray[Any]]
Evaluate = Callable[[Arrays], Arrays]
"""Computes a part's outputs from its inputs, both by name, frames first; constant outputs have no axis of frames."""


def runtime_part(part: HostPart) -> Evaluate:
    """Return what runs ``part`` with onnxruntime. Raises :class:`HostError` where it is missing or cannot."""
    where = f"file {shown(part.file)}"
    try:
        import onnxruntime
    except ImportError:
        message = f"must be installed to run {part.file.name}, not missing"
        finding = HostFinding("package-present", "package onnxruntime", message, "pip install onnxruntime")
        raise HostError(finding) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(part.file, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors are classes of its own, which share no base
        message = f"must be a model that onnxruntime takes, but: {shown(error)}"
        remedy = "run it where hwflow is installed, whose reference evaluator takes it"
        raise HostError(HostFinding("host-part", where, message, remedy)) from None
    single = any(info.shape and isinstance(info.shape[0], int) for info in session.get_inputs())
    constant = {tensor.name for tensor in part.outputs if tensor.constant}
    names = [tensor.name for tensor in part.outputs]

    def once(arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
        try:
            return dict(zip(names, session.run(names, dict(arrays)), strict=True))
        except Exception as error:
            message = f"must run with onnxruntime, but: {shown(error)}"
            remedy = "correct the frames if it is they, or report this model as a defect of hwflow"
            raise HostError(HostFinding("host-part", where, message, remedy)) from None

    def evaluate(arrays: Arrays) -> Arrays:
        given = {tensor.name: arrays[tensor.name] for tensor in part.inputs}
        if not single:
            return once(given)
        frames = len(next(iter(given.values())))
        made = [once({name: array[n : n + 1] for name, array in given.items()}) for n in range(frames)]
        return {
            name: made[0][name] if name in constant else np.concatenate([each[name] for each in made]) for name in names
        }

    return evaluate
