"""RNN, GRU and LSTM as functions, against onnxruntime's and the reference evaluator's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from hwflow.onnxspec.resolving.written_out import written_out
from tests.onnx_node_tests.cases import node_cases

T, B, INPUTS, H = 5, 3, 2, 3
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DEFAULT = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
ALL = ("Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus", "Relu")


def recurrent(
    op: str, seed: int, *, outputs: str = "all", bias: bool = True, lengths: bool = False, initial: bool = False,
    peepholes: bool = False, streamed: bool = False, opset: int = 21, batch: int = B, **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A model of one node, and values of its inputs; weights, and lengths unless ``streamed``, are constants."""
    rng = np.random.default_rng(seed)
    d, gates = 2 if attributes.get("direction") == "bidirectional" else 1, GATES[op]
    first = (batch, T) if attributes.get("layout") else (T, batch)
    state = (batch, d, H) if attributes.get("layout") else (d, batch, H)
    shapes = {"X": (*first, INPUTS), "W": (d, gates * H, INPUTS), "R": (d, gates * H, H)}
    shapes |= {"B": (d, 2 * gates * H)} if bias else {}
    arrays: dict[str, Any] = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    if lengths:
        arrays["lengths"] = np.array([T, 1, 3][:batch], np.int32)
    if initial:
        arrays |= {name: rng.normal(size=state).astype(np.float32) for name in ("h", "c")[: 1 + (op == "LSTM")]}
    if peepholes:
        arrays["P"] = rng.normal(size=(d, 3 * H)).astype(np.float32)
    names = ["X", "W", "R", "B", "lengths", "h", "c", "P"][: 8 if op == "LSTM" else 6]
    made = {"all": ["Y", "Y_h", "Y_c"][: 2 + (op == "LSTM")], "last": ["", "Y_h"], "rows": ["Y"]}[outputs]
    node = helper.make_node(op, [n if n in arrays else "" for n in names], made, hidden_size=H, **attributes)
    fed = {"X", "h", *(["lengths"] if streamed else [])} & arrays.keys()
    graph = helper.make_graph(
        [node], "recurrent",
        [helper.make_tensor_value_info(n, kind(arrays[n]), arrays[n].shape) for n in arrays if n in fed],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in made if n],
        [onnx.numpy_helper.from_array(arrays[n], n) for n in arrays if n not in fed],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return model, {n: a for n, a in arrays.items() if n in fed}


def kind(array: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def flat(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its node as its definition, unrolled."""
    found = written_out(model, {}, whole=True)
    assert not {"Scan", "Loop", "If", *GATES} & {node.op_type for node in found.graph.node}
    return found


def same(model: onnx.ModelProto, feeds: dict[str, Any], wanted: list[Any]) -> None:
    found = ReferenceEvaluator(flat(model)).run(None, feeds)
    for each, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(each, expected, rtol=1e-4, atol=2e-5)


CASES = [
    *(dict(op=op, direction=d, bias=d != "reverse") for op in GATES for d in ("forward", "reverse", "bidirectional")),
    *(dict(op=op, direction="bidirectional", lengths=True, streamed=True) for op in GATES),
    dict(op="LSTM", direction="bidirectional", lengths=True),
    dict(op="GRU", direction="reverse", lengths=True, initial=True),
    *(dict(op=op, initial=True, clip=0.5, opset=o) for op, o in (("LSTM", 7), ("GRU", 14))),
    *(dict(op="LSTM", outputs=o, direction="bidirectional") for o in ("last", "rows")),
    *(dict(op="RNN", activations=[a], activation_alpha=[0.7], activation_beta=[0.2]) for a in ALL),
    *(dict(op="RNN", activations=[a]) for a in ("LeakyRelu", "HardSigmoid", "Elu")),  # whose defaults ONNX has
    dict(op="GRU", linear_before_reset=1, direction="bidirectional", initial=True),
    dict(op="GRU", linear_before_reset=1, bias=False, lengths=True, streamed=True),
    dict(op="LSTM", peepholes=True, direction="bidirectional", initial=True),
    dict(op="LSTM", peepholes=True, clip=0.3, lengths=True),
    dict(op="LSTM", input_forget=1, peepholes=True),
    dict(
        op="LSTM", direction="bidirectional", activations=["HardSigmoid", "Affine", "Relu", "Sigmoid", "elu", "TANH"],
        activation_alpha=[0.3, 0.7, 0.9], activation_beta=[0.4, 0.1],
    ),
    dict(op="RNN", direction="bidirectional", activations=["ScaledTanh", "LeakyRelu"], activation_alpha=[0.8, 0.2],
         activation_beta=[0.6]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(f"{k}={v}" for k, v in case.items()))
def test_as_onnxruntime(case: dict[str, Any]) -> None:
    model, feeds = recurrent(seed=1, **case)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    same(model, feeds, session.run(None, feeds))


@pytest.mark.parametrize("op", GATES)
def test_batches_first_are_the_transposed(op: str) -> None:
    """onnxruntime has no layout 1."""
    options: dict[str, Any] = dict(direction="bidirectional", initial=True, lengths=True, streamed=True)
    model, feeds = recurrent(op, 2, layout=1, **options)
    other, _ = recurrent(op, 2, **options)
    del other.graph.initializer[:]
    other.graph.initializer.extend(model.graph.initializer)
    turned = {n: a.transpose(1, 0, 2) if a.ndim == 3 else a for n, a in feeds.items()}
    for tensor in other.graph.initializer:
        if tensor.name == "c":
            c = onnx.numpy_helper.to_array(tensor).transpose(1, 0, 2)
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(c), "c"))
    wanted = ReferenceEvaluator(flat(other)).run(None, turned)
    same(model, feeds, [wanted[0].transpose(2, 0, 1, 3), *(each.transpose(1, 0, 2) for each in wanted[1:])])


def node_tests() -> list[Any]:
    return [c for c in node_cases() if {n.op_type for n in c.model.graph.node} & {*GATES, "ReverseSequence"}]


@pytest.mark.parametrize("case", node_tests(), ids=lambda case: case.name)
def test_onnx_own_node_tests(case: Any) -> None:
    for inputs, outputs in case.data_sets:
        feeds = {info.name: array for info, array in zip(case.model.graph.input, inputs, strict=True)}
        found = ReferenceEvaluator(written_out(case.model, {}, whole=True)).run(None, feeds)
        for each, expected in zip(found, outputs, strict=True):
            np.testing.assert_allclose(each, expected, rtol=1e-4, atol=1e-5)
