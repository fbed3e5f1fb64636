"""compare on generated networks of every dialect, and QOperator networks against onnxruntime: nothing unexplained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from hwflow.errors import ModelRefused
from hwflow.host.boundary_models import port_inputs
from hwflow.loaded_model import Model, load
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.onnxspec.shapes.dialects import MICROSOFT_DOMAIN
from hwflow.operators.onnx_operators import RECORDS
from hwflow.operators.record import QONNX
from hwflow.passes.infer_types import infer_types
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from hwflow.verify.evaluators.known_values import known_values
from tests.dialects import qdq, qonnx
from tests.dialects import qoperator as qoperator_networks
from tests.dialects.choices import Choices, Seeded
from tests.dialects.nets import Net
from tests.onnxspec.reference.test_evaluator_defects import quantized_model, runtime
from tests.onnxspec.reference.test_runtime_differences import KINDS

Array = np.ndarray[Any, Any]
GENERATORS: Mapping[str, tuple[Callable[[Choices], Net], range]] = {
    "qdq": (qdq.network, range(500, 524)),
    "qoperator": (qoperator_networks.network, range(500, 560)),
    "qonnx": (qonnx.network, range(500, 540)),
    "binary": (qonnx.binary_network, range(500, 540)),
}
# A level may be off where onnxruntime's float32 quotient, of at most 255 levels and a few roundings, is near a tie.
NEAR = 2.0**-12
LOOSE = {"QLinearSoftmax": 1.0}  # more: runtime_differences.SOFTMAX


def written(net: Net, folder: Path) -> tuple[Path, dict[str, Array]]:
    """The model's file, and eight frames: random ones, and at the limits of the inputs."""
    frames = [net.frame(seed) for seed in range(5)] + [net.frame(edge, edge) for edge in range(3)]
    return net.builder.save(folder), {name: np.concatenate([f[name] for f in frames]) for name in frames[0]}


@pytest.mark.parametrize("dialect", GENERATORS)
def test_everything_is_explained(dialect: str, tmp_path: Path) -> None:
    network, seeds = GENERATORS[dialect]
    refused = elements = 0
    for seed in seeds:
        path, arrays = written(network(Seeded(seed)), tmp_path)
        plain = {n: a if a.dtype == np.float32 else a.astype(np.int64) for n, a in arrays.items()}
        np.savez(tmp_path / "x.npz", **plain)
        try:
            comparison = compare(path, inputs=tmp_path / "x.npz")
        except ModelRefused:
            refused += 1
            continue
        assert [(seed, row.name, row.first) for row in comparison.rows if row.first] == []
        assert comparison.ok and not comparison.drift.failed
        elements += sum(row.elements for row in comparison.rows)
    assert refused <= len(seeds) / 5 and elements > 1000


def shifted(stage: QuantizerStage) -> QuantizerStage:
    """A quarter of a level off."""
    return replace(stage, zero_point=stage.zero_point - stage.out_scale / stage.scale / 4)


@pytest.mark.parametrize("dialect, seeds", [("qdq", range(20)), ("qoperator", range(20)), ("qonnx", range(20))])
def test_a_quarter_of_a_level_is_noticed(dialect: str, seeds: range, tmp_path: Path) -> None:
    """Planted in the last requantizer: where that changes golden levels, some are unexplained."""
    changed = 0
    for seed in seeds:
        path, _ = written(GENERATORS[dialect][0](Seeded(seed)), tmp_path)
        try:
            model = load(path)
            nodes = [n for n in model.quantized.nodes if n.op == "requantize" and n.outputs[0].origin]
        except ModelRefused:
            continue
        chains = nodes[-1].attributes.stages if nodes else ()
        if not chains or not all(
            len(c) == 1 and isinstance(c[0], QuantizerStage) and not c[0].functions and c[0].scale for c in chains
        ):
            continue
        (tmp_path / "inputs.npz").unlink(missing_ok=True)
        nodes[-1].attributes = replace(nodes[-1].attributes, stages=tuple((shifted(c[0]),) for c in chains))
        infer_types(model.quantized)
        (row,) = [r for r in compare(model, frames=12).rows if r.name == nodes[-1].outputs[0].origin]
        assert row.unexplained or row.mismatches < 3, seed  # a few may be the evaluator's own
        changed += bool(row.unexplained)
    assert changed >= 2


