"""`report`: the page of a folder and of a model; what it refuses. What is on it: tests/report."""

from __future__ import annotations

import json

from hwflow.api.options.synth_options import NAMES
from hwflow.cli.commands.report_page import DEFAULTS, UNASKED
from hwflow.cli.parser import command_line
from tests.cli import models
from tests.cli.refused.refusals import error


def test_the_page_of_a_folder(hwflow, tmp_path):
    """synth writes it; what compare finds is on it; it can be written again, and elsewhere."""
    models.relu(tmp_path / "good.onnx")
    assert hwflow("synth", "good.onnx", "--board", "icebreaker", "-o", "out", "--until", "verilog").code == 0
    page = tmp_path / "out" / "report.html"
    first = page.read_text()
    assert '"comparison":null' in first and '"dataflow":{"format":1' in first
    assert hwflow("compare", "out", "--frames", 2).code == 0
    compared = page.read_text()
    assert '"comparison":{"values":[{"name":' in compared and '"least":' in compared
    assert str(tmp_path) not in compared and '"inputs"' not in compared
    page.unlink()
    ran = hwflow("report", "out")
    assert (ran.code, ran.out, ran.err) == (0, "report: out/report.html\n", "")
    assert page.read_text() == compared
    ran = hwflow("report", "out", "-o", "new/page.html", "--format", "json")
    assert json.loads(ran.out) == {"report": "new/page.html", "findings": []}
    assert (tmp_path / "new" / "page.html").read_text() == compared
    unchanged = hwflow("synth", "good.onnx", "--board", "icebreaker", "-o", "out", "--until", "verilog")
    assert "up to date" in unchanged.out and page.read_text() == compared
    # of another design nothing was compared
    assert hwflow("synth", "good.onnx", "--board", "ulx3s_85f", "-o", "out", "--until", "verilog").code == 0
    assert '"comparison":null' in page.read_text()


def test_a_result_of_another_design_is_not_shown(hwflow, tmp_path):
    models.relu(tmp_path / "good.onnx")
    assert hwflow("synth", "good.onnx", "--board", "icebreaker", "-o", "out", "--until", "verilog").code == 0
    (tmp_path / "out" / "simulation.json").write_text('{"verdict": "equal", "frames": 1, "design": "another"}')
    assert hwflow("report", "out").code == 0
    assert '"simulation":null' in (tmp_path / "out" / "report.html").read_text()


def test_the_page_of_a_model(hwflow, tmp_path):
    models.relu(tmp_path / "good.onnx")
    ran = hwflow("report", "good.onnx", "--board", "icebreaker", "--fps", 1000)
    assert (ran.code, ran.out) == (0, "report: build/good.html\n")
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["good.html"]
    assert '"board":"icebreaker"' in (tmp_path / "build" / "good.html").read_text()


def test_it_takes_the_options_of_a_design():
    """Those that synth has are its own, too, or make no difference to a page; of a folder all are refused."""
    assert {*DEFAULTS, *UNASKED, "trust"} == {*NAMES}
    parsed = vars(command_line().parse_args(["report", "out"]))
    assert {name: parsed[name] for name in DEFAULTS} == DEFAULTS


def test_what_is_refused(hwflow, tmp_path):
    models.relu(tmp_path / "good.onnx")
    (tmp_path / "empty").mkdir()
    refusals = {
        ("good.onnx",): error(
            "option --board", "must be given where 'good.onnx' is a model, not left out", "board-option",
            "see 'hwflow boards'",
        ),
        ("empty",): error(
            "folder 'empty'",
            "must be an output folder of 'hwflow synth', but report.json and manifest.json are not there, or damaged",
            "output-folder", "run 'hwflow synth' first",
        ),
        ("empty", "--fps", 5): error(
            "option --fps", "must belong to a model, but 'empty' is an output folder, whose design is fixed",
            "design-option", "leave it out",
        ),
        ("good.onnx", "--board", "icebreaker", "-o", "good.onnx/page.html"): error(
            "file 'good.onnx/page.html'",
            "must be a file that can be written, but the system says: File exists", "report-file",
            "choose another file with -o",
        ),
    }  # fmt: skip
    for arguments, expected in refusals.items():
        ran = hwflow("report", *arguments)
        assert (ran.code, ran.out) == (2, "") and ran.err.endswith(expected), ran.err
