"""Clauses about tensors whose data lies in files beside the model."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hwflow.onnxspec import read_model, validate
from hwflow.onnxspec.reading.external_files import ExternalFiles
from tests.onnxspec.build import model, node, texts
from tests.onnxspec.clauses.twins import Source, Twin, check

AGAIN = "\n  remedy: save the model again with its external data"
PLACE = "\n  remedy: put the file where the model says, relative to the model file"
TRUST = (
    "\n  remedy: put the file itself into the model's folder, or allow the folder that it lies in with --trust"
)
DATA = np.arange(4, dtype="<f4").tobytes()
Entries = Sequence[tuple[str, str]]


def tensor(entries: Entries, code: int = TensorProto.FLOAT, dims: Sequence[int] = (4,), name: str = "w") -> TensorProto:
    proto = TensorProto(name=name, data_type=code, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in entries:
        proto.external_data.add(key=key, value=value)
    return proto


def using(weights: TensorProto) -> onnx.ModelProto:
    return model([node("Relu", ["x"], ["y"])], constants={"w": weights})


def external(
    *entries: tuple[str, str], data: bytes = DATA, prepare: Callable[[Path], object] | None = None
) -> Source:
    """A model with an external tensor, beside it w.bin with ``data`` and what ``prepare`` makes."""

    def make(folder: Path) -> onnx.ModelProto:
        (folder / "w.bin").write_bytes(data)
        if prepare is not None:
            prepare(folder)
        return using(tensor(entries))

    return make


W = ("location", "w.bin")
GOOD = external(W)


def refused(text: str, remedy: str = TRUST, clause: str = "EXT-02", severity: str = "error") -> list[str]:
    return [f"{severity}: initializer 'w': {text} [{clause}]{remedy}"]


def elsewhere(folder: Path) -> Path:
    """A file outside the model's folder."""
    path = folder.parent / "elsewhere" / "w.bin"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(DATA)
    return path


def linked_folder(folder: Path) -> None:
    (folder / "sub").symlink_to(elsewhere(folder).parent)


def a_socket(folder: Path) -> None:
    here = os.getcwd()
    os.chdir(folder)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("s")
    finally:
        os.chdir(here)


def inside(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "w..bin").write_bytes(DATA)


def constant(weights: TensorProto) -> Source:
    def make(folder: Path) -> onnx.ModelProto:
        (folder / "w.bin").write_bytes(DATA)
        return model([node("Constant", [], ["c"], value=weights), node("Relu", ["x"], ["y"])])

    return make


def with_fields(folder: Path) -> onnx.ModelProto:
    weights = tensor([W])
    weights.float_data.extend(range(4))
    (folder / "w.bin").write_bytes(DATA)
    return using(weights)


def strings(where: str) -> Source:
    def make(folder: Path) -> onnx.ModelProto:
        (folder / "w.bin").write_bytes(DATA)
        if where == "external":
            return using(tensor([W], TensorProto.STRING, [1]))
        return using(TensorProto(name="w", data_type=TensorProto.STRING, dims=[1], string_data=[b"a"]))

    return make


def two_tensors(offset: int) -> Source:
    def make(folder: Path) -> onnx.ModelProto:
        (folder / "w.bin").write_bytes(bytes(offset) + DATA)
        first = tensor([W, ("length", "16")])
        second = tensor([W, ("offset", str(offset))], name="v")
        return model([node("Relu", ["x"], ["y"])], constants={"w": first, "v": second})

    return make


def booleans(data: bytes) -> Source:
    def make(folder: Path) -> onnx.ModelProto:
        (folder / "w.bin").write_bytes(b"\7" + data)
        return using(tensor([W, ("offset", "1")], TensorProto.BOOL, [3]))

    return make


def indices(data: Sequence[int]) -> Source:
    def make(folder: Path) -> onnx.ModelProto:
        (folder / "w.bin").write_bytes(np.array(data, dtype="<i8").tobytes())
        values = helper.make_tensor("w", TensorProto.FLOAT, [2], [1, 2])
        whole = onnx.SparseTensorProto(dims=[8], values=values, indices=tensor([W], TensorProto.INT64, [2], ""))
        return model([node("Relu", ["x"], ["y"])], sparse_initializer=[whole])

    return make


