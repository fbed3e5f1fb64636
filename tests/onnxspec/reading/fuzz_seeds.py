"""Small models that between them use every part of the format: what the fuzzer damages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.onnxspec.build import model, node, value
from tests.onnxspec.reading.ml_seeds import ensemble, pipeline

INT8, INT64, BOOL = TensorProto.INT8, TensorProto.INT64, TensorProto.BOOL


def dense() -> onnx.ModelProto:
    """Quantized dense layer that compiles."""
    constants = {
        "s": np.float32(0.5), "z": np.int8(3), "w": np.arange(-8, 8, dtype=np.int8).reshape(4, 4), "t": np.float32(2),
        "k": np.int8(0),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        node("DequantizeLinear", ["w", "s", "k"], ["wd"]),
        node("MatMul", ["xd", "wd"], ["m"], name="dense"),
        node("Relu", ["m"], ["r"]),
        node("QuantizeLinear", ["r", "t", "z"], ["q"]),
        node("DequantizeLinear", ["q", "t", "z"], ["y"]),
    ]
    return model(nodes, [value("x", ["N", 4])], [value("y", ["N", 4])], constants)


def convolution() -> onnx.ModelProto:
    """Quantized convolution and pooling, per-channel scales."""
    constants = {
        "s": np.float32(0.25), "z": np.uint8(128), "w": np.ones((2, 1, 3, 3), np.int8),
        "ws": np.array([0.5, 0.125], np.float32), "wz": np.zeros(2, np.int8),
        "b": np.array([5, -7], np.int32), "bs": np.array([0.125, 1 / 32], np.float32), "bz": np.zeros(2, np.int32),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        node("DequantizeLinear", ["b", "bs", "bz"], ["bd"], axis=0),
        node("Conv", ["xd", "wd", "bd"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]),
        node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("QuantizeLinear", ["p", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("Flatten", ["d"], ["y"]),
    ]
    return model(nodes, [value("x", ["N", 1, 4, 4])], [value("y", ["N", 8])], constants, opsets={"": 19}, ir_version=9)


def control_flow() -> onnx.ModelProto:
    """If, Loop and Scan, with values captured from around them."""
    branch = helper.make_graph([node("Add", ["x", "x"], ["t"])], "then", [], [value("t", [1, 4])])
    other = helper.make_graph([node("Neg", ["x"], ["e"])], "else", [], [value("e", [1, 4])])
    body = helper.make_graph(
        [node("Identity", ["going"], ["more"]), node("Add", ["state", "x"], ["next"])],
        "body",
        [value("i", [], INT64), value("going", [], BOOL), value("state", [1, 4])],
        [value("more", [], BOOL), value("next", [1, 4])],
    )
    scan = helper.make_graph(
        [node("Add", ["sum", "row"], ["total"]), node("Identity", ["total"], ["each"])],
        "scan",
        [value("sum", [4]), value("row", [4])],
        [value("total", [4]), value("each", [4])],
    )
    nodes = [
        node("If", ["c"], ["a"], then_branch=branch, else_branch=other),
        node("Loop", ["n", "c", "a"], ["b"], body=body),
        node("Scan", ["zero", "b"], ["last", "y"], body=scan, num_scan_inputs=1),
    ]
    return model(
        nodes,
        [value("x", [1, 4]), value("c", [], BOOL)],
        constants={"n": np.int64(3), "zero": np.zeros(4, np.float32)},
        opsets={"": 17},
        ir_version=8,
        value_info=[value("a", [1, 4]), value("b", [1, "M"])],
    )


def functions() -> onnx.ModelProto:
    """Local functions that call each other, with attributes that have and have no default."""
    leak = node("LeakyRelu", ["v"], ["w"])
    leak.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    opset = helper.make_opsetid("", 21)
    inner = helper.make_function("local.test", "Leak", ["v"], ["w"], [leak], [opset], ["slope"])
    call = node("Leak", ["a"], ["b"], domain="local.test", slope=0.25)
    outer = helper.make_function(
        "local.test", "Twice", ["a"], ["c"], [call, node("Leak", ["b"], ["c"], domain="local.test", slope=0.5)],
        [opset, helper.make_opsetid("local.test", 1)], attribute_protos=[helper.make_attribute("unused", 3)],
        value_info=[value("b", [1, 4])],
    )  # fmt: skip
    nodes = [node("Twice", ["x"], ["y"], domain="local.test", name="call")]
    return model(nodes, opsets={"": 21, "local.test": 1}, functions=[inner, outer])


def training() -> onnx.ModelProto:
    """A weight that a step halves, and a counter of steps."""
    proto = model([node("Mul", ["x", "w"], ["y"])], constants={"w": np.ones(4, np.float32)})
    info = proto.training_info.add()
    info.initialization.CopyFrom(
        helper.make_graph(
            [node("ConstantOfShape", ["four"], ["first"])], "init", [], [value("first", [4])],
            [numpy_helper.from_array(np.array([4]), "four")],
        )
    )  # fmt: skip
    info.algorithm.CopyFrom(
        helper.make_graph(
            [node("Mul", ["w", "half"], ["smaller"]), node("Add", ["steps", "one"], ["later"])],
            "step",
            [],
            [value("smaller", [4]), value("later", [], INT64)],
            [
                numpy_helper.from_array(np.float32(0.5), "half"), numpy_helper.from_array(np.int64(1), "one"),
                numpy_helper.from_array(np.int64(0), "steps"),
            ],
        )
    )  # fmt: skip
    info.initialization_binding.add(key="w", value="first")
    info.update_binding.add(key="w", value="smaller")
    info.update_binding.add(key="steps", value="later")
    return proto


def storage() -> onnx.ModelProto:
    """Tensors of many kinds, packed, sparse, of text; metadata; annotations."""
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("sp", TensorProto.FLOAT, [2], [1.0, 2.0]),
        helper.make_tensor("", INT64, [2], [1, 3]),
        [4],
    )
    nodes = [
        node("Cast", ["four"], ["f4"], to=TensorProto.FLOAT),
        node("Cast", ["half"], ["f16"], to=TensorProto.FLOAT),
        node("Add", ["x", "f4"], ["a"]),
        node("Add", ["a", "f16"], ["b"]),
        node("Identity", ["b"], ["c"]),
        node("Constant", [], ["k"], value=helper.make_tensor("k", TensorProto.FLOAT, [4], [1, 2, 3, 4])),
        node("Mul", ["c", "k"], ["y"], name="last", doc_string="the last"),
        node("Identity", ["words"], ["text"]),
    ]
    proto = model(
        nodes,
        outputs=[value("y", [1, 4]), value("text", [2], TensorProto.STRING)],
        constants={
            "four": helper.make_tensor("four", TensorProto.INT4, [4], [1, -8, 7, 0]),
            "half": helper.make_tensor("half", TensorProto.FLOAT16, [4], [1, 2, 3, 4]),
            "words": helper.make_tensor("words", TensorProto.STRING, [2], [b"a", b"b"]),
            "two": helper.make_tensor("two", TensorProto.UINT2, [5], [0, 1, 2, 3, 1]),
            "complex": helper.make_tensor("complex", TensorProto.COMPLEX64, [1], [1 + 2j]),
            "flag": helper.make_tensor("flag", BOOL, [2], b"\0\1", raw=True),
        },
        sparse_initializer=[sparse],
        ir_version=13,
    )
    proto.metadata_props.add(key="author", value="a test")
    proto.graph.metadata_props.add(key="a", value="b")
    proto.graph.node[0].metadata_props.add(key="a", value="b")
    annotation = proto.graph.quantization_annotation.add(tensor_name="a")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="half")
    configuration = proto.configuration.add(name="pair", num_devices=2, device=["a", "b"])
    proto.graph.node[0].device_configurations.add(configuration_id=configuration.name)
    return proto


def collections() -> onnx.ModelProto:
    """Sequences, optionals, maps and a sparse type."""
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [1, 4]))
    maybe = helper.make_optional_type_proto(kind)
    table = helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    nodes = [
        node("SequenceConstruct", ["x", "x"], ["s"]),
        node("SequenceAt", ["s", "i"], ["y"]),
        node("Optional", ["s"], ["o"], type=kind),
    ]
    return model(
        nodes,
        [value("x", [1, 4]), helper.make_value_info("m", table), helper.make_value_info("unused", maybe)],
        [value("y", [1, 4]), helper.make_value_info("o", maybe)],
        constants={"i": np.int64(1)},
        value_info=[helper.make_value_info("s", kind)],
    )


def external(folder: Path) -> onnx.ModelProto:
    """Two tensors in one file, each at the start of a page."""
    data = np.arange(4, dtype=np.float32).tobytes()
    (folder / "weights.bin").write_bytes(data.ljust(4096, b"\0") + data)
    proto = model([node("Add", ["x", "w"], ["a"]), node("Mul", ["a", "v"], ["y"])])
    for name, offset in (("w", 0), ("v", 4096)):
        tensor = proto.graph.initializer.add(name=name, data_type=TensorProto.FLOAT, dims=[4])
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (("location", "weights.bin"), ("offset", str(offset)), ("length", "16")):
            tensor.external_data.add(key=key, value=text)
    return proto


def shapes() -> onnx.ModelProto:
    """Shapes that are computed, constants that are folded."""
    constants = {"axes": np.array([0]), "one": np.array([1]), "big": np.array([2, 3]), "start": np.int64(0)}
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "start"], ["first"], axis=0),
        node("Unsqueeze", ["first", "axes"], ["lead"]),
        node("Concat", ["lead", "one", "big"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["r"]),
        node("ConstantOfShape", ["big"], ["zeros"], value=numpy_helper.from_array(np.zeros(1, np.float32))),
        node("Expand", ["zeros", "big"], ["wide"]),
        node("Range", ["start", "limit", "step"], ["count"]),
        node("Tile", ["wide", "repeats"], ["tiled"]),
        node("Add", ["r", "tiled"], ["y"]),
    ]
    constants |= {"limit": np.int64(4), "step": np.int64(1), "repeats": np.array([1, 1])}
    return model(nodes, [value("x", ["N", 6])], [value("y", ["N", 1, 2, 3])], constants, ir_version=8)


def seeds(folder: Path) -> list[onnx.ModelProto]:
    """All of them; files beside the model are written to ``folder``."""
    return [
        dense(), convolution(), control_flow(), functions(), training(), storage(), collections(), external(folder),
        shapes(), pipeline(), ensemble(),
    ]  # fmt: skip
