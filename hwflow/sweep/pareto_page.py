"""The page of a sweep: one HTML file without scripts or network, with a chart for each pair of goals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from hwflow.sweep.pareto import GOALS, Result, fronts

TITLES = {
    "frames_per_second": "frames per second", "lut": "look-up tables", "ff": "flip-flops", "dsp": "multiplier blocks",
    "bram": "block RAMs", "snr_db": "SNR (dB)", "accuracy": "accuracy",
}
PAIRS = (
    ("frames_per_second", "lut"), ("frames_per_second", "dsp"), ("frames_per_second", "bram"), ("snr_db", "lut"),
    ("accuracy", "lut"), ("snr_db", "frames_per_second"),
)
_COLUMNS = (
    "board", "fps", "clock_mhz", "budget", "bits", "activations", "seed", "status", "frames_per_second", "latency_us",
    "lut", "ff", "dsp", "bram", "fmax_mhz", "snr_db", "accuracy",
)
_HUES = (210, 25, 135, 280, 0, 175, 55, 320)
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE = 420, 300, 62, 40, 14

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --faint: #8883; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 90rem; padding: 0 1rem; }
h1 { font-size: 1.35rem; } h2 { font-size: 1.1rem; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; flex: 1 1 22rem; max-width: 34rem; }
svg { width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
.axis { stroke: var(--line); fill: none; } .grid { stroke: var(--faint); }
.front { stroke: currentColor; stroke-opacity: .55; fill: none; stroke-dasharray: 4 3; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid var(--faint); white-space: nowrap; }
th { position: sticky; top: 0; background: Canvas; } tr.front td { font-weight: 600; }
tr.none td { opacity: .7; } td.text { text-align: left; white-space: normal; min-width: 18rem; }
.key { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin: 0 .35em 0 1em; }
"""


def pareto_page(results: Sequence[Result], front: Sequence[int], points: int) -> str:
    """Return the page. ``front``: numbers of results; ``points``: how many there are, done or not. Names of boards and
    texts of findings are shown as they are, whatever they look like."""
    done = [result for result in results if result["status"] == "done"]
    colours = _colours(done)
    keys = "".join(
        f'<span class="key" style="background:{colour}"></span>{escape(board)}' for board, colour in colours.items()
    )
    charts = "".join(_chart(results, x, y, colours) for x, y in PAIRS if _has(done, x) and _has(done, y))
    others = len(results) - len(done)
    left = f", {points - len(results):,} not run yet" if points > len(results) else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>hwflow explore</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>Designs of a sweep</h1>\n"
        f"<p>{len(done):,} designs, {others:,} points without one{left}; {len(front):,} on the Pareto front: no other "
        f"design is better in one of {escape(', '.join(TITLES[goal] for goal in GOALS))} and as good in the rest."
        "</p>\n"
        f'<p>{keys}</p>\n<div class="charts">{charts}</div>\n<h2>Points</h2>\n<div class="wide">'
        f"{_table(results, set(front))}</div>\n</body></html>\n"
    )


def _colours(results: Sequence[Result]) -> dict[str, str]:
    boards = dict.fromkeys(result["point"]["board"] for result in results)
    return {
        board: f"hsl({_HUES[number % len(_HUES)]} 70% {50 - 12 * (number // len(_HUES) % 3)}%)"
        for number, board in enumerate(boards)
    }


def _has(results: Sequence[Result], name: str) -> bool:
    return any(result["figures"].get(name) is not None for result in results)


def _chart(results: Sequence[Result], x: str, y: str, colours: Mapping[str, str]) -> str:
    """Return the chart of two figures, with their own front as a line."""
    goals = {name: GOALS[name] for name in (x, y)}
    shown = [
        number for number, result in enumerate(results)
        if result["figures"].get(x) is not None and result["figures"].get(y) is not None
    ]
    if not shown:
        return ""
    across = _Scale([results[n]["figures"][x] for n in shown], _LEFT, _WIDTH - _EDGE)
    up = _Scale([results[n]["figures"][y] for n in shown], _HEIGHT - _BOTTOM, _EDGE)
    best = [n for n in fronts(results, goals) if n in set(shown)]
    steps = sorted({(across(results[n]["figures"][x]), up(results[n]["figures"][y])) for n in best})
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in steps)
    marks = "".join(_mark(results[n], across, up, x, y, colours, n in set(best)) for n in shown)
    title = f"{TITLES[y]} over {TITLES[x]}"
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(_lines(across, up))}"
        f'<text x="{(_LEFT + _WIDTH) / 2:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(TITLES[x])}</text>'
        f'<text x="12" y="{(_HEIGHT - _BOTTOM) / 2:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 12 {(_HEIGHT - _BOTTOM) / 2:.0f})">{escape(TITLES[y])}</text>'
        f'<polyline class="front" points="{line}"/>{marks}</svg></figure>'
    )


