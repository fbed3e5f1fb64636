"""From a model as read to plain nodes with every shape known and every constant computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from hwflow.errors import Finding, ModelRefused
from hwflow.onnxspec.attributes import has_subgraph, python_attributes
from hwflow.onnxspec.dialects import DIALECT_DOMAINS
from hwflow.onnxspec.dimensions import Binding, bind_dimensions
from hwflow.onnxspec.folding import constant_value, fold, is_foldable, shape_value
from hwflow.onnxspec.graph import main_scope, model_opsets, plain_domain, topological_order
from hwflow.onnxspec.model import Array, Attribute, OnnxNode, ResolvedModel, ValueInfo
from hwflow.onnxspec.parameters import count_parameters
from hwflow.onnxspec.schemas import find_schema
from hwflow.onnxspec.shapes import InferenceFailure, infer_dialect, infer_standard
from hwflow.onnxspec.tensors import from_sparse, to_array
from hwflow.onnxspec.validate import structural_findings

_UNKNOWN_SHAPE_REMEDY = "give the value a shape in the graph's value_info"


def resolve(model: onnx.ModelProto, dimensions: Mapping[str, int]) -> ResolvedModel:
    """``model`` with all shapes known for one frame, constants folded, dead nodes dropped. ``model`` is not changed.

    ``dimensions`` binds dimension variables of the inputs; the variable in an input's leading place is the number of
    frames and is 1 without being given. Functions local to the model are inlined.

    Raises ModelRefused, with everything that was found: a graph that cannot be walked (cycles, values that nothing
    makes, unknown operators, ...), open dimensions, nodes that carry graphs, nodes whose inputs do not fit, values
    whose shape cannot be known.
    """
    _raise_if(structural_findings(model))
    return _Resolver(_inlined(model), dimensions).run()


def _raise_if(findings: Sequence[Finding]) -> None:
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        raise ModelRefused(errors)


def _inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    if not model.functions:
        return model
    from onnx.inliner import inline_local_functions

    try:
        return inline_local_functions(model)
    except Exception as error:  # onnx raises RuntimeError and others
        reason = " ".join(str(error).split())
        raise ModelRefused(
            Finding(
                "MOD-13",
                "model",
                f"the model's functions must be expandable, but expanding them failed: {reason}",
                "export the model without local functions",
            )
        ) from error


class _Resolver:
    """One run over one model."""

    def __init__(self, model: onnx.ModelProto, dimensions: Mapping[str, int]) -> None:
        self.model = model
        self.graph = model.graph
        versions = model_opsets(model)
        for node in self.graph.node:
            versions.setdefault(plain_domain(node.domain), 1)  # a dialect that is used but not imported
        self.opsets = versions
        self.opset_protos = [onnx.helper.make_opsetid(domain, version) for domain, version in versions.items()]
        self.scope = main_scope(model)
        self.names = self.scope.names
        self.findings: list[Finding] = []
        self.constants: dict[str, Array] = {}
        self.values: dict[str, ValueInfo] = {}
        self.kept: list[tuple[int, OnnxNode]] = []

        initializers = {t.name for t in self.graph.initializer}
        initializers.update(t.values.name for t in self.graph.sparse_initializer)
        inputs = [info for info in self.graph.input if info.name not in initializers]
        self.inputs = tuple(info.name for info in inputs)
        self.outputs = tuple(info.name for info in self.graph.output)
        self.binding: Binding = bind_dimensions(inputs, dimensions)
        self.findings.extend(self.binding.findings)
        for info in inputs:
            value = self.binding.value_info(info)
            if value is not None:
                self.values[info.name] = value
        self.declared = {info.name: info for info in (*self.graph.value_info, *self.graph.output)}

    def run(self) -> ResolvedModel:
        live = self._live()
        self._read_initializers(live)
        for index in topological_order(self.scope.nodes)[0]:
            if index in live:
                self._visit(index)
        _raise_if(self.findings)
        return self._result()

    def _live(self) -> set[int]:
        """Indices of the nodes that an output depends on."""
        makers = {name: i for i, node in enumerate(self.graph.node) for name in node.output if name}
        live: set[int] = set()
        pending = [makers[name] for name in self.outputs if name in makers]
        while pending:
            index = pending.pop()
            if index not in live:
                live.add(index)
                pending.extend(makers[name] for name in self.scope.nodes[index].reads if name in makers)
        return live

    def _read_initializers(self, live: set[int]) -> None:
        needed = set(self.outputs)
        for index in live:
            needed.update(self.scope.nodes[index].reads)
        for tensor in self.graph.initializer:
            if tensor.name in needed:
                self._read_initializer(tensor.name, tensor)
        for sparse in self.graph.sparse_initializer:
            if sparse.values.name in needed:
                self._read_initializer(sparse.values.name, sparse)

    def _read_initializer(self, name: str, tensor: onnx.TensorProto | onnx.SparseTensorProto) -> None:
        try:
            array, dtype = to_array(tensor) if isinstance(tensor, onnx.TensorProto) else from_sparse(tensor)
        except Exception as error:  # ValueError, TypeError, KeyError, IndexError: a malformed tensor
            reason = " ".join(str(error).split())
            message = f"the tensor must be well formed, but reading it failed: {reason}"
            self.findings.append(Finding("PRO-10", f"initializer '{name}'", message, "export the model again"))
        else:
            self._define(name, array, dtype)

    def _define(self, name: str, array: Array, dtype: str) -> None:
        self.constants[name] = array
        self.values[name] = ValueInfo(name, tuple(array.shape), dtype)

    def _refuse(self, index: int, rule: str, message: str, remedy: str) -> None:
        where = f"node '{self.names[index]}' ({self.graph.node[index].op_type})"
        self.findings.append(Finding(rule, where, message, remedy))

    def _visit(self, index: int) -> None:
        """Infers, then folds or keeps, one node whose producers have been visited."""
        node = self.graph.node[index]
        if plain_domain(node.domain) != node.domain:
            node = onnx.NodeProto.FromString(node.SerializeToString())
            node.domain = ""
        if has_subgraph(node):
            self._refuse(
                index,
                "subgraphs",
                "a node must not carry a graph (control flow has no place in a streaming design), but this one does",
                "export the model with the branch or loop unrolled",
            )
            return
        if any(name and name not in self.values for name in node.input):
            return  # the finding about the node that should have made it is enough
        schema = None
        if node.domain not in DIALECT_DOMAINS:
            schema = find_schema(node.op_type, self.opsets[node.domain], node.domain)
        try:
            attributes = python_attributes(node, schema)
            if schema is None:
                inferred = infer_dialect(node, self.values, attributes)
            else:
                inferred = infer_standard(
                    schema, node, self.values, self.constants, self.opset_protos, self.model.ir_version
                )
            constant = constant_value(node) if node.op_type == "Constant" and schema is not None else None
        except InferenceFailure as failure:
            message = f"the node must fit its operator and its inputs, but: {failure}"
            self._refuse(index, "onnx.shape_inference", message, "correct the node or what it reads")
            return
        except Exception as error:  # a malformed tensor in an attribute
            reason = " ".join(str(error).split())
            message = f"the node's attributes must be well formed, but reading them failed: {reason}"
            self._refuse(index, "PRO-10", message, "export the model again")
            return
        if constant is not None:
            self._define(node.output[0], *constant)
            return
        self._take_shapes(index, node, inferred)
        if schema is not None and self._folded(node, attributes):
            return
        outputs = list(node.output)
        inputs = list(node.input)
        for names in (inputs, outputs):
            while names and not names[-1]:
                names.pop()
        self.kept.append(
            (
                index,
                OnnxNode(
                    name=self.names[index],
                    op_type=node.op_type,
                    domain=node.domain,
                    version=self.opsets[node.domain],
                    inputs=tuple(inputs),
                    outputs=tuple(outputs),
                    attributes=attributes,
                ),
            )
        )

    def _take_shapes(self, index: int, node: onnx.NodeProto, inferred: Mapping[str, ValueInfo]) -> None:
        for name in node.output:
            if not name:
                continue
            info = inferred.get(name)
            if info is None and name in self.declared:
                info = self.binding.value_info(self.declared[name])
            if info is None:
                message = f"the shape of output '{name}' must be known, but inference leaves it open"
                self._refuse(index, "shapes", message, _UNKNOWN_SHAPE_REMEDY)
            else:
                self.values[name] = info

    def _folded(self, node: onnx.NodeProto, attributes: Mapping[str, Attribute]) -> bool:
        """Whether the node has become constants."""
        if node.op_type in ("Shape", "Size") and node.domain == "":
            value = shape_value(node, self.values[node.input[0]].shape, attributes)
            if value is not None:
                self._define(node.output[0], value, "int64")
                return True
        if not is_foldable(node, self.constants):
            return False
        folded = fold(node, self.values, self.constants, self.opset_protos, self.model.ir_version)
        if folded is None:
            return False
        for name, array in folded.items():
            self._define(name, array, self.values[name].dtype)
        return True

    def _result(self) -> ResolvedModel:
        """Drops what folding has made dead, and constants that nothing reads."""
        needed = set(self.outputs)
        nodes: list[OnnxNode] = []
        for _, node in reversed(self.kept):
            if any(name in needed for name in node.outputs):
                nodes.append(node)
                needed.update(name for name in node.inputs if name)
        nodes.reverse()
        needed.update(self.inputs)
        needed.update(name for node in nodes for name in node.outputs if name)
        constants = {name: array for name, array in self.constants.items() if name in needed}
        values = {name: info for name, info in self.values.items() if name in needed}
        return ResolvedModel(
            name=self.graph.name,
            ir_version=self.model.ir_version,
            opsets=dict(self.opsets),
            nodes=tuple(nodes),
            constants=constants,
            values=values,
            inputs=self.inputs,
            outputs=self.outputs,
            parameters=count_parameters(nodes, constants, values),
        )
