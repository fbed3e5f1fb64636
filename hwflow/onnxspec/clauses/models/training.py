"""Clauses about training information."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import onnx

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, at_node
from hwflow.onnxspec.graphs.scopes import (
    ANNOTATIONS,
    INITIALIZERS,
    INPUTS,
    NODES,
    OUTPUTS,
    TRAINING,
    VALUE_INFO,
    Kind,
    Position,
    Scope,
)

_BINDINGS = ANNOTATIONS + 1  # after everything of the graph whose outputs are bound
_INITIALIZATION, _UPDATE = "initialization_binding", "update_binding"


def _bound(context: Context, which: str) -> Iterator[tuple[int, int, onnx.StringStringEntryProto]]:
    """Yield the bindings of that kind, after the indices of training_info and of the binding in it."""
    for index, training in enumerate(context.model.training_info):
        for k, binding in enumerate(getattr(training, which)):
            yield index, k, binding


def _hit(which: str, index: int, k: int, key: str, message: str) -> Hit:
    """Return a hit about binding ``k`` of ``training_info[index]``."""
    position = (TRAINING, 2 * index + (which == _UPDATE), _BINDINGS, k)
    return Hit(position, f"{which} {show(key) if key else k} of training_info[{index}]", message)


def _keys(which: str, context: Context) -> Iterator[Hit]:
    """Check that keys are dense initializers of the main graph or of the entry's algorithm graph."""
    main, trainings = context.model.graph, context.model.training_info
    names = {tensor.name for tensor in main.initializer} if trainings else set()
    own = [{tensor.name for tensor in training.algorithm.initializer} for training in trainings]
    for index, k, binding in _bound(context, which):
        key = binding.key
        if key and (key in names or key in own[index]):
            continue
        sparse = (*main.sparse_initializer, *trainings[index].algorithm.sparse_initializer)
        is_sparse = key and any(tensor.values.name == key for tensor in sparse)
        found = "which is a sparse one" if is_sparse else "which is none of theirs"
        message = "the key must name an initializer (a dense tensor) of the main graph or of the algorithm graph of "
        yield _hit(which, index, k, key, f"{message}training_info[{index}], not {show(key)}, {found}")


def _values(which: str, context: Context) -> Iterator[Hit]:
    trainings = context.model.training_info
    update = which == _UPDATE
    graphs = [training.algorithm if update else training.initialization for training in trainings]
    outputs = [{output.name for output in graph.output} for graph in graphs]
    main = {output.name for output in context.model.graph.output} if update else set()  # onnx.proto allows these too
    kind, more = ("algorithm", " or of the main graph") if update else ("initialization", "")
    for index, k, binding in _bound(context, which):
        if not update and not graphs[index].ByteSize():
            continue  # TRN-14 reports the missing graph
        if not binding.value or not (binding.value in outputs[index] or binding.value in main):
            graph = f"the {kind} graph of training_info[{index}]{more}"
            message = f"the value must name an output of {graph}, not {show(binding.value)}, which is none"
            yield _hit(which, index, k, binding.key, message)


def _keys_unique(which: str, context: Context) -> Iterator[Hit]:
    seen: dict[tuple[int, str], int] = {}
    for index, k, binding in _bound(context, which):
        # Entries may share keys of initialization_binding: they run in sequence.
        key = (0 if which == _UPDATE else index, binding.key)
        if binding.key and key in seen:
            found = f"but {show(binding.key)} is bound already in"
            message = f"keys must be distinct, {found} this training_info"
            if which == _UPDATE:
                message = f"keys must be distinct over all update_bindings of the model, {found} "
                message += f"training_info[{seen[key]}]"
            yield _hit(which, index, k, binding.key, message)
        seen.setdefault(key, index)


def _initialization_there(context: Context) -> Iterator[Hit]:
    for index, training in enumerate(context.model.training_info):
        if training.initialization_binding and not training.initialization.ByteSize():
            count = len(training.initialization_binding)
            yield Hit(
                (TRAINING, 2 * index),
                f"training_info[{index}]",
                "initialization must be present if initialization_binding has entries, but there is no graph and "
                f"{count} {'entry' if count == 1 else 'entries'}",
            )