def _lines(across: _Scale, up: _Scale) -> Iterator[str]:
    bottom, top = _HEIGHT - _BOTTOM, _EDGE
    for value in across.ticks():
        place = across(value)
        yield f'<line class="grid" x1="{place:.1f}" x2="{place:.1f}" y1="{top}" y2="{bottom}"/>'
        yield f'<text x="{place:.1f}" y="{bottom + 14}" text-anchor="middle">{_short(value)}</text>'
    for value in up.ticks():
        place = up(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _EDGE}" y1="{place:.1f}" y2="{place:.1f}"/>'
        yield f'<text x="{_LEFT - 5}" y="{place + 4:.1f}" text-anchor="end">{_short(value)}</text>'
    yield f'<path class="axis" d="M{_LEFT} {top}V{bottom}H{_WIDTH - _EDGE}"/>'


def _mark(
    result: Result, across: _Scale, up: _Scale, x: str, y: str, colours: Mapping[str, str], best: bool,
) -> str:
    figures, point = result["figures"], result["point"]
    colour = colours[point["board"]]
    missed = figures.get("timing_met") is False
    words = ", ".join(f"{name} {_text(value)}" for name, value in point.items() if value is not None)
    words += f": {TITLES[x]} {_text(figures[x])}, {TITLES[y]} {_text(figures[y])}" + (", clock missed" * missed)
    fill = "none" if missed else colour
    return (
        f'<circle cx="{across(figures[x]):.1f}" cy="{up(figures[y]):.1f}" r="{5 if best else 3.5}" '
        f'fill="{fill}" stroke="{colour}"><title>{escape(words)}</title></circle>'
    )


class _Scale:
    """Places of values on an axis: by their logarithms where they are positive and differ ten times and more."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        least, most = min(values), max(values)
        self.log = least > 0 and most >= 10 * least
        if not self.log:
            room = (most - least) or abs(most) or 1.0
            least, most = max(least - 0.08 * room, min(least, 0)), most + 0.08 * room
        else:
            least, most = least / 1.25, most * 1.25
        self._least, self._most, self._begin, self._end = least, most, begin, end

    def __call__(self, value: float) -> float:
        low, high = self._at(self._least), self._at(self._most)
        return self._begin + (self._end - self._begin) * (self._at(value) - low) / (high - low)

    def _at(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def ticks(self) -> list[float]:
        """Return round values, five or so."""
        if self.log:
            first, last = math.floor(self._at(self._least)), math.ceil(self._at(self._most))
            every = max(1, (last - first) // 5)
            digits = (1, 2, 5) if last - first <= 3 else (1,)
            found = [digit * 10.0**power for power in range(first, last + 1, every) for digit in digits]
        else:
            step = 10.0 ** math.floor(math.log10((self._most - self._least) / 4))
            step *= next(factor for factor in (1, 2, 5, 10) if (self._most - self._least) / (factor * step) <= 6)
            found = [step * number for number in range(math.ceil(self._least / step), int(self._most / step) + 1)]
        return [value for value in found if self._least <= value <= self._most]


def _table(results: Sequence[Result], front: set[int]) -> str:
    used = [name for name in _COLUMNS if any(_value(result, name) is not None for result in results)]
    head = "".join(f"<th>{escape(TITLES.get(name, name.replace('_', ' ')))}</th>" for name in used)
    rows = []
    for number, result in enumerate(results):
        kind = "front" if number in front else "" if result["status"] == "done" else "none"
        cells = "".join(f"<td>{escape(_text(_value(result, name)))}</td>" for name in used)
        said = "; ".join(
            f"{f['where']}: {f['message']} ({f['remedy']})" for f in result["findings"][:3]
        ) + (f"; {len(result['findings']) - 3} more" if len(result["findings"]) > 3 else "")
        rows.append(f'<tr class="{kind}">{cells}<td class="text">{escape(said)}</td></tr>')
    return f"<table><thead><tr>{head}<th>findings</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _value(result: Result, name: str) -> Any:
    if name == "status":
        return result["status"]
    return result["point"][name] if name in result["point"] else result["figures"].get(name)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={each}" for name, each in value.items())
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:.4g}"
