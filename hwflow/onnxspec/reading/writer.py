"""Writing a model file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import onnx

from hwflow.display import show_path
from hwflow.errors import UsageError


def write_model(model: onnx.ModelProto, path: str | os.PathLike[str]) -> None:
    """Write ``model`` (binary protobuf) beside ``path``, then rename: the file is complete, or unchanged.

    Raises :class:`UsageError` where the file cannot be written, or the model is larger than protobuf allows (2 GiB).
    """
    file = Path(os.path.abspath(path))
    beside: Path | None = None
    try:
        data = model.SerializeToString()
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        beside = Path(name)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        beside.chmod(file.stat().st_mode & 0o777 if file.exists() else 0o666 & ~_umask())
        beside.replace(file)
    except Exception as error:  # OSError; protobuf's EncodeError or ValueError if too large
        if beside is not None:
            beside.unlink(missing_ok=True)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError.of(
            "output-file", f"output {show_path(path)}",
            f"must be a file that can be written, but the system says: {' '.join(reason.split())}",
            "choose another path",
        ) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
