"""Strings that are not UTF-8. Protobuf's parser lets them through, as bytes where text is expected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# FieldDescriptor.TYPE_STRING and TYPE_MESSAGE
_STRING, _MESSAGE = 9, 11


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
