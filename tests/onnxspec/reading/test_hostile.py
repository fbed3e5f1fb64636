"""Files made to hurt: each gives findings within the limits of limits.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.onnxspec.build import model, node, value
from tests.onnxspec.reading import hostile_ensembles, wire
from tests.onnxspec.reading.fuzz_seeds import dense

ROOT = Path(__file__).parents[3]
FLOAT = TensorProto.FLOAT


def in_a_cycle() -> onnx.ModelProto:
    """10,000 nodes, each reads what the next one makes, the last what the first one makes."""
    return model([node("Relu", [f"v{(i + 1) % 10_000}"], [f"v{i}"]) for i in range(10_000)], outputs=[value("v0", [4])])


def backwards() -> onnx.ModelProto:
    """20,000 nodes in the wrong order."""
    count = 20_000
    nodes = [node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in reversed(range(count))]
    return model(nodes, [value("v0", [4])], [value(f"v{count}", [4])])


def all_of_one_name() -> onnx.ModelProto:
    """20,000 nodes, all called the same, that all make the same value."""
    return model([node("Relu", ["x"], ["y"], name="n") for _ in range(20_000)])


def nothing_makes_them() -> onnx.ModelProto:
    """A node with 100,000 inputs that do not exist."""
    return model([node("Sum", [f"lost{i}" for i in range(100_000)], ["y"])])


def long_names() -> onnx.ModelProto:
    """Names of a million characters, wrong in every way."""
    name = "/" * 1_000_000
    nodes = [node(name, [name + "a"], [name], name=name, domain=name) for _ in range(20)]
    return model(nodes, [value(name + "x", [name])], [value(name + "b", [name])])


def huge_dimensions() -> onnx.ModelProto:
    """Shapes of 2**60 and 2**63 - 1, whose products overflow 64 bits."""
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Flatten", ["a"], ["b"]),
        node("Concat", ["b", "b", "b", "b", "b", "b", "b", "b", "b"], ["c"], axis=1),
        node("Transpose", ["x"], ["d"]),
        node("MatMul", ["d", "x"], ["y"]),
    ]
    return model(
        nodes, [value("x", [2**60, 2**60, 2**63 - 1])], [value("y", None), value("c", None)], opsets={"": 17}
    )


def huge_quantized() -> onnx.ModelProto:
    """A model that compiles, but for the size of its frames."""
    proto = dense()
    for info in (proto.graph.input[0], proto.graph.output[0]):
        info.type.tensor_type.shape.dim.insert(1, onnx.TensorShapeProto.Dimension(dim_value=2**60))
    return proto


def negative_dimensions() -> onnx.ModelProto:
    """Below nothing, in types and in tensors."""
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[-1, -(2**63)], raw_data=bytes(16))
    return model([node("Add", ["x", "w"], ["y"])], [value("x", [-5, -1])], constants={"w": tensor})


def tensors_without_data() -> onnx.ModelProto:
    """Initializers that claim 2**62 elements and hold none."""
    kinds = (FLOAT, TensorProto.INT64, TensorProto.INT4, TensorProto.STRING)
    tensors = {f"w{kind}": TensorProto(name=f"w{kind}", data_type=kind, dims=[2**31, 2**31]) for kind in kinds}
    nodes = [node("Identity", [name], [f"y{name}"]) for name in tensors]
    return model(nodes, outputs=[value(f"y{name}", None) for name in tensors], constants=tensors)


def large_constants() -> onnx.ModelProto:
    """A hundred constants that the graph makes, of 2**26 elements each, and one of 2**60."""
    sizes = {f"n{i}": [2**13, 2**13 + i] for i in range(100)} | {"n100": [2**30, 2**30]}
    constants = {name: helper.make_tensor(name, TensorProto.INT64, [2], size) for name, size in sizes.items()}
    scale = {"s": helper.make_tensor("s", FLOAT, [], [0.5]), "z": helper.make_tensor("z", TensorProto.INT8, [], [0])}
    nodes = [node("ConstantOfShape", [name], [f"c{name}"]) for name in sizes]
    nodes += [node("QuantizeLinear", [f"c{name}", "s", "z"], [f"q{name}"]) for name in sizes]
    outputs = [value(f"q{name}", size, TensorProto.INT8) for name, size in sizes.items()]
    return model(nodes, [value("x", [1, 4])], outputs, {**constants, **scale})


def many_dimensions() -> onnx.ModelProto:
    """A tensor of 100,000 axes."""
    shape = [1] * 100_000
    return model([node("Relu", ["x"], ["y"])], [value("x", shape)], [value("y", shape)])


def many_variables() -> onnx.ModelProto:
    """Five thousand values whose sizes are five thousand variables, all equal, and at last two numbers."""
    infos = [value(f"v{i}", [f"N{i}", f"N{i + 1}"]) for i in range(5000)]
    nodes = [node("Transpose", [f"v{i}"], [f"v{i + 1}"], perm=[1, 0]) for i in range(5000)]
    return model(nodes, infos[:1], [value("v5000", [3, 4])], value_info=infos[1:])


def functions_that_grow() -> onnx.ModelProto:
    """Functions that call the one before twice: 2**40 nodes when expanded."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("local.test", 1)]
    functions = [helper.make_function("local.test", "F0", ["a"], ["b"], [node("Relu", ["a"], ["b"])], opsets)]
    for i in range(1, 41):
        calls = [node(f"F{i - 1}", [a], [b], domain="local.test") for a, b in (("a", "m"), ("m", "b"))]
        functions.append(helper.make_function("local.test", f"F{i}", ["a"], ["b"], calls, opsets))
    call = node("F40", ["x"], ["y"], domain="local.test")
    return model([call], opsets={"": 21, "local.test": 1}, functions=functions)