def _combination(context: Context) -> Iterator[Hit]:
    """Check that the initialization graph stands alone, and that main and algorithm graph form one graph in which data
    only flows from the former to the latter (comments of TrainingInfoProto in onnx.proto)."""
    if not context.model.training_info or not context.scopes:
        return
    main = context.scopes[0]
    assert main.graph is not None  # a function is never the main scope
    inner = _inside(main, context.scopes)
    computed_inside = frozenset().union(*(scope.computed for scope in inner))
    reads = {name for node in main.nodes for name in node.reads}.union(main.outputs)
    node_names = {node.name for node in main.nodes} - {""}
    value_infos = {info.name for info in main.graph.value_info}
    for scope in context.scopes:
        if scope.kind is Kind.INITIALIZATION:
            for index, name in enumerate(scope.inputs):
                yield Hit(
                    scope.at(INPUTS, index),
                    f"input {show(name) if name else index}{scope.label}",
                    "an initialization graph must have no inputs, but this is one",
                    "make it an initializer of the initialization graph",
                )
        elif scope.kind is Kind.ALGORITHM:
            yield from _defined_twice(main, reads, scope)
            if not computed_inside.isdisjoint(scope.defined):
                yield from _shadowed(inner, scope)
            yield from _read_by_main(main, reads, scope)
            yield from _same_names(node_names, value_infos, scope)
            yield from _invalid_in(scope, context)


# Reasons other than shared names why two graphs do not combine to a valid graph.
_VALIDITY = frozenset({"NOD-05", "NOD-12", "NOD-35", "GRA-03", "GRA-23"})


def _invalid_in(algorithm: Scope, context: Context) -> Iterator[Hit]:
    """Yield the errors of the algorithm graph itself, which make the combined graph invalid."""
    here = len(algorithm.position)
    for position, finding in list(context.found):
        if finding.rule in _VALIDITY and position[:here] == algorithm.position:
            yield Hit(position, finding.where, finding.message, finding.remedy)


def _inside(main: Scope, scopes: Sequence[Scope]) -> list[Scope]:
    """Return the subgraphs nested in the main graph; ``scopes`` has each graph before its subgraphs."""
    inside = {id(main)}
    found = []
    for scope in scopes:
        if scope.parent is not None and id(scope.parent) in inside:
            inside.add(id(scope))
            found.append(scope)
    return found


def _definitions(scope: Scope) -> Iterator[tuple[Position, str, str]]:
    """Yield position, ``where`` and name of each value that the graph defines."""
    for index, name in enumerate(scope.inputs):
        yield scope.at(INPUTS, index), f"input {show(name)}{scope.label}", name
    for index, name in enumerate(scope.initializers):
        yield scope.at(INITIALIZERS, index), f"initializer {show(name)}{scope.label}", name
    for index, node in enumerate(scope.nodes):
        for name in node.outputs:
            yield scope.at(NODES, index), scope.where(index), name


def _defined_twice(main: Scope, reads: set[str], algorithm: Scope) -> Iterator[Hit]:
    both = algorithm.defined & main.defined - {""}
    if not both:
        return
    # An input in one graph and an initializer in the other are one value with a default, as within a graph; but it then
    # belongs to the algorithm graph, and the main graph must not read it.
    for here, there in ((algorithm, main), (main, algorithm)):
        only_input = both.intersection(here.inputs).difference(here.initializers, here.computed)
        both = both - (only_input.intersection(there.initializers).difference(there.inputs, there.computed) - reads)
    producers = {name: main.where(index) for index, node in enumerate(main.nodes) for name in node.outputs}
    for position, where, name in _definitions(algorithm):
        if name in both:
            both = both - {name}
            section = "initializer" if name in main.initializers else "input"
            other = producers.get(name, f"an {section} of the main graph")
            message = (
                f"value {show(name)} must be defined once in the main graph and the algorithm graph together, but "
                f"{other} defines it too"
            )
            yield Hit(position, where, message, "rename one of them")


