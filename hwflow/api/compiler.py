"""The Python API: compile (load is in loaded_model.py, check in checking.py). The command line is a thin layer over
these."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from hwflow.api.budget import Amount
from hwflow.api.forms.interleaving import as_many_as_pay
from hwflow.api.forms.loop_forms import Form, forms_of, shared_form
from hwflow.api.forms.memory_outside import MemoryOutside
from hwflow.api.output import write_design
from hwflow.api.output_folder import claimed
from hwflow.api.patching.loadable_layers import by_themselves, of_nodes
from hwflow.api.request import ALL, AUTO, NONE, TOO_FAST, Request, check_until, requested
from hwflow.api.scheduled import Progress, ScheduledModel, scheduled
from hwflow.boards import Board
from hwflow.codegen.board.carriers import LinkOptions
from hwflow.codegen.emitted.packaging import Packaging
from hwflow.codegen.report import Seconds
from hwflow.display import show
from hwflow.errors import ModelRefused
from hwflow.frontend.input_types import DECLARE, Declarations
from hwflow.frontend.states.ties import STATELESS, States
from hwflow.ir.graph import Graph
from hwflow.loaded_model import Model, load
from hwflow.onnxspec import (
    TrainingModel,
)
from hwflow.onnxspec.reading.bound_inputs import InputConstants
from hwflow.onnxspec.reading.external_loading import Folders
from hwflow.passes import pipeline
from hwflow.passes.hold_layers import Holding
from hwflow.processes import forget_refused
from hwflow.schedule.search.folding_search import price

SMALLER = (0.75, 0.9)
"""Share of an unroutable design's look-up tables and multiplier blocks that its replacement may take."""


class Design(ScheduledModel):
    """A model scheduled as requested, which can be written."""

    def smaller(self, executor: Executor | None = None) -> Design | None:
        """Return the fastest design for the same clock within :data:`SMALLER` of this one's look-up tables and
        multiplier blocks, or failing that within a larger share; None where none is smaller."""
        for share in SMALLER:
            used = self.schedule.resources
            less = {"lut": Amount(int(share * used.lut)), "dsp": Amount(int(share * used.dsp))}
            budget = {**self.request.budget, **less}
            fastest = replace(self.request, fps=None, budget=budget, keep_defaults=True, loops=self.loops)
            try:
                return compile_as(self.model, fastest, executor=executor)
            except ModelRefused:
                continue
        return None

    def write(
        self, out: str | os.PathLike[str], until: str | None = "verilog", progress: Progress | None = None,
        executor: Executor | None = None, heard: Callable[[object], None] | None = None, seeds: Sequence[int] = (),
        settle: bool = True,
    ) -> dict[str, Any]:
        """Write the output folder (see :mod:`hwflow.api.output`) and return the report. ``until`` None: as far as the
        installed tools go. ``executor``: processes that share the work (:func:`hwflow.processes.second_process`); None:
        those that shared the compilation, if any. ``heard``: called with the progress of place and route, whose text is
        for people. ``seeds``: of place and route, the best of which is kept (none: as many as the clock needs).
        ``settle`` False: a missed clock is only reported, else a smaller or a slower design takes its place."""
        check_until(until, self.board)
        with claimed(Path(out)) as output:
            return write_design(
                self, output, until, progress or (lambda line: None), executor, heard=heard, seeds=seeds, settle=settle
            )




