"""Numbers at the ends of what floats hold: exact results, or findings that name the reason."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from hwflow.api.compiler import compile
from hwflow.loaded_model import load
from hwflow.verify.comparison import compare
from tests.dialects.checking import assert_exact
from tests.onnxspec.build import model, node, value
from tests.onnxspec.reading.dialect_seeds import island

UINT8 = TensorProto.UINT8
TINY, HUGE = np.float32(1e-45), np.float32(1e38)


def saved(folder: Path, proto: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    onnx.save(proto, path)
    return path


def chain(nodes: list[onnx.NodeProto], scale: Any = 0.25, **constants: Any) -> onnx.ModelProto:
    """x -> quantized (d) -> ``nodes`` -> v, quantized."""
    given = {"s": np.float32(scale), "t": np.float32(0.3), "z": np.uint8(128), **constants}
    return model(
        [
            node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]), *nodes,
            node("QuantizeLinear", ["v", "t", "z"], ["y"]),
        ],
        [value("x", ["N", 4])], [value("y", ["N", 4], UINT8)], given,
    )  # fmt: skip


@pytest.mark.parametrize("scale", [TINY, np.float32(1e-38), HUGE, np.float32(3e38)])
@pytest.mark.parametrize("operator", ["Relu", "Tanh", "Sign"])
def test_scales_at_the_ends_of_float32_compare_exactly(tmp_path: Path, scale: Any, operator: str) -> None:
    comparison = compare(saved(tmp_path, chain([node(operator, ["d"], ["v"])], scale)), frames=20, seed=1)
    assert comparison.ok
    assert [(row.name, row.elements) for row in comparison.rows] == [("y", 80)]


@pytest.mark.parametrize("k", [HUGE, TINY])
def test_products_of_scales_beyond_float64(tmp_path: Path, k: Any) -> None:
    """Ten factors of 1e38, or of 1e-45: what comes of it is beyond float64, its sign is not."""
    products = [node("Mul", [f"p{i - 1}" if i else "d", "k"], [f"p{i}"]) for i in range(10)]
    path = saved(tmp_path, chain([*products, node("Sign", ["p9"], ["v"])], k=k))
    assert_exact(load(path), [{"x": np.float32([[-9, 0, 0.1, 9]])}])
    compile(path, "ulx3s_85f")


def test_a_float_model_that_overflows_is_told_so(tmp_path: Path) -> None:
    """100000 * q * 1e38 is infinite in float32, and HardSwish of minus infinity no number: 0 * -inf."""
    nodes = [node("Mul", ["d", "k"], ["m"]), node("HardSwish", ["m"], ["v"])]
    path = saved(tmp_path, chain(nodes, np.float32(1e5), k=HUGE))
    (finding,) = compare(path, frames=20, seed=1).findings
    assert finding.rule == "golden-equals-reference"
    assert finding.message.endswith("its float value is not finite")
    assert finding.remedy == "choose scales and constants with which the model's own floats do not overflow"


def test_the_manifest_has_no_infinite_scale(tmp_path: Path) -> None:
    """1e38**10 as the scale of what the host reads: an exact fraction, and no float."""
    products = [node("Mul", [f"p{i - 1}" if i else "d", "k"], [f"p{i}"]) for i in range(10)]
    proto = chain([*products, node("Identity", ["p9"], ["v"])], k=HUGE)
    del proto.graph.node[-2:]
    del proto.graph.output[:]
    proto.graph.node.append(node("DequantizeLinear", ["w", "s"], ["wd"]))
    proto.graph.node.append(node("MatMul", ["p9", "wd"], ["m"]))
    proto.graph.node.append(node("Softmax", ["m"], ["y"]))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.eye(4, dtype=np.int8), "w"))
    proto.graph.output.append(value("y", ["N", 4]))
    compile(saved(tmp_path, proto), "ulx3s_85f").write(tmp_path / "out")
    text = (tmp_path / "out" / "manifest.json").read_text()

    def refuse(name: str) -> None:
        raise AssertionError(f"JSON has no {name}")

    json.loads(text, parse_constant=refuse)
    assert re.search(r'"scale_float": \[\s*null\s*\]', text)


def test_a_constant_switch_may_be_bool(tmp_path: Path) -> None:
    """Dropout with training_mode false, which exporters write, among other operators of a float island."""
    assert compare(saved(tmp_path, island()), frames=20, seed=1).ok
