"""Options of `synth`: wrong ones, all at once, and what right ones do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from boards import all_boards, find_board
from hwflow.codegen.clock import clock_for
from tests.cli import models
from tests.cli.refused.refusals import DIGITS, WRITING, error, refused, synth, too_fast

KNOWN = ", ".join(board.name for board in all_boards())
MEANT = "did you mean 'ulx3s_45f'? see 'hwflow boards'"


def test_an_unknown_board(hwflow):
    text = error("option --board", f"board must be one of {KNOWN}, not 'ulx4'", "known-board", MEANT)
    refused(synth(hwflow, DIGITS, board="ulx4"), 2, text, before="")


@pytest.mark.parametrize(
    ("arguments", "program", "message"),
    [
        ((), "hwflow", "the following arguments are required: COMMAND"),
        (("synth", "m.onnx"), "hwflow synth", "the following arguments are required: --board"),
        (("synth",), "hwflow synth", "the following arguments are required: model, --board"),
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
    """A frame in twelve cycles takes more than the part has; the rate that is named instead is reached."""
    ran = synth(hwflow, DIGITS, "--fps", "1e7")
    assert (ran.code, ran.out) == (1, "")
    rate, cycles = too_fast(ran, 125, "1e+07")
    assert rate == int(125e6 / cycles)
    assert "at 12 cycles per frame" in ran.err
    assert synth(hwflow, DIGITS, "--fps", str(rate)).code == 0
    assert json.loads(Path("out/report.json").read_text())["timing"]["initiation_interval"] <= cycles




@pytest.mark.parametrize(("rate", "shown"), [("0", "0"), ("-5", "-5"), ("nan", "nan")])
def test_a_rate_that_is_none(hwflow, rate, shown):
    message = f"frames per second must be greater than 0, not {shown}"
    text = error("option --fps", message, "positive-fps", "give a rate")
    refused(synth(hwflow, DIGITS, f"--fps={rate}"), 2, text, before="")


def test_fewer_frames_a_second_take_fewer_multipliers(hwflow):
    found = []
    for rate in ("173611", "20000", "5000"):
        assert synth(hwflow, DIGITS, "--fps", rate).code == 0
        report = json.loads(Path("out/report.json").read_text())
        assert report["timing"]["frames_per_second"] >= float(rate)
        found.append(sum(layer["multipliers"] for layer in report["layers"]))
    assert found[0] > found[1] > found[2]
    assert found[2] == 3  # one for each layer


def test_what_does_not_fit_at_any_rate(hwflow):
    """What is short is said, and what would be enough; asked for, it is."""
    ran = synth(hwflow, DIGITS, "--fps", "1", "--budget", "lut=1000", board="icebreaker")
    assert ran.code == 1
    lines = ran.err.splitlines()[2:]
    short = re.compile(
        r"error: model 'digits': (lut|ff|dsp|bram) must be at most (\d+), not (\d+), at (\d+) cycles per frame with "
        r"all queues \((\d+) too many; largest: node '\w+' \(\w+\) with (\d+)\) \[device-budget\]"
    )
    enough = re.compile(
        r"  remedy: a budget of (lut=\d+, ff=\d+, dsp=\d+, bram=\d+) suffices at (\d+) cycles per frame: request it "
        r"with --budget"
    )
    assert lines[::2]
    for line, remedy in zip(lines[::2], lines[1::2], strict=True):
        matched, helps = short.fullmatch(line), enough.fullmatch(remedy)
        assert matched and helps, (line, remedy)
        _, there, wanted, interval, excess, _ = (matched[1], *map(int, matched.groups()[1:]))
        assert wanted - there == excess > 0
        assert helps[2] == str(interval)
    assert synth(hwflow, DIGITS, "--fps", "1", "--budget", helps[1].replace(" ", ""), board="icebreaker").code == 0
    report = json.loads(Path("out/report.json").read_text())
    assert report["timing"]["initiation_interval"] <= interval


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
    remedy = f"the nearest one is --clock {remedy}" if remedy else "for example --clock 125"
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
        ("lut=1,50%", ["must be NAME=VALUE,..., not 'lut=1,50%'"]),
        (
            "lut=1,lut=2,=",
            ["must name each resource once, not 'lut' twice", "must be NAME=VALUE,..., not 'lut=1,lut=2,='"],
        ),
        (
            "dsp=-1,lut=-1%,ff=many,bram=1e3",
            [
                f"{name} must be a number or a percentage of at least 0, not '{value}'"
                for name, value in [("dsp", "-1"), ("lut", "-1%"), ("ff", "many"), ("bram", "1e3")]
            ],
        ),
    ],
)
def test_a_budget_that_cannot_be(hwflow, budget, messages):
    text = "".join(
        error("option --budget", message, "budget-option", "for example --budget lut=30000,dsp=50%")
        for message in messages
    )
    refused(synth(hwflow, DIGITS, "--budget", budget), 2, text, before="")


def beyond(what: str, there: int, asked: int) -> tuple[str, str]:
    message = f"{what} must be at most {there}, what ulx3s_85f has beside its link, not {asked}"
    remedy = f"ask for {what}=100% or less, choose a larger board, or stop at --until verilog"
    return error("option --budget", message, "budget-option", remedy), message


def test_a_budget_beyond_the_part_is_for_verilog_only(hwflow):
    """83,640 look-up tables less 1,800 for the shell; 156 multiplier blocks."""
    dsp, message = beyond("dsp", 156, 400)
    lut, _ = beyond("lut", 81_840, 122_760)
    for until in ("netlist", "bitstream"):
        ran = synth(hwflow, DIGITS, "--budget", "dsp=400,lut=150%", "--until", until)
        refused(ran, 2, dsp, lut, before="")
    ran = synth(hwflow, DIGITS, "--budget", "dsp=400")
    assert ran.code == 0
    warning = dsp.replace("error:", "warning:").replace(message, f"{message}: only Verilog is made")
    assert ran.err == WRITING + "writing the board's top\n" + warning
    report = json.loads(Path("out/report.json").read_text())
    assert report["resources"]["dsp"]["predicted"] > report["resources"]["dsp"]["available"] == 156


def test_the_links_buffers_count_as_the_shell(hwflow, tmp_path):
    """Of 208 block RAMs, 2 KiB each: 8 KiB each way, and one each of framing, identity and counters."""
    models.relu(tmp_path / "m.onnx")
    message = "bram must be at most 197, what ulx3s_85f has beside its link, not 198"
    remedy = "ask for bram=100% or less, choose a larger board, or stop at --until verilog"
    ran = hwflow("synth", "m.onnx", "--board", "ulx3s_85f", "--budget", "bram=198", "-o", "out")
    refused(ran, 2, error("option --budget", message, "budget-option", remedy), before="")
    assert synth(hwflow, "m.onnx", "--budget", "bram=198").code == 0


def test_wrong_options_are_named_all_at_once(hwflow):
    """None waits for another, nor for the model, which is not there."""
    ran = hwflow(
        "synth", "nowhere.onnx", "--board", "ulx4", "--fps", "many", "--clock", "-3", "--budget", "dsp=-1,cells=5",
        "--until", "gds", "--dim", "N", "-o", DIGITS,
    )
    example = "for example --budget lut=30000,dsp=50%"
    refused(
        ran, 2,
        error("option --fps", "must be a number, not 'many'", "number-option", "for example --fps 1000"),
        error("option --board", f"board must be one of {KNOWN}, not 'ulx4'", "known-board", MEANT),
        error(
            "option --clock", "must be a number of MHz greater than 0, not -3", "positive-clock",
            "for example --clock 100",
        ),
        error(
            "option --budget", "dsp must be a number or a percentage of at least 0, not '-1'", "budget-option", example
        ),
        error(
            "option --budget", "names must be among lut, ff, dsp, bram, not 'cells'", "budget-option", example
        ),
        error(
            "option --until", "must be one of verilog, netlist, bitstream, not 'gds'", "known-step", "choose one"
        ),
        error(
            "option --dim", "must be NAME=VALUE with VALUE at least 1, not 'N'", "dimension-option",
            "for example --dim N=1",
        ),
        error(
            f"output '{DIGITS}'", "must be a folder that can be written, but it is a file", "output-folder",
            "choose another folder with -o",
        ),
        before="",
    )


@pytest.mark.parametrize(("option", "example"), [("--fps", "1000"), ("--clock", "100")])
def test_a_number_that_is_none(hwflow, option, example):
    text = error(f"option {option}", "must be a number, not 'fast'", "number-option", f"for example {option} {example}")
    refused(synth(hwflow, DIGITS, option, "fast"), 2, text, before="")


def test_a_budget_that_is_too_small(hwflow):
    """Every core needs something."""
    ran = synth(hwflow, DIGITS, "--budget", "dsp=0,lut=0")
    assert ran.code == 1
    short = r"lut must be at most 0, not (\d+), at \d+ cycles per frame with all queues \(\1 too many; largest: node"
    assert re.search(short, ran.err)
