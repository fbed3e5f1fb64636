"""The protobuf wire format, only as far as it tells why a file is no model, which protobuf's parser does not say, or
how much of it is lists of nodes' attributes.

In memory an entry of a list takes several times its bytes in the file, and each rule that reads it a hundred
nanoseconds: the limit is known before the file is parsed.

Source: the encoding page of the Protocol Buffers documentation (tag = field number << 3 | wire type; base-128 varints).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import onnx

# Protobuf's parsers refuse messages that nest deeper.
MAX_DEPTH = 100
_MAX_FIELDS = 1_000_000

# Wire types: a varint, a length and as many bytes, and those of a fixed size.
_VARINT, _BYTES = 0, 2
_FIXED = {1: 8, 5: 4}

# Field numbers of ModelProto (onnx.proto) and their wire types.
_MODEL_FIELDS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
_FIELD_NAMES = {7: "graph", 8: "opset_import", 14: "metadata_props", 20: "training_info", 25: "functions"}


@dataclass(frozen=True)
class Truncation:
    """The file ends inside ``field``; at least ``missing`` bytes are not there."""

    field: str
    missing: int


def _varint(data: bytes, at: int) -> tuple[int, int] | None:
    """Return value and next offset, or None if the number is cut off or longer than ten bytes."""
    value = 0
    for count in range(10):
        if at + count >= len(data):
            return None
        byte = data[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, at + count + 1
    return None


def _field(data: bytes, at: int) -> tuple[int, int, int, int] | None:
    """Return a field's number and wire type, and where its value begins and ends; None if there is none."""
    tag = _varint(data, at)
    if tag is None:
        return None
    number, wire_type = tag[0] >> 3, tag[0] & 7
    begin = tag[1]
    if wire_type in _FIXED:
        return number, wire_type, begin, begin + _FIXED[wire_type]
    value = _varint(data, begin) if wire_type in (_VARINT, _BYTES) else None
    if value is None:
        return None
    return number, wire_type, value[1], value[1] + (value[0] if wire_type == _BYTES else 0)


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the fields of the message in ``data[at:end]``: number, wire type, and where its value begins and ends; up
    to the first that is none."""
    while at < end and (field := _field(data, at)) is not None:
        number, wire_type, begin, after = field
        yield number, wire_type, begin, min(after, end)
        at = after


def find_truncation(data: bytes) -> Truncation | None:
    """Return where ``data`` is truncated, if it begins like a ModelProto; None if it does not."""
    at = 0
    fields = 0
    while at < len(data):
        tag = _varint(data, at)
        if tag is None:
            return Truncation("a field's tag", 1) if fields else None
        number, wire_type = tag[0] >> 3, tag[0] & 7
        if _MODEL_FIELDS.get(number) != wire_type:
            return None
        value = _varint(data, tag[1])
        name = _FIELD_NAMES.get(number, f"field {number}")
        if value is None:
            return Truncation(name, 1) if fields else None
        at = value[1]
        if wire_type == 2:
            if at + value[0] > len(data):
                # Random bytes look like a first field that is too long.
                return Truncation(name, at + value[0] - len(data)) if fields else None
            at += value[0]
        fields += 1
    return None


def exceeds_depth(data: bytes) -> bool:
    """Tell whether messages nest deeper than :data:`MAX_DEPTH` in ``data``, an encoded ModelProto; False if unknown.

    Follows onnx's own message descriptors, without recursion, over at most a million fields.
    """
    # (where, end, message type) of the open messages, innermost last.
    pending = [(0, len(data), onnx.ModelProto.DESCRIPTOR)]
    for _ in range(_MAX_FIELDS):
        if not pending:
            return False
        at, end, message = pending.pop()
        if at >= end:
            continue
        found = _field(data, at)
        if found is None:
            return False
        number, wire_type, begin, after = found
        pending.append((after, end, message))
        field = message.fields_by_number.get(number)
        if wire_type == _BYTES and field is not None and field.message_type is not None:
            pending.append((begin, min(after, end), field.message_type))
            if len(pending) > MAX_DEPTH + 1:  # the model itself does not count
                return True
    return False


MOST_LIST_BYTES = 3 << 23
"""Bytes of the lists of integers, floats and strings of all nodes that are read: about 500,000 nodes of trees."""

_FIRST_FIELDS = 64  # of an attribute, among which its list begins
_LISTS = ("floats", "ints", "strings")
# A packed integer is a byte or more, an unpacked one two or more, and takes eight in memory.
_PACKED = {"floats": 1, "ints": 4}
# The messages that nodes are in, and theirs.
_AROUND_LISTS = frozenset(
    {
        message.DESCRIPTOR.full_name
        for message in (
            onnx.ModelProto, onnx.TrainingInfoProto, onnx.GraphProto, onnx.FunctionProto, onnx.NodeProto,
            onnx.AttributeProto,
        )
    }
)  # fmt: skip


def list_bytes(data: bytes) -> int:
    """Return about how many bytes of ``data``, an encoded ModelProto, are lists of attributes: packed integers count
    four times. Stops behind :data:`MOST_LIST_BYTES`, a million fields, and in each message where it is no protobuf."""
    total = 0
    left = _MAX_FIELDS
    pending = [(0, len(data), onnx.ModelProto.DESCRIPTOR)]
    while pending and total <= MOST_LIST_BYTES and left > 0:
        begin, end, message = pending.pop()
        is_attribute = message is onnx.AttributeProto.DESCRIPTOR
        for number, kind, at, after in islice(_fields(data, begin, end), _FIRST_FIELDS if is_attribute else left):
            left -= 1
            field = message.fields_by_number.get(number)
            if field is None:
                continue
            if is_attribute and field.name in _LISTS:
                if kind != _BYTES or field.name not in _PACKED:  # an entry: the rest are, too
                    total += end - at
                    break
                total += _PACKED[field.name] * (after - at)
            elif kind == _BYTES and field.message_type is not None and field.message_type.full_name in _AROUND_LISTS:
                pending.append((at, after, field.message_type))
    return total
