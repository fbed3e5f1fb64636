"""Decide which values of a float model get a quantizer: QuantizeLinear and DequantizeLinear behind them.

Hardware computes exactly between quantizers, so each rounding must earn its place. Matrix products, norms and sums of
two streams read integers of few bits, and a function of one value is a table of them: these demand a quantizer before
them. Nothing else does. What moves elements keeps their integers; affine functions and clips of exact sums are one step
function with the next quantizer; functions of the same integers that meet again (x * sigmoid(x)) are one function.
Squares of integers of one scale add up exactly, and so does the root of their sum (the magnitude of a spectrum) become
one step function with the next quantizer: eight bits of the squares would be four of the magnitude.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

import onnx
from onnx import TensorProto
from onnx.numpy_helper import to_array

from hwflow.onnxspec.graphs.operator_facts import OperatorFacts, facts_of
from hwflow.quantization.calibration import of_any_round

_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16})


class _Kind(Enum):
    """What is known of a float value that is no constant."""

    OUTSIDE = "made by the host of unquantized inputs"
    INTEGERS = "quantized, or elements of a quantized value times one factor"
    FUNCTION = "a function of the integers at the same place"
    SUMS = "exact sums or products of integers"
    REALS = "a function of many integers, or what no record tells of"


@dataclass(frozen=True)
class _State:
    """``origin``: the integers that it is a function of, element by element. ``source``: of integers, the quantized
    value whose elements they are, times one factor where it is ``scaled``. ``squares``: of squares, and of sums of
    them, the quantized value whose elements' squares these are."""

    kind: _Kind
    origin: str = ""
    source: str = ""
    scaled: bool = False
    squares: str = ""


@dataclass(frozen=True)
class Placement:
    """``quantized``: the values with a quantizer, in the order of the graph, constants among them.

    ``sources``: for each value that holds integers, the quantized value whose scale it has, up to a constant factor.
    ``round_constants``: for each constant of a loop's round that is no constant in others, as what a first round
    computes of a state of zeros, the quantized value of another round whose integers it has there.
    """

    quantized: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    round_constants: Mapping[str, str] = field(default_factory=dict)


def place_quantizers(model: onnx.ModelProto, states: Iterable[str] = ()) -> Placement:
    """Return where ``model`` needs quantizers; the types of its values must have been inferred. ``states``: outputs
    that are inputs of later frames, which need integers, too. A value of a loop's body has a quantizer in every round
    or in none: in the first one, whose states may be constant, some would not need it, and the rounds would differ.

    Values that are read in graph attributes only, and what is made there, get none.
    """
    placer = _Placer(model.graph, frozenset(states))
    while placer.walk() or placer.share_rounds():
        pass
    return Placement(
        tuple(name for name in placer.order if name in placer.quantized),
        {name: state.source for name, state in placer.states.items() if state.kind == _Kind.INTEGERS},
        placer.round_constants(),
    )


