"""The distinct forms of a graph's nodes, which the rules about operators and attributes check.

A graph of ten thousand nodes has a few dozen forms; a rule checks each form once, and visits the nodes only where a
form is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from onnx import AttributeProto

from hwflow.onnxspec.graphs.scopes import Node

# The value field by AttributeProto.type.
VALUE_FIELDS: dict[int, str] = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
KINDS: dict[str, int] = {name: kind for kind, name in VALUE_FIELDS.items()}

_FIELD_NAMES: dict[int, str] = {f.number: f.name for f in AttributeProto.DESCRIPTOR.fields}
_TYPE_TAG = b"\xa0\x01"  # field 20, a varint

# These have short encodings: comparing them is faster than reading the fields one by one.
_SHORT_KINDS = frozenset(
    {AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING, AttributeProto.FLOATS, AttributeProto.INTS}
)


def kind_name(kind: int) -> str:
    """Return the name of an AttributeProto.type."""
    return str(AttributeProto.AttributeType.Name(kind))


@dataclass(frozen=True, eq=False, slots=True)
class AttributeForm:
    """An attribute without its value. Two attributes of one form in a model have the same object."""

    name: str
    kind: int  # AttributeProto.type; 0 if it is absent, UNDEFINED or unknown to onnx
    unknown_kind: int | None  # that number
    fields: tuple[str, ...]  # the value fields present: ("i",)
    reference: bool  # refers to an attribute of the enclosing function (ref_attr_name)
    documented: bool
    utf8: bool  # whether its text, if any, is UTF-8


@dataclass(frozen=True, eq=False, slots=True)
class NodeForm:
    """The properties of a node that rules about operators can distinguish.

    ``inputs`` and ``outputs``: for each position whether it has a name. ``overload`` is "" in a model without
    functions.
    """

    op_type: str
    domain: str
    overload: str
    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]
    attributes: tuple[AttributeForm, ...]


@dataclass(frozen=True, eq=False)
class NodeForms:
    """The forms of the nodes of one graph: ``keys`` holds each node's key in ``by_key``."""

    keys: Sequence[Hashable]
    by_key: Mapping[Hashable, NodeForm]

    @property
    def forms(self) -> Iterable[NodeForm]:
        """Return each form once."""
        return self.by_key.values()

    def of(self, index: int) -> NodeForm:
        """Return the form of a node."""
        return self.by_key[self.keys[index]]


def _is_utf8(texts: Iterable[bytes]) -> bool:
    try:
        # A line break cannot be a part of another character: the whole is UTF-8 if every text is.
        b"\n".join(texts).decode()
    except UnicodeDecodeError:
        return False
    return True


def _unknown_kind(attribute: AttributeProto) -> int | None:
    """Return the type number if onnx does not know it: protobuf treats it as absent but keeps it, like any unknown
    field."""
    try:
        rest = AttributeProto()
        rest.CopyFrom(attribute)
        for descriptor, _ in attribute.ListFields():
            rest.ClearField(descriptor.name)
        data = bytes(rest.SerializePartialToString())
    except Exception:  # the value may be too deep or too large; the type is missing either way
        return None
    if not data.startswith(_TYPE_TAG):
        return None
    value = 0
    for k, byte in enumerate(data[len(_TYPE_TAG) : len(_TYPE_TAG) + 10]):  # a varint: seven bits per byte, lowest first
        value |= (byte & 0x7F) << 7 * k
        if byte < 0x80:
            break
    return value - 2**64 if value >= 2**63 else value


def _code(attribute: AttributeProto) -> bytes:
    """Encode the attribute; empty if its value is too deep or too large."""
    try:
        return bytes(attribute.SerializePartialToString())
    except Exception:  # protobuf's EncodeError, which has no type stubs
        return b""


def _codes(attributes: Sequence[AttributeProto]) -> list[bytes]:
    """Encode the attributes; empty for those where it does not pay."""
    try:
        return [a.SerializePartialToString() if a.type in _SHORT_KINDS else b"" for a in attributes]
    except Exception:  # one of them fails: one by one then
        return [_code(a) if a.type in _SHORT_KINDS else b"" for a in attributes]


class FormReader:
    """Reads the forms of one model."""

    def __init__(self) -> None:
        self._forms: dict[tuple[Any, ...], AttributeForm] = {}

    def attributes(self, attributes: Sequence[AttributeProto]) -> list[AttributeForm]:
        """Return the form of each attribute."""
        codes = _codes(attributes)
        examples = dict(zip(codes, attributes, strict=True))
        examples.pop(b"", None)
        by_code: dict[bytes, AttributeForm] = {code: self._read(example) for code, example in examples.items()}
        forms = [by_code.get(code) for code in codes]
        return [form or self._read(attributes[k]) for k, form in enumerate(forms)]

    def _read(self, attribute: AttributeProto) -> AttributeForm:
        fields = []
        kind = 0
        reference = documented = False
        utf8 = True
        for descriptor, value in attribute.ListFields():
            name = _FIELD_NAMES[descriptor.number]
            if name in KINDS:
                fields.append(name)
                if name == "s":
                    utf8 = utf8 and _is_utf8([value])
                elif name == "strings":
                    utf8 = utf8 and _is_utf8(value)
            elif name == "type":
                kind = value
            elif name == "ref_attr_name":
                reference = bool(value)
            elif name == "doc_string":
                documented = bool(value)
        unknown = None if kind else _unknown_kind(attribute)
        key = (attribute.name, kind, unknown, tuple(fields), reference, documented, utf8)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = AttributeForm(*key)
        return form

    def nodes(self, nodes: Sequence[Node], overload: Callable[[Node], str] | None) -> NodeForms:
        """Return the forms of ``nodes``; ``overload`` reads that of a node, None if no node of the model calls a
        function."""
        attributes = iter(self.attributes([attribute for node in nodes for attribute in node.attributes]))
        keys: list[tuple[Any, ...]] = [
            (
                node.op_type,
                node.domain,
                len(node.inputs) if "" not in node.inputs else tuple(map(bool, node.inputs)),
                len(node.outputs) if "" not in node.outputs else tuple(map(bool, node.outputs)),
                tuple(islice(attributes, len(node.attributes))) if node.attributes else (),
            )
            for node in nodes
        ]
        if overload is not None:
            keys = [(*key, overload(node)) for key, node in zip(keys, nodes, strict=True)]
        return NodeForms(keys, {key: _node_form(*key) for key in set(keys)})


def _node_form(
    op_type: str,
    domain: str,
    inputs: int | tuple[bool, ...],  # the number, if all have names
    outputs: int | tuple[bool, ...],
    attributes: tuple[AttributeForm, ...],
    overload: str = "",
) -> NodeForm:
    return NodeForm(
        op_type,
        domain,
        overload,
        (True,) * inputs if isinstance(inputs, int) else inputs,
        (True,) * outputs if isinstance(outputs, int) else outputs,
        attributes,
    )
