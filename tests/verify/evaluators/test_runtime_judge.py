"""onnxruntime as a judge of models with operators of ai.onnx.ml: what it explains and finds, and when it is silent."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import hwflow
from hwflow.cli.junit import compare_suite
from hwflow.errors import ToolError
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.onnxspec.reference.evaluation import RegionEvaluator
from hwflow.operators.float_errors.analysis import analyse
from hwflow.quantization import sessions
from hwflow.verify import golden
from hwflow.verify.comparison import Comparison, compare
from hwflow.verify.evaluators.runtime_judge import RuntimeJudge
from tests.operators.ml.ensembles import Branch, Leaf, grown, model_of, named_attributes

pytest.importorskip("onnxruntime")


def classifier(folder: Path, trees: list[Any], labels: list[Any], **attributes: Any) -> Path:
    kind, name = (TensorProto.STRING, "strings") if isinstance(labels[0], str) else (TensorProto.INT64, "int64s")
    given = named_attributes(trees, "class") | {f"classlabels_{name}": labels} | attributes
    outputs = [("label", kind, []), ("scores", TensorProto.FLOAT, [len(labels)])]
    onnx.save(model_of("TreeEnsembleClassifier", given, 2, outputs), folder / "m.onnx")
    return folder / "m.onnx"


def forest(classes: int) -> list[Any]:
    rng = random.Random(4)

    def leaf() -> list[tuple[int, float]]:
        return [(k, float(np.float32(rng.gauss(0, 1)))) for k in range(classes)]

    return [grown(rng, 3, [[-0.5, 0.0, 0.25]] * 2, leaf, ("LEQ",)) for _ in range(5)]


def judged(path: Path, frames: int = 40) -> tuple[Comparison, dict[str, Any]]:
    found = compare(path, frames=frames)
    assert found.runtime is not None and found.unexplained == 0
    return found, found.runtime.table()


@pytest.mark.parametrize("labels", [[4, -1, 9], ["a", "b", "c"]])
def test_an_equal_model(labels: list[Any], tmp_path: Path) -> None:
    found, table = judged(classifier(tmp_path, forest(3), labels, post_transform="SOFTMAX"))
    assert found.ok and table["absent"] is None
    assert [(each["name"], each["elements"]) for each in table["values"]] == [("label", 40), ("scores", 120)]
    assert (table["mismatches"], table["unexplained"]) == (0, 0)
    cases = {case.name: case for case in compare_suite("m.onnx", found, 0).cases}
    assert not cases["onnxruntime, output 'label'"].failures and not cases["onnxruntime, output 'scores'"].skipped
    assert any("onnxruntime, output label: 0 of 40 elements differ, 0 unexplained" in line for line in found.lines())


def wrong(path: Path, changed: str) -> RuntimeJudge:
    """The judge of 20 frames whose last element of an output is another one: a class further, or 1e-4 more."""
    model = hwflow.load(path)
    arrays = {"x": np.random.default_rng(3).normal(size=(20, 2)).astype(np.float32)}
    own = dict(model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays))
    own[changed] = own[changed].copy()
    if own[changed].dtype.kind == "f":
        own[changed][-1, 0] += np.float32(1e-4)
    else:
        own[changed][-1] = next(label for label in own[changed] if label != own[changed][-1])
    judge = RuntimeJudge.of(model)
    assert judge is not None
    judge.add(100, arrays, own)
    return judge


@pytest.mark.parametrize("labels", [[0, 1, 2], ["a", "b", "c"]])
@pytest.mark.parametrize("changed", ["label", "scores"])
def test_what_is_wrong_is_unexplained(labels: list[Any], changed: str, tmp_path: Path) -> None:
    judge = wrong(classifier(tmp_path, forest(3), labels), changed)
    assert {name: row.unexplained for name, row in judge.rows.items()} == {
        "label": int(changed == "label"), "scores": int(changed == "scores"),
    }
    finding = judge.rows[changed].finding
    assert finding is not None and finding.rule == "golden-equals-onnxruntime"
    assert finding.where == f"output '{changed}'" and "1 of" in finding.message and "frame 119" in finding.message


@pytest.mark.parametrize("labels", [[0, 1, 2], ["a", "b", "c"]])
def test_a_label_may_differ_where_float32_ties(labels: list[Any], tmp_path: Path) -> None:
    """2**24 + 1 is 2**24 in float32: class 1 is the greatest, and onnxruntime takes class 0, where x[0] <= 0; where
    it is above, class 2 is far ahead for both."""
    big = 2.0**24
    trees = [
        Branch("LEQ", 0, 0.0, False, Leaf([(0, big), (1, big)]), Leaf([(2, 4 * big)])), Leaf([(1, 1.0)]),
    ]  # fmt: skip
    np.savez(tmp_path / "inputs.npz", x=np.array([[-1, 0], [2, 0], [-3, 1]], np.float32))
    found, table = judged(classifier(tmp_path, trees, labels), 3)
    label, scores = table["values"]
    assert found.ok and (label["mismatches"], label["unexplained"]) == (2, 0)
    assert (scores["mismatches"], scores["unexplained"]) == (0, 0)


def test_why_it_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, table = judged(classifier(tmp_path, forest(2), [0, 1]))
    assert table["absent"].startswith("it deviates at node 'TreeEnsembleClassifier_label' (") and table["values"] == []
    proto = model_of(
        "TreeEnsembleRegressor", named_attributes(forest(1), "target") | {"n_targets": 1}, 2,
        [("y", TensorProto.FLOAT, [1])], dtype="int64",
    )
    onnx.save(proto, tmp_path / "m.onnx")
    found, table = judged(tmp_path / "m.onnx")
    assert found.ok and "NOT_IMPLEMENTED" in table["absent"]

    def missing(name: str) -> Any:
        raise ToolError.of("tool-present", "package 'onnxruntime'", "must be installed", sessions.INSTALL)

    path = classifier(tmp_path, forest(3), [0, 1, 2])
    monkeypatch.setattr(sessions, "imported", missing)
    found, table = judged(path)
    assert found.ok and table["absent"] == f"package 'onnxruntime': must be installed ({sessions.INSTALL})"
    assert f"onnxruntime: not compared: {table['absent']}" in [*found.lines()]
    assert compare_suite("m.onnx", found, 0).cases[-1].skipped == table["absent"]


@pytest.mark.parametrize("count", [1, 2])
def test_one_tree_rounds_nothing(count: int, tmp_path: Path) -> None:
    """Its leaves may be numbers of others, as in isolation forests: nothing is added, in float32 neither."""
    given = named_attributes(forest(1)[:count], "target") | {"n_targets": 1}
    onnx.save(model_of("TreeEnsembleRegressor", given, 2, [("y", TensorProto.FLOAT, [1])]), tmp_path / "m.onnx")
    region = RegionEvaluator(hwflow.load(tmp_path / "m.onnx").flat).region(["y"], frozenset(["x"]))
    error = analyse(region, {"x": np.zeros((3, 2), np.float32)}, runtime=True).errors["y"]
    assert error is not None and bool(error.any()) == (count == 2)


def test_results_that_are_not_finite(tmp_path: Path) -> None:
    """PROBIT of 1 is infinite, and nothing bounds the error there: another number is not judged."""
    given = named_attributes([Leaf([(0, 1.0), (1, 0.25)])], "target") | {"n_targets": 2, "post_transform": "PROBIT"}
    onnx.save(model_of("TreeEnsembleRegressor", given, 1, [("y", TensorProto.FLOAT, [2])]), tmp_path / "m.onnx")
    judge = RuntimeJudge.of(hwflow.load(tmp_path / "m.onnx"))
    assert judge is not None
    judge.add(0, {"x": np.zeros((1, 1), np.float32)}, {"y": np.array([[7.0, -0.25]], np.float32)})
    assert (judge.rows["y"].unexplained, judge.rows["y"].unjudged) == (1, "its float value is not finite")
    assert "golden -0.25, onnxruntime -0.67" in judge.rows["y"].first
