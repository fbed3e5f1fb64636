"""Bytes of the protobuf wire format by hand: for files that protobuf's own writers do not write."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """Base-128, the least significant group first."""
    groups = bytearray()
    while True:
        number, group = number >> 7, number & 0x7F
        groups.append(group | (0x80 if number else 0))
        if not number:
            return bytes(groups)


def field(number: int, content: bytes | int) -> bytes:
    """A field with a varint (int) or with a length and that many bytes."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def model(graph: bytes, ir_version: int = 10) -> bytes:
    """A ModelProto: ir_version is field 1, graph field 7."""
    return field(1, ir_version) + field(7, graph)


def nested_graphs(depth: int) -> bytes:
    """A model whose graph holds an If node whose branch holds an If node ..., ``depth`` graphs in all.

    GraphProto: node 1, name 2. NodeProto: output 2, op_type 4, attribute 5. AttributeProto: name 1, g 6, type 20 (5).
    """
    graph = b""
    for _ in range(depth):
        attribute = field(1, b"then_branch") + field(6, graph) + field(20, 5)
        graph = field(1, field(2, b"y") + field(4, b"If") + field(5, attribute)) + field(2, b"g")
    return model(graph)


def nested_types(depth: int) -> bytes:
    """A model with an input that is a sequence of sequences ... of float tensors, ``depth`` sequences in all.

    GraphProto: name 2, input 11. ValueInfoProto: name 1, type 2. TypeProto: tensor_type 1, sequence_type 4, whose
    elem_type is 1.
    """
    kind = field(1, field(1, 1))
    for _ in range(depth):
        kind = field(4, field(1, kind))
    return model(field(2, b"g") + field(11, field(1, b"x") + field(2, kind)))
