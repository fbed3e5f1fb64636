"""The documentation against the code: its pages, what is generated, and report.json's keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import hwflow
from boards import all_boards
from docs.generated import PAGES
from hwflow.cli.parser import command_line
from hwflow.cores.requantizers.requantize import CORES
from hwflow.frontend.states.ties import States
from hwflow.numerics.requantizers.form import Form
from hwflow.numerics.requantizers.lookup_form import lookup_form
from hwflow.numerics.requantizers.quadratics import find_quadratics
from hwflow.numerics.requantizers.search_form import search_form
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.numerics.requantizers.threshold_form import threshold_form
from hwflow.onnxspec.clauses import RULES
from tests.models import Builder
from tests.test_project import ROOT

DOCS = ROOT / "docs"
CONFIGURATION: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    """By the page's name."""
    return {Path(path).stem: page() for path, page in PAGES.items()}


def pages_of(nav: list[dict[str, Any]]) -> Iterator[str]:
    for entry in nav:
        for target in entry.values():
            yield from [target] if isinstance(target, str) else pages_of(target)


def test_every_page_is_in_the_navigation_once() -> None:
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(pages_of(CONFIGURATION["nav"])) == sorted([*pages, *PAGES])


def test_every_option_is_on_the_command_line_page(generated: dict[str, str]) -> None:
    sections = dict(re.findall(r"^## hwflow (\w+)\n(.*?)(?=^## |\Z)", generated["command-line"], re.M | re.S))
    (commands,) = (action.choices for action in command_line()._actions if isinstance(action.choices, dict))
    assert sections.keys() == commands.keys()
    for name, command in commands.items():
        options = {option for action in command._actions for option in action.option_strings} - {"-h", "--help"}
        assert set(re.findall(r"`(--?\w[\w-]*)", sections[name])) >= options
        assert "|  |" not in sections[name], f"an argument of {name} without help"
    assert "`--format text|json`" in sections["synth"] and "%%" not in generated["command-line"]


def test_every_board_and_every_rule_has_a_row(generated: dict[str, str]) -> None:
    assert set(re.findall(r"^\| `(\w+)` ", generated["boards"], re.M)) == {board.name for board in all_boards()}
    assert "| 83,640 | 83,640 | 156 | 208 | 125 | serial, USB, 3 Mbaud; USB serial device |" in generated["boards"]
    rules = re.findall(r"^\| \*\*([\w.-]+)\*\*", generated["clauses"], re.M)
    assert sorted(rules) == sorted(rule.id for rule in RULES)
    assert "value 'y' must be defined once, but node 'first' (Relu) defines it too" in generated["clauses"]


def test_rows_have_as_many_cells_as_titles(generated: dict[str, str]) -> None:
    for text in (*generated.values(), *(path.read_text() for path in DOCS.rglob("*.md"))):
        for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
            rows = [re.sub(r"`[^`]*`", "", line) for line in table.splitlines()]
            assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {rows[1].count("|")}, table


def test_what_the_glossary_names_is_there() -> None:
    text = (DOCS / "glossary.md").read_text()
    paths = re.findall(r"`((?:hwflow|hdl_lib)/[\w/.]*)`", text)
    assert len(paths) > 50
    assert [path for path in paths if not (ROOT / path).exists()] == []


def keys(value: Any, path: str = "") -> set[str]:
    """Of all leaves, as docs/reference/report.md spells them; a list of rows is `path[]`."""
    if isinstance(value, dict):
        return {key for name, entry in value.items() for key in keys(entry, f"{path}.{name}".lstrip("."))} or {path}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return set().union(*(keys(row, f"{path}[]") for row in value))
    return {path}


def documented() -> set[str]:
    """The same of the page: first cells of its tables; of versions and files, whose names are data, only the first
    part; and of the forms of requantizers the second cells, in both places that have them."""
    text = (DOCS / "reference" / "report.md").read_text()
    cells = re.findall(r"^\| (`[^|]*`) \| ([^|]*) \|", text, re.M)
    forms = {row[0] for row in cells} & {f"`{form.title}`" for form in CORES}
    result = {key for first, _ in cells if first not in forms for key in re.findall(r"`([^`]+)`", first)}
    details = {key for first, second in cells if first in forms for key in re.findall(r"`([^`]+)`", second)}
    assert len(forms) == len(CORES)
    return result | {f"{place}.{key}" for place in PLACES for key in details}


PLACES = ("layers[].requantizer", "exactness.requantizers[]")
DATA = ("versions", "model.external_sha256")


def forms() -> list[Form]:
    """One of each, but for the multiply-add-shift that the network below has."""
    steps = [StepFunction.of_table(0, [0, 1, 1, 2, 3, 5])]
    parabola = StepFunction.of_table(0, [x * x // 4096 for x in range(4096)])
    found = [
        threshold_form(steps), search_form(steps, with_values=True), lookup_form(steps), find_quadratics(parabola),
    ]
    assert None not in found
    return [form for form in found if form is not None]


def network(folder: Path) -> Path:
    """A dense layer between quantizers."""
    import onnx

    b = Builder()
    x = b.requantize(b.input("x", ("N", 4)), 0.5)
    b.output(b.requantize(b.node("MatMul", x, b.weights(np.arange(12).reshape(4, 3) - 5, 0.5)), 4.0))
    onnx.save(b.build(), folder / "model.onnx")
    return folder / "model.onnx"


def counter(folder: Path) -> Path:
    b = Builder(21, 10)
    total = b.node("Add", b.input("x", ["N", 3], "uint8"), b.input("h", ["N", 3], "uint8"), name="y")
    b.output(total, b.node("Identity", total))
    return b.save(folder, "counter.onnx")


def test_the_report_has_the_keys_that_its_page_says(tmp_path: Path) -> None:
    table = hwflow.compile(network(tmp_path), "icebreaker", interleave=2).write(tmp_path / "out")
    found = {next((name for name in DATA if key.startswith(f"{name}.")), key) for key in keys(table)}
    found |= {f"{place}.{key}" for place in PLACES for form in forms() for key in form.details()}
    states = States(("y=h",))
    stateful = hwflow.compile(counter(tmp_path), "icebreaker", states=states).write(tmp_path / "stateful")
    found |= {key for key in keys(stateful) if key.startswith("timing.circuit.")}
    found |= {f"resources.{name}" for name in ("lut", "ff", "dsp", "bram")}
    found.add("seconds.patch")  # of another verb
    found |= {f"link.clocks[].{name}" for name in ("name", "target_mhz", "fmax_mhz")}  # after place and route
    assert documented() == found | {f"multipliers.{name}" for name in table["multipliers"]}
