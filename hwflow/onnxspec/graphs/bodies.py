"""Instantiate graphs of control flow: a branch once, a loop's body once for each round."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from hwflow.onnxspec.graphs.inline import Imports, Inliner, Item, inner_reads, instantiate
from hwflow.onnxspec.graphs.scopes import node_names, read_nodes
from hwflow.onnxspec.graphs.topology import topological_order

Tensor = onnx.TensorProto | onnx.SparseTensorProto


class Body:
    """A graph whose nodes are to stand in the graph around it. ``prefix`` begins the names of its nodes and values.

    ``tensors``: its initializers by their new names, the same in every instance. Nodes that read neither an input of
    the graph nor what depends on one are instantiated once: their results are the same in every round.
    """

    def __init__(self, inliner: Inliner, graph: onnx.GraphProto, prefix: str, imports: Imports) -> None:
        self.graph = graph
        self._inliner, self._prefix, self._imports = inliner, prefix, imports
        scanned = read_nodes(graph.node)
        for node in scanned:
            if node.attributes:
                node.captured = list(inner_reads(node.proto))
        self._node_names = node_names(scanned)
        self._order = topological_order(scanned)[0]
        self.tensors: dict[str, Tensor] = {}
        self._known: dict[str, str] = {}  # names that are the same in every round
        for tensor in (*graph.initializer, *graph.sparse_initializer):
            old = tensor.name if isinstance(tensor, onnx.TensorProto) else tensor.values.name
            self._known[old] = inliner.value_name(f"{prefix}/{old}")
            self.tensors[self._known[old]] = tensor
        varying = {info.name for info in graph.input} - self._known.keys()
        self._varying: set[int] = set()
        for index in self._order:
            if not varying.isdisjoint(scanned[index].reads):
                self._varying.add(index)
                varying.update(name for name in scanned[index].outputs if name)
        self._instances = 0

    def instance(
        self, inputs: Sequence[str], part: str, context: str, results: Sequence[str] = ()
    ) -> tuple[list[Item], list[str]]:
        """Return the nodes of the next instance, in topological order, and the names of its outputs. ``inputs``: names
        of values of the graph around, for the graph's inputs; ``part`` follows the prefix in the names of what differs
        between instances, ``context`` the nodes' places in findings. ``results``: names to be given to the outputs that
        the graph's nodes compute, "" for any; an output that stands twice gets the first."""
        names = dict(self._known)
        names.update(zip((info.name for info in self.graph.input), inputs, strict=False))
        wanted: dict[str, str] = {}
        for output, result in zip(self.graph.output, results, strict=False):
            if result:
                wanted.setdefault(output.name, result)
        items = []
        for index in self._order:
            once = index not in self._varying
            if once and self._instances:
                continue
            prefix = self._prefix if once else f"{self._prefix}/{part}" if part else self._prefix
            node = self.graph.node[index]
            for name in node.output:
                if name:
                    names[name] = wanted.get(name) or self._inliner.value_name(f"{prefix}/{name}")
                    if once:
                        self._known[name] = names[name]
            place = self._inliner.node_name(f"{prefix}/{self._node_names[index]}")
            items.append(Item(instantiate(node, names, None, place), place, self._imports, context))
        self._instances += 1
        return items, [names.get(output.name, output.name) for output in self.graph.output]
