"""RNN, GRU and LSTM as functions: products by the input's weights for all steps at once, then a Scan over time whose
body is one step.

X is [time, batch, inputs], or with layout 1 [batch, time, inputs]. Steps beyond the length of a sequence, if lengths
are given, keep the state and have outputs of 0; so a reverse direction begins at the last element of each sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper

from hwflow.onnxspec.definitions.activations import Activation, activations
from hwflow.onnxspec.definitions.function_writer import Use, Writer, writer_for
from hwflow.onnxspec.graphs import operator_names as names

_INPUTS = ("X", "W", "R", "B", "lengths", "initial_h", "initial_c", "P")
_OUTPUTS = ("Y", "Y_h", "Y_c")
_REVERSE, _BOTH = "reverse", "bidirectional"


@dataclass
class Direction:
    """One direction of one use. ``recurrent``: the transposed recurrent weights; ``bias``: the recurrent half of the
    biases, "" if there is none, or where it was added to the other half: so the product of a state of zeros is 0;
    ``peepholes``: weights of input, output and forget gate, empty if there are none."""

    use: Use
    hidden: int
    functions: tuple[Activation, ...]
    clip: float | None
    recurrent: str
    bias: str
    peepholes: Sequence[str]

    def product(self, body: Writer, state: str, recurrent: str = "", bias: str = "") -> str:
        """Write the product of a state by (some of) the recurrent weights, with the bias."""
        result = str(body.node(names.MAT_MUL, state, recurrent or self.recurrent))
        bias = bias or ("" if recurrent else self.bias)
        return str(body.node(names.ADD, result, bias)) if bias else result

    def apply(self, body: Writer, place: int, value: str) -> str:
        """Write an activation function, its argument clipped."""
        return self.functions[place].write(body, value, self.clip)

    def gates(self, body: Writer, value: str, count: int) -> list[str]:
        """Split what stands for several gates."""
        return body.split(value, -1, [self.hidden] * count)


Step: TypeAlias = Callable[[Direction, Writer, str, Sequence[str]], list[str]]
"""Writes one step from the products by the input's weights and the states; returns the new states."""


def _rnn_step(one: Direction, body: Writer, given: str, states: Sequence[str]) -> list[str]:
    return [one.apply(body, 0, body.node(names.ADD, given, one.product(body, states[0])))]


def _gru_step(one: Direction, body: Writer, given: str, states: Sequence[str]) -> list[str]:
    (state,) = states
    update, reset, new = one.gates(body, given, 3)
    if one.use.attribute("linear_before_reset", 0):
        of_update, of_reset, of_new = one.gates(body, one.product(body, state), 3)
    else:
        both, last = body.split(one.recurrent, -1, [2 * one.hidden, one.hidden])
        biases = body.split(one.bias, -1, [2 * one.hidden, one.hidden]) if one.bias else ("", "")
        of_update, of_reset = one.gates(body, one.product(body, state, both, biases[0]), 2)
    update = one.apply(body, 0, body.node(names.ADD, update, of_update))
    reset = one.apply(body, 0, body.node(names.ADD, reset, of_reset))
    if one.use.attribute("linear_before_reset", 0):
        of_new = body.node(names.MUL, reset, of_new)
    else:
        of_new = one.product(body, body.node(names.MUL, reset, state), last, biases[1])
    new = one.apply(body, 1, body.node(names.ADD, new, of_new))
    rest = body.node(names.SUB, body.constant(1, np.float32), update)
    return [body.node(names.ADD, body.node(names.MUL, rest, new), body.node(names.MUL, update, state))]


def _lstm_step(one: Direction, body: Writer, given: str, states: Sequence[str]) -> list[str]:
    state, cell = states
    entry, output, forget, new = one.gates(body, body.node(names.ADD, given, one.product(body, state)), 4)

    def peeped(gate: str, place: int, seen: str) -> str:
        if not one.peepholes:
            return gate
        return str(body.node(names.ADD, gate, body.node(names.MUL, one.peepholes[place], seen)))

    entry = one.apply(body, 0, peeped(entry, 0, cell))
    if one.use.attribute("input_forget", 0):
        forget = body.node(names.SUB, body.constant(1, np.float32), entry)
    else:
        forget = one.apply(body, 0, peeped(forget, 2, cell))
    new = one.apply(body, 1, new)
    cell = body.node(names.ADD, body.node(names.MUL, forget, cell), body.node(names.MUL, entry, new))
    output = one.apply(body, 0, peeped(output, 1, cell))
    return [body.node(names.MUL, output, one.functions[2].write(body, cell)), cell]


@dataclass(frozen=True)
class Kind:
    """A recurrent operator: the number of its gates and states, its step and its activation functions."""

    gates: int
    states: int
    step: Step
    functions: tuple[str, ...]

    def __call__(self, use: Use) -> onnx.FunctionProto | None:
        """Return the function of one use (:data:`~hwflow.onnxspec.definitions.function_writer.Definition`).

        None also where quantizers inside would be needed: for gates, which are multiplied by states, and for a state
        that is a curve's value and is multiplied by weights in the next step."""
        x, recurrent = use.input(0), use.input(2)
        if x is None or recurrent is None or len(x.shape) != 3 or len(recurrent.shape) != 3 or x.dtype != "float32":
            return None
        directions, _, hidden = recurrent.shape
        named = use.attribute("direction", "forward")
        functions = activations(use, self.functions, directions)
        if functions is None or directions != (2 if named == _BOTH else 1):
            return None
        steps = x.shape[1 if use.attribute("layout", 0) else 0]
        exact = self.gates == 1 and (steps == 1 or all(f.piecewise_linear for each in functions for f in each))
        if not (exact or use.to_quantize):
            return None
        scans = [
            _Scan(self, use, hidden, place, functions[place], named == _REVERSE or place == 1)
            for place in range(directions)
        ]
        return _function(scans)