def _shadowed(inner: Sequence[Scope], algorithm: Scope) -> Iterator[Hit]:
    graph = algorithm.label.removeprefix(" in ")
    for scope in inner:
        names = scope.computed & algorithm.defined
        if not names:
            continue
        for index, node in enumerate(scope.nodes):
            for name in node.outputs:
                if name in names:
                    yield at_node(
                        scope, index,
                        f"value {show(name)} must differ from the values of the {graph}, "
                        "which are around it when the main graph and that graph are one, but one has that name",
                        "rename one of them",
                    )


def _read_by_main(main: Scope, reads: set[str], algorithm: Scope) -> Iterator[Hit]:
    foreign = (algorithm.defined - main.defined - {""}) & reads
    if not foreign:
        return
    graph = algorithm.label.removeprefix(" in ")
    remedy = "let the main graph compute what it reads: it must run without training"
    for index, node in enumerate(main.nodes):
        for name in dict.fromkeys(node.reads):
            if name in foreign:
                message = (
                    f"a node of the main graph must not read a value of the {graph}, but this one reads {show(name)}"
                )
                yield Hit(main.at(NODES, index), main.where(index), message, remedy)
    for index, name in enumerate(main.outputs):
        if name in foreign:
            message = f"an output of the main graph must not be a value of the {graph}, but this one is"
            yield Hit(main.at(OUTPUTS, index), f"output {show(name)}", message, remedy)


def _same_names(node_names: set[str], value_infos: set[str], algorithm: Scope) -> Iterator[Hit]:
    """Yield names that must be distinct in a graph but are harmless if not. The sets are the main graph's."""
    for index, node in enumerate(algorithm.nodes):
        if node.name in node_names:
            message = (
                "node names must be distinct in the main graph and the algorithm graph together, but "
                f"{show(node.name)} names a node of the main graph too"
            )
            where = algorithm.where(index)
            yield Hit(algorithm.at(NODES, index), where, message, "rename one of them", Severity.WARNING)
    assert algorithm.graph is not None  # it is no function
    for index, info in enumerate(algorithm.graph.value_info):
        if info.name in value_infos:
            message = (
                "value_info must name a value once in the main graph and the algorithm graph together, but the main "
                f"graph's names {show(info.name)} too"
            )
            where = f"value {show(info.name)}{algorithm.label}"
            yield Hit(algorithm.at(VALUE_INFO, index), where, message, "remove one of them", Severity.WARNING)


_NO_SUCH_INITIALIZER = "bind an initializer, or remove the binding"
_BOUND_TWICE = "remove all bindings of the key but one"

# Training information exists from IR version 7.
RULES = (
    Rule("TRN-04", "MUST", partial(_keys, _INITIALIZATION), _NO_SUCH_INITIALIZER, since_ir=7),
    Rule(
        "TRN-05", "MUST", partial(_values, _INITIALIZATION), "bind to an output of the initialization graph",
        since_ir=7,
    ),
    Rule("TRN-06", "MUST", partial(_keys_unique, _INITIALIZATION), _BOUND_TWICE, since_ir=7),
    Rule("TRN-08", "MUST", partial(_keys, _UPDATE), _NO_SUCH_INITIALIZER, since_ir=7),
    Rule("TRN-09", "MUST", partial(_values, _UPDATE), "bind to an output of the algorithm graph", since_ir=7),
    Rule("TRN-10", "MUST", partial(_keys_unique, _UPDATE), _BOUND_TWICE, since_ir=7),
    # Without the graph there is nothing to bind to: an error although the clause says MAY.
    Rule("TRN-14", "MAY", _initialization_there, "add the initialization graph, or remove the bindings", since_ir=7),
    Rule("TRN-17", "MUST", _combination, "make the graphs fit together", since_ir=7),
)
