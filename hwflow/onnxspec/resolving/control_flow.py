"""Unroll control flow: a Loop or Scan becomes its body once a round, an If both branches and a selection.

Everything is yielded node by node, and the walk visits a node before the next one is asked for. So a round knows what
the rounds before it have made constant: a condition that constants decide ends a Loop exactly when it should. A
condition that is known at run time only selects each state: rounds after the last one change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import onnx

from hwflow.display import show
from hwflow.errors import Finding
from hwflow.onnxspec.graphs.bodies import Body
from hwflow.onnxspec.graphs.inline import Item, graphs_of
from hwflow.onnxspec.graphs.operator_names import AND, CONCAT, GATHER, IDENTITY, IF, LOOP, RESHAPE, WHERE
from hwflow.onnxspec.resolving.walk import Walk, attribute_ints, integers, made, made_as, unsqueezed

MAX_UNROLLED = 1 << 13
"""The greatest number of nodes and rounds that unrolling may add to a model."""

_WHERE = 9  # version that introduced Where
_NEWER = 11  # a version with it
_SCAN_WITHOUT_BATCH = 9  # version
_SHORTER = "give it fewer rounds, for example shorter sequences, or a smaller maximum"
_RULE = "control-flow"
_NO_BOUND = "the number of rounds must have a bound that is known when compiling, but nothing ends the Loop before"
_BOUND = "give the Loop a constant maximum number of rounds"

Steps: TypeAlias = Generator[Item, None, "tuple[list[str], list[list[str]]] | None"]
"""Yields nodes; returns the last states and the rows of each scanned output, None after a refusal."""


@dataclass
class Unroller:
    """Unrolls the control flow of one model."""

    walk: Walk
    _left: int = field(default=MAX_UNROLLED)

    def nodes(self, item: Item) -> Iterator[Item]:
        """Yield the nodes that replace an If, Loop or Scan whose inputs are known."""
        try:
            yield from self._nodes(item)
        except (ValueError, IndexError, KeyError, TypeError) as wrong:  # what inference does not object to
            message = f"attributes, inputs and body must fit each other, but: {' '.join(str(wrong).split())}"
            self.walk.refuse(item, _RULE, message, "export the model again")

    def _nodes(self, item: Item) -> Iterator[Item]:
        graphs = {a.name: g for a in item.proto.attribute for g in graphs_of(a)}
        needed = ("then_branch", "else_branch") if item.proto.op_type == IF else ("body",)
        if not all(name in graphs for name in needed):
            message = f"the node must have {' and '.join(needed)}, but it does not"
            self.walk.refuse(item, _RULE, message, "export the model again")
        elif item.proto.op_type == IF:
            yield from self._branches(item, [graphs[name] for name in needed], needed)
        elif item.proto.op_type == LOOP:
            yield from self._loop(item, graphs["body"])
        elif item.imports[""] < _SCAN_WITHOUT_BATCH:
            yield from self._batched_scan(item, graphs["body"])
        else:
            yield from self._scan(item, graphs["body"])

    def _body(self, item: Item, graph: onnx.GraphProto, kind: str = "") -> Body:
        prefix = self.walk.inliner.prefix(item.name, item.proto.op_type)
        return self.walk.body(graph, f"{prefix}/{kind}" if kind else prefix, item.imports)

    def _too_much(self, item: Item, count: int) -> bool:
        """Count nodes and refuse ``item`` if there are too many."""
        if count <= self._left:
            self._left -= count
            return False
        message = f"control flow must unroll into at most {MAX_UNROLLED} nodes, but there are more"
        self.walk.refuse(item, "unrolled-size", message, _SHORTER)
        return True

    def _unknown(self, item: Item, names: Sequence[str]) -> bool:
        """Refuse ``item`` without a finding if a value is unknown: what computes it has one."""
        if all(map(self.walk.known, names)):
            return False
        self.walk.refuse(item, _RULE, "", "", [name for name in names if name])
        return True

    def taken(self, item: Item, name: str) -> Iterator[Item]:
        """Yield the nodes of the one branch that a constant condition takes."""
        graph = next(g for a in item.proto.attribute if a.name == name for g in graphs_of(a))
        context = f" in {show(name)} of {item.where}"
        items, outputs = self._body(item, graph).instance((), "", context, item.proto.output)
        yield from items
        for output, result in zip(outputs, item.proto.output, strict=True):
            if result and result != output:
                yield self._named(item, output, result)

    def _named(self, item: Item, name: str, result: str) -> Item:
        return made(self.walk, item, IDENTITY, [name], [result])

    # If

    def _branches(self, item: Item, graphs: Sequence[onnx.GraphProto], kinds: Sequence[str]) -> Iterator[Item]:
        node = item.proto
        if self._too_much(item, sum(len(graph.node) for graph in graphs)):
            return
        found: list[list[str]] = []
        for graph, kind in zip(graphs, kinds, strict=True):
            context = f" in {show(kind)} of {item.where}"
            items, outputs = self._body(item, graph, kind).instance((), "", context)
            yield from items
            found.append(outputs)
        if self._unknown(item, [name for names in found for name in names]):
            return
        for result, then, other in zip(node.output, *found, strict=False):
            if result:
                yield from self._selected(item, node.input[0], then, other, result, "both branches")

    def _selected(
        self, item: Item, condition: str, then: str, other: str, result: str, what: str
    ) -> Generator[Item, None, bool]:
        """Yield the nodes that select one of two values by a condition of one element; return whether it is possible.
        ``what`` must agree in shape."""
        walk, kind = self.walk, walk_kind(self.walk, then)
        if kind != walk_kind(self.walk, other) or kind == "an optional":
            said = f"{kind} and {walk_kind(self.walk, other)}"
            walk.refuse(
                item, _RULE, f"{what} must give tensors of one shape and type for {show(result)} (hardware computes "
                f"both and selects), not {said}", "pad them to a common shape, or decide the condition when the model "
                "is exported (option --const)", [then, other, condition],
            )
            return False
        if then in walk.sequences:
            names = []
            for first, second in zip(walk.sequences[then], walk.sequences[other], strict=True):
                names.append(walk.inliner.value_name(result))
                if not (yield from self._selected(item, condition, first, second, names[-1], what)):
                    return False
            walk.sequences[result] = tuple(names)
            return True
        if then == other:
            yield self._named(item, then, result)
            return True
        rank, condition_shape = len(walk.values[then].shape), walk.values[condition].shape
        if condition_shape and len(condition_shape) != rank:  # one element a frame, in front of everything
            shape = [-1, *[1] * (rank - 1)] if rank else []
            reshaped = walk.inliner.value_name(f"{result}/condition")
            yield made(walk, item, RESHAPE, [condition, integers(walk, f"{reshaped}/shape", shape)], [reshaped])
            condition = reshaped
        imports = item.imports
        if imports[""] < _WHERE:
            imports = walk.inliner.imports({**imports.versions, "": _NEWER})
        yield made_as(walk, item, imports, onnx.helper.make_node(WHERE, [condition, then, other], [result]))
        return True

    # Loop

    def _loop(self, item: Item, graph: onnx.GraphProto) -> Iterator[Item]:
        walk, node = self.walk, item.proto
        states = [*node.input[2:]]
        trip, go = (*node.input[:2], "", "")[:2]
        if trip and trip not in walk.constants:
            walk.refuse(
                item, _RULE, f"the greatest number of rounds must be known when compiling, not computed ({show(trip)})",
                "give the Loop a constant maximum and a condition that ends it, or bind what decides the number "
                "(options --const and --dim)",
            )
            return
        most = int(walk.constants[trip].reshape(-1)[0]) if trip else None
        if len(graph.output) < 1 + len(states) or len(graph.input) != 2 + len(states):
            message = "the body must have the Loop's states as inputs and outputs"
            walk.refuse(item, _RULE, message, "export the model again")
            return
        if go in walk.constants:
            most, go = most if walk.constants[go].reshape(-1)[:1].all() else 0, ""
        body = self._body(item, graph)
        size = 1 + len(graph.node)
        if not go and _goes_on(graph):
            if most is None:
                walk.refuse(item, _RULE, _NO_BOUND, _BOUND, states)
                return
            if most * size > self._left:
                self._too_much(item, MAX_UNROLLED + 1)
                return
        true = walk.constant(f"{item.name}/true", np.array(True), "bool")
        rows: list[list[str]] = [[] for _ in graph.output[1 + len(states) :]]
        made_rows = [*node.output[len(states) :], *[""] * len(rows)][: len(rows)]
        count, selected = 0, False
        while most is None or count < most:
            if most is None and go:
                walk.refuse(item, _RULE, _NO_BOUND, _BOUND, states)
                return
            if self._too_much(item, size):
                return
            number = integers(walk, f"{item.name}/round_{count}", count)
            context = f" in round {count} of {item.where}"
            items, (condition, *outputs) = body.instance([number, go or true, *states], f"round_{count}", context)
            yield from items
            if self._unknown(item, [condition, *outputs]):
                return
            if go:
                selected = True
                for place, old in enumerate(states):
                    name = walk.inliner.value_name(f"{item.name}/state_{count}")
                    if not (yield from self._selected(item, go, outputs[place], old, name, "a state before and after a "
                                                      "round that a condition may leave out")):
                        return
                    outputs[place] = name
            states, scanned = outputs[: len(states)], outputs[len(states) :]
            for row, name in zip(rows, scanned, strict=True):
                row.append(name)
            count += 1
            if condition in walk.constants:
                if not walk.constants[condition].reshape(-1)[:1].all():
                    break
            elif go:
                both = walk.inliner.value_name(f"{item.name}/go_{count}")
                yield made(walk, item, AND, [go, condition], [both])
                go = both
            else:
                go = condition
        for name, result in zip(states, node.output, strict=False):
            if result:
                yield self._named(item, name, result)
        for row, result in zip(rows, made_rows, strict=True):
            if result and selected:
                self._refuse_output(
                    item, result, f"output {show(result)} must have a length that is known when compiling, but a "
                    "condition at run time decides how many rounds give an element of it", "take the last state, or "
                    "write into a state of constant length",
                )
            elif result:
                yield from self._stacked(item, row, 0, result)

    def _refuse_output(self, item: Item, result: str, message: str, remedy: str) -> None:
        """Refuse one output; that matters only if it is read."""
        part = onnx.NodeProto()
        part.CopyFrom(item.proto)
        part.output[:] = [result]
        self.walk.refuse(Item(part, item.name, item.imports, item.context), _RULE, message, remedy)

    def _stacked(self, item: Item, row: Sequence[str], axis: int, result: str) -> Iterator[Item]:
        """Yield the nodes that make one tensor of the rows, along a new axis."""
        walk = self.walk
        if not row:
            message = f"output {show(result)} must have at least one element, but there is no round"
            self._refuse_output(item, result, message, "leave out what reads it")
            return
        if not all(name in walk.values for name in row):
            self._refuse_output(item, result, f"output {show(result)} must be a tensor", "keep sequences as states")
            return
        shapes = {walk.values[name].shape for name in row}
        if len(shapes) > 1:
            message = f"the elements of output {show(result)} must have one shape, but it changes from round to round"
            self._refuse_output(item, result, message, "pad them to a common shape")
            return
        axis %= len(shapes.pop()) + 1
        parts = [walk.inliner.value_name(f"{result}/{number}") for number in range(len(row))]
        for name, part in zip(row, parts, strict=True):
            yield unsqueezed(walk, item, name, axis, part if len(row) > 1 else result)
        if len(row) > 1:
            yield made(walk, item, CONCAT, parts, [result], axis=axis)

    # Scan

    def _scan(self, item: Item, graph: onnx.GraphProto) -> Iterator[Item]:
        node = item.proto
        attributes = {attribute.name: attribute for attribute in node.attribute}
        count = attributes["num_scan_inputs"].i
        split = len(node.input) - count
        axes = attribute_ints(attributes, "scan_input_axes", count)
        backward = attribute_ints(attributes, "scan_input_directions", count)
        scanned = [*zip(node.input[split:], axes, backward, strict=True)]
        done = yield from self._rounds(item, graph, self._body(item, graph), [*node.input[:split]], scanned)
        if done is None:
            return
        states, rows = done
        for name, result in zip(states, node.output, strict=False):
            if result:
                yield self._named(item, name, result)
        axes = attribute_ints(attributes, "scan_output_axes", len(rows))
        directions = attribute_ints(attributes, "scan_output_directions", len(rows))
        for row, result, axis, reverse in zip(rows, node.output[split:], axes, directions, strict=False):
            if result:
                yield from self._stacked(item, row[::-1] if reverse else row, axis, result)

    def _rounds(
        self, item: Item, graph: onnx.GraphProto, body: Body, states: list[str],
        scanned: Sequence[tuple[str, int, int]], steps: int | None = None,
    ) -> Steps:
        """Run the body over ``scanned`` inputs (name, axis, whether backward), ``steps`` times (None: all)."""
        walk = self.walk
        lengths = {walk.values[name].shape[axis] for name, axis, _ in scanned}
        if len(lengths) != 1 or len(graph.input) != len(states) + len(scanned):
            said = " and ".join(map(str, sorted(lengths)))
            walk.refuse(item, _RULE, f"scanned inputs must have one length, not {said}", "correct what the node reads")
            return None
        length = lengths.pop()
        size = 1 + len(graph.node) + len(scanned)
        rows: list[list[str]] = [[] for _ in graph.output[len(states) :]]
        if length * size > self._left:
            self._too_much(item, MAX_UNROLLED + 1)
            return None
        for step in range(length if steps is None else min(steps, length)):
            if self._too_much(item, size):
                return None
            taken = []
            for name, axis, backward in scanned:
                taken.append(walk.inliner.value_name(f"{item.name}/{name}_{step}"))
                place = integers(walk, f"{taken[-1]}/place", length - 1 - step if backward else step)
                yield made(walk, item, GATHER, [name, place], taken[-1:], axis=axis % len(walk.values[name].shape))
            context = f" in round {step} of {item.where}"
            items, outputs = body.instance([*states, *taken], f"round_{step}", context)
            yield from items
            if self._unknown(item, outputs):
                return None
            states, scanned_outputs = outputs[: len(states)], outputs[len(states) :]
            for row, name in zip(rows, scanned_outputs, strict=True):
                row.append(name)
        return states, rows

    def _batched_scan(self, item: Item, graph: onnx.GraphProto) -> Iterator[Item]:
        """Unroll a Scan of version 8: entry after entry of a batch, its sequences along the second axis. What is beyond
        an entry's length is zeros."""
        walk, node = self.walk, item.proto
        attributes = {attribute.name: attribute for attribute in node.attribute}
        count = attributes["num_scan_inputs"].i
        lengths, inputs = node.input[0], node.input[1:]
        split = len(inputs) - count
        backward = attribute_ints(attributes, "directions", count)
        size = walk.values[inputs[0]].shape[0]
        if lengths and lengths not in walk.constants:
            message = "lengths of sequences must be constant in operator sets below 9"
            walk.refuse(item, _RULE, message, "export to a later operator set")
            return
        steps = walk.constants[lengths].reshape(-1).tolist() if lengths else [None] * size
        body = self._body(item, graph)
        columns: list[list[str]] = [[] for _ in node.output]
        for entry in range(size):
            taken = [walk.inliner.value_name(f"{item.name}/{name}_{entry}") for name in inputs]
            for name, result in zip(inputs, taken, strict=True):
                yield made(walk, item, GATHER, [name, integers(walk, f"{result}/place", entry)], [result], axis=0)
            scanned = [(name, 0, back) for name, back in zip(taken[split:], backward, strict=True)]
            done = yield from self._rounds(item, graph, body, taken[:split], scanned, steps[entry])
            if done is None:
                return
            states, rows = done
            length = walk.values[taken[split]].shape[0]
            for place, name in enumerate(states):
                columns[place].append(name)
            for place, row in enumerate(rows[: len(columns) - split], split):
                if not row:
                    message = "sequences must have a length of at least 1, not 0"
                    walk.refuse(item, _RULE, message, "leave the entry out")
                    return
                info = walk.values[row[0]]
                zero = walk.constant(f"{row[0]}/zeros", np.zeros(info.shape, walk_dtype(info.dtype)), info.dtype)
                columns[place].append(walk.inliner.value_name(f"{item.name}/entry_{entry}"))
                yield from self._stacked(item, [*row, *[zero] * (length - len(row))], 0, columns[place][-1])
        for column, result in zip(columns, node.output, strict=True):
            if result:
                yield from self._stacked(item, column, 0, result)


