"""Pipelines as scikit-learn's exporters write them: what the host does in front, quantized layers, what it does behind;
maps, texts, NaN and integers of 64 bits at their ends."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hwflow.api.checking import check
from hwflow.api.compiler import compile
from hwflow.api.connection import reference_part
from hwflow.errors import ModelRefused, UsageError
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.host.inputs import choose_inputs
from hwflow.host.model_maps import own_types
from hwflow.host.runtime.frame_coder import FrameCoder
from hwflow.host.runtime.host_design import read_design
from hwflow.host.runtime.host_errors import HostError
from hwflow.host.runtime.run_command import read_frames, write_outputs
from hwflow.loaded_model import load
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from hwflow.verify.simulation import simulate
from tests.models import Builder

ML = "ai.onnx.ml"
WEIGHTS = np.array([[40, -20, 7], [-3, 31, 12], [9, 5, -44], [-28, 17, 3], [1, -6, 50], [13, 2, -8]])
SCALE, WEIGHT_SCALE = 0.05, 0.02
NAMES = ["low", "middle", "high"]


class Pipeline(Builder):
    """Features f, [frames, 6], to a quantized layer of three classes."""

    def __init__(self) -> None:
        super().__init__(15, 8)
        self.maps: list[Any] = []

    def ml(self, op: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        return self.node(op, *inputs, name=name, domain=ML, **attributes)

    def layer(self, features: str) -> str:
        x = self.dequantize(self.quantize(features, SCALE, 0, "int8"), SCALE, 0, "int8")
        w = self.dequantize(self.constant(WEIGHTS, "int8"), WEIGHT_SCALE, 0, "int8")
        return self.node("MatMul", x, w, name="scores")

    def zipped(self, scores: str, keys: list[Any]) -> str:
        kind, key = ("strings", TensorProto.STRING) if isinstance(keys[0], str) else ("int64s", TensorProto.INT64)
        name = self.ml("ZipMap", self.node("Softmax", scores, axis=1), name="shares", **{f"classlabels_{kind}": keys})
        each = helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
        self.maps.append(helper.make_value_info(name, helper.make_sequence_type_proto(each)))
        return name

    def build(self) -> onnx.ModelProto:
        model = super().build()
        model.graph.output.extend(self.maps)
        model.opset_import[1].version = 3
        return model


def of_categories(folder: Path) -> Path:
    """A colour (text), a size (int64) and two measurements, one of them perhaps missing, to a label and shares."""
    b = Pipeline()
    colour = b.ml("OneHotEncoder", b.input("colour", ["N", 1], "string"), cats_strings=["red", "green"])
    size = b.ml("LabelEncoder", b.input("size", ["N", 1], "int64"), keys_int64s=[3, 50_000_000_000],
                values_floats=[0.5, -1.5], default_float=0.25)  # fmt: skip
    measured = b.ml(
        "Imputer", b.input("measured", ["N", 3]), imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=math.nan
    )
    flat = b.node("Reshape", colour, b.constant([0, -1], "int64"))
    scores = b.layer(b.node("Concat", flat, size, measured, axis=1))
    place = b.node("ArgMax", scores, axis=1)
    texts = helper.make_tensor("names", TensorProto.STRING, [3], [name.encode() for name in NAMES])
    b.constants.append(texts)
    label = b.ml("ArrayFeatureExtractor", "names", place)
    b.output(b.declare(b.node("Reshape", label, b.constant([-1], "int64"), name="label"), ["N"], "string"))
    b.zipped(scores, NAMES)
    return b.save(folder)


def of_dictionaries(folder: Path) -> Path:
    b = Pipeline()
    vocabulary = ["u", "v", "w", "x", "y", "z"]
    each = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    b.inputs.append(helper.make_value_info("d", each))
    scores = b.layer(b.ml("DictVectorizer", "d", string_vocabulary=vocabulary))
    b.output(b.declare(b.node("ArgMax", scores, axis=1, keepdims=0, name="class"), ["N"], "int64"))
    b.zipped(scores, [7, 8, 9])
    return b.save(folder)


def expected(features: Any) -> tuple[list[int], list[list[float]]]:
    """The classes and shares of features, computed here."""
    levels = np.clip(np.rint(np.asarray(features, float) / np.float32(SCALE)), -128, 127)
    scores = levels @ WEIGHTS * float(np.float32(SCALE)) * float(np.float32(WEIGHT_SCALE))
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores.argmax(axis=1).tolist(), (powers / powers.sum(axis=1, keepdims=True)).tolist()


GIVEN = {
    "colour": np.array([["green"], ["blue"], ["red"]]), "size": np.array([[3], [50_000_000_000], [-7]]),
    "measured": np.array([[math.nan, 0.5, -2], [1.5, math.nan, math.nan], [-3, 3, 0]], np.float32),
}
FEATURES = [[0, 1, 0.5, 1, 0.5, -2], [0, 0, -1.5, 1.5, 2, 3], [1, 0, 0.25, -3, 3, 0]]
MAPS = [{"u": 1.5, "z": -2}, {}, {"v": 3.25, "w": 0.75, "u": -7}]
ROWS = [[1.5, 0, 0, 0, 0, -2], [0] * 6, [-7, 3.25, 0.75, 0, 0, 0]]


def shares_of(shares: list[list[float]], keys: list[Any]) -> list[Any]:
    return [pytest.approx(dict(zip(keys, row, strict=True)), rel=1e-5) for row in shares]


@pytest.mark.parametrize("make", [of_categories, of_dictionaries])
def test_nothing_is_unexplained(make: Any, tmp_path: Path) -> None:
    path = make(tmp_path)
    assert not [finding for finding in check(path) if finding.severity != "warning"]
    found = compare(path, frames=40)
    assert found.ok and not found.drift.failed, [row.first for row in found.rows]


def test_categories_and_missing_values(tmp_path: Path) -> None:
    np.savez(tmp_path / "inputs.npz", **GIVEN)
    model = load(of_categories(tmp_path))
    arrays = choose_inputs(model, model.path, None, None, np.random.default_rng(0)).arrays
    outputs = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays)
    own = own_types(model, outputs)
    places, shares = expected(FEATURES)
    assert own["label"].tolist() == [NAMES[k] for k in places]
    assert own["shares"] == shares_of(shares, NAMES)


def test_floats_before_a_quantizer_are_finite(tmp_path: Path) -> None:
    b = Pipeline()
    scaled = b.declare(b.ml("Scaler", b.input("x", ["N", 6]), offset=[0.5], scale=[2.0]), ["N", 6])
    b.output(b.quantize(b.layer(scaled), 0.5, 0, "int8"))
    np.savez(tmp_path / "inputs.npz", x=np.full((1, 6), np.nan, np.float32))
    model = load(b.save(tmp_path))
    with pytest.raises(UsageError, match="must hold finite numbers of type float32 only"):
        choose_inputs(model, model.path, None, None, np.random.default_rng(0))


def test_maps_through_simulation_and_the_output_folder(tmp_path: Path) -> None:
    """In and out: JSON files, lists of maps in Python, and what the folder's own programs make of both."""
    path, given = of_dictionaries(tmp_path), tmp_path / "maps.json"
    given.write_text(json.dumps({"d": MAPS}))
    out = tmp_path / "out"
    compile(path, "ulx3s_85f", fps=1000).write(out)
    places, shares = expected(ROWS)
    simulation = simulate(out, inputs=given, output=tmp_path / "results.npz")
    assert simulation.ok and simulation.outputs is not None
    assert simulation.outputs["class"].tolist() == places
    assert simulation.outputs["shares"] == shares_of(shares, [7, 8, 9])
    assert "output 'shares' (a map of each frame)" in [*simulation.output_lines()]
    written = json.loads((tmp_path / "results.json").read_text())
    assert written["shares"] == shares_of(shares, ["7", "8", "9"])
    assert np.load(tmp_path / "results.npz")["class"].tolist() == places

    design = read_design(out)
    assert design.suffix is not None
    coder = FrameCoder(design, None, reference_part(design.suffix))
    for frames in (MAPS, np.array(ROWS), read_frames(design, given, None).arrays["d"]):
        arrays = coder.check({"d": frames})
        made = golden.evaluate(load(path).quantized, {k: v.astype(int) for k, v in coder.integers(arrays).items()})
        outputs = coder.own(coder.outputs(made, arrays))
        assert outputs["class"].tolist() == places and outputs["shares"] == shares_of(shares, [7, 8, 9])
    write_outputs(tmp_path / "again.npz", outputs)
    assert json.loads((tmp_path / "again.json").read_text())["shares"] == shares_of(shares, ["7", "8", "9"])
    with pytest.raises(HostError, match="must have keys that the model has, not 'q' in frame 0"):
        coder.check({"d": [{"q": 1}]})
    given.write_text('{"d": [{"q": 1}]}')
    with pytest.raises(HostError, match="'d' must have keys that the model has, not 'q' in frame 0"):
        read_frames(design, given, None)
    with pytest.raises(UsageError, match="'d' must have keys that the model has, not 'q' in frame 0"):
        choose_inputs(load(path), None, given, None, np.random.default_rng(0))


def test_models_without_a_quantizer_say_what_to_do(tmp_path: Path) -> None:
    b = Pipeline()
    label = b.ml("LinearClassifier", b.input("x", ["N", 2]), name="label", outputs=["z"],
                 coefficients=[1.0, 2.0], intercepts=[0.5], classlabels_ints=[0, 1])  # fmt: skip
    b.output(b.declare(label, ["N"], "int64"))
    with pytest.raises(ModelRefused, match=r"must be quantized.*\n.*hwflow quantize"):
        compile(b.save(tmp_path), "ulx3s_85f")