@dataclass
class _Scan:
    kind: Kind
    use: Use
    hidden: int
    place: int
    functions: tuple[Activation, ...]
    backward: bool

    @property
    def batch_first(self) -> bool:
        return bool(self.use.attribute("layout", 0))

    def write(self, writer: Writer, mask: str) -> list[str]:
        """Write the Scan of one direction; return its last states, and its outputs if they are asked for. ``mask``: of
        the steps that are within each sequence, "" if all are."""
        use, gates = self.use, self.kind.gates * self.hidden
        weights, recurrent = (self._matrix(writer, name) for name in ("W", "R"))
        given, biases = writer.node(names.MAT_MUL, "X", weights), ["", ""]
        if use.input(3) is not None:
            biases = writer.split(writer.gather("B", self.place, 0), 0, [gates, gates])
            if self.kind.gates == 3 and use.attribute("linear_before_reset", 0):  # the bias is multiplied, too
                given = writer.node(names.ADD, given, biases[0])
            else:
                given = writer.node(names.ADD, given, writer.node(names.ADD, *biases))
                biases[1] = ""
        peepholes: Sequence[str] = ()
        if self.kind.states == 2 and use.input(7) is not None:
            peepholes = writer.split(writer.gather("P", self.place, 0), 0, [self.hidden] * 3)
        one = Direction(
            use, self.hidden, self.functions, use.attribute("clip", None), recurrent, biases[1], peepholes
        )
        states = [self._initial(writer, 5 + number) for number in range(self.kind.states)]
        body = Writer(writer.version, f"step_{self.place}_")
        formal = [f"{body.prefix}{each}" for each in ("state", "cell")[: len(states)]]
        step, within = f"{body.prefix}given", f"{body.prefix}within"
        new = self.kind.step(one, body, step, formal)
        if mask:
            zero = body.constant(0, np.float32)
            row = body.node(names.WHERE, within, new[0], zero)
            new = [body.node(names.WHERE, within, each, old) for each, old in zip(new, formal, strict=True)]
        else:
            row = body.node(names.IDENTITY, new[0])
        rows = [row] if use.reads(0) else []
        graph = helper.make_graph(
            body.nodes, f"step_{self.place}",
            [_float(name) for name in (*formal, step)]
            + ([helper.make_tensor_value_info(within, TensorProto.BOOL, None)] if mask else []),
            [_float(name) for name in (*new, *rows)],
        )
        scanned = [given, mask] if mask else [given]
        time = 1 if self.batch_first else 0
        outputs = writer.node(
            names.SCAN, *states, *scanned, count=len(states) + len(rows), body=graph, num_scan_inputs=len(scanned),
            scan_input_axes=[time] * len(scanned), scan_input_directions=[int(self.backward)] * len(scanned),
            **({"scan_output_axes": [time], "scan_output_directions": [int(self.backward)]} if rows else {}),
        )
        return [outputs] if isinstance(outputs, str) else list(outputs)

    def _matrix(self, writer: Writer, name: str) -> str:
        return str(writer.node(names.TRANSPOSE, writer.gather(name, self.place, 0), perm=[1, 0]))

    def _initial(self, writer: Writer, place: int) -> str:
        if self.use.input(place) is not None:
            return writer.gather(_INPUTS[place], self.place, 1 if self.batch_first else 0)
        x = self.use.input(0)
        assert x is not None
        return writer.constant(np.zeros((x.shape[0 if self.batch_first else 1], self.hidden)), np.float32)


def _float(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def _function(scans: Sequence[_Scan]) -> onnx.FunctionProto:
    use, batch_first, kind = scans[0].use, scans[0].batch_first, scans[0].kind
    writer = writer_for(use)
    mask = _mask(use, writer, batch_first)
    results = [scan.write(writer, mask) for scan in scans]
    of_rows = [found.pop() for found in results] if use.reads(0) else []
    outputs = _OUTPUTS[: len(use.node.output)]
    if of_rows:
        writer.stacked(of_rows, 2 if batch_first else 1, outputs[0])
    for place in range(kind.states):
        if use.reads(1 + place):
            writer.stacked([found[place] for found in results], 1 if batch_first else 0, outputs[1 + place])
    return writer.function(use, _INPUTS[: len(use.node.input)], outputs)


def _mask(use: Use, writer: Writer, batch_first: bool) -> str:
    """Write which steps are within each sequence, [time, batch, 1] or with layout 1 [batch, time, 1]; "" if all are."""
    x = use.input(0)
    assert x is not None
    steps, lengths = x.shape[1 if batch_first else 0], use.constants[4] if len(use.constants) > 4 else None
    if use.input(4) is None or (lengths is not None and (lengths.reshape(-1) >= np.array(steps)).all()):
        return ""
    times = np.arange(steps).reshape((-1, 1) if batch_first else (-1, 1, 1))
    lengths_there = writer.reshape("lengths", (-1, 1, 1) if batch_first else (-1, 1))
    return str(writer.node(names.LESS, writer.constant(times, np.int32), lengths_there))


RNN = Kind(1, 1, _rnn_step, (names.TANH,))
GRU = Kind(3, 1, _gru_step, (names.SIGMOID, names.TANH))
LSTM = Kind(4, 2, _lstm_step, (names.SIGMOID, names.TANH, names.TANH))
