"""What the host runs: cut out as models of their own, and run with the hardware between."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest

from hwflow.api.checking import check
from hwflow.errors import ModelRefused
from hwflow.host.boundary_models import (
    boundary_value,
    model_outputs,
    port_inputs,
    prefix_model,
    suffix_model,
    to_integers,
)
from hwflow.ir.graph import Meaning, Port, Value, identity_order
from hwflow.onnxspec.graphs.subgraph import SubModel
from hwflow.types import IntType, TensorType
from hwflow.verify import golden
from tests.host.networks import Network, branches, classifier, random_frames, real_output
from tests.models import Array, Builder

TAILS = {"dequantize": "logits", "softmax": "probabilities", "log_softmax": "log_probabilities", "arg_max": "class"}
NETWORKS = {
    **{tail: lambda tail=tail: classifier(tail) for tail in TAILS}, "branches": branches, "sums": real_output,
    "shares": lambda: real_output(softmax=True),
}


def evaluated(model: onnx.ModelProto, feeds: dict[str, Array]) -> dict[str, Array]:
    """Every value of the model by onnx's own evaluator."""
    evaluator = onnx.reference.ReferenceEvaluator(model)
    known = {i.name for i in model.graph.input}
    return evaluator.run(None, {n: a for n, a in feeds.items() if n in known}, intermediate=True)


def valid(part: SubModel, tmp_path: Path) -> onnx.ModelProto:
    """The part, read back from a file that onnx and hwflow find nothing wrong with."""
    path = tmp_path / "part.onnx"
    onnx.save(part.proto, path)
    if not part.proto.functions:  # onnx wants every function to import the model's own operator sets
        onnx.checker.check_model(path, full_check=True)
    assert [f for f in check(path) if f.severity == "error"] == []
    return onnx.load(path)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_parts_compute_what_the_whole_does(name: str, tmp_path: Path) -> None:
    network: Network = NETWORKS[name]()
    model = network.load(tmp_path)
    feeds = random_frames(network, 7)
    whole = evaluated(network.proto, feeds)

    prefix = prefix_model(model)
    assert prefix is not None
    made = evaluated(valid(prefix, tmp_path), feeds)
    given = {i.name for i in network.proto.graph.input}
    assert list(prefix.outputs) == [n for n in network.sources if n not in given]
    for output in prefix.outputs:
        np.testing.assert_array_equal(made[output], whole[output])
        assert made[output].dtype == whole[output].dtype

    outputs = [o.name for o in network.proto.graph.output]
    suffix = suffix_model(model)
    if suffix is None:
        assert set(outputs) <= set(network.sinks)
        return
    assert list(suffix.outputs) == [n for n in outputs if n not in network.sinks]
    made = evaluated(valid(suffix, tmp_path), {n: whole[n] for n in suffix.inputs if n not in given} | feeds)
    for output in suffix.outputs:
        np.testing.assert_array_equal(made[output], whole[output])


@pytest.mark.parametrize("name", NETWORKS)
def test_prefix_hardware_and_suffix_are_the_model(name: str, tmp_path: Path) -> None:
    """All scales of the quantizers are powers of two, so that the evaluator's hardware part is exact."""
    network: Network = NETWORKS[name]()
    model = network.load(tmp_path)
    feeds = random_frames(network, 9, seed=1)
    whole = evaluated(network.proto, feeds)
    integers = port_inputs(model, feeds)
    assert all(array.dtype == np.int64 for array in integers.values())
    found = model_outputs(model, golden.evaluate(model.quantized, integers), feeds)
    assert list(found) == [o.name for o in network.proto.graph.output]
    for output, array in found.items():
        np.testing.assert_array_equal(array, whole[output])
        assert array.dtype == whole[output].dtype


@pytest.mark.parametrize("name", NETWORKS)
def test_where_the_boundary_is(name: str, tmp_path: Path) -> None:
    network: Network = NETWORKS[name]()
    graph = network.load(tmp_path).quantized
    assert {p.value.origin for p in graph.inputs} == set(network.sources)
    assert [p.name for p in graph.outputs] == list(network.sinks)
    if name == "branches":
        assert graph.prefix == ("half", "first_in")
        assert graph.suffix == ("half", "a", "b", "bent", "with_input")