@cache
def saturates() -> bool:
    """Whether this processor's products of uint8 and int8 saturate (runtime-saturation)."""
    one, zero = np.float32(1).reshape(()), np.uint8(0).reshape(())
    inputs: list[Any] = [
        np.full((1, 2), 255, np.uint8), one, zero, np.full((2, 1), 127, np.int8), one, np.int8(0).reshape(()),
        np.float32(512).reshape(()), zero,
    ]
    return bool(runtime(quantized_model("QLinearMatMul", inputs, KINDS[np.uint8]), {"i0": inputs[0]}).item() < 120)


def values_of(model: Model, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Golden integers of the first three frames, by ONNX name, as ONNX tensors."""
    first = {name: array[:3] for name, array in arrays.items()}
    trace = golden.trace(model.quantized, port_inputs(model, first))
    known = known_values(model.quantized, model.resolved)
    return {name: k.feed(trace[k.value])[0] for name, k in known.items()}


def by_onnxruntime(
    node: onnx.NodeProto, feeds: Mapping[str, Array], constants: Mapping[str, onnx.TensorProto], kind: int
) -> Array:
    """One node, without optimizations."""
    inputs = [
        onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    output = onnx.helper.make_tensor_value_info(node.output[0], kind, None)
    used = [constants[n] for n in dict.fromkeys(node.input) if n in constants]
    graph = onnx.helper.make_graph([node], "one", inputs, [output], used)
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid(MICROSOFT_DOMAIN, 1)]
    proto = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, dict(feeds))[0])


def test_qoperator_against_onnxruntime(tmp_path: Path) -> None:
    """Each node on the golden model's integers: what onnxruntime makes of them lies within half a level (and what
    float32 may add) of the exact quotient plus zero point, and golden is that quotient, rounded."""
    levels = {r.name: r.levels for r in RECORDS if r.levels is not None and r.domains != QONNX}
    skipped = ("QLinearConv", "QLinearMatMul", "QGemm") if saturates() else ()
    seen: dict[str, int] = {}
    for seed in range(600, 780):
        path, arrays = written(qoperator_networks.network(Seeded(seed)), tmp_path)
        try:
            model = load(path)
            values = values_of(model, arrays)
        except ModelRefused:
            continue
        constants = {i.name: i for i in model.flat.graph.initializer}
        for node in model.flat.graph.node:
            makes = levels.get(node.op_type)
            out = values.get(node.output[0])
            if makes is None or out is None or out.dtype.type not in KINDS:
                continue
            feeds = {n: values[n] for n in dict.fromkeys(node.input) if n in values}
            if not all(not n or n in feeds or n in constants for n in node.input):
                continue
            if node.op_type in skipped:
                continue
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            attributes = {n: v.decode() if isinstance(v, bytes) else v for n, v in attributes.items()}
            inputs = [
                None if not n else feeds[n] if n in feeds else onnx.numpy_helper.to_array(constants[n])
                for n in node.input
            ]
            made = makes(inputs, attributes)
            np.testing.assert_array_equal(made.array(), out, f"seed {seed}, {node.op_type}")
            try:
                found = by_onnxruntime(node, feeds, constants, KINDS[out.dtype.type])
            except Exception as failure:  # its kernels do not take every form
                if "NOT_IMPLEMENTED" in str(failure) or "NotImplemented" in type(failure).__name__:
                    continue
                raise
            info = np.iinfo(out.dtype)
            exact = np.clip(made.quotient + made.zero_point.astype(np.float64), info.min, info.max)
            slack = NEAR + LOOSE.get(node.op_type, 0.0)
            assert np.abs(found.astype(np.float64) - exact).max() <= 0.5 + slack, f"seed {seed}, {node.op_type}"
            seen[node.op_type] = seen.get(node.op_type, 0) + 1
    assert len(seen) + len(skipped) >= 8 and sum(seen.values()) > 50
