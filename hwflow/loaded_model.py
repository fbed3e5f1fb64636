"""An ONNX model as everything else takes it: read, validated, resolved, and lowered to the quantized graph."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hwflow.errors import Finding, ModelRefused, Severity, UsageError
from hwflow.frontend.frames.interleaved import OPTION
from hwflow.frontend.framing import framed
from hwflow.frontend.host_work import HostWork
from hwflow.frontend.input_types import Declarations, InputType, parsed, require_inputs
from hwflow.frontend.lower import lower
from hwflow.frontend.states.ties import STATELESS, UNTIED, States, Ties, ties_of
from hwflow.ir.graph import Graph
from hwflow.onnxspec import (
    ModelProto,
    ResolvedModel,
    TrainingModel,
    read_model,
    validate,
    write_model,
)
from hwflow.onnxspec.reading.bound_inputs import InputConstants, bind_inputs
from hwflow.onnxspec.reading.external_loading import Folders, load_external_data, write_complete
from hwflow.onnxspec.reading.map_ends import NO_MAPS, MapEnds, separated
from hwflow.onnxspec.reading.old_dialects import modernize
from hwflow.passes import pipeline


@dataclass
class Model:
    """An ONNX model, read, validated and resolved. ``seconds``: how long that took.

    ``path``: its file, None if there is none; ``trained``: this is the present state of a
    :class:`~hwflow.onnxspec.TrainingModel` from that file, not what the file holds; ``bound``: inputs of that file are
    constants here. ``external``: bytes of tensors in files beside it, which ``proto`` has inside. ``flat`` is ``proto``
    with functions, control flow and definitions written out (``proto`` itself where there are none); it has every value
    of ``resolved`` by the same name. Both have any number of frames along the first axis of everything, whatever the
    inputs' first sizes in ``proto`` (:mod:`hwflow.frontend.frames`).
    ``whole``: a frame is a model's whole inputs, and its axis is added. ``lowered``: the quantized graph, if framing
    needed it. ``input_types``: integers that float inputs carry, as declared; ``states``: as asked for.
    ``interleave``: so many frames of the model in ``proto`` are one here. ``maps``: at the ends of the model, where
    ``proto`` has tensors (:mod:`hwflow.onnxspec.reading.map_ends`). ``warnings``: what `check` says of
    it, remarks aside.
    """

    path: Path | None
    proto: ModelProto
    flat: ModelProto
    resolved: ResolvedModel
    dimensions: Mapping[str, int] = field(default_factory=dict)
    input_types: Mapping[str, InputType] = field(default_factory=dict)
    seconds: float = 0.0
    trained: bool = False
    bound: bool = False
    external: int = 0
    whole: bool = False
    lowered: Graph | None = field(default=None, repr=False)
    states: States = STATELESS
    interleave: int = 1
    maps: MapEnds = NO_MAPS
    warnings: tuple[Finding, ...] = ()

    @property
    def file(self) -> Path | None:
        """The file that holds the model; None where no file does."""
        return None if self.trained else self.path

    def write(self, path: Path) -> None:
        """Write the model as compiled to the file ``path``, without external data."""
        if self.file is None or self.bound:
            write_model(self.maps.attached(self.proto), path)
        elif self.external:
            write_complete(self.maps.attached(self.proto), self.file, path)
        else:
            shutil.copyfile(self.file, path)

    @property
    def host_work(self) -> HostWork:
        """What is left to the host. Raises as :attr:`quantized`."""
        return HostWork.of(self.resolved, self.quantized)

    @cached_property
    def quantized(self) -> Graph:
        """The quantized graph, nothing fused: the golden model. Raises :class:`ModelRefused` with all reasons."""
        return pipeline.run(self.lowered or lower(self.resolved, self.input_types), pipeline.QUANTIZED)


def quantized_of(
    proto: ModelProto, dimensions: Mapping[str, int], input_types: Mapping[str, InputType] | None = None,
    ties: Ties = UNTIED,
) -> tuple[ResolvedModel, Graph]:
    """Return a model that passes :func:`hwflow.onnxspec.validate` resolved, and its quantized graph.

    Raises :class:`ModelRefused` with all reasons, and :class:`UsageError` where ``input_types`` names what is not an
    input.
    """
    found = framed(proto, dimensions, input_types, ties)
    require_inputs(found.resolved, input_types or {})
    return found.resolved, pipeline.run(found.graph or lower(found.resolved, input_types), pipeline.QUANTIZED)


def load(
    source: str | os.PathLike[str] | TrainingModel,
    dimensions: Mapping[str, int] | None = None,
    *,
    trusted: Folders = (),
    input_types: Declarations | None = None,
    constants: InputConstants | None = None,
    states: States = STATELESS,
    interleave: int = 1,
) -> Model:
    """Read, validate and resolve a model; ``dimensions`` binds dimension variables; ``trusted`` are folders beside the
    model's own in which its external data may lie, and to which links may lead. ``input_types`` says what integers a
    float input carries that no quantizer reads: "TYPE[,SCALE[,ZERO_POINT]]" by name, such as "uint8,1/255".
    ``constants`` binds inputs to values (:func:`hwflow.onnxspec.reading.bound_inputs.bind_inputs`); they are inputs no
    more.
    ``states`` ties outputs to inputs of later frames, besides those that the model's metadata ties. ``interleave``: so
    many frames are one, which are independent of each other (:mod:`hwflow.frontend.frames.interleaved`).

    A file with training information gives its inference graph with the initializers in the file; a
    :class:`~hwflow.onnxspec.TrainingModel` gives the inference graph with the present state.

    Raises :class:`ModelRefused` with all findings, :class:`UsageError` where ``input_types``, ``constants`` or
    ``states`` are malformed or name no input.
    """
    begin = time.perf_counter()
    declared = parsed(input_types)
    trained = isinstance(source, TrainingModel)
    if isinstance(source, TrainingModel):
        path, proto = source.path, source.inference_model()
    else:
        path, proto = Path(source), read_model(source)
    bind_inputs(proto, constants or {})
    modernize(proto)
    said = validate(proto, path, trusted=trusted)
    errors = [f for f in said if f.severity == Severity.ERROR]
    if errors:
        raise ModelRefused(errors)
    external = load_external_data(proto, path, trusted)
    maps = separated(proto)
    states = states.within(proto)
    ties = ties_of(proto, states, path.parent if path else None)
    if ties.asked and interleave > 1:
        raise UsageError.of(
            "interleave-state", OPTION, "frames of a model with state must not be interleaved: each begins where the "
            "one before it ended", "leave it out, and see option --channels",
        )
    found = framed(proto, dimensions or {}, declared, ties, interleave)
    require_inputs(found.resolved, declared)
    seconds = time.perf_counter() - begin
    return Model(
        path, proto, found.flat, found.resolved, dict(dimensions or {}), declared, seconds, trained, bool(constants),
        external, found.whole, found.graph, states, interleave, maps, tuple(said),
    )
