"""The options of `synth`, as given and as recorded in an output folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from hwflow.api.options import texts

if TYPE_CHECKING:
    from hwflow.api.compiler import Design
    from hwflow.api.request import Rate, Request
    from hwflow.frontend.input_types import InputType
    from hwflow.frontend.states.ties import States
    from hwflow.passes.hold_layers import HeldLayer

NAMES = (
    "board", "fps", "clock", "budget", "baud", "ethernet", "usb", "loops", "interleave", "memory", "patchable",
    "loadable", "name", "inline_weights", "dim", "const", "input_type", "state", "channels", "trust",
    "place_route_seeds",
)
"""The options that decide what a model becomes, as argparse names them."""


@dataclass(frozen=True)
class SynthOptions:
    """The options, checked. ``given``: as the command line has them, by :data:`NAMES`; ``seeds``: to place and route
    with, 0 for as many as it takes."""

    given: Mapping[str, Any]
    request: Request
    seeds: int
    dimensions: Mapping[str, int]
    constants: Mapping[str, str]
    input_types: Mapping[str, InputType]
    states: States

    def table(self) -> dict[str, Any]:
        """Return what is recorded of them, as JSON can hold it: with the digests of the files that they name."""
        from hwflow.onnxspec.reading.bound_inputs import digests_of
        from hwflow.sim.digests import digest

        return {
            "given": dict(self.given), "constants": digests_of(self.constants),
            "states": list(map(digest, self.states.files)),
        }

    def compile(
        self, model: Path, progress: Callable[[str], None], executor: Executor | None = None,
        known: Mapping[str, HeldLayer] | None = None,
    ) -> Design:
        """Compile a model with them. ``known``: what hardware that is there holds for other weights."""
        from hwflow.api.compiler import compile_as
        from hwflow.passes.hold_layers import Holding

        request = self.request
        if request.holding is not None:
            request = replace(request, holding=replace(request.holding, known=known))
        elif known is not None:  # what is loadable by itself, whatever the model says
            request = replace(request, holding=Holding(frozenset(known), known, loadable=True), memory="none")
        return compile_as(
            model, request, dimensions=self.dimensions, trusted=self.given["trust"],
            input_types=self.input_types, constants=self.constants, states=self.states, progress=progress,
            executor=executor,
        )


def synth_options(arguments: Mapping[str, Any], until: str | None = None) -> SynthOptions:
    """Check options by :data:`NAMES`; others are ignored. ``until``: the option of that name.

    Raises :class:`UsageError` with a finding for each invalid value.
    """
    from hwflow.api.request import Gathered, check_until, requested, require_seeds
    from hwflow.codegen.board.carriers.link_options import LinkOptions
    from hwflow.codegen.emitted.packaging import Packaging
    from hwflow.frontend.states.ties import STATELESS

    given = {name: arguments[name] for name in NAMES}
    asked = SimpleNamespace(**given)
    gathered = Gathered()
    clock = budget = baud = None
    fps: Rate = None
    with gathered.check():
        fps = "link" if asked.fps == "link" else texts.number("--fps", asked.fps, "1000")
    with gathered.check():
        clock = texts.number("--clock", asked.clock, "100")
    with gathered.check():
        budget = texts.resources(asked.budget)
    with gathered.check():
        baud = texts.whole_number("--baud", asked.baud, "1000000")
    seeds = 0
    with gathered.check():
        seeds = texts.seeds(asked.place_route_seeds)
    held = None
    with gathered.check():
        held = texts.holding(asked.patchable, asked.loadable)
    request = None
    with gathered.check():
        request = requested(
            asked.board, fps=fps, clock_mhz=clock, budget=budget, what_if=until == "verilog",
            link=LinkOptions(baud, asked.ethernet, asked.usb), loops=asked.loops,
            interleave=texts.interleave(asked.interleave), memory=asked.memory,
            packaging=Packaging(asked.name, asked.inline_weights), holding=held, fixed=asked.loadable == "none",
        )
    with gathered.check():
        check_until(until, None if request is None else request.board)
        if seeds:
            require_seeds(until, [] if request is None else [request.board])
    dimensions: dict[str, int] = {}
    with gathered.check():
        dimensions = texts.dimensions(asked.dim)
    constants: dict[str, str] = {}
    with gathered.check():
        constants = texts.constants(asked.const)
    input_types: dict[str, InputType] = {}
    with gathered.check():
        input_types = texts.input_types(asked.input_type)
    states = STATELESS
    with gathered.check():
        states = texts.states(asked.state, asked.channels)
    gathered.require_none()
    assert request is not None, "else there is a finding"
    return SynthOptions(given, request, seeds, dimensions, constants, input_types, states)