class _Placer:
    """Walks the graph with the quantizers found so far until a walk finds no more."""

    def __init__(self, graph: onnx.GraphProto, states: frozenset[str] = frozenset()) -> None:
        self._graph, self._left = graph, states
        self._constants = {i.name: i for i in graph.initializer}
        self._producers = {name: node for node in graph.node for name in node.output if name}
        self._readers = Counter(name for node in graph.node for name in node.input)
        self._readers.update(o.name for o in graph.output)
        self._floats = {
            info.name for info in (*graph.value_info, *graph.input, *graph.output)
            if info.type.tensor_type.elem_type in _FLOATS
        }
        self.order = list(dict.fromkeys((
            *(i.name for i in graph.input), *(name for node in graph.node for name in (*node.input, *node.output)),
        )))
        self._divisors = self._divisor_chains()
        self.quantized: set[str] = set()
        self.states: dict[str, _State] = {}

    def _divisor_chains(self) -> set[str]:
        """Return divisors that are functions of one number for each row, such as norms, and what lies between: a
        quantizer would make 0 of some."""
        found: set[str] = set()
        for node in self._graph.node:
            for place in self._facts(node).divisors:
                chain = [node.input[place]]
                while (maker := self._producers.get(chain[-1])) is not None:
                    facts = self._facts(maker)
                    streams = [name for name in maker.input if name in self._floats and name not in self._constants]
                    if not (facts.elementwise or facts.affine):
                        found.update(chain if facts.weights is None and not facts.keeps_elements else ())
                        break
                    if len(streams) != 1:
                        break
                    chain += streams
        return found

    def walk(self) -> bool:
        """Return whether the walk has found another value to be quantized."""
        before = len(self.quantized)
        self.states.clear()
        for info in self._graph.input:
            self._set(info.name, _State(_Kind.OUTSIDE))
        for node in self._graph.node:
            state = self._result(node)
            for name in node.output:
                self._set(name, state)
        for info in self._graph.output:
            left = info.name in self._left and info.name in self.states
            if self._kind(info.name) == _Kind.SUMS or left:
                self._demand(info.name)
        return len(self.quantized) > before

    def share_rounds(self) -> bool:
        """Quantize what is quantized in other rounds of a loop; return whether there is more."""
        shared = {key for name in self.quantized if (key := of_any_round(name)) != name}
        more = {name for name in self.states if of_any_round(name) in shared} - self.quantized
        self.quantized |= more
        return bool(more)

    def round_constants(self) -> dict[str, str]:
        """Return the sources of constants that hold integers in other rounds."""
        held = {
            of_any_round(name): state.source
            for name, state in self.states.items() if state.kind == _Kind.INTEGERS and not state.scaled
        }
        keys = {name: of_any_round(name) for name, tensor in self._constants.items() if tensor.data_type in _FLOATS}
        return {name: held[key] for name, key in keys.items() if key != name and held.get(key)}

    def _set(self, name: str, state: _State | None) -> None:
        if state is None or name not in self._floats or name in self._constants:
            return
        if name in self.quantized:
            state = _State(_Kind.INTEGERS, name, name)
        elif not state.origin:
            state = replace(state, origin=name)
        self.states[name] = state

    def _kind(self, name: str) -> _Kind | None:
        state = self.states.get(name)
        return None if state is None else state.kind

    def _demand(self, name: str) -> None:
        """Quantize a value, or the one that it has all elements of, in the same order."""
        if self._kind(name) == _Kind.INTEGERS:
            return
        source = name
        while (node := self._producers.get(source)) is not None and self._facts(node).keeps_elements:
            if node.input[0] not in self.states:
                break
            source = node.input[0]
        self.quantized.add(source)
        self.states[name] = _State(_Kind.INTEGERS, name, source)

    @staticmethod
    def _facts(node: onnx.NodeProto) -> OperatorFacts:
        return facts_of(node.domain if node.domain != "ai.onnx" else "", node.op_type)

    def _result(self, node: onnx.NodeProto) -> _State | None:
        """Demand what the node needs; return the state of its results, None where they are constants."""
        facts = self._facts(node)
        streams = list(dict.fromkeys(name for name in node.input if name in self.states))
        if not streams:
            tables = facts.moves and len(node.input) > 1 and node.input[0] in self._constants
            if not tables or all(name in self._constants for name in node.input if name):
                return _State(_Kind.OUTSIDE)
            self.quantized.add(node.input[0])  # of values that integers select
            return _State(_Kind.INTEGERS, source=node.input[0])
        if facts.weights is not None:
            return self._sums(streams)
        if facts.keeps_elements or (_moves(node, facts) and len(streams) == 1):
            return self._moved(facts, streams[0])
        if facts.elementwise or facts.affine:
            if len(streams) == 1:
                return self._function(node, facts, streams[0])
            states = [self.states[name] for name in streams]
            if all(s.kind in (_Kind.INTEGERS, _Kind.FUNCTION) and s.origin == states[0].origin for s in states):
                return _State(_Kind.FUNCTION, states[0].origin)
            if facts.adds and states[0].squares and len({state.squares for state in states}) == 1:
                return _State(_Kind.SUMS, squares=states[0].squares)
            roots = {self._root(name) for name in streams}
            if len(roots) == 1 and self._kind(root := roots.pop()) in (_Kind.SUMS, _Kind.REALS):
                self._demand(root)
                return _State(_Kind.FUNCTION, root)
        return self._other(node, facts, streams)

    def _sums(self, streams: Iterable[str]) -> _State:
        for name in streams:
            self._demand(name)
        return _State(_Kind.SUMS)

    def _moved(self, facts: OperatorFacts, stream: str) -> _State:
        """Return the state of elements of one value, and demand that they are few bits where they change order."""
        if not facts.keeps_elements and self._needs(facts, stream):
            self._demand(stream)
        return replace(self.states[stream], origin="")

    def _function(self, node: onnx.NodeProto, facts: OperatorFacts, stream: str) -> _State:
        """Return the state of a function of one value, element by element."""
        if self._kind(stream) == _Kind.SUMS and (squares := self.states[stream].squares):
            if facts.of_sums:
                return _State(_Kind.REALS)
            if facts.adds:
                return _State(_Kind.SUMS, squares=squares)
        affine = facts.affine and not self._is_square(node, stream)
        if self._kind(stream) in (_Kind.SUMS, _Kind.REALS) and not affine and stream not in self._divisors:
            root = self._root(stream)
            self._demand(root)
            if root != stream:
                return _State(_Kind.FUNCTION, root)
        state = self.states[stream]
        if state.kind != _Kind.INTEGERS:
            return replace(state, squares="") if state.kind == _Kind.FUNCTION else _State(state.kind)
        if self._is_square(node, stream):
            return _State(_Kind.FUNCTION, state.origin, squares="" if state.scaled else state.source)
        if facts.multiplies and all(self._single(name) for name in node.input if name != stream):
            return replace(state, scaled=True)
        return _State(_Kind.FUNCTION, state.origin)

    def _is_square(self, node: onnx.NodeProto, stream: str) -> bool:
        """Tell whether a function of one value is its square."""
        facts = self._facts(node)
        if facts.raises:
            exponent = self._constants.get(node.input[1])
            return node.input[0] == stream and exponent is not None and bool((to_array(exponent) == 2).all())
        return facts.multiplies and all(name == stream for name in node.input)

    def _root(self, name: str) -> str:
        """Return the nearest value with several readers that this one is an affine function of, or this one."""
        value = name
        while self._readers[value] == 1 and (node := self._producers.get(value)) is not None:
            streams = [operand for operand in node.input if operand in self.states]
            if not self._facts(node).affine or len(streams) != 1:
                return name
            value = streams[0]
        return value if value in self._producers else name

    def _single(self, name: str) -> bool:
        """Tell whether a constant has one element."""
        return name in self._constants and all(size == 1 for size in self._constants[name].dims)

    def _other(self, node: onnx.NodeProto, facts: OperatorFacts, streams: list[str]) -> _State:
        """Return the state of what depends on several elements or streams."""
        if facts.accumulates and len(streams) == 1 and (squares := self.states[streams[0]].squares):
            return _State(_Kind.SUMS, squares=squares)
        for name in streams:
            if self._needs(facts, name):
                self._demand(name)
        if _moves(node, facts):  # several streams, and constants between them
            constants = [name for name in node.input if name in self._constants]
            self.quantized.update(constants)
            sources = {self.states[name].source for name in streams}
            if len(sources) == 1 and not constants and sources != {""}:
                return _State(_Kind.INTEGERS, source=sources.pop())
            return _State(_Kind.SUMS)
        if all(self._kind(name) == _Kind.OUTSIDE for name in streams):
            return _State(_Kind.OUTSIDE)
        return _State(_Kind.SUMS if facts.accumulates else _Kind.REALS)

    def _needs(self, facts: OperatorFacts, name: str) -> bool:
        """Tell whether an operator of several elements or streams needs a quantizer before this operand."""
        kind = self._kind(name)
        if name in self._divisors and kind != _Kind.INTEGERS:
            return False
        return facts.integer_operands or kind == _Kind.SUMS or (kind == _Kind.FUNCTION and not facts.class_number)


def _moves(node: onnx.NodeProto, facts: OperatorFacts) -> bool:
    """Tell whether results are elements of the node's operands: an image's, where it is resized without
    interpolation."""
    return facts.moves and not any(a.name == "mode" and a.s in (b"linear", b"cubic") for a in node.attribute)