def test_what_a_prefix_and_a_suffix_hold(tmp_path: Path) -> None:
    network = classifier("softmax", opset=20)
    model = network.load(tmp_path)
    prefix, suffix = prefix_model(model), suffix_model(model)
    assert prefix is not None and suffix is not None
    assert [n.op_type for n in prefix.proto.graph.node] == ["Div", "Sub", "Transpose", "QuantizeLinear"]
    assert [n.op_type for n in suffix.proto.graph.node] == ["DequantizeLinear", "Softmax"]
    for part in (prefix, suffix):
        assert (part.proto.ir_version, list(part.proto.opset_import)) == (9, list(network.proto.opset_import))
        used = {name for node in part.proto.graph.node for name in node.input}
        assert {t.name for t in part.proto.graph.initializer} == used.intersection(
            t.name for t in network.proto.graph.initializer
        )
    assert [dimensions(i) for i in prefix.proto.graph.input] == [["N", 3, 4, 2]]
    assert [dimensions(o) for o in prefix.proto.graph.output] == [["N", 4, 2, 3]]
    assert [dimensions(i) for i in suffix.proto.graph.input] == [["N", 5]]
    assert [dimensions(o) for o in suffix.proto.graph.output] == [["N", 5]]
    kinds = [v.type.tensor_type.elem_type for v in (*prefix.proto.graph.output, *suffix.proto.graph.input)]
    assert kinds == [onnx.TensorProto.INT8, onnx.TensorProto.INT8]


def dimensions(info: onnx.ValueInfoProto) -> list[int | str]:
    return [d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim]


def test_a_fixed_number_of_frames_stays_fixed(tmp_path: Path) -> None:
    model = classifier("softmax", frames=1).load(tmp_path)
    for part in (prefix_model(model), suffix_model(model)):
        assert part is not None
        assert all(dimensions(i)[0] == 1 for i in (*part.proto.graph.input, *part.proto.graph.output))


def test_initializers_are_inputs_up_to_ir_version_3(tmp_path: Path) -> None:
    network = classifier("dequantize")
    network.proto.ir_version = 3
    network.proto.opset_import[0].version = 10
    for initializer in network.proto.graph.initializer:
        info = onnx.helper.make_tensor_value_info(initializer.name, initializer.data_type, initializer.dims)
        network.proto.graph.input.append(info)
    model = network.load(tmp_path)
    prefix = prefix_model(model)
    assert prefix is not None and prefix.inputs == ("image",)
    names = [i.name for i in valid(prefix, tmp_path).graph.input]
    assert names[0] == "image" and set(names[1:]) == {t.name for t in prefix.proto.graph.initializer} != set()


def test_functions_come_along(tmp_path: Path) -> None:
    """A function of another version of the operator set than the model's leaves a call of a function behind."""
    network = classifier("dequantize")
    proto = network.proto
    body = [onnx.helper.make_node("Softmax", ["a"], ["b"], axis=1)]
    function = onnx.helper.make_function(
        "org.example", "Last", ["a"], ["b"], body, [onnx.helper.make_opsetid("", 11)], []
    )
    proto.functions.append(function)
    proto.opset_import.append(onnx.helper.make_opsetid("org.example", 1))
    proto.graph.node.append(onnx.helper.make_node("Last", ["logits"], ["y"], domain="org.example", name="last"))
    proto.graph.output[0].name = "y"
    model = network.load(tmp_path)
    prefix, suffix = prefix_model(model), suffix_model(model)
    assert prefix is not None and suffix is not None
    assert len(prefix.proto.functions) == 0 and len(suffix.proto.functions) == 1
    feeds = random_frames(network, 3)
    found = evaluated(valid(suffix, tmp_path), {"scores": evaluated(proto, feeds)["scores"]})["y"]
    np.testing.assert_array_equal(found, evaluated(proto, feeds)["y"])


def test_outputs_that_need_no_hardware(tmp_path: Path) -> None:
    """One by a host's node behind the input, and an input itself, beside one that hardware makes."""
    b = Builder(19, ir_version=9)
    x, z = b.input("x", ["N", 3]), b.input("z", ["N", 2])
    b.output(b.requantize(b.node("Relu", b.requantize(x, 0.5, 3)), 1.0, 0), b.node("Softmax", x, name="y"), z)
    model = b.load(tmp_path)
    suffix = suffix_model(model)
    assert suffix is not None and suffix.inputs[0] == "x" and suffix.outputs[1] == "y" and len(suffix.outputs) == 2
    feeds = {"x": np.array([[1, 2, -3]], np.float32), "z": np.array([[4, 5]], np.float32)}
    whole = evaluated(b.build(), feeds)
    found = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, feeds)), feeds)
    assert list(found) == list(model.resolved.outputs)
    for name in (suffix.outputs[0], "y"):
        np.testing.assert_array_equal(found[name], whole[name])
    np.testing.assert_array_equal(found["z"], feeds["z"])
    np.testing.assert_array_equal(evaluated(valid(suffix, tmp_path), feeds | whole)["y"], whole["y"])


