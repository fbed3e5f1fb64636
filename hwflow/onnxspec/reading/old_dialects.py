"""Rewrite obsolete and wrong spellings of exporters to the current ones, the only ones known elsewhere.

* Quantizers in the default domain (exports for FINN before QONNX had its own domain).
* Operators that onnxruntime writes into the default domain, which lacks them: they are of com.microsoft.
* Operators of ``qonnx.custom_op.channels_last``: an operator of ai.onnx whose data, and for Conv also the weights, have
  their channels on the last axis. It becomes that operator between transposes.
* Results of several targets that are declared as one, as skl2onnx and onnxmltools write regressors of ai.onnx.ml.

Source: the definitions of these operators in QONNX, which compute them in the same way.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, MutableSequence
from dataclasses import dataclass, field

import onnx
from onnx import helper

from hwflow.display import show
from hwflow.errors import Finding, Severity
from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, all_facts, facts_of
from hwflow.onnxspec.graphs.operator_names import TRANSPOSE
from hwflow.onnxspec.graphs.scopes import plain_domain
from hwflow.onnxspec.shapes.dialects import ML_DOMAIN

GENERAL = "qonnx.custom_op.general"
CHANNELS_LAST = frozenset({"qonnx.custom_op.channels_last", "qonnx.custom_op.ChannelsLast"})

Owner = onnx.GraphProto | onnx.FunctionProto


def modernize(model: onnx.ModelProto) -> list[Finding]:
    """Rewrite these spellings in place; return a warning per kind of node, and per wrong declaration.

    Nodes whose data have an unknown rank stay as they are, with a warning.
    """
    functions = {(f.domain, f.name) for f in model.functions}
    known = {
        name: domain for (domain, name), facts in all_facts() if domain == GENERAL or facts.in_default_domain
    }
    pass_ = _Pass({n: d for n, d in known.items() if ("", n) not in functions and not onnx.defs.has(n)})
    for owner in (model.graph, *model.functions):
        pass_.run(owner, model.opset_import if isinstance(owner, onnx.GraphProto) else owner.opset_import)
    return [*pass_.findings(), *_targets(model.graph)]


def _targets(graph: onnx.GraphProto) -> Iterator[Finding]:
    """Declare the size of each result of several targets that is declared as 1; yield a warning for each."""
    makers = {name: node for node in graph.node if node.domain == ML_DOMAIN for name in node.output[:1]}
    for info in (*graph.output, *graph.value_info):
        node = makers.get(info.name)
        named = () if node is None else [a.i for a in node.attribute if a.name in ("n_targets", "targets")]
        dims = info.type.tensor_type.shape.dim
        for size in named:
            if size > 1 and len(dims) == 2 and dims[1].dim_value == 1:
                dims[1].dim_value = size
                message = f"the declared size of axis 1 must be that of all targets, {size}, not 1: taken as if it were"
                remedy = "correct the size, or leave the model as it is"
                yield Finding("declared-targets", f"value {show(info.name)}", message, remedy, Severity.WARNING)


@dataclass
class _Pass:
    """``homes``: the domains of operators that nothing defines in the default one. ``found``: the number of nodes of
    each kind, and the first of them; ``left``: findings about nodes that stay as they are."""

    homes: dict[str, str]
    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    first: dict[tuple[str, str], str] = field(default_factory=dict)
    left: list[Finding] = field(default_factory=list)

    def run(self, owner: Owner, imports: MutableSequence[onnx.OperatorSetIdProto]) -> None:
        """Rewrite the nodes of a graph or function and of the graphs in their attributes; ``imports`` are its own."""
        owners = [*_nested(owner)]
        if not any(self._is_old(node) for each in owners for node in each.node):
            return
        values, names = _taken(owners)
        ranks: dict[str, int] = {}
        renamed: dict[str, None] = {}
        rewritten: list[tuple[Owner, list[onnx.NodeProto]]] = []
        for each in owners:
            ranks.update(_declared_ranks(each))
            nodes: list[onnx.NodeProto] = []
            for node in each.node:
                if node.domain in ("", "ai.onnx") and node.op_type in self.homes:
                    self._note(node)
                    node.domain = self.homes[node.op_type]
                    renamed[node.domain] = None
                nodes += self._between_transposes(node, ranks, values, names)
                known = [ranks[name] for name in node.input if name in ranks]
                operator = facts_of(plain_domain(node.domain), node.op_type)
                if (operator.keeps_rank or operator.elementwise) and known and node.output:
                    ranks.setdefault(node.output[0], max(known))
            if len(nodes) != len(each.node):
                rewritten.append((each, nodes))
        for each, nodes in reversed(rewritten):  # inner graphs first: outer ones are copied with them
            kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
            del each.node[:]
            each.node.extend(kept)
        missing = [domain for domain in renamed if all(entry.domain != domain for entry in imports)]
        imports.extend(helper.make_opsetid(domain, 1) for domain in missing)

    def _is_old(self, node: onnx.NodeProto) -> bool:
        return node.domain in CHANNELS_LAST or (node.domain in ("", "ai.onnx") and node.op_type in self.homes)

    def _is_turned(self, node: onnx.NodeProto) -> bool:
        """Tell whether a node is a channels-last operator that can be rewritten."""
        images = _images(node)
        if node.domain not in CHANNELS_LAST or not images or len(node.output) != 1:
            return False
        texts = (node.name, *node.input, *node.output)  # bytes where they are not UTF-8, which another rule reports
        return len(node.input) >= images and all(isinstance(text, str) for text in texts)

    def _note(self, node: onnx.NodeProto) -> None:
        kind = node.op_type, node.domain
        self.found[kind] += 1
        self.first.setdefault(kind, node.name)

    def _between_transposes(
        self, node: onnx.NodeProto, ranks: dict[str, int], values: _Names, names: _Names
    ) -> Iterator[onnx.NodeProto]:
        """Yield the nodes that replace a channels-last operator, if it can be rewritten; else the node itself."""
        if not self._is_turned(node):
            yield node
            return
        rank = _rank(node, ranks)
        if rank is None:
            where = f"node {show(node.name)} ({node.op_type})"
            message = f"the shape of {show(node.input[0])}, channels on the last axis, must be declared, but is not"
            remedy = "declare it in the graph's value_info"
            self.left.append(Finding("old-dialect", where, message, remedy, Severity.WARNING))
            yield node
            return
        self._note(node)
        first, last = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
        stem = node.name or node.op_type
        for index in range(_images(node)):
            turned = values.fresh(f"{node.input[index]}_channels_first")
            name = names.fresh(f"{stem}_channels_first")
            yield helper.make_node(TRANSPOSE, [node.input[index]], [turned], name, perm=first)
            node.input[index] = turned
        result, node.output[0] = node.output[0], values.fresh(f"{node.output[0]}_channels_first")
        ranks[result] = rank
        node.domain = ""
        yield node
        name = names.fresh(f"{stem}_channels_last")
        yield helper.make_node(TRANSPOSE, [node.output[0]], [result], name, perm=last)

    def findings(self) -> Iterator[Finding]:
        """Return a warning for each kind of node."""
        yield from self.left
        remedy = "convert the model with a current version of QONNX, or leave it as it is"
        for (op_type, domain), count in self.found.items():
            where = f"node {show(self.first[op_type, domain])} ({op_type})"
            others = f" and {count - 1} more of its kind" if count > 1 else ""
            home = self.homes.get(op_type, GENERAL)
            message = f"the node{others} must be in domain {show(home)}, not in the default one: taken as if it were"
            if domain in CHANNELS_LAST:
                message = (
                    f"the node{others} must be an operator of ai.onnx, with channels on axis 1, not of {show(domain)}: "
                    "taken for that operator between transposes"
                )
            advice = remedy if home == GENERAL else "write the domain, or leave the model as it is"
            yield Finding("old-dialect", where, message, advice, Severity.WARNING)


def _nested(owner: Owner) -> Iterator[Owner]:
    """Yield the graph or function, and the graphs in attributes, outer ones first."""
    pending = deque([owner])
    while pending:
        each = pending.popleft()
        yield each
        for node in each.node:
            for attribute in node.attribute:
                pending += [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else []
                pending += attribute.graphs


def _taken(owners: Iterable[Owner]) -> tuple[_Names, _Names]:
    """Return the names of values, and of nodes."""
    values: set[str] = set()
    names: set[str] = set()
    for owner in owners:
        inputs = owner.input if isinstance(owner, onnx.FunctionProto) else [info.name for info in owner.input]
        values.update(inputs)
        if isinstance(owner, onnx.GraphProto):
            values.update(tensor.name for tensor in owner.initializer)
        for node in owner.node:
            values.update((*node.input, *node.output))
            names.add(node.name)
    return _Names(values), _Names(names)


@dataclass
class _Names:
    """``taken``: the names in use. ``tried``: the number of requests per stem, so that a thousand equal requests do not
    take a million lookups."""

    taken: set[str]
    tried: Counter[str] = field(default_factory=Counter)

    def fresh(self, wish: str) -> str:
        """Return a fresh name that begins with ``wish``."""
        name = wish
        while name in self.taken:
            self.tried[wish] += 1
            name = f"{wish}_{self.tried[wish] + 1}"
        self.taken.add(name)
        return name


def _declared_ranks(owner: Owner) -> Iterator[tuple[str, int]]:
    """Yield the ranks of the values that a graph declares."""
    infos = [*owner.value_info]
    if isinstance(owner, onnx.GraphProto):
        infos += [*owner.input, *owner.output]
        yield from ((tensor.name, len(tensor.dims)) for tensor in owner.initializer)
    for info in infos:
        if info.type.tensor_type.HasField("shape"):
            yield info.name, len(info.type.tensor_type.shape.dim)


def _images(node: onnx.NodeProto) -> int:
    """Return the number of leading inputs of the ai.onnx operator that have channels."""
    return facts_of(STANDARD_DOMAIN, node.op_type).images


def _rank(node: onnx.NodeProto, ranks: dict[str, int]) -> int | None:
    """Return the rank of the data of a channels-last operator; None if unknown."""
    for attribute in node.attribute:
        if attribute.name == "kernel_shape" and attribute.ints:
            return len(attribute.ints) + 2
    candidates = [*node.input[: _images(node) or 1], *node.output[:1]]
    return next((ranks[name] for name in candidates if ranks.get(name, 0) >= 2), None)
