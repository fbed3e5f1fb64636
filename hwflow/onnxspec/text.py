"""Texts: strings that are not UTF-8 (protobuf's parser lets them through, as bytes), and what onnx's exceptions say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

# FieldDescriptor.TYPE_STRING and TYPE_MESSAGE
_STRING, _MESSAGE = 9, 11


def one_line(error: Exception) -> str:
    """What an exception of onnx's says, on one line, without its markers."""
    text = " ".join(str(error).split())
    text = re.sub(r"\[(Type|Shape)InferenceError\] ?", "", text)
    text = text.removeprefix("Inference error(s): ")
    return text or type(error).__name__


def bad_text(message: Any, path: str = "") -> Iterator[str]:
    """Paths ("graph.node[3].name") of the string fields of a protobuf message that do not hold UTF-8."""
    for field, value in message.ListFields():
        if field.type == _STRING:
            if isinstance(value, bytes):
                yield f"{path}{field.name}"
            elif not isinstance(value, str):
                yield from (f"{path}{field.name}[{i}]" for i, item in enumerate(value) if isinstance(item, bytes))
        elif field.type == _MESSAGE:
            if hasattr(value, "ListFields"):
                yield from bad_text(value, f"{path}{field.name}.")
            else:
                for i, item in enumerate(value):
                    yield from bad_text(item, f"{path}{field.name}[{i}].")
