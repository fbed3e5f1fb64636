"""How much of a model file is lists of nodes' attributes, found before the file is parsed.

In memory an entry takes several times its bytes in the file, and each rule that reads it a hundred nanoseconds.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from hwflow.onnxspec.reading.wire import BYTES, fields

MOST_LIST_BYTES = 3 << 23
"""Bytes of the lists of integers, floats and strings of all nodes that are read: about 500,000 nodes of trees."""

_MOST_FIELDS = 1_000_000  # that are looked at
_FIELDS = {"attribute": 64}  # the same by the message

_NUMBERS = {name: field.number for name, field in AttributeProto.DESCRIPTOR.fields_by_name.items()}
_LISTS = frozenset(_NUMBERS[name] for name in ("floats", "ints", "strings"))
# A packed integer is a byte or more, an unpacked one two or more, and takes eight in memory.
_PACKED = {_NUMBERS["floats"]: 1, _NUMBERS["ints"]: 4}


def _numbers(message: Any, *names: str) -> frozenset[int]:
    return frozenset(message.DESCRIPTOR.fields_by_name[name].number for name in names)


# Where nodes are, by the message.
_GRAPHS = {
    "model": {
        **dict.fromkeys(_numbers(ModelProto, "graph"), "graph"),
        **dict.fromkeys(_numbers(ModelProto, "functions"), "function"),
    },
    "graph": dict.fromkeys(_numbers(GraphProto, "node"), "node"),
    "function": dict.fromkeys(_numbers(FunctionProto, "node"), "node"),
    "node": dict.fromkeys(_numbers(NodeProto, "attribute"), "attribute"),
    "attribute": dict.fromkeys(_numbers(AttributeProto, "g", "graphs"), "graph"),
}


def list_bytes(data: bytes) -> int:
    """Return about how many bytes of ``data``, an encoded ModelProto, are lists of attributes: packed integers count
    four times. Stops where it is no protobuf, and at :data:`MOST_LIST_BYTES`."""
    total = 0
    left = _MOST_FIELDS
    pending = [(0, len(data), "model")]
    while pending and total <= MOST_LIST_BYTES and left:
        begin, end, message = pending.pop()
        inside = _GRAPHS[message]
        for number, kind, at, after in islice(fields(data, begin, end), min(left, _FIELDS.get(message, left))):
            left -= 1
            if number in inside and kind == BYTES:
                pending.append((at, after, inside[number]))
            elif message == "attribute" and number in _LISTS:
                if kind != BYTES or number not in _PACKED:  # an entry: the rest are, too
                    total += end - at
                    break
                total += _PACKED[number] * (after - at)
    return total
