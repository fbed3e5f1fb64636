"""Evaluate parts of a model with ONNX's reference evaluator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.reference
from onnx.reference.op_run import OpRun

from hwflow.display import show
from hwflow.errors import ModelRefused
from hwflow.onnxspec import dialect_operators
from hwflow.onnxspec.graphs.inline import VERSIONS_DOMAIN, called_node
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.operator_names import CONSTANT
from hwflow.onnxspec.graphs.scopes import model_opsets, opset_map, plain_domain
from hwflow.onnxspec.reference.evaluator_defects import substitutes
from hwflow.onnxspec.reference.framewise import FramedNode
from hwflow.onnxspec.shapes.dialects import DIALECT_DOMAINS

AnyArray = npt.NDArray[Any]


class Region:
    """A region of a model: ``nodes`` in order, with the names in ``feeds`` as its inputs.

    ``framewise``: no node mixes frames or fixes the batch size, so all frames are evaluated at once, else frame by
    frame. ``defects``: the names of the evaluator's defects that were avoided.
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
                raise ModelRefused.of(
                    "region-closed", f"value {show(name)}", "must be fed, not missing", "give it as an input",
                )
            if id(node) not in chosen:
                chosen.add(id(node))
                needed.extend(n for n in node.input if n)
        nodes = [n for n in graph.node if id(n) in chosen]
        # exporters omit the import of a dialect
        missing = {n.domain for n in nodes if n.domain in DIALECT_DOMAINS} - set(opsets)
        imports = {**opsets, **dict.fromkeys(sorted(missing), 1)}
        self._opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in imports.items()]
        self._ir_version, self._functions = model.ir_version, list(model.functions)
        # By index in `nodes`: the imports of calls that wrap a node of another version.
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
        except Exception as error:  # a missing operator, or any other error
            raise self._refusal(error) from error
        self.framewise = self._is_framewise()

    def run(self, feeds: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        """Return the outputs for ``feeds``, each with its frames along the first axis."""
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
            # A constant of higher rank added an axis before the frames, or frames of different ranks were broadcast.
            self.framewise = False
        parts = [self.values({name: array[i : i + 1] for name, array in feeds.items()}) for i in range(count)]
        return {name: np.concatenate([np.asarray(p[name]) for p in parts]) for name in self.outputs}

    def values(self, feeds: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        """Return every value of the region, constants included, evaluated at once: one frame only unless ``framewise``.

        Raises :class:`ModelRefused` if the evaluator cannot compute it.
        """
        try:
            return _evaluate(self._evaluator, {name: feeds[name] for name in self.feeds})
        except Exception as error:  # the evaluator raises whatever numpy and its operators raise
            raise self._refusal(error) from error

    def _ranks_agree(self, values: Mapping[str, AnyArray]) -> bool:
        """Tell whether frame axes align wherever tensors broadcast."""
        met = ([np.ndim(values[name]) for name in names] for names in self._met)
        return all(len(set(ranks)) == 1 for ranks in met)

    def _refusal(self, error: Exception) -> ModelRefused:
        reason = " ".join(str(error).split())
        where = " and ".join(f"value {show(name)}" for name in self.outputs)
        return ModelRefused.of(
            "reference-evaluator", where,
            f"must be what ONNX's reference evaluator can compute, but it failed: {reason}",
            "check the model with 'hwflow check'",
        )

    def again(self, node: onnx.NodeProto, inputs: Sequence[AnyArray | None]) -> AnyArray:
        """Evaluate the first output of one node of the region on other ``inputs`` (None: absent), of any float type."""
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
        # Functions need substitutes too; each gets them in its own evaluator.
        functions: list[Any] = []  # a function may call earlier ones
        for function in self._functions:
            functions.append(
                onnx.reference.ReferenceEvaluator(
                    function, functions=[*functions], new_ops=self._substitutes(function.opset_import)
                )
            )
        versions = {opset.domain: opset.version for opset in opsets}
        return onnx.reference.ReferenceEvaluator(graph, opsets=versions, functions=functions, new_ops=new_ops)

    def _substitutes(self, opsets: Sequence[onnx.OperatorSetIdProto]) -> list[type[OpRun]]:
        replaced = substitutes({"": self.version, **opset_map(opsets)}, self.defects.add)
        return [*replaced, *dialect_operators.operators()]

    def _is_framewise(self) -> bool:
        framed = set(self.feeds)
        self._met: list[list[str]] = []  # names of values that broadcast together
        for node in self.nodes:
            if not framed.intersection(node.input):
                continue
            framed.update(node.output)
            operator = facts_of(plain_domain(node.domain), node.op_type)
            if operator.elementwise:
                self._met.append([name for name in node.input if name in framed])
            if operator.framewise is None:
                if not operator.elementwise:
                    return False
                continue
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            if not operator.framewise(FramedNode(node, attributes, framed, self._constant)):
                return False
        return True

    def _constant(self, name: str) -> onnx.TensorProto | None:
        """Return an initializer, or the tensor of a Constant node."""
        tensor = self._constants.get(name)
        for other in self.nodes:
            if other.op_type == CONSTANT and name in other.output:
                tensor = next((a.t for a in other.attribute if a.name == "value"), None)
        return tensor if isinstance(tensor, onnx.TensorProto) else None


class RegionEvaluator:
    """Evaluates any region of ``model`` between values. Values inside functions are not accessible
    (:func:`hwflow.onnxspec.resolve_with_graph` returns a model in which they are).

    The model keeps its operator set; operators that the evaluator lacks or gets wrong are replaced, see
    :mod:`hwflow.onnxspec.reference.evaluator_defects`.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._regions: dict[tuple[tuple[str, ...], frozenset[str]], Region] = {}

    def region(self, outputs: Sequence[str], known: frozenset[str]) -> Region:
        """Return the region that computes ``outputs`` from the nearest of the values in ``known``; built once."""
        key = (tuple(outputs), frozenset(_nearest(self._model.graph, outputs, known)))
        if key not in self._regions:
            self._regions[key] = Region(self._model, *key)
        return self._regions[key]

    def run(self, outputs: Sequence[str], feeds: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        """Compute ``outputs`` from ``feeds`` (any values of the graph), each with its frames along the first axis."""
        return self.region(outputs, frozenset(feeds)).run(feeds)


def _nearest(graph: onnx.GraphProto, outputs: Sequence[str], known: frozenset[str]) -> set[str]:
    """Return those of ``known`` that a backward walk from ``outputs`` meets first. An output is computed even if it is
    known (to be compared), unless nothing computes it."""
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
