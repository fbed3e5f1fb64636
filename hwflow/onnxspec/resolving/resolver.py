"""Resolve a model to plain nodes with all shapes known and all constants computed."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

import onnx

from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.onnxspec.clauses.models.functions import MAX_INLINED
from hwflow.onnxspec.definitions.function_writer import Definition, Undefined, Use
from hwflow.onnxspec.graphs.attribute_values import has_subgraph, python_attributes
from hwflow.onnxspec.graphs.bodies import Body
from hwflow.onnxspec.graphs.inline import (
    FlatNodes,
    Imports,
    Inliner,
    Item,
    call_bindings,
    function_table,
    inner_reads,
    standard_body,
    value_names,
)
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.operator_names import (
    CAST_LIKE,
    CONSTANT,
    IF,
    LOOP,
    SCAN,
    SHAPE,
    SIZE,
)
from hwflow.onnxspec.graphs.parameters import count_parameters
from hwflow.onnxspec.graphs.schemas import find_schema
from hwflow.onnxspec.graphs.scopes import main_scopes, model_opsets
from hwflow.onnxspec.graphs.topology import topological_order
from hwflow.onnxspec.reading.guard import GaveUp
from hwflow.onnxspec.reading.numpy_tensors import from_sparse, to_array, to_tensor
from hwflow.onnxspec.resolving.constant_folding import (
    Folder,
    cast_of,
    constant_value,
    is_foldable,
    of_shape,
    shape_value,
)
from hwflow.onnxspec.resolving.constant_loops import fold_loop
from hwflow.onnxspec.resolving.control_flow import Unroller, once_a_body
from hwflow.onnxspec.resolving.node_records import NodeRecord, needed
from hwflow.onnxspec.resolving.resolved_model import Array, Attribute, OnnxNode, ResolvedModel, ValueInfo
from hwflow.onnxspec.resolving.static_sequences import is_sequence_operator, replaced
from hwflow.onnxspec.shapes.dialects import DIALECT_DOMAINS, ML_DOMAIN
from hwflow.onnxspec.shapes.dimensions import Binding, bind_dimensions, option, stored_sizes, variable_of
from hwflow.onnxspec.shapes.shape_inference import (
    InferenceFailure,
    MemoizedInference,
    NoTensor,
    attribute_bytes,
    infer_dialect,
    type_proto,
)

_SCAN_WITHOUT_BATCH = 9  # version; Loop has not changed in meaning since 1
_TOO_MUCH = "what the graph computes of constants must be computable before the first frame, but"
_UNKNOWN_SHAPE_REMEDY = "give the value a shape in the graph's value_info"
_FOREIGN_OPERATOR_REMEDY = (
    "replace the node by operators that hwflow knows (hwflow ops); where the host can run it, in front of the hardware "
    "or behind it, give its outputs a shape in the graph's value_info"
)
Operator = tuple[str, str]  # domain, op_type


class Unresolved(ModelRefused):
    """Raised where nodes or their shapes are refused. ``rest``: the partial result, in which further faults can be
    found. ``opaque``: its nodes that are refused, or follow refused nodes of unknown shapes; their outputs may be
    missing from ``rest.values``."""

    def __init__(self, findings: Iterable[Finding], rest: ResolvedModel, opaque: frozenset[str]) -> None:
        super().__init__(findings)
        self.rest, self.opaque = rest, opaque


def resolve_with_graph(
    model: onnx.ModelProto,
    dimensions: Mapping[str, int],
    keep: Collection[Operator] | None = None,
    *,
    whole: bool = False,
    to_quantize: bool = False,
) -> tuple[ResolvedModel, onnx.ModelProto]:
    """Return ``model`` with all shapes known for one frame, constants folded, dead nodes removed; and the model with
    the same inlining but without folding: it has every value of the resolved model by the same name, for any number of
    frames. It is ``model`` itself if nothing was inlined. ``model`` is unchanged.

    ``dimensions`` binds dimension variables; the variable in an input's leading place is the number of frames and is 1
    without being given. A graph input with an initializer is a constant. Functions local to the model are inlined, and
    so is the taken branch of an If with a constant condition; a Loop or Scan over constants is computed. ``keep``: the
    operators (by domain and type) that the caller accepts; another one that the standard defines by a function is
    replaced by the function's body if that resolves to operators to keep; None: none is replaced.

    ``whole``: the inputs are whole tensors, first axes of any size (:mod:`hwflow.frontend.frames`). ``to_quantize``:
    quantizers are to be put into definitions, so those that need them are taken, too, as in any float model.

    :func:`hwflow.onnxspec.validate` must have found no error. Raises ModelRefused with all findings: open dimensions,
    dimension variables with two sizes, other nodes with subgraphs, nodes whose inputs do not fit, values of unknown
    shape.
    """
    resolver = _Resolver(model, dimensions, keep, whole=whole)
    resolver.to_quantize = to_quantize or not resolver.is_quantized
    return resolver.run(), resolver.flat_model()


class _Resolver:
    """One run over one model."""

    def __init__(
        self, model: onnx.ModelProto, dimensions: Mapping[str, int], keep: Collection[Operator] | None, *,
        whole: bool = False,
    ) -> None:
        self.model = model
        self.graph = model.graph
        self.keep = keep
        self.to_quantize = False
        self.scopes = main_scopes(model)
        self.scope = self.scopes[0]
        self.functions = function_table(model)
        versions = dict(model_opsets(model))
        for scanned in self.scope.nodes:
            versions.setdefault(scanned.domain, 1)  # a dialect that is used but not imported
        self.imports = Imports(versions)
        self.findings: list[Finding] = []
        self.constants: dict[str, Array] = {}
        self.values: dict[str, ValueInfo] = {}
        self.records: list[NodeRecord] = []
        self.flat: list[Item] = []  # every visited node that is not replaced by others
        self.tensors: list[onnx.TensorProto | onnx.SparseTensorProto] = []  # initializers of branches
        self.inlined = 0
        self._inliner: Inliner | None = None
        self._folder: Folder | None = None
        self.inference = MemoizedInference(self.values, self.constants, model.ir_version)
        self.fixed: dict[str, tuple[int, Item]] = {}  # computed from constants alone, but kept; with their order
        self._fixed_values: dict[str, Array] = {}
        self.sequences: dict[str, tuple[str, ...]] = {}
        self.optionals: dict[str, str] = {}
        self.unroller = Unroller(self)
        self._attributes: dict[Hashable, dict[str, Attribute]] = {}
        self._left_alone: set[Hashable] = set()  # operators whose definition needs others than those to keep

        initializers = set(self.scope.initializers)
        inputs = [info for info in self.graph.input if info.name not in initializers]
        self.inputs = tuple(info.name for info in inputs)
        self.outputs = self.scope.outputs
        first = (info.type.tensor_type.shape.dim[:1] for info in inputs)
        self.open_frames = any(variable_of(d, "", 0) is not None for dims in first for d in dims)
        self.declared: dict[str, tuple[str, onnx.ValueInfoProto]] = {}
        for kind, infos in (("output", self.graph.output), ("value", self.graph.value_info)):
            for info in infos:
                self.declared.setdefault(info.name, (kind, info))
        inner = {d.dim_param for _, info in self.declared.values() for d in info.type.tensor_type.shape.dim}
        inner.discard("")
        self.binding: Binding = bind_dimensions(
            inputs, dimensions, inner, stored_sizes(self.graph), whole=whole
        )
        self.findings.extend(self.binding.findings)
        self.binding.findings = []
        for info in inputs:
            value = self.binding.value_info(info)
            if value is not None:
                self._set(value)

    @property
    def is_quantized(self) -> bool:
        """Whether the model has quantizers or operators of a dialect of quantized models."""
        nodes = (node for scope in self.scopes for node in scope.nodes)
        return any(n.domain in DIALECT_DOMAINS or facts_of(n.domain, n.op_type).quantizer for n in nodes)

    @property
    def inliner(self) -> Inliner:
        """Created on first use."""
        if self._inliner is None:
            self._inliner = Inliner(value_names(self.scopes), set(self.scope.names))
        return self._inliner

    @property
    def folder(self) -> Folder:
        """Created on first use."""
        if self._folder is None:
            self._folder = Folder(sum(array.size for array in self.constants.values()))
        return self._folder

    def run(self) -> ResolvedModel:
        live = self._live()
        self._read_initializers(live)
        order = (index for index in topological_order(self.scope.nodes)[0] if index in live)
        names = self.scope.names
        self._visit_all(Item(self.graph.node[index], names[index], self.imports) for index in order)
        nodes, opaque, of_nodes = needed(self.records, self.outputs)
        self.findings.extend(once_a_body(of_nodes))
        self.findings.extend(
            Finding("sequence", f"output {show(name)}", "an output must be a tensor, not a sequence or an optional",
                    "give its tensors as outputs, or one tensor of them (ConcatFromSequence)")
            for name in self.outputs if name in self.sequences or name in self.optionals
        )
        findings = [*self.findings, *self.binding.findings]
        result = self._result(nodes, opaque)
        if findings:
            raise Unresolved(findings, result, opaque)
        return result

    def flat_model(self) -> onnx.ModelProto:
        """Return the model with everything inlined, see :func:`resolve_with_graph`."""
        if not self.inlined and not self.functions:
            return self.model
        flat = onnx.ModelProto()
        flat.CopyFrom(self.model)
        del flat.graph.node[:], flat.functions[:]
        into = FlatNodes(flat, dict(self.imports.versions))
        nodes: list[onnx.NodeProto] = []
        for item in self.flat:
            into.add(nodes, item)
        flat.graph.node.extend(nodes)
        into.finish()
        for tensor in self.tensors:
            if isinstance(tensor, onnx.TensorProto):
                flat.graph.initializer.append(tensor)
            else:
                flat.graph.sparse_initializer.append(tensor)
        return flat

    def _live(self) -> set[int]:
        """Return the indices of the nodes that an output depends on."""
        producers = self.scope.producers
        live: set[int] = set()
        pending = [producers[name] for name in self.outputs if name in producers]
        while pending:
            index = pending.pop()
            if index not in live:
                live.add(index)
                pending.extend(producers[name] for name in self.scope.nodes[index].reads if name in producers)
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
            if isinstance(tensor, onnx.TensorProto):
                array, dtype = to_array(tensor)
            else:
                self.folder.take(prod(tensor.dims))
                array, dtype = from_sparse(tensor)
        except GaveUp as limit:
            where = f"initializer {show(name)}"
            self.findings.append(Finding("constants", where, f"{_TOO_MUCH}: {limit}", "store it as a dense tensor"))
        except Exception as error:  # ValueError, TypeError, KeyError, IndexError: a malformed tensor
            reason = " ".join(str(error).split())
            message = f"the tensor must be well formed, but reading it failed: {reason}"
            self.findings.append(Finding("PRO-10", f"initializer {show(name)}", message, "export the model again"))
        else:
            self._define(name, array, dtype)

    def _define(self, name: str, array: Array, dtype: str) -> None:
        array.flags.writeable = False  # arrays from another process are writable
        self.constants[name] = array
        self._set(ValueInfo(name, tuple(array.shape), dtype))

    def _set(self, info: ValueInfo) -> None:
        self.values[info.name] = info
        self.inference.forget(info.name)
        declared = self.declared.pop(info.name, None)
        if declared is not None:
            self.binding.agree(*declared, info.shape)

    def _visit_all(self, items: Iterable[Item]) -> None:
        """Visit the nodes; the replacements of a node come before the nodes after it."""
        pending: list[Iterator[Item]] = [iter(items)]
        while pending:
            item = next(pending[-1], None)
            if item is None:
                pending.pop()
                continue
            if len(pending) > 1:
                self.inlined += 1
                if self.inlined > MAX_INLINED:
                    raise ModelRefused.of(
                        "inlined-size", item.where,
                        f"functions and branches must put at most {MAX_INLINED} nodes into the model, but there "
                        "are more",
                        "write the model with fewer calls",
                    )
            replacement = self._visit(item)
            if replacement is not None:
                pending.append(iter(replacement))

    def refuse(self, item: Item, rule: str, message: str, remedy: str, reads: Sequence[str] = ()) -> None:
        """Refuse what replaces nodes with graphs or sequences (:class:`~hwflow.onnxspec.resolving.walk.Walk`)."""
        if has_subgraph(item.proto):
            self._infer_control_flow(item)
        self.flat.append(item)
        self._record_opaque(item, *([Finding(rule, item.where, message, remedy)] if message else []), reads=reads)

    def constant(self, stem: str, array: Array, dtype: str) -> str:
        """Add a constant to the model and return its name."""
        name = self.inliner.value_name(stem)
        self.tensors.append(to_tensor(name, array, dtype))
        self._define(name, array, dtype)
        return name

    def known(self, name: str) -> bool:
        """Tell whether a value is a tensor of known shape, a sequence or an optional; so is an absent one."""
        return not name or name in self.values or name in self.sequences or name in self.optionals

    def body(self, graph: onnx.GraphProto, prefix: str, imports: Imports) -> Body:
        """Return a graph to be instantiated, and read its initializers."""
        body = Body(self.inliner, graph, prefix, imports)
        for name, tensor in body.tensors.items():
            copy = type(tensor)()
            copy.CopyFrom(tensor)
            if isinstance(copy, onnx.TensorProto):
                copy.name = name
            else:
                copy.values.name = name
            self.tensors.append(copy)
            self._read_initializer(name, copy)
        return body

    def _refuse(self, item: Item, rule: str, message: str, remedy: str) -> None:
        self._record_opaque(item, Finding(rule, item.where, message, remedy))

    def _record_opaque(self, item: Item, *findings: Finding, reads: Sequence[str] = ()) -> None:
        """Record a node of which only the inputs are known."""
        proto = item.proto
        reads = (*proto.input, *reads, *(inner_reads(proto) if has_subgraph(proto) else ()))
        version = item.imports[proto.domain]
        node = OnnxNode(item.name, proto.op_type, proto.domain, version, reads, tuple(proto.output), {}, item.context)
        self.records.append(NodeRecord(node, True, list(findings)))

    def _take_declared(self, node: onnx.NodeProto) -> None:
        """Take the shapes that the model declares for a node's results, where inference cannot help."""
        for name in node.output:
            if name in self.declared:
                info = self.binding.value_info(self.declared[name][1])
                if info is not None:
                    self._set(info)

    def _infer_control_flow(self, item: Item) -> None:
        """Infer the shapes of the results of a node with subgraphs, as far as possible."""
        node = item.proto
        self._take_declared(node)
        if node.op_type == LOOP:  # inference does not say that states keep their shapes
            for name, state in zip(node.output, node.input[2:], strict=False):
                if name and name not in self.values and state in self.values:
                    self._set(replace(self.values[state], name=name))
        schema = find_schema(node.op_type, item.imports[node.domain], node.domain)
        if schema is None or all(name in self.values for name in node.output if name):
            return
        visible = (name for name in (*node.input, *inner_reads(node)) if name in self.values)
        for info in self.inference.infer_graphs(schema, node, visible, item.imports.protos):
            value = self.binding.value_info(info)
            if value is not None and info.name not in self.values:
                self._set(value)

    def _visit(self, item: Item) -> Iterable[Item] | None:
        """Infer and then fold or keep one node whose producers have been visited; return its replacements, if any. What
        these are may depend on visiting those before."""
        node = item.proto
        if node.domain == "ai.onnx":
            node = onnx.NodeProto.FromString(node.SerializeToString())
            node.domain = ""
            item.proto = node
        if self.functions and (node.domain, node.op_type, node.overload) in self.functions:
            return self._called(item, self.functions[node.domain, node.op_type, node.overload])
        if node.domain == "":
            if node.op_type in (IF, LOOP, SCAN) and has_subgraph(node):
                return self._control(item)
            held = any(name in self.sequences or name in self.optionals for name in node.input)
            if held or is_sequence_operator(node.op_type):
                self.inlined += 1
                if all(map(self.known, node.input)):
                    return replaced(self, item)
                self.refuse(item, "", "", "")  # what computes the input has a finding
                return None
        self.flat.append(item)
        if has_subgraph(node):
            self._infer_control_flow(item)
            self._refuse(
                item,
                "subgraphs",
                "a node must not carry a graph unless it is an If, Loop, Scan or SequenceMap of ai.onnx, but this one "
                "does",
                "express it with these, or replace it",
            )
            return None
        if any(name and name not in self.values for name in node.input):
            # The finding about its producer is enough.
            self._take_declared(node)
            self._record_opaque(item)
            return None
        kept = self.keep is not None and (node.domain, node.op_type) in self.keep
        if node.domain == ML_DOMAIN or (node.domain in DIALECT_DOMAINS and not kept):
            definition = facts_of(node.domain, node.op_type).definition
            if definition is not None:
                return self._expanded(item, definition)
        self._compute(item)
        return None

    def _expanded(self, item: Item, definition: Definition) -> list[Item] | None:
        """Return the nodes that define a node of a dialect, or of ai.onnx.ml, where it is kept if there are none."""
        node = item.proto
        try:
            infer_dialect(node, self.values, python_attributes(node, None))
            infos = [self.values[name] if name else None for name in node.input]
            constants = [self.constants.get(name) for name in node.input]
            body = definition(Use(node, item.imports[""], infos, constants))
            if body is None:
                assert node.domain == ML_DOMAIN, "dialects' are undefined, with the reason"
                self._compute(item)
                return None
        except InferenceFailure as failure:
            message = f"the node must fit its operator and its inputs, but: {failure}"
            self._refuse(item, "onnx.shape_inference", message, "correct the node or what it reads")
        except Undefined as undefined:
            self._refuse(item, "supported-form", str(undefined), undefined.remedy)
        except Exception as error:  # a malformed tensor in an attribute
            reason = " ".join(str(error).split())
            message = f"the node's attributes must be well formed, but reading them failed: {reason}"
            self._refuse(item, "PRO-10", message, "export the model again")
        else:
            del self.flat[-1]  # the node itself
            return self.inliner.function(item, body, {}, context=f" in the definition of {item.where}")
        return None

    def _compute(self, item: Item) -> None:
        node = item.proto
        schema = None
        version = item.imports[node.domain]
        if node.domain not in DIALECT_DOMAINS:
            schema = find_schema(node.op_type, version, node.domain)
        key: Hashable | None = None
        try:
            if node.op_type == CONSTANT:
                self._count_sparse(node)
            constant = constant_value(node) if node.op_type == CONSTANT and schema is not None else None
            if constant is not None:
                self._define(node.output[0], *constant)
                return
            data = attribute_bytes(node)
            attributes = self._python_attributes(node, version, schema, data)
            if schema is None:
                inferred = infer_dialect(node, self.values, attributes)
            else:
                if data is not None:
                    key = self.inference.key(node, data, item.imports.key)
                inferred = self.inference.infer(schema, node, key, item.imports.protos)
        except GaveUp as limit:
            self._refuse_folding(item, limit)
            return
        except NoTensor as failure:
            self._refuse(item, "supported-operator", str(failure), "replace the node or leave it out")
            return
        except InferenceFailure as failure:
            message = f"the node must fit its operator and its inputs, but: {failure}"
            self._refuse(item, "onnx.shape_inference", message, "correct the node or what it reads")
            return
        except Exception as error:  # a malformed tensor in an attribute
            reason = " ".join(str(error).split())
            message = f"the node's attributes must be well formed, but reading them failed: {reason}"
            self._refuse(item, "PRO-10", message, "export the model again")
            return
        if not self._take_shapes(item, inferred):
            return
        try:
            if schema is not None and self._folded(item, attributes):
                return
        except GaveUp as reason:
            self._refuse_folding(item, reason)
            for name in node.output:
                self.values.pop(name, None)
            return
        if schema is not None and self._replaced(item, schema, key):
            return
        if node.input and all(not name or name in self.constants or name in self.fixed for name in node.input):
            self.fixed.update((name, (len(self.fixed), item)) for name in node.output if name)
        outputs = list(node.output)
        inputs = list(node.input)
        for names in (inputs, outputs):
            while names and not names[-1]:
                names.pop()
        kept = OnnxNode(
            name=item.name,
            op_type=node.op_type,
            domain=node.domain,
            version=version,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            attributes=attributes,
            context=item.context,
        )
        self.records.append(NodeRecord(kept))

    def _python_attributes(
        self, node: onnx.NodeProto, version: int, schema: onnx.defs.OpSchema | None, data: Hashable | None
    ) -> dict[str, Attribute]:
        if data is None:
            return python_attributes(node, schema)
        key = (node.op_type, node.domain, version, data)
        if key not in self._attributes:
            self._attributes[key] = python_attributes(node, schema)
        return self._attributes[key]

    def _take_shapes(self, item: Item, inferred: Mapping[str, ValueInfo]) -> bool:
        """Take the inferred shapes; return whether all outputs have one."""
        complete = True
        for name in item.proto.output:
            if not name:
                continue
            info = inferred.get(name)
            remedy = _FOREIGN_OPERATOR_REMEDY if item.proto.domain else _UNKNOWN_SHAPE_REMEDY
            if info is None and name in self.declared:
                _, declared = self.declared[name]
                info = self.binding.value_info(declared)
                left = self.binding.open_variables(declared)
                if left:
                    remedy = f"give the size with {' '.join(map(option, left))}"
            if info is None:
                complete = False
                if remedy == _FOREIGN_OPERATOR_REMEDY:
                    said = f"{item.proto.domain}.{item.proto.op_type}"
                    message = f"operator must be one that hwflow knows, not {said}, or output {show(name)} have a shape"
                    self._refuse(item, "supported-operator", message, remedy)
                else:
                    message = f"the shape of output {show(name)} must be known, but inference leaves it open"
                    self._refuse(item, "shapes", message, remedy)
            else:
                self._set(info)
        return complete

    def _folded(self, item: Item, attributes: Mapping[str, Attribute]) -> bool:
        """Fold the node if possible; return whether it became constants."""
        node = item.proto
        if node.op_type in (SHAPE, SIZE) and node.domain == "":
            value = shape_value(node, self.values[node.input[0]].shape, attributes)
            if value is not None:
                self._define(node.output[0], value, "int64")
                return True
        if node.op_type == CAST_LIKE and node.domain == "":  # only the type of its second input matters
            node = cast_of(node, self.values[node.input[1]].dtype)
        constants: Mapping[str, Array] | None = self.constants
        if not is_foldable(node, self.constants):
            operator = facts_of(node.domain, node.op_type)
            linear = operator.weights is not None and operator.foldable and node.domain not in DIALECT_DOMAINS
            constants = self._reals(node.input) if linear else None
            if constants is None and not self.open_frames:
                constants = of_shape(node, self.values)
        if constants is None:
            return False
        folded = self.folder.fold(node, self.values, constants, item.imports.protos, self.model.ir_version)
        if folded is None:
            return False
        for name, array in folded.items():
            self._define(name, array, self.values[name].dtype)
        return True

    def _reals(self, names: Sequence[str]) -> Mapping[str, Array] | None:
        """Return the values of operands that are computed from constants alone, None if there is another operand.

        Quantizers of constants and moves of what they give are left to the front end, which takes the integers; but an
        operator that has weights and no stream (the first step of a recurrent network) is a constant."""
        if any(name and name not in self.constants and name not in self.fixed for name in names):
            return None
        needed: dict[int, Item] = {}
        pending = [name for name in names if name in self.fixed]
        while pending:
            number, item = self.fixed[pending.pop()]
            if number not in needed:
                needed[number] = item
                pending.extend(name for name in item.proto.input if name in self.fixed)
        values = ChainMap(self._fixed_values, self.constants)
        for _, item in sorted(needed.items()):
            if not all(name in values for name in item.proto.output if name):
                known = None if item.proto.domain else (self.values, values, item.imports.protos, self.model.ir_version)
                found = None if known is None else self.folder.fold(item.proto, *known)
                if found is None:
                    return None
                self._fixed_values.update(found)
        return values

    def _loop(self, item: Item) -> dict[str, tuple[Array, str]] | None:
        """Return the outputs of a Loop or Scan over constants, None for another node."""
        node = item.proto
        if node.op_type not in (LOOP, SCAN) or not all(name in self.constants for name in node.input if name):
            return None
        work = partial(fold_loop, node, self.values, self.constants, item.imports.protos, self.model.ir_version)
        folded = self.folder.guarded(work)
        if folded is not None:
            self.folder.take(sum(array.size for array, _ in folded.values()))
        return folded

    def _count_sparse(self, node: onnx.NodeProto) -> None:
        """Count the elements of a Constant's sparse value once it is dense."""
        for attribute in node.attribute:
            if attribute.HasField("sparse_tensor"):
                self.folder.take(prod(attribute.sparse_tensor.dims))

    def _refuse_folding(self, item: Item, reason: GaveUp) -> None:
        remedy = "compute it when the model is exported, and store the result in it"
        self._refuse(item, "constants", f"{_TOO_MUCH}: {reason}", remedy)

    def _called(self, item: Item, function: onnx.FunctionProto) -> list[Item] | None:
        """Return the body of a function that replaces its call."""
        call = item.proto
        for names, formal, rule, kind in (
            (call.input, function.input, "NOD-30", "inputs"),
            (call.output, function.output, "NOD-31", "outputs"),
        ):
            if len(names) > len(formal):
                message = f"a call must have at most the {len(formal)} {kind} of its function, not {len(names)}"
                self.flat.append(item)
                self._refuse(item, rule, message, f"remove {kind}")
                return None
        return self.inliner.function(item, function, call_bindings(call, function))

    def _taken(self, item: Item) -> Iterator[Item] | None:
        """Return the taken branch that replaces an If with a constant condition."""
        node = item.proto
        condition = self.constants[node.input[0]]
        attribute = None
        if condition.size == 1:
            name = "then_branch" if condition.reshape(-1)[0] else "else_branch"
            attribute = next((a for a in node.attribute if a.name == name), None)
        if attribute is None or len(attribute.g.output) != len(node.output):
            message = "If must have a condition of one element, and branches with as many outputs as the node"
            self.refuse(item, "onnx.shape_inference", message, "correct the node or what it reads")
            return None
        self.inlined += 1  # even an empty branch changes the model
        return self.unroller.taken(item, attribute.name)

    def _control(self, item: Item) -> Iterator[Item] | None:
        """Return the nodes that replace an If, Loop or Scan, None where it is computed or refused."""
        node = item.proto
        if not all(map(self.known, node.input)):
            self._infer_control_flow(item)
            self.refuse(item, "", "", "")
            return None
        if node.op_type == IF and node.input and node.input[0] in self.constants:
            return self._taken(item)
        if node.op_type == LOOP or item.imports[""] >= _SCAN_WITHOUT_BATCH:
            try:
                folded = self._loop(item)
            except GaveUp as reason:
                self._refuse_folding(item, reason)
                return None
            if folded is not None:
                self.flat.append(item)
                for name, constant in folded.items():
                    self._define(name, *constant)
                return None
        self.inlined += 1
        return self.unroller.nodes(item)

    def _replaced(self, item: Item, schema: onnx.defs.OpSchema, key: Hashable | None) -> bool:
        """Try to replace the node by its operator's definition; undo it unless only operators to keep remain. Return
        whether it was replaced. Definitions nest a few levels deep, so this may recurse."""
        node = item.proto
        if self.keep is None or (node.domain, node.op_type) in self.keep:
            return False
        known = (key, tuple(name in self.constants for name in node.input))
        if key is not None and known in self._left_alone:
            return False
        body = self._definition(item, schema)
        if body is None:
            return False
        records, flat, inlined, tensors = len(self.records), len(self.flat), self.inlined, len(self.tensors)
        outputs = {name: self.values[name] for name in node.output if name}
        self._visit_all(self.inliner.function(item, *body, context=f" in the definition of {item.where}"))
        added = self.records[records:]
        if all(not new.opaque and (new.node.domain, new.node.op_type) in self.keep for new in added):
            del self.flat[flat - 1]  # the node itself, visited last
            self.inlined += 1
            return True
        for tried in self.flat[flat:]:
            for name in tried.proto.output:
                self.values.pop(name, None)
                self.constants.pop(name, None)
                self.inference.forget(name)
        del self.records[records:], self.flat[flat:], self.tensors[tensors:]
        self.inlined = inlined
        self.values.update(outputs)
        if key is not None:
            self._left_alone.add(known)
        return False

    def _definition(
        self, item: Item, schema: onnx.defs.OpSchema
    ) -> tuple[onnx.FunctionProto, dict[str, onnx.AttributeProto]] | None:
        """Return the function that defines an operator, and its attributes: onnx's, or the one of its record."""
        node, version = item.proto, item.imports[item.proto.domain]
        definition = facts_of(node.domain, node.op_type).definition
        if definition is None:
            types = [type_proto(self.values[name]) if name else None for name in node.input]
            return standard_body(schema, node, version, types)
        infos = [self.values[name] if name else None for name in node.input]
        constants = [self.constants.get(name) for name in node.input]
        function = definition(Use(node, version, infos, constants, self.to_quantize))
        return None if function is None else (function, {})

    def _result(self, nodes: Sequence[OnnxNode], opaque: Collection[str]) -> ResolvedModel:
        """Return the model without unread constants."""
        needed = {*self.inputs, *self.outputs}
        for node in nodes:
            needed.update(name for name in (*node.inputs, *node.outputs) if name)
        constants = {name: array for name, array in self.constants.items() if name in needed}
        values = {name: info for name, info in self.values.items() if name in needed}
        return ResolvedModel(
            name=self.graph.name,
            ir_version=self.model.ir_version,
            opsets=dict(self.imports.versions),
            nodes=tuple(nodes),
            constants=constants,
            values=values,
            inputs=self.inputs,
            outputs=self.outputs,
            parameters=count_parameters([node for node in nodes if node.name not in opaque], constants, values),
        )
