"""Training models: the stateful object with the three methods of the ONNX specification (MOD-17, TRN-01 to TRN-16)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hwflow.display import show
from hwflow.errors import Finding, ModelRefused, Severity, UsageError
from hwflow.onnxspec.clauses.rules import listed
from hwflow.onnxspec.reading.external_loading import Folders, load_external_data
from hwflow.onnxspec.reading.numpy_tensors import DTYPE_NAMES
from hwflow.onnxspec.reading.reader import read_model
from hwflow.onnxspec.reading.writer import write_model
from hwflow.onnxspec.resolving.resolved_model import Array
from hwflow.onnxspec.training.training_graphs import combined
from hwflow.onnxspec.validate import validate

if TYPE_CHECKING:
    from hwflow.onnxspec.training.training_evaluator import GraphEvaluator

_FIRST_IR_VERSION = 7  # with training_info


@dataclass(frozen=True)
class _Step:
    """One training_info: bindings as (state variable, value), inputs and outputs of the algorithm graph."""

    initialization: GraphEvaluator | None
    initial: tuple[tuple[str, str], ...]
    training: GraphEvaluator  # of main and algorithm graph together
    updates: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]


class TrainingModel:
    """An ONNX model with training information, evaluated by ONNX's reference evaluator.

    Its state is the value of every *state variable*: an initializer of the main graph or of an algorithm graph that an
    ``initialization_binding`` or ``update_binding`` names as a key (weights, momentum, number of steps, ...). State
    variables start at their initializer's value; :meth:`initialize` and :meth:`train_step` change them,
    :meth:`infer` does not.

    ``model``: a model, or the path of its file; it is validated first (``trusted`` as for
    :func:`~hwflow.onnxspec.validate`). Raises :class:`ModelRefused` with all errors,
    also for a model without training information and for one that the reference evaluator cannot compute (it has no
    ``Gradient``: the derivatives must be nodes of the algorithm graph).

    Arrays are passed and returned as they are: nothing is converted. An input must have the type that the model says,
    and the shape where it says one; what a binding assigns must have the initializer's element type and shape.
    """

    def __init__(self, model: onnx.ModelProto | str | os.PathLike[str], *, trusted: Folders = ()) -> None:
        if isinstance(model, onnx.ModelProto):
            self.path: Path | None = None
            proto = onnx.ModelProto()
            proto.CopyFrom(model)
        else:
            self.path = Path(model)
            proto = read_model(self.path)
        _raise_if(f for f in validate(proto, self.path, trusted=trusted) if f.severity == Severity.ERROR)
        load_external_data(proto, self.path, trusted)
        _raise_if(_not_trainable(proto))
        self._proto = proto
        self._initial = _initial_state(proto)
        self._state = dict(self._initial)
        self._main, self._steps = _prepare(proto)

    @property
    def state(self) -> Mapping[str, Array]:
        """The current state variables by name: read-only, and unaffected by later calls."""
        return MappingProxyType(dict(self._state))

    @property
    def steps(self) -> int:
        """The number of training_info entries, each a separate training step."""
        return len(self._steps)

    def initialize(self) -> None:
        """Reset the state: every state variable takes its initializer's value, then the initialization graphs run in
        order and their bound results are assigned. On an error the state stays unchanged."""
        state = dict(self._initial)
        for index, step in enumerate(self._steps):
            if step.initialization is not None:
                values = step.initialization.run({}, [value for _, value in step.initial])
                self._assign(state, step.initial, values, f"initialization graph of training_info[{index}]")
        self._state = state

    def train_step(self, inputs: Mapping[str, Any], index: int | None = None) -> dict[str, Array]:
        """Evaluate main and algorithm graph of ``training_info[index]`` together on the current state, then assign all
        bound results to the state at once. Without ``index``, do so for every training_info in order, each on the state
        that the previous one left: one iteration.

        ``inputs``: arrays for the inputs of the main graph and of the algorithm graphs that run, by name; those with an
        initializer are optional. Returns the outputs of the algorithm graph (loss, ...) by name; of equal names the
        last one's.

        Raises :class:`UsageError` for inputs that do not fit, and :class:`ModelRefused` for results that cannot be
        computed or do not fit their state variable. On an error the state stays unchanged.
        """
        if index is not None and not 0 <= index < len(self._steps):
            last = len(self._steps) - 1
            raise UsageError.of(
                "training-step", "train_step", f"index must be from 0 to {last}, not {index}",
                f"the model has {len(self._steps)} training_info {'entry' if last == 0 else 'entries'}",
            )
        chosen = range(len(self._steps)) if index is None else [index]
        feeds = _checked(inputs, [self._steps[i].training for i in chosen])
        state, results = dict(self._state), {}
        for i in chosen:
            step = self._steps[i]
            values = step.training.run(feeds, [*step.outputs, *(value for _, value in step.updates)], state)
            self._assign(state, step.updates, values, f"main and algorithm graph of training_info[{i}]")
            results.update({name: _copy(values[name]) for name in step.outputs})
        self._state = state
        return results

    def infer(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Return the outputs of the main graph by name, on the current state, which does not change.

        Raises :class:`UsageError` for inputs that do not fit, :class:`ModelRefused` for outputs that cannot be
        computed.
        """
        names = [output.name for output in self._proto.graph.output]
        values = self._main.run(_checked(inputs, [self._main]), names, self._state)
        return {name: _copy(values[name]) for name in names}

    def inference_model(self) -> onnx.ModelProto:
        """Return the model without training information, with the current state in the initializers of its graph;
        everything else (IR version, operator sets, functions, ...) is unchanged."""
        model = onnx.ModelProto()
        model.CopyFrom(self._proto)
        del model.training_info[:]
        for tensor in model.graph.initializer:
            if tensor.name in self._state:
                value = numpy_helper.from_array(self._state[tensor.name], tensor.name)
                value.doc_string = tensor.doc_string
                value.metadata_props.extend(tensor.metadata_props)
                tensor.CopyFrom(value)
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`inference_model` to a file, atomically. Raises :class:`UsageError`."""
        write_model(self.inference_model(), path)

    def _assign(
        self, state: dict[str, Array], bindings: Sequence[tuple[str, str]], values: Mapping[str, Any], graph: str
    ) -> None:
        findings = []
        for name, source in bindings:
            wanted, value = _described(self._initial[name]), values[source]
            if _described(value) == wanted:
                state[name] = _read_only(_copy(value))
            else:
                findings.append(
                    Finding(
                        "state-type",
                        f"state variable {show(name)}",
                        f"what is assigned to it must be {wanted} as its initializer is, but {show(source)} of "
                        f"{graph} is {_described(value)}",
                        "let the graph compute a value of that type and shape",
                    )
                )
        _raise_if(findings)


def _raise_if(findings: Iterable[Finding]) -> None:
    found = list(findings)
    if found:
        raise ModelRefused(found)


def _not_trainable(model: onnx.ModelProto) -> list[Finding]:
    if not model.training_info:
        return [
            Finding(
                "training-model", "model", "must have training_info to be trained, but it has none",
                "export the model for training; to compile it, training information is not needed",
            )
        ]
    if model.ir_version < _FIRST_IR_VERSION:
        message = f"ir_version must be at least {_FIRST_IR_VERSION} for training_info, not {model.ir_version}"
        return [Finding("CMP-05", "model", message, "export the model with a current exporter")]
    findings = []
    graphs = [model.graph]
    graphs += [graph for info in model.training_info for graph in (info.initialization, info.algorithm)]
    for graph in graphs:
        external = [t.name for t in graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL]
        if external:
            message = f"all tensors must be loaded, but {listed(external)} lie in other files"
            findings.append(
                Finding("training-model", f"graph {show(graph.name)}", message, "give the path of the model file")
            )
    # A name must identify one state variable in `state`.
    owners: dict[str, int] = {}
    for index, info in enumerate(model.training_info):
        own = {tensor.name for tensor in info.algorithm.initializer}
        for name in sorted(_bound(info) & own):
            if owners.setdefault(name, index) != index:
                message = (
                    "state variables must have distinct names, but the algorithm graphs of "
                    f"training_info[{owners[name]}] and training_info[{index}] each have one of this name"
                )
                findings.append(Finding("TRN-10", f"state variable {show(name)}", message, "rename one of them"))
    return findings


def _initial_state(model: onnx.ModelProto) -> dict[str, Array]:
    state = {}
    main = {tensor.name: tensor for tensor in model.graph.initializer}
    for info in model.training_info:
        tensors = main | {tensor.name: tensor for tensor in info.algorithm.initializer}
        state.update({name: _read_only(numpy_helper.to_array(tensors[name])) for name in sorted(_bound(info))})
    return state


def _bound(info: onnx.TrainingInfoProto) -> set[str]:
    """Return the state variables bound by one training_info."""
    return {binding.key for binding in (*info.initialization_binding, *info.update_binding)}


def _prepare(model: onnx.ModelProto) -> tuple[GraphEvaluator, list[_Step]]:
    """Build the evaluators of all graphs. Raises :class:`ModelRefused` with every graph that cannot be evaluated."""
    from hwflow.onnxspec.training.training_evaluator import GraphEvaluator  # the reference evaluator is slow to import

    findings: list[Finding] = []

    def evaluator(graph: onnx.GraphProto, state: Iterable[str], where: str) -> Any:
        try:
            return GraphEvaluator(model, graph, frozenset(state), where)
        except ModelRefused as refused:
            findings.extend(refused.findings)
            return None  # never used: the findings are raised

    # An initializer that only another training_info binds is a state variable too if it is the main graph's.
    shared = {tensor.name for tensor in model.graph.initializer}.intersection(
        name for info in model.training_info for name in _bound(info)
    )
    inference = evaluator(model.graph, shared, "main graph")
    steps = []
    for index, info in enumerate(model.training_info):
        where = f"of training_info[{index}]"
        state = shared | _bound(info)
        steps.append(
            _Step(
                evaluator(info.initialization, (), f"initialization graph {where}")
                if info.initialization.ByteSize()
                else None,
                tuple((binding.key, binding.value) for binding in info.initialization_binding),
                evaluator(combined(model.graph, info.algorithm), state, f"main and algorithm graph {where}"),
                tuple((binding.key, binding.value) for binding in info.update_binding),
                tuple(output.name for output in info.algorithm.output),
            )
        )
    _raise_if(dict.fromkeys(findings))
    return inference, steps


def _checked(inputs: Mapping[str, Any], evaluators: Sequence[GraphEvaluator]) -> dict[str, Any]:
    """Return the arrays that the graphs read. Raises :class:`UsageError` with all their faults."""
    findings: list[Finding] = []
    feeds: dict[str, Any] = {}

    def complain(name: str, message: str, remedy: str) -> None:
        findings.append(Finding("training-inputs", f"input {show(name)}", message, remedy))

    known: dict[str, None] = {}
    for evaluator in evaluators:
        variables: dict[str, tuple[int, str]] = {}  # each graph is an evaluation of its own
        known.update(dict.fromkeys(evaluator.inputs))
        for name, info in evaluator.inputs.items():
            if name not in inputs:
                if name not in evaluator.defaults:
                    complain(name, "must be given, but it is missing", "give an array of that name")
                continue
            feeds[name] = inputs[name]
            if info.type.WhichOneof("value") == "tensor_type":
                feeds[name] = np.asarray(inputs[name])
                message = _misfit(feeds[name], info.type.tensor_type, name, variables)
                if message:
                    complain(name, message, "give an array of that type and shape; nothing is converted")
    for name in inputs:
        if name not in known:
            complain(name, f"must be one of {listed(known, 10) or 'none'}, not {show(name)}", "remove it")
    if findings:
        raise UsageError(dict.fromkeys(findings))
    return feeds


def _misfit(
    array: Array, wanted: onnx.TypeProto.Tensor, name: str, variables: dict[str, tuple[int, str]]
) -> str | None:
    """Describe the fault of ``array``. ``variables``: the value of each dimension variable, and the input it is
    from."""
    dtype = DTYPE_NAMES.get(wanted.elem_type, "undefined")
    if _element(array) != dtype:
        return f"must be of type {dtype}, not {_element(array)}"
    if not wanted.HasField("shape"):
        return None
    dims = wanted.shape.dim
    shape = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in dims]
    if array.ndim != len(dims) or any(
        d.HasField("dim_value") and d.dim_value != length for d, length in zip(dims, array.shape, strict=True)
    ):
        return f"must have shape [{', '.join(map(str, shape))}], not {list(array.shape)}"
    for d, length in zip(dims, array.shape, strict=True):
        if d.dim_param and variables.setdefault(d.dim_param, (length, name))[0] != length:
            other, where = variables[d.dim_param]
            return f"dimension {show(d.dim_param)} must be {other} as in input {show(where)}, not {length}"
    return None


def _element(array: Array) -> str:
    """Return the name of the element type."""
    if array.dtype.kind in "OUS":
        return "string" if all(isinstance(v, str | bytes) for v in array.flat) else "object"
    try:
        return DTYPE_NAMES[helper.np_dtype_to_tensor_dtype(array.dtype)]
    except (KeyError, ValueError):  # no type of ONNX's
        return str(array.dtype)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return f"{_element(array)} {list(array.shape)}"
    return f"no tensor ({type(value).__name__})"


def _copy(value: Any) -> Any:
    """Copy an array of the evaluator; return a sequence or an absent optional as it is."""
    return np.array(value) if isinstance(value, np.ndarray | np.generic) else value


def _read_only(array: Array) -> Array:
    array = array.view()
    array.flags.writeable = False
    return array
