"""Models without a frame axis: the same model with an axis of length 1 in front of every value that is computed.

Everything behind this sees frames along the first axis, as in other models: a model's whole inputs are one frame. The
translation of every operator's axes is here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from hwflow.onnxspec.model import Array, OnnxNode, ResolvedModel
from hwflow.onnxspec.tensors import ELEMENT_TYPES, to_tensor


def lacks_frame_axis(model: onnx.ModelProto) -> bool:
    """Whether the inputs of a model are whole tensors."""
    return bool(whole_inputs(model))


def whole_inputs(model: onnx.ModelProto) -> dict[str, list[int | str]]:
    """The inputs, with their shapes, of a model without a frame axis that are no frame: scalars, and those whose first
    axis has another size than 1. None of a model where the first axis of an input has no number as its size."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    shapes: dict[str, list[int | str]] = {}
    for info in model.graph.input:
        if info.name not in initializers:
            kind = info.type.tensor_type
            if info.type.WhichOneof("value") != "tensor_type" or not kind.HasField("shape"):
                return {}
            if kind.shape.dim and not kind.shape.dim[0].HasField("dim_value"):
                return {}
            shapes[info.name] = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in kind.shape.dim]
    return {name: shape for name, shape in shapes.items() if shape[:1] != [1]}


def with_frame_axis(model: onnx.ModelProto, resolved: ResolvedModel) -> onnx.ModelProto | None:
    """``model``, of which ``resolved`` is the resolution and which has all of its values, with an axis of length 1 in
    front of all inputs and of all that is computed from them; constants are folded. None where one of its operators
    cannot be given such an axis."""
    build = _Build(model, resolved)
    makers = {name: node for node in model.graph.node for name in node.output if name}
    nodes = []
    for node in resolved.nodes:
        maker = makers[next(name for name in node.outputs if name)]
        translate = _TABLE.get(node.op_type) if node.domain == "" else None
        copy = onnx.NodeProto()
        copy.CopyFrom(maker)
        if translate is None or not translate(build, node, copy):
            return None
        nodes.append(copy)
    return build.finished(nodes)


class _Build:
    """What translations work on."""

    def __init__(self, model: onnx.ModelProto, resolved: ResolvedModel) -> None:
        self.model, self.resolved = model, resolved
        self.names = {*resolved.values, *(t.name for t in model.graph.initializer)}
        self.made: list[onnx.TensorProto] = []

    def shape(self, name: str) -> tuple[int, ...]:
        """Without the new axis."""
        return self.resolved.values[name].shape

    def is_constant(self, name: str) -> bool:
        return name in self.resolved.constants

    def constant(self, name: str) -> Array:
        return self.resolved.constants[name]

    def add(self, base: str, array: Array, dtype: str = "int64") -> str:
        """A new initializer, named after ``base``."""
        name, number = f"{base}_framed", 0
        while name in self.names:
            number += 1
            name = f"{base}_framed_{number}"
        self.names.add(name)
        self.made.append(to_tensor(name, array, dtype))
        return name

    def raised(self, name: str) -> str:
        """A constant with one more axis in front."""
        return self.add(name, self.constant(name)[np.newaxis], self.resolved.values[name].dtype)

    def finished(self, nodes: Sequence[onnx.NodeProto]) -> onnx.ModelProto:
        resolved = self.resolved
        framed = onnx.ModelProto()
        framed.CopyFrom(self.model)
        graph = framed.graph
        del graph.node[:], graph.value_info[:], graph.input[:], graph.output[:]
        graph.node.extend(nodes)
        there = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
        for name, array in resolved.constants.items():
            if name not in there:
                graph.initializer.append(to_tensor(name, array, resolved.values[name].dtype))
        graph.initializer.extend(self.made)
        for names, infos in ((resolved.inputs, graph.input), (resolved.outputs, graph.output)):
            for name in names:
                shape = self.shape(name) if self.is_constant(name) else (1, *self.shape(name))
                kind = ELEMENT_TYPES[resolved.values[name].dtype]
                infos.append(helper.make_tensor_value_info(name, kind, shape))
        return framed


Translate = Callable[[_Build, OnnxNode, onnx.NodeProto], bool]
"""Changes a copy of a node; False where it cannot be done."""