# --- at the boundary -------------------------------------------------------------------------------------------------


def port(scale: list[Fraction], zero_point: list[Fraction], shape: tuple[int, ...], axis: int = 0) -> Port:
    value = Value("v", TensorType(shape, IntType(8, True), IntType(8, True).interval), "v")
    return Port("v", value, shape, identity_order(shape), tuple(scale), tuple(zero_point), axis)


def test_reals_are_rounded_once(tmp_path: Path) -> None:
    """Scales by channel, fractional zero points; the exact values by hand."""
    model = real_output().load(tmp_path)
    sums = port([Fraction(1, 3), Fraction(2)], [Fraction(1, 2), Fraction(0)], (2,))
    sums.name = "sums"
    found = boundary_value(model, sums, np.array([[1, 2], [-3, 5]]))
    assert found.dtype == np.float32
    assert found.tolist() == [[float(np.float32(1 / 6)), 4.0], [float(np.float32(-7 / 6)), 10.0]]


def test_integer_tensors_are_exact(tmp_path: Path) -> None:
    """As they are, or (a sum without its zero points' part) apart from a constant."""
    model = classifier("dequantize").load(tmp_path)
    plain = port([Fraction(1)], [Fraction(0)], (5,))
    moved = port([Fraction(1)], [Fraction(n) for n in (0, 1, 2, -3, 100)], (5,))
    plain.name = moved.name = "scores"
    integers = np.array([[1, 2, 3, 4, 5], [-5, -4, -3, -2, -1]])
    for boundary, expected in ((plain, integers.tolist()), (moved, [[1, 1, 1, 7, -95], [-5, -5, -5, 1, -101]])):
        found = boundary_value(model, boundary, integers)
        assert found.dtype == np.int8 and found.tolist() == expected


def meant(scale: list[float], zero_point: float) -> Port:
    """An input port of 8-bit integers that mean reals [2, 3]; scales by the first axis."""
    found = port([Fraction(1)], [Fraction(0)], (2, 3))
    scales = np.array([[Fraction(s)] for s in scale], dtype=object)
    found.value.meaning = Meaning(scales, np.array(Fraction(zero_point), dtype=object))
    return found


def test_levels_become_integers() -> None:
    """real / scale + zero point: a bipolar quantizer's (-s, s) with zero point 1/2 are 0 and 1."""
    reals = np.array([[[-0.3, 0.3, 0.3], [-0.7, -0.7, 0.7]]], dtype=np.float32)
    assert to_integers(meant([0.6, 1.4], 0.5), reals).tolist() == [[[0, 1, 1], [0, 0, 1]]]


@pytest.mark.parametrize("wrong", [0.31, 0.0, 1e9, float("nan")])
def test_what_is_no_level_is_refused(wrong: float) -> None:
    reals = np.array([[[-0.3, 0.3, 0.3], [-0.7, wrong, 0.7]]], dtype=np.float32)
    with pytest.raises(ModelRefused) as refused:
        to_integers(meant([0.6, 1.4], 0.5), reals)
    (finding,) = refused.value.findings
    assert (finding.rule, finding.where) == ("boundary-level", "value 'v'")
    assert "must hold levels of its quantizer, integers -128 to 127, but frame 0, index [1, 1] is " in finding.message


# --- what stays refused ----------------------------------------------------------------------------------------------


def refusals(builder: Builder, tmp_path: Path) -> list[tuple[str, str]]:
    with pytest.raises(ModelRefused) as refused:
        _ = builder.load(tmp_path).quantized
    return [(f.rule, f.where) for f in refused.value.findings]


def test_a_host_node_between_quantizers_is_refused(tmp_path: Path) -> None:
    b = Builder(19, ir_version=9)
    x = b.requantize(b.input("x", ["N", 3]), 0.5, 3)
    middle = b.requantize(b.node("RandomUniformLike", x, name="middle"), 1 / 256, 0)
    b.output(b.requantize(b.node("MatMul", middle, b.weights(np.eye(3))), 1.0, 0))
    assert ("supported-operator", "node 'middle' (RandomUniformLike)") in refusals(b, tmp_path)


def test_a_suffix_that_loses_the_frame_axis_is_refused(tmp_path: Path) -> None:
    b = Builder(19, ir_version=9)
    x = b.requantize(b.input("x", ["N", 3]), 0.5, 3)
    y = b.requantize(b.node("Relu", x), 1.0, 0)
    b.output(b.node("ReduceMean", y, name="mean", keepdims=0))
    assert refusals(b, tmp_path) == [("frame-axis", "node 'mean' (ReduceMean)")]
