"""Loading external data: for compiling, for shape inference, and into a model that stands alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hwflow
from hwflow.api.checking import check
from hwflow.errors import ModelRefused
from hwflow.onnxspec import read_model, validate
from hwflow.onnxspec.reading import external_loading
from hwflow.onnxspec.reading.external_loading import load_external_data, write_complete
from tests.onnxspec.build import model, node, refused, texts, value

WEIGHTS = np.arange(-8, 8, dtype=np.int8).reshape(4, 4)
MISSING = (
    "error: initializer 'w': file 'w.bin' must exist, but there is no such file [EXT-02]\n"
    "  remedy: put the file where the model says, relative to the model file"
)


def dense() -> onnx.ModelProto:
    """A quantized layer; the shape of a Reshape is a constant, so is a zero point in an attribute."""
    constants = {
        "s": np.float32(0.5), "z": np.int8(0), "w": WEIGHTS, "shape": np.array([-1, 4], np.int64),
    }  # fmt: skip
    nodes = [
        node("Constant", [], ["k"], value=numpy_helper.from_array(np.array([0], np.int8).reshape(()), "k")),
        node("Reshape", ["x", "shape"], ["r"]),
        node("QuantizeLinear", ["r", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("DequantizeLinear", ["w", "s", "k"], ["wd"]),
        node("MatMul", ["d", "wd"], ["m"]),
        node("QuantizeLinear", ["m", "s", "z"], ["mq"]),
        node("DequantizeLinear", ["mq", "s", "z"], ["y"]),
    ]
    return model(nodes, [value("x", ["N", 2, 2])], [value("y", ["N", 4])], constants)


def save(folder: Path, proto: onnx.ModelProto | None = None) -> Path:
    """The model in a folder of its own, every tensor in w.bin beside it."""
    folder.mkdir()
    path = folder / "model.onnx"
    onnx.save(
        dense() if proto is None else proto, path, save_as_external_data=True, location="w.bin", size_threshold=0,
        convert_attribute=True,
    )  # fmt: skip
    return path


def test_the_model_is_as_if_it_had_never_been_outside(tmp_path: Path) -> None:
    path = save(tmp_path / "m")
    proto = read_model(path)
    assert proto != dense()
    assert load_external_data(proto, path) == 4 + 1 + 16 + 16 + 1
    assert proto == dense()
    assert load_external_data(proto, path) == 0


def test_checking_and_compiling_load(tmp_path: Path) -> None:
    path = save(tmp_path / "m")
    assert texts([f for f in check(path) if f.severity != "warning"]) == []
    loaded = hwflow.load(path)
    assert loaded.proto == dense() and loaded.external == 38
    assert loaded.resolved.constants["w"].tolist() == WEIGHTS.tolist()


def test_trusted_folders_are_handed_down(tmp_path: Path) -> None:
    path = save(tmp_path / "m")
    data = tmp_path / "m" / "w.bin"
    (tmp_path / "elsewhere").mkdir()
    data.rename(tmp_path / "elsewhere" / "w.bin")
    data.symlink_to("../elsewhere/w.bin")
    trusted = [tmp_path / "elsewhere"]
    assert [f.rule for f in check(path) if f.severity == "error"] == ["EXT-02"] * 5
    assert [f for f in check(path, trusted=trusted) if f.severity != "warning"] == []
    with pytest.raises(ModelRefused):
        hwflow.load(path)
    assert hwflow.load(path, trusted=trusted).external == 38
    with pytest.raises(ModelRefused):
        hwflow.compile(path, "ulx3s_85f")
    assert hwflow.compile(path, "ulx3s_85f", trusted=trusted).model.external == 38
    with pytest.raises(ModelRefused):
        hwflow.compare(path)
    assert hwflow.compare(path, trusted=trusted, frames=2).ok


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    weights = TensorProto(name="w", data_type=TensorProto.INT8, dims=[4], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="w.bin")
    weights.external_data.add(key="offset", value="-1")
    proto = model([node("Relu", ["x"], ["y"])], constants={"w": weights})
    assert refused(lambda: load_external_data(proto, path)) == [
        "error: initializer 'w': offset must be a number of bytes, not negative (-1) [EXT-04]\n"
        "  remedy: save the model again with its external data",
        MISSING,
    ]


def test_a_model_from_no_file_has_no_files_beside_it() -> None:
    weights = TensorProto(name="w", data_type=TensorProto.INT8, dims=[4], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="w.bin")
    proto = model([node("Relu", ["x"], ["y"])], constants={"w": weights})
    assert refused(lambda: load_external_data(proto, None)) == [
        "error: initializer 'w': external data must be stored beside the model's file, but this model was not "
        "read from a file [EXT-02]\n  remedy: load the data into the model, or give the path of its file"
    ]


def test_tensors_in_branches_functions_and_training_graphs_are_loaded(tmp_path: Path) -> None:
    def stored(name: str) -> TensorProto:
        proto = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
        proto.external_data.add(key="location", value="w.bin")
        return proto

    def graph(name: str) -> onnx.GraphProto:
        return helper.make_graph([node("Identity", ["c"], [name])], name, [], [value(name, [1])], [stored("c")])

    body = helper.make_function(
        "org.example", "f", ["a"], ["b"], [node("Constant", [], ["b"], value=stored("v"))],
        [helper.make_opsetid("", 21)], attribute_protos=[helper.make_attribute("w", stored("w"))],
    )  # fmt: skip
    nodes = [
        node("If", ["which"], ["z"], then_branch=graph("a"), else_branch=graph("b")),
        node("f", ["x"], ["y"], domain="org.example"),
    ]
    proto = model(
        nodes, constants={"which": np.array(True)}, functions=[body], opsets={"": 21, "org.example": 1}
    )
    proto.training_info.add(initialization=graph("t"))
    (tmp_path / "w.bin").write_bytes(np.float32(7).tobytes())
    assert load_external_data(proto, tmp_path / "model.onnx") == 5 * 4
    assert proto.SerializeToString().count(np.float32(7).tobytes()) == 5
    assert b"w.bin" not in proto.SerializeToString()


def test_a_complete_copy(tmp_path: Path) -> None:
    path = save(tmp_path / "m")
    hwflow.load(path).write(tmp_path / "copy.onnx")
    assert onnx.load(tmp_path / "copy.onnx", load_external_data=False) == dense()


def test_a_complete_copy_of_a_model_that_one_message_cannot_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_loading, "LARGE", 100)
    path = save(tmp_path / "m")
    proto = read_model(path)
    load_external_data(proto, path)
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "model.onnx"
    write_complete(proto, path, target)
    assert sorted(file.name for file in target.parent.iterdir()) == ["model.onnx", "model.onnx.data"]
    copy = read_model(target)
    assert texts([f for f in validate(copy, target) if f.severity == "error" or f.rule == "EXT-08"]) == []
    load_external_data(copy, target)
    assert copy == dense()


def test_nothing_is_allocated_by_declared_size(tmp_path: Path) -> None:
    """A tensor of an exabyte, said to lie in a file of 16 bytes."""
    (tmp_path / "w.bin").write_bytes(bytes(16))
    huge = TensorProto(name="w", data_type=TensorProto.BOOL, dims=[2**60], data_location=TensorProto.EXTERNAL)
    huge.external_data.add(key="location", value="w.bin")
    proto = model([node("Relu", ["x"], ["y"])], constants={"w": huge})
    found = validate(proto, tmp_path / "model.onnx")
    assert [f.rule for f in found if f.severity == "error"] == ["EXT-02", "EXT-04"]
    with pytest.raises(ModelRefused):
        load_external_data(proto, tmp_path / "model.onnx")
