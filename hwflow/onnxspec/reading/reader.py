"""Read a model file. Any fault of the file becomes a finding, never a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import onnx

from hwflow.display import show_path
from hwflow.errors import Finding, ModelRefused, NoSuchModel, Severity
from hwflow.onnxspec.reading.wire import MAX_DEPTH, MOST_LIST_BYTES, exceeds_depth, find_truncation, list_bytes

# Protobuf's own limit for one message; larger models keep their tensors in files beside the model.
_MAX_BYTES = 2**31 - 1

_EXPORT_AGAIN = "give the path of an .onnx file (binary protobuf); export the model again if the file is damaged"


def _refuse(path: Path, message: str, remedy: str, rule: str = "model-file") -> ModelRefused:
    return ModelRefused.of(rule, f"file {show_path(path)}", message, remedy)


def _reason(error: BaseException) -> str:
    """Return the error's reason on one line, without the path, which the finding has."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = " ".join(str(error).split())
    return text or type(error).__name__


def _read_bytes(path: Path) -> bytes:
    try:
        if not path.exists():
            message = "the model file must exist, but there is no such file"
            raise NoSuchModel.of("model-file", f"file {show_path(path)}", message, "check the path")
        if path.is_dir():
            raise _refuse(
                path, "the model must be a file, not a folder", "give the path of the .onnx file in the folder"
            )
        if not path.is_file():
            raise _refuse(path, "the model must be a regular file", "copy the model to a file")
        size = path.stat().st_size
        if size > _MAX_BYTES:
            raise _refuse(
                path,
                f"the model file must have at most {_MAX_BYTES} bytes (protobuf's limit), not {size}",
                "save the model with its tensors as external data",
            )
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        raise _refuse(
            path, f"the model file must be readable, but reading it failed: {_reason(error)}", "check its permissions"
        ) from error


def read_model(path: str | os.PathLike[str]) -> onnx.ModelProto:
    """Return the model in the file ``path`` (binary protobuf), without loading external data.

    Raises ModelRefused: no such file (NoSuchModel), a folder, unreadable, empty, not protobuf, truncated, without any
    part of a model. The model is not validated further: see :func:`hwflow.onnxspec.validate`.
    """
    file = Path(path)
    data = _read_bytes(file)
    if not data:
        raise _refuse(file, "the model file must hold an ONNX model, but it is empty", _EXPORT_AGAIN)
    if len(data) > MOST_LIST_BYTES and list_bytes(data) > MOST_LIST_BYTES:
        message = (
            f"the lists of its nodes' attributes must have at most {MOST_LIST_BYTES} bytes in all (about 500,000 nodes "
            "of trees), but they have more"
        )
        remedy = "split the ensemble, or train one of fewer nodes"
        raise ModelRefused([Finding("model-size", f"file {show_path(file)}", message, remedy, Severity.UNSUPPORTED)])
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # protobuf's DecodeError, which has no type stubs
        truncation = find_truncation(data)
        if truncation is not None:
            raise _refuse(
                file,
                f"the model file must be complete, but it ends after {len(data)} bytes inside {truncation.field}: "
                f"at least {truncation.missing} more must follow",
                "copy or download the file again",
            ) from error
        if exceeds_depth(data):
            raise _refuse(
                file,
                f"messages in the model file must not nest deeper than {MAX_DEPTH} (protobuf's limit), but they do: "
                "its graphs or types are nested too deeply",
                "export the model with fewer nested branches and loops",
            ) from error
        raise _refuse(
            file, "the model file must hold an ONNX model, but it is not a protobuf message", _EXPORT_AGAIN
        ) from error
    if not (model.HasField("graph") or model.ir_version or model.opset_import):
        raise _refuse(file, "the model file must hold an ONNX model, but no part of one is in it", _EXPORT_AGAIN)
    return model
