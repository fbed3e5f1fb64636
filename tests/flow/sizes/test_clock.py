"""What happens when place and route leads nowhere, or does not reach the clock; the tools are stood in for."""

from __future__ import annotations

import json

import pytest

from hwflow.api import building, output
from hwflow.cli import main
from hwflow.errors import Finding, ToolError
from hwflow.toolchain.build_result import BuildResult
from hwflow.toolchain.nextpnr import ClockResult
from hwflow.toolchain.routing import NEARLY, NEARLY_ASKED, NotRouted
from tests.flow.networks import dense_network


@pytest.fixture
def synth(tmp_path, monkeypatch, capsys):
    """synth(reached, *options): (clocks asked for, report, stderr); the k-th place and route reaches reached[k] MHz,
    with None leads nowhere, with 0 is killed. ``force=False``: go on with what is there. ``nearly``: what each of the
    latest was asked to put up with."""
    model = dense_network(tmp_path / "model.onnx")
    write_board = output.write_board

    def run(reached: list[float | None], *options: str, force: bool = True, link: tuple[ClockResult, ...] = ()):
        asked: list[float] = []

        def noting(out, board, clock_mhz=None, *options):
            description = write_board(out, board, clock_mhz, *options)
            asked.append(description["clock"]["design_mhz"])
            return description

        def build(out, until, progress, heard=None, another=None, seeds=(), nearly=NEARLY):
            run.nearly.append(nearly)
            fmax = reached[min(len(asked), len(reached)) - 1]
            if fmax == 0:
                raise ToolError(Finding("tool-stopped", "place_route", "killed", "none"))
            if fmax is None:
                assert another is not None and another(), "there is a smaller design"
                error = NotRouted(Finding("tool-stopped", "place_route", "87 wires left (log: x)", "none"))
                error.seconds = {"synthesis": 1.0, "place_route": 5.0}
                raise error
            clock = asked[-1] if asked else 125.0  # of what is there
            return BuildResult(
                design_clock_mhz=clock, clocks=(), fmax_mhz=fmax, resources={},
                timing_met=fmax >= clock and all(c.met for c in link), link_clocks=link,
                design_resources={"lut": 1, "ff": 2, "dsp": 3, "bram": 4}, available={},
                seconds={"synthesis": 1.0, "place_route": 10.0}, netlist=out, bitstream=out,
            )  # fmt: skip

        run.nearly = []
        for module in (output, building):
            monkeypatch.setattr(module, "write_board", noting)
        monkeypatch.setattr(output.toolchain_build, "build", build)
        out = tmp_path / "out"
        forced = ["--force"] if force else []
        code = main(["synth", str(model), "--board", "ulx3s_85f", "-o", str(out), *forced, *options])
        assert code == (ToolError.exit_code if 0 in reached else 0)
        return asked, json.loads((out / "report.json").read_text()), capsys.readouterr().err

    return run


def test_a_clock_that_is_reached_is_built_once(synth):
    asked, report, err = synth([126.0])
    assert asked == [125.0]
    assert report["clock"] == {"target_mhz": 125.0, "fmax_mhz": 126.0}
    assert report["seconds"]["place_route"] == 10.0 and "warning" not in err


def test_a_clock_of_the_link_that_is_missed_is_said(synth):
    clocks = (ClockResult("usb", 48.0, 50.0), ClockResult("rx", 125.0, 118.26))
    asked, report, err = synth([126.0], "--clock", "125", link=clocks)
    assert len(asked) == 2 and "118.3 MHz of rx is below 125 MHz: retrying at 115.0 MHz" in err
    assert report["clock"]["fmax_mhz"] == 126.0 and report["link"]["clocks"] == [
        {"name": "usb", "target_mhz": 48.0, "fmax_mhz": 50.0}, {"name": "rx", "target_mhz": 125.0, "fmax_mhz": 118.26},
    ]
    assert "the link's clock 'rx' must reach 125 MHz, not 118.3 MHz: the link may fail [reached-clock]" in err
    assert "'usb'" not in err


def test_a_clock_that_is_missed_is_lowered(synth):
    asked, report, err = synth([80.0, 79.0], "--clock", "125")
    # 92 % of 80 MHz, and what the PLL makes of it: at most that, and near
    assert len(asked) == 2 and 70.0 < asked[1] <= 73.6
    assert report["clock"] == {"target_mhz": asked[1], "fmax_mhz": 79.0}
    timing = report["timing"]
    assert timing["frames_per_second"] == pytest.approx(asked[1] * 1e6 / timing["initiation_interval"])
    assert report["seconds"]["place_route"] == 20.0
    assert "80.0 MHz is below 125 MHz: retrying at 73.6 MHz" in err and "warning" not in err


