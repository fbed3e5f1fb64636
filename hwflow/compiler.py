"""The Python API: load, compile (check is in checking.py). The command line is a thin layer over these."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from hwflow.boards import Board
from hwflow.budget import beyond_part, budgets_for, frame_bytes, queued_bytes
from hwflow.codegen.clock_plan import ClockPlan
from hwflow.codegen.conversion import Conversion
from hwflow.codegen.report import Seconds
from hwflow.errors import Finding, ModelRefused, UsageError
from hwflow.frontend.lower import KEPT, lower, refuse_unsupported
from hwflow.ir.graph import Graph
from hwflow.onnxspec import (
    ModelProto,
    ResolvedModel,
    TrainingModel,
    read_model,
    resolve_with_graph,
    validate,
    write_model,
)
from hwflow.onnxspec.external_data import Folders, load_external_data, write_complete
from hwflow.onnxspec.frame_axis import lacks_frame_axis, with_frame_axis
from hwflow.passes import pipeline
from hwflow.request import request
from hwflow.schedule.schedule import OutOfReach, Schedule, schedule

Progress = Callable[[str], None]

@dataclass
class Model:
    """An ONNX model, read, validated and resolved. ``seconds``: how long that took.

    ``path``: the file that it is from, None if there is none; ``trained``: it is the present state of a
    :class:`~hwflow.onnxspec.TrainingModel` from there, and so not what the file holds. ``external``: bytes of tensors
    that were in files beside it; in ``proto`` they are inside. ``flat`` is ``proto`` with functions and branches
    inlined: it has every value of ``resolved`` by the same name (and is ``proto`` itself where there are none). Where
    the inputs are whole tensors, not frames along a first axis, both have a frame axis in front of everything
    (:mod:`hwflow.onnxspec.frame_axis`).
    """

    path: Path | None
    proto: ModelProto
    flat: ModelProto
    resolved: ResolvedModel
    dimensions: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    trained: bool = False
    external: int = 0

    def write(self, path: Path) -> None:
        """Write the model as it was compiled to the file ``path``, with nothing left in files elsewhere."""
        if self.path is not None and self.external and not self.trained:
            write_complete(self.proto, self.path, path)
        elif self.path is None or self.trained:
            write_model(self.proto, path)
        else:
            shutil.copyfile(self.path, path)

    @cached_property
    def quantized(self) -> Graph:
        """The quantized graph, nothing fused: the golden model. Raises :class:`ModelRefused` with all reasons."""
        return pipeline.run(lower(self.resolved), pipeline.QUANTIZED)


@dataclass
class Design:
    """A model scheduled for a board. ``beyond``: what of its budget the board does not have; ``conversion``: of its
    cores, where that has begun."""

    model: Model
    board: Board
    clock: ClockPlan
    schedule: Schedule
    seconds: Seconds
    beyond: tuple[Finding, ...] = ()
    conversion: Conversion | None = field(default=None, repr=False)

    @property
    def clock_mhz(self) -> float:
        """The clock that the design is made for."""
        return float(self.clock.frequency_hz / 1_000_000)

    @property
    def frames_per_second(self) -> float:
        """At that clock."""
        return float(self.clock.frequency_hz / self.schedule.initiation_interval)

    def write(
        self, out: str | os.PathLike[str], until: str | None = "verilog", progress: Progress | None = None,
        executor: Executor | None = None,
    ) -> dict[str, Any]:
        """Write the output folder (see :mod:`hwflow.output`) and return the report; ``until`` None: as far as the tools
        here go. ``executor``: of processes that share the work (:func:`hwflow.processes.second_process`); None: those
        that shared the compilation, if any did."""
        from hwflow.output import write_design

        return write_design(self, Path(out), until, progress or (lambda line: None), executor)


def dataflow_of(proto: ModelProto, dimensions: Mapping[str, int]) -> Graph:
    """The dataflow graph of a model that :func:`hwflow.onnxspec.validate` has no objection to.

    Raises :class:`ModelRefused` with all reasons.
    """
    return _dataflow(pipeline.run(lower(_resolved(proto, dimensions)[0]), pipeline.QUANTIZED))


def _resolved(proto: ModelProto, dimensions: Mapping[str, int]) -> tuple[ResolvedModel, ModelProto]:
    """As :func:`hwflow.onnxspec.resolve_with_graph`; a model without a frame axis with one, where that can be."""
    if lacks_frame_axis(proto):
        resolved, flat = resolve_with_graph(proto, dimensions, KEPT, validated=True, whole=True)
        framed = with_frame_axis(flat, resolved)
        if framed is not None:
            return resolve_with_graph(framed, {}, KEPT, validated=True)
        refuse_unsupported(resolved)
    return resolve_with_graph(proto, dimensions, KEPT, validated=True)


def load(
    source: str | os.PathLike[str] | TrainingModel,
    dimensions: Mapping[str, int] | None = None,
    *,
    trusted: Folders = (),
) -> Model:
    """Read, validate and resolve a model; ``dimensions`` binds dimension variables; ``trusted`` are folders beside the
    model's own in which its external data may lie, and to which links may lead.

    Of a file with training information that is the inference graph with its initializers as they are there; of a
    :class:`~hwflow.onnxspec.TrainingModel` the inference graph with the present state.

    Raises :class:`ModelRefused` with all findings.
    """
    begin = time.perf_counter()
    trained = isinstance(source, TrainingModel)
    if isinstance(source, TrainingModel):
        path, proto = source.path, source.inference_model()
    else:
        path, proto = Path(source), read_model(source)
    errors = [f for f in validate(proto, path, trusted=trusted) if f.severity == "error"]
    if errors:
        raise ModelRefused(errors)
    external = load_external_data(proto, path, trusted)
    resolved, flat = _resolved(proto, dimensions or {})
    return Model(path, proto, flat, resolved, dict(dimensions or {}), time.perf_counter() - begin, trained, external)


def compile(  # the verb of the command line's design; shadows the builtin inside this module only
    model: Model | TrainingModel | str | os.PathLike[str],
    board: Board | str,
    *,
    fps: float | None = None,
    clock_mhz: float | None = None,
    budget: Mapping[str, int | float | str] | None = None,
    what_if: bool = False,
    dimensions: Mapping[str, int] | None = None,
    trusted: Folders = (),
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Design:
    """Compile for a board: the cheapest design of at least ``fps`` frames a second, else the fastest that fits, and of
    those the cheapest (see :mod:`hwflow.schedule.folding`).

    ``model``: as :func:`load` takes it, or loaded; ``dimensions`` and ``trusted``: as there. ``clock_mhz``: what the
    design is to run at (:func:`hwflow.codegen.clock.clock_for`; default: the board's clock). ``budget``: what it may
    use of "lut", "ff", "dsp" and "bram", numbers or percentages like "50%" (:func:`hwflow.budget.budgets_for`).
    ``what_if``: more than the board's part has of them, too; the design is then for Verilog only. ``executor``: of
    processes that share the work (:func:`hwflow.processes.second_process` makes one).

    Raises :class:`ModelRefused` (cannot be compiled exactly, does not fit), :class:`UsageError` (unknown board, no such
    clock, rate or budget; with all that can be told without the model, before it is read).
    """
    say = progress or (lambda line: None)
    asked = request(board, fps=fps, clock_mhz=clock_mhz, budget=budget, what_if=what_if)
    board, clock = asked.board, asked.clock
    if not isinstance(model, Model):
        say("reading the model")
        model = load(model, dimensions, trusted=trusted)
    begin = time.perf_counter()
    dataflow = _dataflow(model.quantized)
    seconds = Seconds()
    seconds.steps["import"] = model.seconds + time.perf_counter() - begin
    limits, *others = budgets_for(board, dataflow, budget, for_rate=fps is not None)
    beyond = beyond_part(board, budget, frame_bytes(dataflow), queued_bytes(dataflow))
    if beyond and not what_if:
        raise UsageError(beyond)
    say("scheduling")
    begin = time.perf_counter()
    interval = None if fps is None else max(1, int(clock.frequency_hz / Fraction(min(fps, 1e18))))
    conversion = None if executor is None else Conversion(executor)
    begin_conversion = None if conversion is None else conversion.begin
    try:
        scheduled = schedule(dataflow, board.part, limits, interval, others, executor, begin_conversion)
    except OutOfReach as refused:
        assert fps is not None
        raise ModelRefused([_too_fast(board, clock, fps, refused.best), *refused.findings]) from None
    pipeline.run(scheduled.graph, ())
    seconds.steps["schedule"] = time.perf_counter() - begin
    return Design(model, board, clock, scheduled, seconds, tuple(beyond), conversion)


def _dataflow(quantized: Graph) -> Graph:
    """The dataflow graph; a model that leaves nothing to hardware is refused."""
    graph = pipeline.run(quantized, pipeline.DATAFLOW)
    if not graph.nodes:
        raise ModelRefused(
            Finding(
                "hardware-operator", f"model '{graph.name}'",
                "at least one operator must be left for hardware, not none: outputs are inputs in another shape",
                "there is nothing to compile",
            )
        )
    return graph


def _too_fast(board: Board, clock: ClockPlan, fps: float, best: int) -> Finding:
    most = int(clock.frequency_hz / best)
    mhz = float(clock.frequency_hz) / 1e6
    return Finding(
        "reachable-rate", "option --fps",
        f"must be at most {most} frames a second on {board.name} at {mhz:g} MHz ({best} cycles a frame), not {fps:g}",
        f"ask for '--fps {most}' or less, for a larger --budget or a higher --clock, or choose a larger board",
    )
