"""A model under rewriting, node by node, on which the batching rules of operators work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx
from onnx import helper

from hwflow.onnxspec.graphs.inline import VERSIONS_DOMAIN, called_node, wrapped
from hwflow.onnxspec.graphs.operator_names import RESHAPE, TRANSPOSE
from hwflow.onnxspec.reading.numpy_tensors import ELEMENT_TYPES, to_tensor
from hwflow.onnxspec.resolving.resolved_model import Array, ResolvedModel


class Build:
    """A rewrite of ``model``, which ``resolved`` (with whole inputs) resolves, with all of its values. ``before`` and
    ``after``: the nodes that the current rule inserts around its node."""

    def __init__(self, model: onnx.ModelProto, resolved: ResolvedModel) -> None:
        self.model, self.resolved = model, resolved
        self.names = {*resolved.values, *(t.name for t in model.graph.initializer)}
        self.made: list[onnx.TensorProto] = []
        self.before: list[onnx.NodeProto] = []
        self.after: list[onnx.NodeProto] = []
        self._versions = {f.name: f for f in model.functions if f.domain == VERSIONS_DOMAIN}
        self._wrapped: dict[str, onnx.FunctionProto] = {}

    def node(self, proto: onnx.NodeProto) -> onnx.NodeProto:
        """Return a copy of a node of the model; of the call of one of another operator version, that node."""
        if proto.domain == VERSIONS_DOMAIN:
            return called_node(proto, self._versions[proto.op_type])
        copy = onnx.NodeProto()
        copy.CopyFrom(proto)
        return copy

    def again(self, proto: onnx.NodeProto, copy: onnx.NodeProto) -> onnx.NodeProto:
        """Return ``copy``, which :meth:`node` gave for ``proto``, as a call if that is one."""
        if proto.domain != VERSIONS_DOMAIN:
            return copy
        function = self._wrapped[proto.op_type] = onnx.FunctionProto()
        return wrapped(copy, proto.name, function, proto.op_type, self._versions[proto.op_type].opset_import)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value, as in the model."""
        return self.resolved.values[name].shape

    def is_constant(self, name: str) -> bool:
        return name in self.resolved.constants

    def constant(self, name: str) -> Array:
        return self.resolved.constants[name]

    def is_fixed(self, name: str) -> bool:
        """Tell whether a value is absent or computed from constants alone."""
        return not name or name in self.resolved.fixed

    def streams(self, names: Iterable[str]) -> list[str]:
        """Return those that are computed from inputs."""
        return [name for name in names if not self.is_fixed(name)]

    def single(self, names: Iterable[str]) -> bool:
        """Tell whether all of these parameters are absent, or have one element and no axis that frames could meet."""
        return all(not name or (self.is_fixed(name) and self.shape(name) in ((), (1,))) for name in names)

    def fresh(self, base: str) -> str:
        """Return a fresh value name."""
        name, number = f"{base}_framed", 0
        while name in self.names:
            number += 1
            name = f"{base}_framed_{number}"
        self.names.add(name)
        return name

    def add(self, base: str, array: Array, dtype: str = "int64") -> str:
        """Add an initializer, named after ``base``, and return its name."""
        name = self.fresh(base)
        self.made.append(to_tensor(name, array, dtype))
        return name

    def with_leading_axis(self, name: str) -> str:
        """Return a fixed value with one more axis in front."""
        if self.is_constant(name):
            return self.add(name, self.constant(name)[np.newaxis], self.resolved.values[name].dtype)
        return self.reshaped(name, (1, *self.shape(name)))

    def first(self, name: str) -> str | None:
        """Return a fixed value with its first axis reduced to length 1 if it is constant along that axis, else None."""
        if self.shape(name)[:1] == (1,):
            return name
        if not self.is_constant(name) or not self.shape(name):
            return None
        array = self.constant(name)
        if not (array == array[:1]).all():
            return None
        return self.add(name, array[:1], self.resolved.values[name].dtype)

    def reshaped(self, name: str, shape: Sequence[int]) -> str:
        """Insert a Reshape before the node and return its result; -1 for the remaining size."""
        result = self.fresh(name)
        target = self.add(name, np.array(shape, dtype=np.int64))
        self.before.append(helper.make_node(RESHAPE, [name, target], [result]))
        return result

    def transposed(self, name: str, order: Sequence[int]) -> str:
        """Return a fixed value with its axes in another order."""
        if self.is_constant(name):
            return self.add(name, self.constant(name).transpose(order), self.resolved.values[name].dtype)
        result = self.fresh(name)
        self.before.append(helper.make_node(TRANSPOSE, [name], [result], perm=order))
        return result

    def result_transposed(self, copy: onnx.NodeProto, place: int, order: Sequence[int]) -> None:
        """Transpose output ``place`` of the node ``copy``."""
        name = copy.output[place]
        copy.output[place] = self.fresh(name)
        self.after.append(helper.make_node(TRANSPOSE, [copy.output[place]], [name], perm=order))

    def result_in(self, copy: onnx.NodeProto, place: int, shape: Sequence[int]) -> None:
        """Reshape output ``place`` of the node ``copy``."""
        name = copy.output[place]
        copy.output[place] = self.fresh(name)
        target = self.add(name, np.array(shape, dtype=np.int64))
        self.after.append(helper.make_node(RESHAPE, [copy.output[place], target], [name]))

    def finished(
        self, nodes: Sequence[onnx.NodeProto], shape: Sequence[int | str], *, replaced: int
    ) -> onnx.ModelProto:
        """Return the new model of ``nodes``, with ``shape`` in place of the first ``replaced`` axes of inputs and of
        outputs that are not fixed."""
        resolved = self.resolved
        framed = onnx.ModelProto()
        framed.CopyFrom(self.model)
        graph = framed.graph
        for function in framed.functions:
            if function.domain == VERSIONS_DOMAIN and function.name in self._wrapped:
                function.CopyFrom(self._wrapped[function.name])
        del graph.node[:], graph.value_info[:], graph.input[:], graph.output[:]
        graph.node.extend(nodes)
        there = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
        for name, array in resolved.constants.items():
            if name not in there:
                graph.initializer.append(to_tensor(name, array, resolved.values[name].dtype))
        graph.initializer.extend(self.made)
        for names, infos in ((resolved.inputs, graph.input), (resolved.outputs, graph.output)):
            for name in names:
                whole = self.shape(name) if self.is_fixed(name) else (*shape, *self.shape(name)[replaced:])
                kind = ELEMENT_TYPES[resolved.values[name].dtype]
                infos.append(helper.make_tensor_value_info(name, kind, whole))
        return framed


def set_attribute(copy: onnx.NodeProto, name: str, value: object) -> None:
    """Set or replace an attribute of the node."""
    kept = [a for a in copy.attribute if a.name != name]
    del copy.attribute[:]
    kind = onnx.AttributeProto.INTS if value == [] else None
    copy.attribute.extend([*kept, helper.make_attribute(name, value, attr_type=kind)])
