"""What happens when place and route does not reach the clock that was asked for; the tools are stood in for."""

from __future__ import annotations

import json

import pytest

from hwflow import output
from hwflow.cli import main
from hwflow.toolchain.build import BuildResult
from tests.flow.networks import dense_network


@pytest.fixture
def synth(tmp_path, monkeypatch, capsys):
    """synth(reached, *options): (clocks asked for, report, stderr); the k-th place and route reaches reached[k] MHz."""
    model = dense_network(tmp_path / "model.onnx")
    write_board = output.write_board

    def run(reached: list[float], *options: str):
        asked: list[float] = []

        def noting(out, board, clock_mhz=None):
            description = write_board(out, board, clock_mhz)
            asked.append(description["clock"]["design_mhz"])
            return description

        def build(out, until, progress):
            fmax = reached[len(asked) - 1]
            return BuildResult(
                design_clock_mhz=asked[-1], clocks=(), fmax_mhz=fmax, timing_met=fmax >= asked[-1], resources={},
                design_resources={"lut": 1, "ff": 2, "dsp": 3, "bram": 4}, available={},
                seconds={"synthesis": 1.0, "place_route": 10.0}, netlist=out, top_verilog=out, bitstream=out,
            )  # fmt: skip

        monkeypatch.setattr(output, "write_board", noting)
        monkeypatch.setattr(output.toolchain_build, "build", build)
        out = tmp_path / "out"
        assert main(["synth", str(model), "--board", "ulx3s_85f", "-o", str(out), *options]) == 0
        return asked, json.loads((out / "report.json").read_text()), capsys.readouterr().err

    return run


def test_a_clock_that_is_reached_is_built_once(synth):
    asked, report, err = synth([126.0])
    assert asked == [125.0]
    assert report["clock"] == {"target_mhz": 125.0, "fmax_mhz": 126.0}
    assert report["seconds"]["place_route"] == 10.0 and "warning" not in err


def test_a_clock_that_is_missed_is_lowered(synth):
    asked, report, err = synth([80.0, 79.0])
    # 92 % of 80 MHz, and what the PLL makes of it: at most that, and near
    assert len(asked) == 2 and 70.0 < asked[1] <= 73.6
    assert report["clock"] == {"target_mhz": asked[1], "fmax_mhz": 79.0}
    timing = report["timing"]
    assert timing["frames_per_second"] == pytest.approx(asked[1] * 1e6 / timing["initiation_interval"])
    assert report["seconds"]["place_route"] == 20.0
    assert "80.0 MHz is below 125 MHz: once more for 73.6 MHz" in err and "warning" not in err


def test_a_clock_that_is_missed_twice_is_said(synth):
    asked, _, err = synth([80.0, 60.0])
    assert len(asked) == 2
    assert f"warning: the clock must reach {asked[1]:g} MHz, not 60.0 MHz: the bitstream may fail" in err


def test_a_rate_that_the_lower_clock_does_not_reach_is_said(synth):
    _, report, err = synth([80.0, 79.0], "--fps", "1000000")
    got = report["timing"]["frames_per_second"]
    assert got < 1_000_000
    assert f"warning: --fps 1e+06 must be reached, not {got:,.0f} frames a second" in err
