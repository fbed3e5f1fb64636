"""Cut out a part of a model that computes some values from others, as a separate model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import onnx
from onnx import helper

from hwflow.display import show
from hwflow.onnxspec.graphs.inline import graphs_of, inner_reads
from hwflow.onnxspec.graphs.scopes import model_opsets, plain_domain
from hwflow.onnxspec.reading.numpy_tensors import ELEMENT_TYPES
from hwflow.onnxspec.resolving.resolved_model import ResolvedModel, ValueInfo

_INITIALIZERS_ARE_INPUTS = 3  # IR version up to which every initializer is a graph input too (onnx.proto)
_IMPORTS_SINCE = 3  # IR version from which a model imports operator sets (onnx.proto)


@dataclass(frozen=True, eq=False)
class SubModel:
    """The model cut out, its inputs (without initializers) and its outputs."""

    proto: onnx.ModelProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def cut(
    model: onnx.ModelProto, resolved: ResolvedModel, given: Collection[str], outputs: Sequence[str], name: str
) -> SubModel:
    """Return a model called ``name`` of the nodes that compute ``outputs`` from values in ``given`` and from constants.

    ``model`` has every value of ``resolved`` by the same name (see :func:`hwflow.onnxspec.resolve_with_graph`), and its
    nodes are in topological order. Inputs are those of ``given`` that are needed: graph inputs first, in the model's
    order, then the others in the order of their nodes. An output that is itself in ``given`` is computed nonetheless,
    unless no node computes it. Operator sets, IR version, functions and initializers are those of ``model``. A variable
    frame axis stays variable; all other sizes are numbers.

    Raises ValueError if something needed is neither given, nor constant, nor computed by a node.
    """
    graph = model.graph
    constants = {t.name: t for t in graph.initializer}
    sparse = {t.values.name: t for t in graph.sparse_initializer}
    producers = {output: index for index, node in enumerate(graph.node) for output in node.output if output}
    given = frozenset(given).difference(o for o in outputs if o in producers)
    chosen, reads = _walk(graph, producers, given, outputs)
    names = [*(i.name for i in graph.input), *(o for node in graph.node for o in node.output)]
    inputs = tuple(dict.fromkeys(n for n in names if n in given and (n in reads or n in outputs)))
    computed = {output for index in chosen for output in graph.node[index].output}
    held = [n for n in (*constants, *sparse) if (n in reads or n in outputs) and n not in given]
    missing = [n for n in dict.fromkeys((*reads, *outputs)) if n not in computed and n not in inputs and n not in held]
    if missing:
        raise ValueError(f"{show(missing[0])} must be given, constant, or computed by a node")

    part = onnx.ModelProto()
    part.ir_version, part.domain, part.model_version = model.ir_version, model.domain, model.model_version
    part.producer_name = "hwflow"
    if model.opset_import or model.ir_version >= _IMPORTS_SINCE:
        part.opset_import.extend(helper.make_opsetid(*entry) for entry in model_opsets(model).items())
    infos = _Infos(model, resolved)
    part.graph.name = name
    part.graph.input.extend(infos.info(n) for n in inputs)
    if model.ir_version <= _INITIALIZERS_ARE_INPUTS:
        part.graph.input.extend(_described(constants[n] if n in constants else sparse[n]) for n in held)
    part.graph.output.extend(infos.info(n) for n in outputs)
    part.graph.node.extend(graph.node[index] for index in sorted(chosen))
    part.graph.initializer.extend(constants[n] for n in held if n in constants)
    part.graph.sparse_initializer.extend(sparse[n] for n in held if n in sparse)
    inner = computed.intersection(resolved.values).difference(outputs)
    part.graph.value_info.extend(infos.info(i.name) for i in graph.value_info if i.name in inner)
    part.functions.extend(_functions(model, part))
    return SubModel(part, inputs, tuple(outputs))


def _walk(
    graph: onnx.GraphProto, producers: dict[str, int], given: Collection[str], outputs: Sequence[str]
) -> tuple[set[int], set[str]]:
    """Return the indices of the needed nodes, and every name that they read."""
    chosen: set[int] = set()
    reads: set[str] = set()
    pending = [name for name in outputs if name in producers]
    while pending:
        index = producers[pending.pop()]
        if index in chosen:
            continue
        chosen.add(index)
        node = graph.node[index]
        visible = {*(n for n in node.input if n), *_captured(node)}
        reads |= visible
        pending.extend(name for name in visible if name not in given and name in producers)
    return chosen, reads


def _captured(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the outer names that the subgraphs of a node read. Names are unique across nested graphs (SSA)."""
    pending = [graph for attribute in node.attribute for graph in graphs_of(attribute)]
    own: set[str] = set()
    while pending:
        graph = pending.pop()
        own.update(info.name for info in graph.input)
        own.update(tensor.name for tensor in graph.initializer)
        own.update(tensor.values.name for tensor in graph.sparse_initializer)
        for inner in graph.node:
            own.update(inner.output)
            pending.extend(sub for attribute in inner.attribute for sub in graphs_of(attribute))
    yield from (name for name in inner_reads(node) if name not in own)


def _functions(model: onnx.ModelProto, part: onnx.ModelProto) -> list[onnx.FunctionProto]:
    """Return the functions of the model that the nodes of ``part`` call, directly or not, in the model's order."""
    table = {(plain_domain(f.domain), f.name, f.overload): f for f in model.functions}
    called: set[tuple[str, str, str]] = set()
    pending = list(part.graph.node)
    while pending:
        node = pending.pop()
        key = (plain_domain(node.domain), node.op_type, node.overload)
        if key in table and key not in called:
            called.add(key)
            pending.extend(table[key].node)
        pending.extend(inner for a in node.attribute for sub in graphs_of(a) for inner in sub.node)
    return [f for key, f in table.items() if key in called]


def _described(tensor: onnx.TensorProto | onnx.SparseTensorProto) -> onnx.ValueInfoProto:
    """Describe an initializer as a graph input."""
    if isinstance(tensor, onnx.TensorProto):
        return helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
    return helper.make_sparse_tensor_value_info(tensor.values.name, tensor.values.data_type, tensor.dims)


class _Infos:
    """Descriptions of values: types and sizes of ``resolved``, the frame axis as the model declares it."""

    def __init__(self, model: onnx.ModelProto, resolved: ResolvedModel) -> None:
        graph = model.graph
        self._held = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
        self._held.update(resolved.fixed)
        self._declared = {info.name: info for info in (*graph.value_info, *graph.output, *graph.input)}
        self._values = resolved.values
        self._frames = next(
            (d for info in graph.input if info.name not in self._held and (d := _leading(info)) is not None), None
        )

    def info(self, name: str) -> onnx.ValueInfoProto:
        value: ValueInfo = self._values[name]
        info = helper.make_tensor_value_info(name, ELEMENT_TYPES[value.dtype], value.shape)
        frames = _leading(self._declared[name]) if name in self._declared else None
        frames = self._frames if frames is None else frames
        if name not in self._held and value.shape[:1] == (1,) and frames is not None:
            info.type.tensor_type.shape.dim[0].CopyFrom(frames)
        return info


def _leading(info: onnx.ValueInfoProto) -> onnx.TensorShapeProto.Dimension | None:
    """Return the declared first dimension of a value, None if there is none."""
    kind = info.type.tensor_type
    if info.type.WhichOneof("value") != "tensor_type" or not kind.HasField("shape") or not kind.shape.dim:
        return None
    first: onnx.TensorShapeProto.Dimension = kind.shape.dim[0]
    return first
