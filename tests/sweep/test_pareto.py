"""The front of results, by hand and by comparing each with each; the page shows names as they are."""

from __future__ import annotations

import csv
import json
from html.parser import HTMLParser

import numpy as np
import pytest

from hwflow.sweep.pareto import GOALS, fronts
from hwflow.sweep.pareto_page import pareto_page
from hwflow.sweep.points import Axes
from hwflow.sweep.sweep_tables import COLUMNS, write_tables


def result(status="done", seed=None, board="b", budget=None, findings=(), **figures):
    point = {
        "board": board, "fps": "max", "clock_mhz": None, "budget": budget, "bits": None, "activations": None,
        "seed": seed,
    }
    table = {"point": point, "status": status, "findings": list(findings), "seconds": 1.0, "processor_seconds": 0.5}
    return table | {"figures": {"clock_mhz": 100.0, "latency_us": 1.0, **figures}}


def of(number, fps, lut, **others):
    return result(board=f"b{number}", frames_per_second=fps, lut=lut, **others)


def test_by_hand():
    results = [of(0, 100.0, 10), of(1, 200.0, 20), of(2, 150.0, 20), of(3, 200.0, 20), of(4, 50.0, 10), of(5, 90.0, 9)]
    assert fronts(results) == (0, 1, 3, 5)
    assert fronts([*results, of(6, 300.0, 9)]) == (6,)


def test_what_is_no_design_or_misses_its_clock_is_not_on_it():
    assert fronts([result("refused"), of(1, 1.0, 9), of(2, 9.0, 1, timing_met=False), result("failed")]) == (1,)


def test_of_seeds_the_best_clock_counts():
    seeds = [
        result(seed=seed, frames_per_second=1.0, lut=1, fmax_mhz=mhz, timing_met=mhz >= 100)
        for seed, mhz in enumerate((99.0, 120.0, 140.0, 130.0))
    ]
    assert fronts(seeds) == (2,)


@pytest.mark.parametrize("seed", range(5))
def test_like_comparing_each_with_each(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (60, len(GOALS)))
    results = [
        result(board=f"b{n}", **dict(zip(GOALS, map(float, row), strict=True))) for n, row in enumerate(table)
    ]
    worth = table * np.array([*GOALS.values()])
    better = [
        any((other >= own).all() and (other > own).any() for other in worth) for own in worth
    ]
    assert fronts(results) == tuple(n for n, behind in enumerate(better) if not behind)


def test_axes_combine_to_each_point_once():
    axes = Axes(["a", "b"], [1.0, None, 1.0], [None], [None, {"lut": "9", "dsp": 1}], seeds=2)
    points = axes.points()
    assert len(points) == len(set(points)) == 2 * 2 * 2 * 2
    assert [point.seed for point in points[:4]] == [1, 2, 1, 2]
    assert {point.budget for point in points} == {(), (("dsp", "1"), ("lut", "9"))}


class Elements(HTMLParser):
    """The elements, and the text outside of styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self._inside = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside = tag

    def handle_data(self, data):
        if self._inside != "style":
            self.text.append(data)


HOSTILE = "</title><script>alert('x')</script><img src=x onerror=alert(1)>\"'&"


def test_hostile_names_are_inert():
    finding = {"where": f"value {HOSTILE}", "message": HOSTILE, "remedy": HOSTILE, "clause": "c", "severity": "error"}
    results = [
        result(board=HOSTILE, budget={HOSTILE: HOSTILE}, frames_per_second=9.0, lut=3, findings=[finding]),
        result("refused", board=HOSTILE, findings=[finding]),
        of(1, 5.0, 1),
    ]
    page = pareto_page(results, fronts(results), 4)
    plain = Elements(pareto_page([of(0, 9.0, 3), result("refused"), of(1, 5.0, 1)], (0, 2), 4))
    found = Elements(page)
    assert {tag for tag, _ in found.tags} == {tag for tag, _ in plain.tags}
    assert not any(name.startswith("on") or name in ("src", "href") for _, each in found.tags for name in each)
    assert HOSTILE in "".join(found.text)


def test_a_page_has_a_chart_for_each_pair_of_known_figures():
    results = [of(0, 10.0, 300, dsp=1, bram=4), of(1, 20000.0, 900, dsp=8, bram=4), result("refused")]
    page = Elements(pareto_page(results, fronts(results), 5))
    labels = [a["aria-label"] for tag, a in page.tags if tag == "svg"]
    names = ("look-up tables", "multiplier blocks", "block RAMs")
    assert labels == [f"{name} over frames per second" for name in names]
    marks = [a for tag, a in page.tags if tag == "circle"]
    assert len(marks) == 6 and all(0 < float(a["cx"]) < 420 and 0 < float(a["cy"]) < 300 for a in marks)
    assert float(marks[0]["cx"]) < float(marks[1]["cx"]) and float(marks[0]["cy"]) > float(marks[1]["cy"])
    assert "2 designs, 1 points without one, 2 not run yet" in "".join(page.text)


def test_the_tables_have_the_same_points(tmp_path):
    finding = {"where": "w", "message": "a, \"b\"", "remedy": "r", "clause": "c", "severity": "error"}
    results = [of(0, 10.0, 300, timing_met=True), result("refused", findings=[finding], budget={"lut": "5", "ff": "6"})]
    write_tables(tmp_path, results, (0,), 3)
    rows = [*csv.DictReader((tmp_path / "results.csv").read_text().splitlines())]
    assert [*rows[0]] == [*COLUMNS]
    shown = [(row["status"], row["front"], row["lut"]) for row in rows]
    assert shown == [("done", "true", "300"), ("refused", "false", "")]
    assert rows[1]["finding"] == 'w: a, "b"' and rows[1]["budget"] == "lut=5,ff=6" and rows[0]["timing_met"] == "true"
    table = json.loads((tmp_path / "results.json").read_text())
    assert table == {"points": results, "front": [0], "left": 1}
