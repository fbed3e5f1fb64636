"""Parts of a model evaluated by ONNX's reference evaluator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.reference
from onnx import numpy_helper
from onnx.reference.op_run import OpRun

from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.onnxspec import dialect_operators
from hwflow.onnxspec.graphs.inline import VERSIONS_DOMAIN, called_node
from hwflow.onnxspec.graphs.scopes import model_opsets, opset_map
from hwflow.onnxspec.reference.evaluator_defects import substitutes
from hwflow.onnxspec.shapes.dialects import DIALECT_DOMAINS

AnyArray = npt.NDArray[Any]

# Of each element by itself, or of elements of several inputs at the same place.
_ELEMENTWISE = frozenset((
    "Abs", "Add", "And", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Ceil",
    "Celu", "Clip", "Div", "Dropout", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual",
    "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish",
    "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Softplus",
    "Softsign", "Sqrt", "Sub", "Sum", "Tanh", "ThresholdedRelu", "Where", "Xor",
))  # fmt: skip
# Their first axis is the frame by definition.
_PER_FRAME = frozenset({"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"})
# How many inputs are data, all with the frame first; the others are parameters, the same for all frames.
_DATA = {
    "BatchNormalization": 1, "Conv": 1, "QLinearConv": 1, "ConvInteger": 1, "QLinearSigmoid": 1, "QLinearLeakyRelu": 1,
    "QLinearAveragePool": 1, "QLinearGlobalAveragePool": 1, "Quant": 1, "IntQuant": 1, "BipolarQuant": 1, "Trunc": 1,
    "MultiThreshold": 1,
}  # fmt: skip
_TWO_TENSORS = frozenset({"QLinearAdd", "QLinearMul"})  # inputs 0 and 3
# Where the second matrix is.
_MATRICES = {"MatMul": 1, "MatMulInteger": 1, "MatMulIntegerToFloat": 1, "QLinearMatMul": 3, "QGemm": 3}


class Region:
    """A region of a model: ``nodes`` in order, cut off from what lies before by the names in ``feeds``.

    ``framewise``: nothing in it mixes frames or has a batch size written into it, so all frames go in at once; else it
    is evaluated frame by frame. ``defects`` collects the names of the evaluator's defects that were gone around.
    """

    def __init__(self, model: onnx.ModelProto, outputs: Sequence[str], feeds: frozenset[str]) -> None:
        self.outputs = tuple(outputs)
        self.feeds = feeds
        self.defects: set[str] = set()
        opsets = model_opsets(model)
        self.version = opsets[""]
        graph = model.graph
        producers = {name: node for node in graph.node for name in node.output if name}
        initializers = {i.name: i for i in graph.initializer} | {s.values.name: s for s in graph.sparse_initializer}
        needed, seen = list(outputs), set(feeds)
        chosen: set[int] = set()
        self._constants: dict[str, onnx.TensorProto | onnx.SparseTensorProto] = {}
        while needed:
            name = needed.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in initializers:
                self._constants[name] = initializers[name]
                continue
            node = producers.get(name)
            if node is None:
                raise ModelRefused(
                    Finding("region-closed", f"value {show(name)}", "must be fed, not missing", "give it as an input")
                )
            if id(node) not in chosen:
                chosen.add(id(node))
                needed.extend(n for n in node.input if n)
        nodes = [n for n in graph.node if id(n) in chosen]
        # exporters leave out the import of a dialect
        missing = {n.domain for n in nodes if n.domain in DIALECT_DOMAINS} - set(opsets)
        imports = {**opsets, **dict.fromkeys(sorted(missing), 1)}
        self._opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in imports.items()]
        self._ir_version, self._functions = model.ir_version, list(model.functions)
        # By place among `nodes`: the imports of those that stand in for a node of another version.
        bodies = {(f.domain, f.name): f for f in model.functions if f.domain == VERSIONS_DOMAIN}
        self._own_opsets: dict[int, Sequence[onnx.OperatorSetIdProto]] = {}
        self.nodes: list[onnx.NodeProto] = []
        for node in nodes:
            body = bodies.get((node.domain, node.op_type))
            self.nodes.append(node if body is None else called_node(node, body))
            if body is not None:
                self._own_opsets[id(self.nodes[-1])] = body.opset_import
        try:
            self._evaluator = self._build(nodes, sorted(feeds), self.outputs, list(self._constants.values()))
        except Exception as error:  # an operator that it lacks, and whatever else it raises
            raise self._refusal(error) from error
        self.framewise = self._is_framewise()

    def run(self, feeds: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        """The outputs for ``feeds``, each with its frames along the first axis."""
        count = max((len(a) for a in feeds.values()), default=1)
        if self.framewise or count == 1:
            try:
                values = self.values(feeds)
            except ModelRefused:
                if count == 1:
                    raise
            else:
                whole = {name: np.asarray(values[name]) for name in self.outputs}
                in_front = all(array.shape[:1] == (count,) for array in whole.values())
                if count == 1 or (in_front and self._ranks_agree(values)):
                    return whole
            # A constant of higher rank put an axis before the frames, or frames of different ranks met.
            self.framewise = False
        parts = [self.values({name: array[i : i + 1] for name, array in feeds.items()}) for i in range(count)]
        return {name: np.concatenate([np.asarray(p[name]) for p in parts]) for name in self.outputs}

    def values(self, feeds: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        """Every value of the region, constants included, evaluated at once: one frame only unless ``framewise``.

        Raises :class:`ModelRefused` if the evaluator cannot compute it.
        """
        try:
            return _evaluate(self._evaluator, {name: feeds[name] for name in self.feeds})
        except Exception as error:  # the evaluator raises whatever numpy and its operators raise
            raise self._refusal(error) from error

    def _ranks_agree(self, values: Mapping[str, AnyArray]) -> bool:
        """Whether frames met frames wherever tensors broadcast."""
        met = ([np.ndim(values[name]) for name in names] for names in self._met)
        return all(len(set(ranks)) == 1 for ranks in met)

    def _refusal(self, error: Exception) -> ModelRefused:
        reason = " ".join(str(error).split())
        where = " and ".join(f"value {show(name)}" for name in self.outputs)
        return ModelRefused(
            Finding(
                "reference-evaluator", where,
                f"must be what ONNX's reference evaluator can compute, but it failed: {reason}",
                "check the model with 'hwflow check'",
            )
        )

    def again(self, node: onnx.NodeProto, inputs: Sequence[AnyArray | None]) -> AnyArray:
        """The first output of one node of the region on other ``inputs`` (None: absent), of any float type."""
        alone = onnx.NodeProto()
        alone.CopyFrom(node)
        del alone.input[:]
        alone.input.extend("" if array is None else f"input_{i}" for i, array in enumerate(inputs))
        feeds = {f"input_{i}": array for i, array in enumerate(inputs) if array is not None}
        evaluator = self._build([alone], list(feeds), [node.output[0]], [], self._own_opsets.get(id(node)))
        return np.asarray(_evaluate(evaluator, feeds)[node.output[0]])

    def _build(
        self, nodes: Sequence[onnx.NodeProto], inputs: Sequence[str], outputs: Sequence[str],
        constants: Sequence[onnx.TensorProto | onnx.SparseTensorProto],
        own_opsets: Sequence[onnx.OperatorSetIdProto] | None = None,
    ) -> onnx.reference.ReferenceEvaluator:
        graph = onnx.helper.make_graph(
            nodes, "region",
            [onnx.helper.make_value_info(n, onnx.TypeProto()) for n in inputs],
            [onnx.helper.make_value_info(n, onnx.TypeProto()) for n in outputs],
            [c for c in constants if isinstance(c, onnx.TensorProto)],
            sparse_initializer=[c for c in constants if isinstance(c, onnx.SparseTensorProto)],
        )
        opsets = self._opsets if own_opsets is None else own_opsets
        new_ops = self._substitutes(opsets)
        if not self._functions:
            model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=self._ir_version)
            return onnx.reference.ReferenceEvaluator(model, new_ops=new_ops)
        # The functions need substitutes of their own, which they get in evaluators of their own; those go with a graph.
        functions: list[Any] = []  # a function may call those before it
        for function in self._functions:
            functions.append(
                onnx.reference.ReferenceEvaluator(
                    function, functions=[*functions], new_ops=self._substitutes(function.opset_import)
                )
            )
        versions = {opset.domain: opset.version for opset in opsets}
        return onnx.reference.ReferenceEvaluator(graph, opsets=versions, functions=functions, new_ops=new_ops)

    def _substitutes(self, opsets: Sequence[onnx.OperatorSetIdProto]) -> list[type[OpRun]]:
        made = substitutes(opset_map(opsets).get("", self.version), self.defects.add)
        return [*made, *dialect_operators.operators()]

    def _is_framewise(self) -> bool:
        depends = set(self.feeds)
        self._met: list[list[str]] = []  # what meets element by element
        for node in self.nodes:
            if not depends.intersection(node.input):
                continue
            depends.update(node.output)
            if node.op_type in _ELEMENTWISE:
                self._met.append([name for name in node.input if name in depends])
            if not self._node_is_framewise(node, depends):
                return False
        return True

    def _node_is_framewise(self, node: onnx.NodeProto, depends: set[str]) -> bool:
        if node.domain not in ("", "ai.onnx", *DIALECT_DOMAINS):
            return False
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        name = node.op_type
        if name in _DATA:
            return not depends.intersection(node.input[_DATA[name] :])
        if name in _TWO_TENSORS:
            return not depends.intersection([*node.input[1:3], *node.input[4:]])
        if name in _MATRICES:
            return not (attributes.get("transA", 0) or depends.intersection(node.input[1:]))
        match name:
            case "QuantizeLinear" | "DequantizeLinear":
                return attributes.get("axis", 1) != 0 and not depends.intersection(node.input[1:])
            case "Gemm":
                return not attributes.get("transA", 0) and not depends.intersection(node.input[1:])
            case "Flatten":
                return bool(attributes.get("axis", 1) == 1)
            case "Transpose":
                return bool(attributes.get("perm", [1])[0] == 0)
            case "Squeeze" | "Unsqueeze":
                axes = self._integers(node, "axes", attributes)
                return bool(axes) and all(axis > 0 for axis in axes)
            case "Reshape":
                target = self._integers(node, "shape", attributes)
                return target[:1] == [-1] or (target[:1] == [0] and not attributes.get("allowzero", 0))
            case "Resize" | "Upsample":
                # scales leave the frames alone, sizes say how many there are unless they are of other axes
                sized = len(node.input) > 3 and node.input[3] != ""
                axes = attributes.get("axes", [0])
                return not depends.intersection(node.input[1:]) and (not sized or all(axis > 0 for axis in axes))
            case "Concat" | "QLinearConcat":
                return int(attributes.get("axis", 0)) > 0
            case "Softmax" | "LogSoftmax" | "ArgMax" | "ArgMin":
                # before operator set 13 a softmax is over all axes from the given one on
                return int(attributes.get("axis", 0)) > 0
            case "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin":
                axes = self._integers(node, "axes", attributes)
                return bool(axes) and all(axis > 0 for axis in axes)
        return name in _ELEMENTWISE or name in _PER_FRAME

    def _integers(self, node: onnx.NodeProto, attribute: str, attributes: Mapping[str, Any]) -> list[int]:
        """Input 1 of a node as integers, or ``attribute`` in earlier operator sets; empty if it is no constant."""
        if len(node.input) < 2 or not node.input[1]:
            return [int(v) for v in attributes.get(attribute, ())]
        tensor = self._constants.get(node.input[1])
        for other in self.nodes:
            if other.op_type == "Constant" and node.input[1] in other.output:
                tensor = next((a.t for a in other.attribute if a.name == "value"), None)
        if not isinstance(tensor, onnx.TensorProto):
            return []
        return [int(v) for v in numpy_helper.to_array(tensor).reshape(-1)]


class RegionEvaluator:
    """Evaluates any region of ``model`` between values: feeds cut it off from what lies before. Values in functions
    are none of the model's (:func:`hwflow.onnxspec.resolve_with_graph` gives a model in which they are).

    The model keeps its operator set: what the evaluator lacks or does wrong there is replaced, see
    :mod:`hwflow.onnxspec.reference.evaluator_defects`.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._regions: dict[tuple[tuple[str, ...], frozenset[str]], Region] = {}

    def region(self, outputs: Sequence[str], known: frozenset[str]) -> Region:
        """The region that computes ``outputs`` from the nearest of the values in ``known``; built once."""
        key = (tuple(outputs), frozenset(_nearest(self._model.graph, outputs, known)))
        if key not in self._regions:
            self._regions[key] = Region(self._model, *key)
        return self._regions[key]

    def run(self, outputs: Sequence[str], feeds: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        """``outputs`` computed from ``feeds`` (any values of the graph), each with its frames along the first axis."""
        return self.region(outputs, frozenset(feeds)).run(feeds)


def _nearest(graph: onnx.GraphProto, outputs: Sequence[str], known: frozenset[str]) -> set[str]:
    """Those of ``known`` that a walk from ``outputs`` against the data meets first. An output itself is computed even
    if it is known (that is what it is compared with), unless nothing computes it."""
    producers = {name: node for node in graph.node for name in node.output if name}
    met = {name for name in outputs if name in known and name not in producers}
    needed = [n for name in outputs if name in producers for n in producers[name].input if n]
    seen: set[str] = set()
    while needed:
        name = needed.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in known:
            met.add(name)
        elif name in producers:
            needed.extend(n for n in producers[name].input if n)
    return met


def _evaluate(evaluator: onnx.reference.ReferenceEvaluator, feeds: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        results: Any = evaluator.run(None, dict(feeds), intermediate=True)
    return {name: value for name, value in results.items() if value is not None}
