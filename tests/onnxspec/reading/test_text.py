"""Text that is not UTF-8: found in every string field of the format, and nothing else is said then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from hwflow.onnxspec import validate
from tests.onnxspec.build import model, node, texts
from tests.onnxspec.reading.fuzz import messages
from tests.onnxspec.reading.fuzz_seeds import seeds

MARK = "marked"

Place = tuple[str, str]  # message type, field


def string_fields(message: Any) -> list[FieldDescriptor]:
    """The fields that hold text."""
    return [f for f in message.DESCRIPTOR.fields if f.type == FieldDescriptor.TYPE_STRING]


def all_string_fields() -> set[Place]:
    """Of every message that a model may hold."""
    seen: set[str] = set()
    places: set[Place] = set()
    pending: list[Descriptor] = [onnx.ModelProto.DESCRIPTOR]
    while pending:
        kind = pending.pop()
        if kind.full_name in seen:
            continue
        seen.add(kind.full_name)
        places.update((kind.name, f.name) for f in kind.fields if f.type == FieldDescriptor.TYPE_STRING)
        pending.extend(f.message_type for f in kind.fields if f.message_type is not None)
    return places


def rare() -> onnx.ModelProto:
    """What the fuzzer's seeds do not have: an opaque type, a sharding."""
    proto = model([node("Relu", ["x"], ["y"])])
    proto.graph.value_info.add(name="v").type.opaque_type.name = "thing"
    spec = proto.graph.node[0].device_configurations.add().sharding_spec.add()
    spec.sharded_dim.add().simple_sharding.add(dim_value=4)
    return proto


def damaged(folder: Path) -> dict[Place, onnx.ModelProto]:
    """A model for each string field, with bytes in it that are no UTF-8."""
    found: dict[Place, onnx.ModelProto] = {}
    for seed in [*seeds(folder), rare()]:
        for index, message in enumerate(messages(seed)):
            for field in string_fields(message):
                place = (message.DESCRIPTOR.name, field.name)
                if place in found:
                    continue
                copy = onnx.ModelProto()
                copy.CopyFrom(seed)
                target = messages(copy)[index]
                if field.is_repeated:
                    getattr(target, field.name).append(MARK)
                else:
                    setattr(target, field.name, MARK)
                data = copy.SerializeToString()
                found[place] = onnx.ModelProto.FromString(data.replace(MARK.encode(), b"m\xffrked"))
    return found


def test_every_field(tmp_path: Path) -> None:
    models = damaged(tmp_path)
    assert set(models) == all_string_fields()
    silent = [place for place, proto in models.items() if [f.rule for f in validate(proto)] != ["utf-8"]]
    assert silent == []


def test_the_finding() -> None:
    data = model([node("Relu", ["x"], ["y"], name="first")]).SerializeToString()
    proto = onnx.ModelProto.FromString(data.replace(b"first", b"f\xffrst"))
    finding = (
        "error: model: all names and strings must be UTF-8, but graph.node[0].name is not [utf-8]\n"
        "  remedy: export the model again, or copy the file again if it is damaged"
    )
    assert texts(validate(proto)) == [finding]


@pytest.mark.parametrize("text", ["\u00e9", "\u4e2d\u6587", "\U0001f600"])
def test_other_alphabets_are_text(text: str) -> None:
    proto = model([node("Relu", ["x"], ["y"], name=text)])
    assert [f for f in validate(onnx.ModelProto.FromString(proto.SerializeToString())) if f.rule == "utf-8"] == []