def test_more_ways_are_tried_where_a_lower_clock_is_not_what_was_asked_for(synth):
    synth([80.0, 79.0], "--clock", "125")
    assert synth.nearly == [NEARLY_ASKED, NEARLY]  # the lower clock is one that was reached before
    synth([126.0], "--fps", "1000")
    assert synth.nearly == [NEARLY_ASKED]
    synth([126.0])
    assert synth.nearly == [NEARLY]


def test_a_clock_that_is_missed_twice_is_said(synth):
    asked, _, err = synth([80.0, 60.0], "--clock", "125")
    assert len(asked) == 2
    assert f"the clock must reach {asked[1]:g} MHz, not 60.0 MHz: the bitstream may fail [reached-clock]" in err


def test_a_rate_that_the_lower_clock_does_not_reach_is_said(synth):
    _, report, err = synth([80.0, 79.0], "--fps", "1000000")
    got = report["timing"]["frames_per_second"]
    assert got < 1_000_000
    assert f"warning: option --fps: --fps 1e+06 not met: {got:,.0f} frames/s" in err


def test_what_is_not_routed_becomes_a_smaller_design(synth):
    _, whole, _ = synth([126.0])
    asked, report, err = synth([None, 126.0])
    assert asked == [125.0, 125.0]
    interval = whole["timing"]["initiation_interval"]
    assert report["timing"]["initiation_interval"] > interval
    multipliers = [sum(layer["multipliers"] for layer in table["layers"]) for table in (report, whole)]
    assert multipliers[0] < multipliers[1]
    smaller = report["timing"]["initiation_interval"]
    assert f"87 wires left: retrying with a smaller design, initiation interval {smaller} instead" in err
    assert report["larger_design"] == {
        "reason": "87 wires left", "initiation_interval": interval, "latency": whole["timing"]["latency"],
        "resources": {name: row["predicted"] for name, row in whole["resources"].items()},
    }
    for name in ("lut", "dsp"):
        assert report["resources"][name]["predicted"] <= 0.75 * whole["resources"][name]["predicted"]
    assert report["seconds"]["place_route"] == 15.0 and whole["larger_design"] is None


def test_what_a_smaller_design_takes_the_place_of_is_kept(synth):
    """Where it is not routed the first time, and the next run goes on with it."""
    _, killed, _ = synth([None, 0])
    assert killed["larger_design"]["reason"] == "87 wires left" and killed["bitstream"] is None
    asked, report, _ = synth([126.0], force=False)
    assert asked == [], "nothing was written anew"
    assert report["larger_design"] == killed["larger_design"] and report["clock"]["fmax_mhz"] == 126.0
    assert report["timing"]["initiation_interval"] == killed["timing"]["initiation_interval"]


def test_where_the_boards_clock_is_missed_more_frames_per_second_win(synth):
    """The next smaller design takes eight cycles per frame instead of one: 11.96 MHz instead of 125 are worse than
    that, 110.4 MHz are better."""
    asked, report, _ = synth([120.0, 125.0])
    assert asked[0] == 125.0 and 100.0 < asked[1] <= 0.92 * 120 and report["larger_design"] is None
    assert report["timing"]["initiation_interval"] == 1
    asked, report, _ = synth([13.0, 125.0])
    assert asked == [125.0, 125.0] and report["clock"] == {"target_mhz": 125.0, "fmax_mhz": 125.0}
    assert report["timing"]["initiation_interval"] == 8
    assert report["larger_design"]["reason"] == "13.0 MHz is below 125 MHz"
    asked, report, err = synth([13.0, 110.0, 101.0])
    assert asked[:2] == [125.0, 125.0] and 95.0 < asked[2] <= 0.92 * 110
    assert report["clock"] == {"target_mhz": asked[2], "fmax_mhz": 101.0} and report["larger_design"] is not None
    assert "110.0 MHz is below 125 MHz: retrying at 101.2 MHz" in err


def test_a_design_that_has_no_smaller_one_gets_a_lower_clock(synth, monkeypatch):
    monkeypatch.setattr("hwflow.api.compiler.SMALLER", ())
    asked, report, _ = synth([120.0, 110.0])
    assert len(asked) == 2 and asked[1] < 125.0 and report["larger_design"] is None
