"""The command `explore`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwflow.api.options import texts
from hwflow.cli.tables import Table
from hwflow.cli.terminal import Steps, counted, print_json, say
from hwflow.display import cell
from hwflow.errors import ToolError

if TYPE_CHECKING:
    from hwflow.sweep.exploring import Exploration

_SHOWN = 40  # rows


def run_explore(arguments: argparse.Namespace) -> int:
    """Make a design for every combination of the axes. Return 1 if no point has one, 3 if a point failed."""
    from hwflow.api.request import Gathered
    from hwflow.frontend.states.ties import STATELESS
    from hwflow.sweep.exploring import explore
    from hwflow.sweep.points import Axes

    gathered = Gathered()
    values: dict[str, Any] = {}

    def take(name: str, parse: Callable[[], Any]) -> None:
        with gathered.check():
            values[name] = parse()

    take("fps", lambda: [_rate(text) for text in texts.listed(arguments.fps)] or [None])
    take("clocks", lambda: [texts.number("--clock", text, "100") for text in texts.listed(arguments.clock)])
    take("budgets", lambda: [texts.resources(text) for text in arguments.budget])
    take("bits", lambda: [texts.whole_number("--bits", text, "8") for text in texts.listed(arguments.bits)])
    take("seeds", lambda: texts.seeds(arguments.place_route_seeds))
    take("workers", lambda: texts.whole_number("--workers", arguments.workers, "2"))
    take("dimensions", lambda: texts.dimensions(arguments.dim))
    take("constants", lambda: texts.constants(arguments.const))
    take("input_types", lambda: {name: str(t) for name, t in texts.input_types(arguments.input_type).items()})
    take("states", lambda: texts.states(arguments.state, arguments.channels))
    gathered.require_none()
    axes = Axes(
        boards=texts.listed(arguments.board), fps=values["fps"], clocks=values["clocks"] or [None],
        budgets=values["budgets"] or [None], bits=values["bits"] or [None],
        activations=texts.listed(arguments.activations) or [None], seeds=values["seeds"],
    )
    stem = Path(arguments.model).stem
    target = Path(f"build/{stem}-explore" if arguments.output is None else arguments.output)
    with Steps() as progress:
        found = explore(
            arguments.model, target, axes, until=arguments.until, calibration=arguments.calibration,
            dask=arguments.dask, workers_here=values["workers"], dimensions=values["dimensions"],
            trusted=arguments.trust, input_types=values["input_types"], constants=values["constants"],
            states=values.get("states", STATELESS), progress=progress, counted=progress.count,
        )
    if arguments.format == "json":
        print_json(found.table())
    else:
        _print(found)
    if found.count("failed"):
        return ToolError.exit_code
    return 0 if found.count("done") else 1


def _rate(text: str) -> float | str | None:
    from hwflow.api.request import check_rate

    if text in ("link", "max"):
        return None if text == "max" else text
    rate = texts.number("--fps", text, "1000,5000,max")
    check_rate(rate)
    return rate


def _print(found: Exploration) -> None:
    """Print the front, and why points have no design."""
    grid = Table("point", "frames/s", "latency us", "lut", "ff", "dsp", "bram", "MHz", "SNR dB", "accuracy")
    for number in found.front[:_SHOWN]:
        result = found.results[number]
        figures = result["figures"]
        quality = (figures.get("snr_db"), "{:.1f}"), (figures.get("accuracy"), "{:.2%}")
        grid.add_row(
            _named(result["point"]), round(figures["frames_per_second"]), f"{figures['latency_us']:.4g}",
            *(figures[name] if figures[name] is not None else "" for name in ("lut", "ff", "dsp", "bram")),
            f"{figures['fmax_mhz'] or figures['clock_mhz']:.1f}",
            *("" if value is None else form.format(value) for value, form in quality),
        )
    grid.print()
    if len(found.front) > _SHOWN:
        say(f"... {len(found.front) - _SHOWN:,} more on the front")
    for result in found.results:
        if result["status"] != "done":
            first, *rest = result["findings"] or [{"where": "", "message": ""}]
            more = f" (and {counted(len(rest), 'finding')} more)" if rest else ""
            say(f"{result['status']}: {_named(result['point'])}: {first['where']}: {first['message']}{more}")
    say(
        f"{counted(len(found.results), 'point')}: {found.count('done'):,} done, {found.count('refused'):,} refused, "
        f"{found.count('failed'):,} failed; {found.new:,} run now, the others before",
        f"{found.output}/results.csv, results.json, pareto.html",
    )
    if found.count("failed"):
        say("note: the same command runs those that failed again")


def _named(point: dict[str, Any]) -> str:
    """Return a point in words, without what is the default."""
    budget = ",".join(f"{name}={value}" for name, value in (point["budget"] or {}).items())
    parts = [
        cell(point["board"]), f"{point['fps']} fps" if isinstance(point["fps"], str) else f"{point['fps']:g} fps",
        "" if point["clock_mhz"] is None else f"{point['clock_mhz']:g} MHz", budget,
        "" if point["bits"] is None else f"{point['bits']} bits", point["activations"] or "",
        "" if point["seed"] is None else f"seed {point['seed']}",
    ]
    return " ".join(part for part in parts if part)
