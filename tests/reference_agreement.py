"""The golden model, in both stages, against ONNX's reference evaluator: for models that floats compute exactly."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator

from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.ir.graph import Graph
from hwflow.loaded_model import Model
from hwflow.onnxspec import dialect_operators
from hwflow.onnxspec.reference.evaluator_defects import substitutes
from hwflow.passes import pipeline
from hwflow.verify import golden
from tests.agreement import same
from tests.models import Builder

FRAMES = 3


def agree_with_reference(builder: Builder, seed: int = 0, step: float = 0.25, reach: int = 200) -> Graph:
    """Random frames (multiples of ``step``, up to ``reach`` of them; any integers that hardware takes) through both,
    equal bit for bit. Returns the dataflow graph."""
    with tempfile.TemporaryDirectory() as folder:
        model: Model = builder.load(Path(folder))
    rng = np.random.default_rng(seed)
    arrays = {}
    intervals = {port.name: port.value.typed.interval for port in model.quantized.inputs}
    ranges = {name: (interval.lo, interval.hi) for name, interval in intervals.items()}
    for info in model.proto.graph.input:
        shape = [dim.dim_value or 1 for dim in info.type.tensor_type.shape.dim][1:]
        kind = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if kind.kind in "iu":
            low, high = ranges.get(info.name, (np.iinfo(kind).min, np.iinfo(kind).max))
            arrays[info.name] = rng.integers(low, high, (FRAMES, *shape), kind, endpoint=True)
        else:
            arrays[info.name] = (rng.integers(-reach, reach + 1, (FRAMES, *shape)) * step).astype(np.float32)
    version = next(opset.version for opset in model.proto.opset_import if opset.domain == "")
    operators = [*substitutes({"": version}, lambda defect: None), *dialect_operators.operators()]
    evaluator = ReferenceEvaluator(model.proto, new_ops=operators)
    frames = [evaluator.run(None, {name: a[k : k + 1] for name, a in arrays.items()}) for k in range(FRAMES)]
    graph = model.quantized
    feeds = port_inputs(model, arrays)
    found = model_outputs(model, golden.evaluate(graph, feeds), arrays)
    for place, info in enumerate(model.proto.graph.output):
        expected = np.concatenate([np.asarray(frame[place]) for frame in frames])
        np.testing.assert_array_equal(found[info.name], expected, info.name)
    lowered = pipeline.run(graph, pipeline.DATAFLOW)
    same(graph, lowered, feeds)
    return lowered