SHA1 = hashlib.sha1(DATA).hexdigest()
OTHER = hashlib.sha1(b"other").hexdigest()
SHORT = "file 'w.bin' must have at least 16 bytes (offset 0, length 16), but it has 7"

TWINS = [
    # EXT-02
    *(
        Twin("EXT-02", name=name, bad=bad, good=good, findings=refused(message, remedy))
        for name, bad, good, message, remedy in (
            ("none", external(), GOOD, "external_data must give a location, but it has none", AGAIN),
            (
                "empty", external(("location", "")), GOOD,
                "location must be the path of a file, but it is empty", AGAIN,
            ),
            (
                "nul", external(("location", "w.bin\0")), GOOD,
                "location must be the path of a file, but it holds a NUL character", AGAIN,
            ),
            (
                "twice", external(("location", "v.bin"), W), GOOD,
                "external_data must give one location, not 'v.bin' and 'w.bin'", AGAIN,
            ),
            (
                "missing", external(("location", "v.bin")), GOOD,
                "file 'v.bin' must exist, but there is no such file", PLACE,
            ),
            (
                "under-a-file", external(("location", "w.bin/v.bin")), GOOD,
                "file 'w.bin/v.bin' must exist, but there is no such file", PLACE,
            ),
            ("short", external(W, data=DATA[:7]), GOOD, SHORT, PLACE),
            (
                "folder", external(("location", "sub"), prepare=inside), external(("location", "./w.bin")),
                "'sub' must be a regular file, not a folder", PLACE,
            ),
            (
                "fifo", external(("location", "f"), prepare=lambda folder: os.mkfifo(folder / "f")), GOOD,
                "'f' must be a regular file, not a FIFO", PLACE,
            ),
            (
                "socket", external(("location", "s"), prepare=a_socket), GOOD,
                "'s' must be a regular file, not a socket", PLACE,
            ),
            (
                "absolute", external(("location", "/dev/null")), GOOD,
                "location must be relative to the model's folder, not the absolute path '/dev/null'", TRUST,
            ),
            (
                "outside", external(("location", "sub/../../elsewhere/w.bin"), prepare=elsewhere),
                external(("location", "sub/../w.bin")),
                "location must stay inside the model's folder, but 'sub/../../elsewhere/w.bin' leaves it", TRUST,
            ),
            (
                "back-inside", external(("location", "../bad/w.bin")),  # depends on the folder's name
                external(("location", "sub/w..bin"), prepare=inside),
                "location must stay inside the model's folder, but '../bad/w.bin' leaves it", TRUST,
            ),
            (
                "symbolic-link",
                external(("location", "l.bin"), prepare=lambda folder: (folder / "l.bin").symlink_to("w.bin")), GOOD,
                "external data must not lie behind a link, but 'l.bin' is a symbolic link", TRUST,
            ),
            (
                "dangling-link",
                external(("location", "l.bin"), prepare=lambda folder: (folder / "l.bin").symlink_to("l.bin")), GOOD,
                "external data must not lie behind a link, but 'l.bin' is a symbolic link", TRUST,
            ),
            (
                "linked-folder", external(("location", "sub/w.bin"), prepare=linked_folder),
                external(("location", "sub/w..bin"), prepare=inside),
                "external data must not lie behind a link, but 'sub' is a symbolic link", TRUST,
            ),
            (
                "hard-link", external(W, prepare=lambda folder: os.link(folder / "w.bin", folder / "h.bin")), GOOD,
                "external data must not lie behind a link, but file 'w.bin' has 2 names (hard links)", TRUST,
            ),
        )
    ),
    Twin(
        "EXT-02",
        name="twice-the-same",
        bad=external(W, W),
        good=GOOD,
        findings=refused(
            "external_data must give location once, not 2 times", "\n  remedy: leave out all but one",
            severity="warning",
        ),
    ),
    Twin(
        "EXT-02",
        name="attribute",
        bad=constant(tensor([("location", "v.bin")])),
        good=constant(tensor([W])),
        findings=[
            "error: attribute 'value' of node 'Constant_c' (Constant): file 'v.bin' must exist, but there is no such "
            f"file [EXT-02]{PLACE}"
        ],
    ),
    # EXT-03
    Twin(
        "EXT-03",
        bad=with_fields,
        good=GOOD,
        findings=refused(
            "a tensor with external data must not use the value fields, but this one uses float_data",
            "\n  remedy: leave out the data in the model or the reference to the file", "EXT-03",
        ),
    ),
    # EXT-04
    *(
        Twin("EXT-04", name=name, bad=external(*bad), good=external(*good), findings=refused(text, remedy, "EXT-04"))
        for name, bad, good, text, remedy in (
            (
                "text", [W, ("offset", "0x0")], [W, ("offset", "0")],
                "offset must be a number of bytes, not '0x0'", AGAIN,
            ),
            ("empty", [W, ("length", "")], [W, ("length", "16")], "length must be a number of bytes, not ''", AGAIN),
            (
                "sign", [W, ("offset", "+0")], [W, ("offset", "000")],
                "offset must be a number of bytes, not '+0'", AGAIN,
            ),
            (
                "negative", [W, ("offset", "-4")], [W], "offset must be a number of bytes, not negative (-4)", AGAIN,
            ),
            (
                "absurd", [W, ("offset", "9" * 10_000)], [W],
                "offset must be a number of bytes, not a number of 10000 digits", AGAIN,
            ),
            (
                "other-digits", [W, ("length", "١٦")], [W], "length must be a number of bytes, not '١٦'", AGAIN,
            ),
            (
                "past-the-end", [W, ("offset", "4096")], [W, ("offset", "0")],
                "file 'w.bin' must have at least 4112 bytes (offset 4096, length 16), but it has 16", PLACE,
            ),
            (
                "huge", [W, ("offset", str(2**63 - 1))], [W],
                f"file 'w.bin' must have at least {2**63 + 15} bytes (offset {2**63 - 1}, length 16), but it has 16",
                PLACE,
            ),
            (
                "too-long", [W, ("length", "12")], [W, ("length", "16")],
                "length must be the 16 bytes of 4 elements of float32 (dims [4]), not 12", AGAIN,
            ),
            (
                "twice", [W, ("offset", "4096"), ("offset", "0")], [W, ("offset", "0")],
                "external_data must give one offset, not '4096' and '0'", AGAIN,
            ),
        )
    ),
    Twin(
        "EXT-04", name="short", bad=external(W, data=DATA[:7]), good=GOOD, findings=refused(SHORT, PLACE, "EXT-04"),
    ),
    Twin(
        "EXT-04",
        name="key",
        bad=external(W, ("size", "16")),
        good=external(W, ("length", "16")),
        findings=refused(
            "keys of external_data must be location, offset, length, checksum, not 'size'",
            "\n  remedy: nothing reads it: leave it out", "EXT-04", "warning",
        ),
    ),
    # EXT-05
    Twin(
        "EXT-05",
        bad=external(W, ("checksum", OTHER)),
        good=external(W, ("checksum", SHA1)),
        findings=refused(
            f"file 'w.bin' must have the SHA1 digest {OTHER}, but it has {SHA1}",
            "\n  remedy: copy or download the file again", "EXT-05",
        ),
    ),
    Twin(
        "EXT-05",
        name="form",
        bad=external(W, ("checksum", SHA1[:-1])),
        good=external(W, ("checksum", SHA1.upper())),
        findings=refused(
            f"checksum must be a SHA1 digest of 40 hexadecimal digits, not '{SHA1[:-1]}'", AGAIN, "EXT-05"
        ),
    ),
    # EXT-07
    Twin(
        "EXT-07",
        bad=strings("external"),
        good=strings("inside"),
        findings=refused(
            "external data must have elements of fixed width, not strings",
            "\n  remedy: store the strings in string_data", "EXT-07",
        ),
    ),
    # EXT-08
    Twin(
        "EXT-08",
        bad=two_tensors(16),
        good=two_tensors(4096),
        findings=[
            "warning: graph 'graph': offsets of external data should be multiples of 4096 (they can be mapped into "
            "memory then), but that of 'v' is not [EXT-08]\n"
            "  remedy: nothing, unless the file is to be mapped into memory"
        ],
    ),
    # clauses about elements, where these are external
    Twin(
        "TYP-09",
        bad=booleans(b"\0\1\2"),
        good=booleans(b"\0\1\1"),
        findings=refused(
            "elements of bool must be the bytes 0 or 1, but element 2 is 2", "\n  remedy: export the model again",
            "TYP-09",
        ),
    ),
    Twin(
        "PRO-15",
        bad=indices([5, 2]),
        good=indices([2, 5]),
        findings=[
            "error: sparse initializer 'w': indices must be in ascending order, but 2 comes after 5 [PRO-15]\n"
            "  remedy: export the model again, or store the tensor as a dense one"
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def errors(source: Source, folder: Path, trusted: Sequence[Path] = ()) -> list[str]:
    """The errors about the model in ``folder``, which is made."""
    folder.mkdir()
    assert callable(source)
    path = folder / "model.onnx"
    path.write_bytes(source(folder).SerializeToString())
    return texts([f for f in validate(read_model(path), path, trusted=trusted) if f.severity == "error"])


LEAVING: dict[str, Source] = {
    "outside": external(("location", "../elsewhere/w.bin"), prepare=elsewhere),
    "link": external(("location", "l"), prepare=lambda folder: (folder / "l").symlink_to(elsewhere(folder))),
    "folder": external(("location", "sub/w.bin"), prepare=linked_folder),
}


@pytest.mark.parametrize("way", ["outside", "link", "folder"])
def test_a_trusted_folder(way: str, tmp_path: Path) -> None:
    there = tmp_path / "elsewhere"
    assert len(errors(LEAVING[way], tmp_path / "refused")) == 1
    assert errors(LEAVING[way], tmp_path / "trusted", [there]) == []
    assert len(errors(LEAVING[way], tmp_path / "other", [tmp_path / "else"])) == 1  # a name that only begins so


def test_links_inside_a_trusted_model_folder(tmp_path: Path) -> None:
    hard = external(W, prepare=lambda folder: os.link(folder / "w.bin", folder / "h.bin"))
    soft = external(("location", "l"), prepare=lambda folder: (folder / "l").symlink_to("w.bin"))
    for index, source in enumerate((hard, soft)):
        folder = tmp_path / str(index)
        assert errors(source, folder, [folder]) == []
    away = external(("location", "l"), prepare=lambda folder: (folder / "l").symlink_to(elsewhere(folder)))
    assert len(errors(away, tmp_path / "away", [tmp_path / "away"])) == 1


def test_an_absolute_path_into_a_trusted_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "w.bin"
    path.write_bytes(DATA)
    source = external(("location", str(path)))
    assert len(errors(source, tmp_path / "refused")) == 1
    assert errors(source, tmp_path / "trusted", [path.parent]) == []


def test_without_a_path_files_are_not_looked_at() -> None:
    assert [f.rule for f in validate(using(tensor([("location", "no.bin")]))) if f.severity == "error"] == []
    assert [f.rule for f in validate(using(tensor([("location", "../no.bin")]))) if f.severity == "error"] == ["EXT-02"]


def test_a_file_is_read_only_for_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w.bin").write_bytes(DATA)
    path = tmp_path / "model.onnx"
    read: list[str] = []
    digest = ExternalFiles.sha1

    def counted(self: ExternalFiles, file: object) -> str:
        read.append("digest")
        return digest(self, file)  # type: ignore[arg-type]  # a File, handed through

    monkeypatch.setattr(ExternalFiles, "sha1", counted)
    monkeypatch.setattr(ExternalFiles, "read", lambda *_: read.append("data"))
    for entries in ([W], [W, ("checksum", SHA1)]):
        validate(using(tensor(entries)), path)
    assert read == ["digest"]


def test_a_digest_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w.bin").write_bytes(DATA)
    opened: list[str] = []
    real = ExternalFiles._open
    monkeypatch.setattr(ExternalFiles, "_open", staticmethod(lambda file: opened.append(file.path) or real(file)))
    weights = {name: tensor([W, ("checksum", SHA1)], name=name) for name in ("a", "b", "c")}
    assert texts(validate(model([node("Relu", ["x"], ["y"])], constants=weights), tmp_path / "model.onnx")) == []
    assert opened == [str(tmp_path / "w.bin")]