def compile(  # the verb of the command line's design; shadows the builtin inside this module only
    model: Model | TrainingModel | str | os.PathLike[str],
    board: Board | str,
    *,
    fps: float | Literal["link"] | None = None,
    clock_mhz: float | None = None,
    budget: Mapping[str, int | float | str] | None = None,
    what_if: bool = False,
    loops: str = AUTO,
    interleave: int | str = 1,
    memory: str = AUTO,
    baud: int | None = None,
    ethernet: str | None = None,
    usb: bool = False,
    name: str | None = None,
    inline_weights: bool = False,
    loadable: str | Sequence[str] | None = None,
    dimensions: Mapping[str, int] | None = None,
    trusted: Folders = (),
    input_types: Declarations | None = None,
    constants: InputConstants | None = None,
    states: States = STATELESS,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Design:
    """Compile for a board: the cheapest design of at least ``fps`` frames per second; without ``fps`` the fastest that
    fits, and of those the cheapest (see :mod:`hwflow.schedule.search.folding_search`). "link": as many as the board's
    link carries, or where fewer fit as many as fit.

    ``model``: as :func:`load` takes it, or loaded; ``dimensions``, ``trusted``, ``input_types``, ``constants`` and
    ``states``: as there.
    ``clock_mhz``: the target clock (:func:`hwflow.codegen.clock.clock_for`; default: the board's clock). ``budget``:
    limits on "lut", "ff", "dsp" and "bram", numbers or percentages like "50%" (:func:`hwflow.api.budget.budgets_for`);
    what it does not name is limited by the default, or if no design fits that, by the part alone.
    ``what_if``: allow more than the board's part has; the design is then for Verilog only. ``loops``: "once" (one body
    for all rounds of a loop), "unrolled" (hardware for each round), "shared" (one body for layers of one shape, too),
    or "auto" (:mod:`hwflow.api.forms.loop_forms`).
    ``interleave``: frames that go through the hardware as one, or "auto" (:mod:`hwflow.api.forms.interleaving`); a
    loaded model has its own. ``memory``: whose weights lie in the board's memory outside: "auto" (of as few words as
    must be), "none" or "all" (:mod:`hwflow.schedule.weights_outside`); but with "none", large states and streams with
    deep queues wait there as well where no design fits otherwise (:mod:`hwflow.schedule.queues_outside`). ``baud``: of
    the board's serial port (default: the highest that it makes at this clock). ``ethernet``: the board's IPv4 address,
    for a link by UDP instead (needs the extra ``hwflow[ethernet]``). ``usb``: a link by the board's own USB socket,
    which some boards have without asking (needs the extra ``hwflow[usb]``). ``name``: what the names of all modules and
    files of the hardware begin with. ``inline_weights``: tables stand in the Verilog instead of files. ``loadable``:
    nodes, or constant tensors, whose layers' weights are loaded while the design runs: "all", names, or "none"
    (default: those whose weights are initializers that are graph inputs, too). ``executor``: processes that share the
    work (:func:`hwflow.processes.second_process` makes one).

    Raises :class:`ModelRefused` (cannot be compiled exactly, does not fit), :class:`UsageError` (invalid board, clock,
    rate or budget; all that can be checked without the model is, before it is read).
    """
    return compile_as(
        model,
        requested(
            board, fps=fps, clock_mhz=clock_mhz, budget=budget, what_if=what_if, loops=loops,
            interleave=interleave, memory=memory, link=LinkOptions(baud, ethernet, usb),
            packaging=Packaging(name, inline_weights), holding=_loadable(loadable), fixed=loadable == NONE,
        ),
        dimensions=dimensions, trusted=trusted, input_types=input_types, constants=constants, states=states,
        progress=progress,
        executor=executor,
    )


def _loadable(layers: str | Sequence[str] | None) -> Holding | None:
    if layers is None or layers == NONE:
        return None
    return Holding(None if layers == ALL else frozenset([layers] if isinstance(layers, str) else layers), loadable=True)


def compile_as(
    model: Model | TrainingModel | str | os.PathLike[str],
    request: Request,
    *,
    dimensions: Mapping[str, int] | None = None,
    trusted: Folders = (),
    input_types: Declarations | None = None,
    constants: InputConstants | None = None,
    states: States = STATELESS,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Design:
    """Compile as :func:`compile` does, with the options in a ``request``."""
    say = progress or (lambda line: None)
    if isinstance(model, Model):
        return _compiled_model(model, request, say, executor)
    source = model

    def compiled(interleave: int) -> Design:
        say("reading the model")
        loaded = load(
            source, dimensions, trusted=trusted, input_types=input_types, constants=constants, states=states,
            interleave=interleave,
        )
        return _compiled_model(loaded, request, say, executor)

    if request.interleave is None:
        return as_many_as_pay(compiled, request)
    return compiled(request.interleave)


def _compiled_model(model: Model, request: Request, say: Progress, executor: Executor | None) -> Design:
    """Compile the forms of a model's loops, and return the best."""
    board, request = request.board, replace(request, interleave=model.interleave)
    begin = time.perf_counter()
    quantized = model.quantized
    if request.holding is not None:
        request = replace(request, holding=of_nodes(request.holding, model.resolved))
    elif request.may_load:
        loaded = by_themselves(model.proto, model.resolved, quantized)
        if loaded is not None:
            asked = replace(request, holding=loaded, memory=NONE)
            with suppress(ModelRefused):  # what does not fit keeps its weights
                return _compiled_model(model, asked, say, executor)
    imported = model.seconds + time.perf_counter() - begin
    found: list[Design] = []
    refused: ModelRefused | None = None
    holding, loops = request.holding, request.loops if request.holding is None else pipeline.UNROLLED

    def streams(quantized: Graph, loops: str = pipeline.UNROLLED) -> Graph:
        return dataflow(quantized, loops, holding)

    for form in forms_of(quantized, loops, streams):
        if form.only_if_needed and not (refused and any(each.rule == TOO_FAST for each in refused.findings)):
            break  # what does not fit once does not fit for each round
        try:
            found.append(_compiled(model, form, request, imported, say, executor))
        except ModelRefused as why:
            refused = refused or why
    crowded = not request.asks_rate and all(design.is_crowded for design in found)
    shared = shared_form(quantized, streams) if loops == AUTO and (not found or crowded) else None
    if shared is not None:
        say("sharing cores among layers of one shape")
        forget_refused()
        with suppress(ModelRefused):
            found.append(_compiled(model, shared, request, imported, say, executor))
    if not found:
        assert refused is not None, "there is a form"
        raise refused
    return min(found, key=lambda design: (
        0 if request.asks_rate else design.schedule.initiation_interval,
        price(design.schedule.resources, board.part),
    ))


def _compiled(
    model: Model, form: Form, request: Request, imported: float, say: Progress, executor: Executor | None
) -> Design:
    """Compile one form of a model's loops: all of it inside, or with weights in the board's memory."""
    begin = time.perf_counter()
    streams = form.make()
    seconds = Seconds()
    seconds.steps["import"] = imported + time.perf_counter() - begin
    board, clock_hz = request.board, request.clock.frequency_hz
    timing = board.memory_timing(clock_hz)
    if timing is None:
        made = scheduled(streams, request, say, executor)
    else:
        made = MemoryOutside(streams, timing, board.flash_timing(clock_hz), request, say, executor).best()
    seconds.steps["schedule"] = made.seconds
    return Design(model, made.request, made.schedule, seconds, made.beyond, made.conversion, form.loops, made.budgets)


def dataflow(quantized: Graph, loops: str = pipeline.UNROLLED, holding: Holding | None = None) -> Graph:
    """Return the dataflow graph in a form of its ``loops``; refuse a model that leaves nothing to hardware.
    ``holding``: the layers that have room for other weights."""
    passes = pipeline.FORMS[loops] if holding is None else pipeline.holding(holding.hold)
    graph = pipeline.run(quantized, passes)
    if not graph.nodes:
        raise ModelRefused.of(
            "hardware-operator", f"model {show(graph.name)}",
            "at least one operator must be left for hardware, not none: outputs are inputs in another shape",
            f"let hardware begin before what the host does there: {DECLARE}" if quantized.prefix
            else "there is nothing to compile",
        )
    return graph