def _elementwise(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Shapes broadcast from behind: only a constant of the result's rank needs the new axis."""
    rank = len(build.shape(node.outputs[0]))
    for place, name in enumerate(node.inputs):
        if name and build.is_constant(name) and 0 < len(build.shape(name)) == rank:
            copy.input[place] = build.raised(name)
    return True


def _unary(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Parameters behind the first input are scalars."""
    return True


def _set(copy: onnx.NodeProto, name: str, value: object) -> None:
    kept = [a for a in copy.attribute if a.name != name]
    del copy.attribute[:]
    copy.attribute.extend([*kept, helper.make_attribute(name, value)])


def _axis(default: int) -> Translate:
    """An attribute ``axis``; a negative one counts from behind."""

    def translate(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        axis = node.attributes.get("axis", default)
        assert isinstance(axis, int)
        if axis >= 0:
            _set(copy, "axis", axis + 1)
        return not any(build.is_constant(name) for name in node.inputs[:1])

    return translate


def _concat(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    for place, name in enumerate(node.inputs):
        if build.is_constant(name):
            copy.input[place] = build.raised(name)
    axis = node.attributes["axis"]
    assert isinstance(axis, int)
    _set(copy, "axis", axis + 1 if axis >= 0 else axis)
    return True


def _quantizer(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Scale and zero point one a tensor, one along an axis, or in blocks (of the tensor's rank)."""
    if build.is_constant(node.inputs[0]):
        return True
    rank = len(build.shape(node.inputs[1]))
    if rank > 1:
        for place in range(1, len(node.inputs)):
            if node.inputs[place]:
                copy.input[place] = build.raised(node.inputs[place])
    if rank == 0 or build.shape(node.inputs[1]) == (1,):
        return True
    return _axis(1)(build, node, copy)


def _reshaped(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Reshape, Flatten, Squeeze, Unsqueeze: all a Reshape."""
    if build.is_constant(node.inputs[0]):
        return True
    target = np.array([1, *build.shape(node.outputs[0])], dtype=np.int64)
    copy.op_type = "Reshape"
    del copy.attribute[:], copy.input[1:]
    copy.input.append(build.add(node.outputs[0], target))
    return node.version >= 5  # the shape was an attribute before


def _transpose(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    if build.is_constant(node.inputs[0]):
        return True
    perm = node.attributes.get("perm", ()) or tuple(reversed(range(len(build.shape(node.inputs[0])))))
    assert isinstance(perm, tuple)
    _set(copy, "perm", [0, *(int(a) + 1 for a in perm)])
    return True


def _vector(place: int, since: int, change: Callable[[_Build, OnnxNode, list[int]], list[int]]) -> Translate:
    """Input ``place``, a constant vector that since version ``since`` is no attribute any more."""

    def translate(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
        if node.version < since or not build.is_constant(node.inputs[place]):
            return False
        old = [int(v) for v in build.constant(node.inputs[place]).reshape(-1)]
        new = np.array(change(build, node, old), dtype=np.int64)
        copy.input[place] = build.add(node.inputs[place], new)
        return True

    return translate


def _up(axes: Sequence[int]) -> list[int]:
    return [axis + 1 if axis >= 0 else axis for axis in axes]


def _input_axes(build: _Build, node: OnnxNode, copy: onnx.NodeProto, place: int) -> bool:
    """Optional constant axes, input ``place``."""
    if len(node.inputs) <= place or not node.inputs[place]:
        return True
    if not build.is_constant(node.inputs[place]):
        return False
    axes = [int(v) for v in build.constant(node.inputs[place]).reshape(-1)]
    copy.input[place] = build.add(node.inputs[place], np.array(_up(axes), dtype=np.int64))
    return True


def _slice(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    if node.version < 10 or not build.is_constant(node.inputs[1]):
        return False
    if len(node.inputs) > 3 and node.inputs[3]:
        return _input_axes(build, node, copy, 3)
    axes = np.arange(1, 1 + build.constant(node.inputs[1]).size, dtype=np.int64)
    while len(copy.input) < 4:
        copy.input.append("")
    copy.input[3] = build.add(node.inputs[1], axes)
    return True


def _pad(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    if node.version < 11 or not build.is_constant(node.inputs[1]):
        return False
    if len(node.inputs) > 3 and node.inputs[3]:
        return _input_axes(build, node, copy, 3)
    pads = [int(v) for v in build.constant(node.inputs[1]).reshape(-1)]
    half = len(pads) // 2
    copy.input[1] = build.add(node.inputs[1], np.array([0, *pads[:half], 0, *pads[half:]], dtype=np.int64))
    return True


def _reduce(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Axes are an attribute or, in later versions, an input; without any all are meant, or none."""
    rank = len(build.shape(node.inputs[0]))
    if "axes" in node.attributes:
        axes = node.attributes["axes"]
        assert isinstance(axes, tuple)
        _set(copy, "axes", _up([int(a) for a in axes]))
        return True
    given = len(node.inputs) > 1 and node.inputs[1] != ""
    if given and not build.is_constant(node.inputs[1]):
        return False
    if given and build.constant(node.inputs[1]).size:
        return _input_axes(build, node, copy, 1)
    if node.attributes.get("noop_with_empty_axes", 0):
        return True
    axes_input = node.version >= (13 if node.op_type == "ReduceSum" else 18)
    everything = list(range(1, rank + 1))
    if not axes_input:
        _set(copy, "axes", everything)
        return rank > 0
    del copy.input[1:]
    copy.input.append(build.add(node.inputs[0], np.array(everything, dtype=np.int64)))
    return rank > 0


def _resize(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Axes are named where the version has them; before, scales, sizes and region of interest get the new axis."""
    rank = len(build.shape(node.inputs[0]))
    if node.op_type == "Upsample" and node.version < 9:
        scales = node.attributes["scales"]
        assert isinstance(scales, tuple)
        _set(copy, "scales", [1.0, *scales])
        return True
    if node.version >= 18:
        axes = node.attributes.get("axes", ()) or tuple(range(rank))
        assert isinstance(axes, tuple)
        _set(copy, "axes", _up([int(a) for a in axes]))
        return True
    for place, name in enumerate(node.inputs[1:], start=1):
        if not name:
            continue
        if not build.is_constant(name):
            return False
        old = build.constant(name)
        if not old.size:
            continue
        new = np.concatenate([[1], old])
        if place == 1 and node.version >= 11:  # region of interest: all starts, then all ends
            new = np.concatenate([[0], old[:rank], [1], old[rank:]])
        copy.input[place] = build.add(name, new.astype(old.dtype), build.resolved.values[name].dtype)
    return True


def _matmul(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Matrices of one rank and more; a vector of the model only on the left."""
    ranks = [len(build.shape(name)) for name in node.inputs[:2]]
    if ranks[1] < 2 or (ranks[0] < 2 and build.is_constant(node.inputs[0])):
        return False
    if any(name and build.shape(name) not in ((), (1,)) for name in node.inputs[2:]):
        return False
    for place, name in enumerate(node.inputs[:2]):
        if build.is_constant(name) and ranks[place] >= max(2, len(build.shape(node.outputs[0]))) and ranks[place] > 2:
            copy.input[place] = build.raised(name)
    return True


def _qlinear_matmul(build: _Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Likewise; the rows of the first matrix have one scale and one zero point."""
    a, b, result = (build.shape(name) for name in (node.inputs[0], node.inputs[3], node.outputs[0]))
    single = all(build.constant(name).size == 1 for name in node.inputs[1:3] if build.is_constant(name))
    if len(b) < 2 or build.is_constant(node.inputs[0]) or not single:
        return False
    if len(b) == len(result) > 2:
        copy.input[3] = build.raised(node.inputs[3])
    return len(a) >= 1


_ELEMENTWISE = (
    "Abs", "Add", "And", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Ceil", "Celu", "Div",
    "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish",
    "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or",
    "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Softplus", "Softsign", "Sqrt", "Sub",
    "Sum", "Tanh", "ThresholdedRelu", "Where", "Xor",
)  # fmt: skip

_TABLE: Mapping[str, Translate] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(("Cast", "Clip", "Dropout", "Identity"), _unary),
    **dict.fromkeys(("Flatten", "Reshape", "Squeeze", "Unsqueeze"), _reshaped),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _quantizer),
    **dict.fromkeys(("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"), _reduce),
    **dict.fromkeys(("ArgMax", "ArgMin", "Gather", "Split"), _axis(0)),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _matmul),
    "QLinearMatMul": _qlinear_matmul,
    "Concat": _concat,
    "Expand": _vector(1, 8, lambda build, node, shape: [1, *build.shape(node.outputs[0])]),
    "Pad": _pad,
    "Resize": _resize,
    "Slice": _slice,
    "Tile": _vector(1, 6, lambda build, node, repeats: [1, *repeats]),
    "TopK": _axis(-1),
    "Transpose": _transpose,
    "Upsample": _resize,
}