def walk_dtype(dtype: str) -> np.dtype[np.generic]:
    """Return numpy's type of zeros of an element type, see ``ResolvedModel``."""
    try:
        return np.dtype(dtype)
    except TypeError:
        return np.dtype(np.int8 if "int" in dtype else np.float32)


def walk_kind(walk: Walk, name: str) -> str:
    """Say what a value is: shape and type of a tensor, the length of a sequence."""
    if name in walk.sequences:
        return f"a sequence of {len(walk.sequences[name])}"
    if name in walk.optionals:
        return "an optional"
    return f"{list(walk.values[name].shape)} of {walk.values[name].dtype}"


_IN_ROUND = re.compile(r" in round \d+ of node ")
_ROUND = re.compile(r"\bround[_ ]\d+\b")


def once_a_body(findings: Iterable[Finding]) -> list[Finding]:
    """Leave out what is found about a node of a loop's body in further rounds: what differs is the rounds' numbers."""
    first: dict[tuple[str, str], tuple[str, ...]] = {}  # the rounds that a node's findings are kept of
    kept = []
    for finding in findings:
        if _IN_ROUND.search(finding.where):
            rounds = tuple(_ROUND.findall(finding.where))
            if first.setdefault((finding.rule, _ROUND.sub("", finding.where)), rounds) != rounds:
                continue
        kept.append(finding)
    return kept


def _goes_on(graph: onnx.GraphProto) -> bool:
    """Tell whether a Loop's body visibly passes its condition on, or a constant (then its size is known beforehand)."""
    producers = {name: node for node in graph.node for name in node.output}
    name = graph.output[0].name
    while name in producers and producers[name].op_type == IDENTITY:
        name = producers[name].input[0]
    return name not in producers