def functions_in_a_cycle() -> onnx.ModelProto:
    """Each of a hundred functions calls the next, the last the first."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("local.test", 1)]
    functions = [
        helper.make_function(
            "local.test", f"F{i}", ["a"], ["b"], [node(f"F{(i + 1) % 100}", ["a"], ["b"], domain="local.test")], opsets
        )
        for i in range(100)
    ]
    call = node("F0", ["x"], ["y"], domain="local.test")
    return model([call], opsets={"": 21, "local.test": 1}, functions=functions)


def endless_loop() -> onnx.ModelProto:
    """A loop over constants that runs 2**62 times."""
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("Add", ["v", "v"], ["w"])],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("v", [])],
        [value("on", [], TensorProto.BOOL), value("w", [])],
    )
    constants = {
        "n": helper.make_tensor("n", TensorProto.INT64, [], [2**62]),
        "v0": helper.make_tensor("v0", FLOAT, [], [1.0]),
        "go0": helper.make_tensor("go0", TensorProto.BOOL, [], [True]),
        "z": helper.make_tensor("z", TensorProto.INT8, [], [0]),
    }
    nodes = [
        node("Loop", ["n", "go0", "v0"], ["last"], body=body),
        node("QuantizeLinear", ["x", "last", "z"], ["q"]),
        node("DequantizeLinear", ["q", "last", "z"], ["y"]),
    ]
    return model(nodes, constants=constants)


def branches_of_branches() -> onnx.ModelProto:
    """A tree of If nodes, nested twelve deep, 4,095 of them."""
    def graph(depth: int, name: str) -> onnx.GraphProto:
        if depth == 0:
            nodes = [node("Relu", ["x"], [name])]
        else:
            inner = {b: graph(depth - 1, f"{name}_{i}") for i, b in enumerate(("then_branch", "else_branch"))}
            nodes = [node("If", ["c"], [name], **inner)]
        return helper.make_graph(nodes, f"g{name}", [], [value(name, [1, 4])])

    proto = model([], [value("x", [1, 4]), value("c", [], TensorProto.BOOL)])
    top = graph(11, "y")
    proto.graph.node.extend(top.node)
    return proto


def quantized_sum(nodes: list[onnx.NodeProto], term: str, constants: dict[str, Any]) -> onnx.ModelProto:
    """Quantized x [1, 4] plus ``term``, which ``nodes`` make of constants."""
    quantizers = [node("QuantizeLinear", ["x", "s", "z"], ["xq"]), node("DequantizeLinear", ["xq", "s", "z"], ["xd"])]
    last = [
        node("Add", ["xd", term], ["sum"]),
        node("QuantizeLinear", ["sum", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    scales = {"s": np.float32(0.5), "z": np.int8(0)}
    return model([*quantizers, *nodes, *last], outputs=[value("y", ["A", "B"])], constants={**scales, **constants})


def endless_expression() -> onnx.ModelProto:
    """A regular expression that takes exponential time, on a constant."""
    text = helper.make_tensor("text", TensorProto.STRING, [1], [b"a" * 64])
    nodes = [node("RegexFullMatch", ["text"], ["m"], pattern="(a+)+b"), node("Cast", ["m"], ["w"], to=FLOAT)]
    return quantized_sum(nodes, "w", {"text": text})


def large_product() -> onnx.ModelProto:
    """Of two matrices of zeros that the graph makes, 8,000 wide."""
    nodes = [
        node("ConstantOfShape", ["n"], ["a"]),
        node("MatMul", ["a", "a"], ["b"]),
        node("ReduceMax", ["b"], ["w"], keepdims=0),
    ]
    return quantized_sum(nodes, "w", {"n": np.array([8000, 8000])})


def doubling_texts() -> onnx.ModelProto:
    """A text of 2**46 characters."""
    nodes = [node("StringConcat", [f"t{i}", f"t{i}"], [f"t{i + 1}"]) for i in range(40)]
    nodes += [node("RegexFullMatch", ["t40"], ["m"], pattern="a"), node("Cast", ["m"], ["w"], to=FLOAT)]
    return quantized_sum(nodes, "w", {"t0": helper.make_tensor("t0", TensorProto.STRING, [1], [b"a" * 64])})


def slow_loops() -> onnx.ModelProto:
    """Two hundred loops over constants, of a hundred thousand steps each."""
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("Add", ["v", "v"], ["next"])],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("v", [])],
        [value("on", [], TensorProto.BOOL), value("next", [])],
    )
    nodes = [node("Loop", ["k", "", f"v{i}"], [f"v{i + 1}"], body=body) for i in range(200)]
    return quantized_sum(nodes, "v200", {"v0": np.float32(1), "k": np.int64(100_000)})


def followed_vector() -> onnx.ModelProto:
    """A sum of vectors of 2**31 elements, which onnx follows one by one."""
    return model([node("Add", ["x", "x"], ["y"])], [value("x", [2**31])], [value("y", [2**31])])


def far_axis() -> onnx.ModelProto:
    """An axis on which inference of LayerNormalization crashes (onnx 1.23.2)."""
    normalize = node("LayerNormalization", ["x", "w"], ["y"], axis=2**31)
    return model([normalize], constants={"w": np.ones(4, np.float32)}, opsets={"": 17}, ir_version=8)


def wide_window() -> onnx.ModelProto:
    """A MaxPool over 2**31 x 2**31 pixels."""
    window = {"kernel_shape": [2**31, 2**31], "pads": [2**30] * 4}
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("MaxPool", ["d"], ["p"], **window),
        node("QuantizeLinear", ["p", "s", "z"], ["r"]),
        node("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    scales = {"s": np.float32(0.5), "z": np.int8(0)}
    return model(nodes, [value("x", [1, 1, 8, 8])], [value("y", [1, 1, "H", "W"])], scales)


def long_locations() -> onnx.ModelProto:
    """External data at a path of millions of parts."""
    proto = model([node("Add", ["x", "w"], ["y"])])
    tensor = proto.graph.initializer.add(name="w", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="a/" * 3_000_000)
    return proto


def captured_bytes() -> bytes:
    """Names that are no UTF-8, read from around a branch beside one that is."""
    branch = helper.make_graph([node("Add", ["x", "qqqq"], ["t"])], "g", [], [value("t", [1, 4])])
    proto = model(
        [node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)],
        [value("x", [1, 4]), value("c", [], TensorProto.BOOL)],
    )
    return proto.SerializeToString().replace(b"qqqq", b"q\xff\xffq")


MODELS: tuple[Callable[[], onnx.ModelProto], ...] = (
    in_a_cycle, backwards, all_of_one_name, nothing_makes_them, long_names, huge_dimensions, huge_quantized,
    negative_dimensions, tensors_without_data, large_constants, many_dimensions, many_variables, functions_that_grow,
    functions_in_a_cycle, endless_loop, branches_of_branches, endless_expression, large_product, doubling_texts,
    slow_loops, followed_vector, far_axis, wide_window, long_locations, *hostile_ensembles.MODELS,
)  # fmt: skip

BYTES: Mapping[str, bytes | Callable[[], bytes]] = {
    "captured_bytes": captured_bytes(),
    "deep_graphs": wire.nested_graphs(2000),
    "deep_types": wire.nested_types(2000),
    "endless_graph": wire.varint(7 << 3 | 2) + wire.varint(2**62) + b"\x12\x01g",
    "endless_name": wire.model(wire.varint(2 << 3 | 2) + wire.varint(2**62)),
    "endless_varint": wire.field(1, 10) + b"\x3a" + b"\xff" * 1000,
    "ten_million_nodes": hostile_ensembles.ten_million_nodes,
    "many_graphs": wire.field(1, 10) + wire.field(7, wire.field(2, b"g")) * 100_000,
    "zeros": bytes(1_000_000),
}


NAMES = [*(make.__name__ for make in MODELS), *BYTES]
PROCESSES = 4  # each imports hwflow, which takes as long as most of the models


@pytest.mark.parametrize("names", [NAMES[first::PROCESSES] for first in range(PROCESSES)], ids=" ".join)
def test_hostile(tmp_path: Path, names: list[str]) -> None:
    sample = tmp_path / "sample.onnx"
    sample.write_bytes(dense().SerializeToString())
    made = {make.__name__: make for make in MODELS}
    paths = [sample]
    for name in names:
        paths.append(tmp_path / f"{name}.onnx")
        data = BYTES[name] if name in BYTES else made[name]().SerializeToString()
        paths[-1].write_bytes(data if isinstance(data, bytes) else data())
    worker = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.onnxspec.reading.limits", *map(str, paths)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60 * len(names),
        check=False,
    )
    said = worker.stdout.splitlines()
    assert worker.returncode == 0, (said[-1], worker.stderr[-3000:])  # the last that it began with
    assert said[::2] == [*map(str, paths)]
    assert set(said[3::2]) <= {"error", "unsupported"}
