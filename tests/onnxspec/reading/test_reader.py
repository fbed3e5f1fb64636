"""Reading: every way in which a path can fail to be a model, with the message it gives."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from hwflow.onnxspec import read_model
from hwflow.onnxspec.reading.wire import MOST_LIST_BYTES, exceeds_depth, list_bytes
from tests.onnxspec.build import model, node, refused
from tests.onnxspec.reading import wire

AGAIN = "remedy: give the path of an .onnx file (binary protobuf); export the model again if the file is damaged"


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def a_model() -> onnx.ModelProto:
    return model([node("Add", ["x", "w"], ["y"])], constants={"w": np.arange(4, dtype=np.float32)})


def test_reads_what_was_written(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", a_model().SerializeToString())
    assert read_model(path) == a_model()
    assert read_model(str(path)) == a_model()


def test_missing_path(tmp_path: Path) -> None:
    path = tmp_path / "no.onnx"
    assert refused(lambda: read_model(path)) == [
        f"error: file '{path}': the model file must exist, but there is no such file [model-file]\n"
        "  remedy: check the path"
    ]


def test_folder(tmp_path: Path) -> None:
    assert refused(lambda: read_model(tmp_path)) == [
        f"error: file '{tmp_path}': the model must be a file, not a folder [model-file]\n"
        "  remedy: give the path of the .onnx file in the folder"
    ]


def test_no_regular_file() -> None:
    assert refused(lambda: read_model(os.devnull)) == [
        f"error: file '{os.devnull}': the model must be a regular file [model-file]\n  remedy: copy the model to a file"
    ]


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "m.onnx", a_model().SerializeToString())

    def denied(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", denied)  # file modes do not stop a superuser
    assert refused(lambda: read_model(path)) == [
        f"error: file '{path}': the model file must be readable, but reading it failed: Permission denied "
        "[model-file]\n  remedy: check its permissions"
    ]


def test_path_with_nul(tmp_path: Path) -> None:
    (text,) = refused(lambda: read_model(tmp_path / "a\0b"))
    assert text.endswith("[model-file]\n  remedy: check the path") or "reading it failed" in text


def test_too_large(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    with path.open("wb") as file:
        file.truncate(2**31)  # sparse: takes no room
    assert refused(lambda: read_model(path)) == [
        f"error: file '{path}': the model file must have at most 2147483647 bytes (protobuf's limit), not 2147483648 "
        "[model-file]\n  remedy: save the model with its tensors as external data"
    ]


def test_empty(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", b"")
    assert refused(lambda: read_model(path)) == [
        f"error: file '{path}': the model file must hold an ONNX model, but it is empty [model-file]\n  {AGAIN}"
    ]


@pytest.mark.parametrize(
    "data",
    [
        np.random.default_rng(0).bytes(1000),
        b"# Notes\n\nThis is not a model.\n",
        b'<?xml version="1.0"?>\n<model/>\n',
        b"PK\x03\x04" + bytes(40),
        b"\x0a\xff\xff\xff\x7fabc",  # a first field that is too long
        b"\x80" * 20,
    ],
)
def test_not_protobuf(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path / "m.onnx", data)
    assert refused(lambda: read_model(path)) == [
        f"error: file '{path}': the model file must hold an ONNX model, but it is not a protobuf message [model-file]\n"
        f"  {AGAIN}"
    ]


def test_another_message(tmp_path: Path) -> None:
    # Field 100 (varint 1): well formed, and nothing of a ModelProto.
    path = write(tmp_path / "m.onnx", b"\xa0\x06\x01")
    assert refused(lambda: read_model(path)) == [
        f"error: file '{path}': the model file must hold an ONNX model, but no part of one is in it [model-file]\n"
        f"  {AGAIN}"
    ]


def test_no_graph(tmp_path: Path) -> None:
    # Part of a model: validation says that it has no graph (PRO-28).
    path = write(tmp_path / "m.onnx", onnx.ModelProto(ir_version=10).SerializeToString())
    assert read_model(path) == onnx.ModelProto(ir_version=10)


def test_truncated_in_the_graph(tmp_path: Path) -> None:
    # ir_version (2 bytes), graph (tag, length 9, 9 bytes) of which the last 4 are cut off.
    whole = onnx.ModelProto(ir_version=10, graph=onnx.GraphProto(name="seven77")).SerializeToString()
    assert whole == b"\x08\x0a\x3a\x09\x12\x07seven77"
    path = write(tmp_path / "m.onnx", whole[:-4])
    assert refused(lambda: read_model(path)) == [
        f"error: file '{path}': the model file must be complete, but it ends after 9 bytes inside graph: "
        "at least 4 more must follow [model-file]\n  remedy: copy or download the file again"
    ]


def test_truncated_in_a_tag(tmp_path: Path) -> None:
    # metadata_props is field 14: tag 0x72; functions is field 25: a tag of two bytes, of which one is there.
    path = write(tmp_path / "m.onnx", b"\x08\x0a\xca")
    assert refused(lambda: read_model(path)) == [
        f"error: file '{path}': the model file must be complete, but it ends after 3 bytes inside a field's tag: "
        "at least 1 more must follow [model-file]\n  remedy: copy or download the file again"
    ]


def test_external_data_is_not_looked_at(tmp_path: Path) -> None:
    proto = a_model()
    (weights,) = proto.graph.initializer
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="../no such file")
    assert read_model(write(tmp_path / "m.onnx", proto.SerializeToString())) == proto


@pytest.mark.parametrize("make", [wire.nested_graphs, wire.nested_types])
def test_nested_too_deeply(tmp_path: Path, make: Callable[[int], bytes]) -> None:
    path = write(tmp_path / "m.onnx", make(2000))
    assert refused(lambda: read_model(path)) == [
        f"error: file '{path}': messages in the model file must not nest deeper than 100 (protobuf's limit), but they "
        "do: its graphs or types are nested too deeply [model-file]\n"
        "  remedy: export the model with fewer nested branches and loops"
    ]


# A graph is three messages deep (graph, node, attribute), the innermost attribute holds an empty graph; a sequence is
# two (type, sequence) behind graph and value, around a tensor type.
@pytest.mark.parametrize(("make", "deepest"), [(wire.nested_graphs, 33), (wire.nested_types, 48)])
def test_the_deepest_that_protobuf_reads(tmp_path: Path, make: Callable[[int], bytes], deepest: int) -> None:
    path = write(tmp_path / "m.onnx", make(deepest))
    assert read_model(path).graph.name == "g"
    assert not exceeds_depth(make(deepest)) and exceeds_depth(make(deepest + 1))
    path.write_bytes(make(deepest + 1))
    assert "must not nest deeper than 100" in refused(lambda: read_model(path))[0]


def entries(number: int, kind: int, count: int, entry: bytes) -> bytes:
    """An attribute with a list of ``count`` entries in field ``number``."""
    return wire.field(1, b"a") + entry * count + wire.field(20, kind)


LISTS = {
    "ints": (entries(8, 7, 1000, b"\x40\x05"), 2000),
    "packed ints": (entries(8, 7, 1, wire.field(8, b"\x05" * 1000)), 4000),
    "packed floats": (entries(7, 6, 1, wire.field(7, bytes(4000))), 4000),
    "strings": (entries(9, 8, 1000, wire.field(9, b"LEAF")), 6000),
    "a tensor": (entries(5, 4, 1, wire.field(5, wire.field(9, bytes(1000)))), 0),
    "an integer": (entries(3, 2, 1, wire.field(3, 7)), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("place", ["graph", "subgraph", "function", "training"])
def test_lists_are_counted(name: str, place: str) -> None:
    attribute, count = LISTS[name]
    held = wire.field(1, wire.field(4, b"Op") + wire.field(5, attribute) + wire.field(5, attribute))  # a graph
    inner = wire.field(1, wire.field(5, wire.field(1, b"then_branch") + wire.field(6, held) + wire.field(20, 5)))
    data = {
        "graph": wire.model(held),
        "subgraph": wire.model(inner),
        "function": wire.field(25, b"\x3a" + held[1:]),  # nodes are field 7
        "training": wire.field(20, wire.field(2, held)),
    }[place]
    assert 2 * count <= list_bytes(data) <= 2 * count + 20


def test_files_with_huge_lists_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    entry = b"\x40\x05"
    for size, is_refused in ((MOST_LIST_BYTES, True), (MOST_LIST_BYTES - 100, False)):
        attribute = entries(8, 7, size // 2 + 1, entry)
        path.write_bytes(wire.model(wire.field(1, wire.field(4, b"Op") + wire.field(5, attribute))))
        if is_refused:
            assert refused(lambda: read_model(path)) == [
                f"unsupported: file '{path}': the lists of its nodes' attributes must have at most 25165824 bytes in "
                "all (about 500,000 nodes of trees), but they have more [model-size]\n"
                "  remedy: split the ensemble, or train one of fewer nodes"
            ]
        else:
            assert len(read_model(path).graph.node[0].attribute[0].ints) == size // 2 + 1
