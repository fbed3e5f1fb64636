"""What a command says of long steps, and what `synth` says at its end."""

from __future__ import annotations

import sys
import time

import pytest

from boards import find_board
from hwflow.cli import terminal
from hwflow.cli.terminal import Steps
from hwflow.codegen.board.board_files import write_board
from hwflow.toolchain.build import BuildResult
from hwflow.toolchain.place_route_progress import PlaceRouteProgress
from tests.cli import models


def test_state():
    seconds = iter([0.0, 10.0, 52.4, 60.0, 61.0])
    steps = Steps(lambda: next(seconds))
    with steps:
        steps("place_route: nextpnr-ecp5 0.11")
        assert steps.state() == "  place_route: nextpnr-ecp5 0.11: 42 s"
        steps.detail(PlaceRouteProgress("routing", 5, 1087))
        assert steps.state().endswith("0.11: 50 s, routing, iteration 5, 1,087 wires left")
        steps.count(2000, 10_000)
        assert steps.state().endswith("51 s, 2,000 of 10,000")


def test_a_long_step_says_so_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "EVERY", 0.01)
    said = ""
    with Steps() as steps:
        steps("routing")
        steps.detail("87 wires left")
        while "s, 87 wires left\n" not in said:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert said.startswith("routing\n  routing: ")
    for thread in terminal.threading.enumerate():  # none is left behind
        if thread.daemon and thread.name.startswith("Thread"):
            thread.join(5)
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_it_live(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Steps() as steps:
        steps("place and route")
        steps.detail(PlaceRouteProgress("placing", 12))
        steps._shown.refresh()
    shown = capsys.readouterr().err
    assert "place and route: placing, iteration 12" in shown and "0:00:00" in shown


@pytest.fixture
def built(monkeypatch):
    """Tools are stood in for: nextpnr says how far it is, and there is a bitstream."""

    def build(out, until, progress, heard=None, another=None, seeds=(), nearly=None):
        progress("place_route: stand-in")
        heard(PlaceRouteProgress("routing", 3, 21))
        (out / "board" / "top.bit").write_bytes(b"bits")
        return BuildResult(
            design_clock_mhz=125.0, clocks=(), fmax_mhz=140.0, timing_met=True, resources={},
            design_resources={"lut": 1, "ff": 2, "dsp": 3, "bram": 4}, available={},
            seconds={"synthesis": 1.0, "place_route": 10.0}, netlist=out,
            bitstream=out / "board" / "top.bit",
        )  # fmt: skip

    monkeypatch.setattr("hwflow.toolchain.build.build", build)


def test_the_end_of_synth(hwflow, tmp_path, built, monkeypatch):
    """A frame of relu is four bytes each way. By hand: 125 MHz in 2667/64 cycles per bit and 10 bits per byte, of which
    512 of 531 are payload, in both directions at once."""
    models.relu(tmp_path / "m.onnx")
    heard = []
    monkeypatch.setattr(Steps, "detail", lambda self, what: heard.append(str(what)))
    ran = hwflow("synth", "m.onnx", "--board", "ulx3s_85f", "-o", "my out")
    assert ran.code == 0, ran.err
    assert heard == ["routing, iteration 3, 21 wires left"]
    end = ran.out.splitlines()
    assert "bitstream: my out/board/top.bit" in end
    assert "load it with: openFPGALoader -b ulx3s 'my out/board/top.bit'" in end
    assert end[-2].startswith("frames per second: ")
    assert end[-2].endswith(
        "at most 72,307 over the board's link (serial, USB, 3,000,000 baud; 4 bytes in, 4 out): the link limits them"
    )
    assert end[-1].endswith("times as fast as its link: '--fps link' makes the smallest one that is as fast")
    (seconds,) = [line for line in end if line.startswith("seconds: ")]
    assert seconds.endswith("synthesis 1.0, place_route 10.0")


def test_the_link_of_a_dma_engine(hwflow, tmp_path):
    """100 MHz and 8 bytes per cycle at most, or a beat: what a frame takes is what its beats, padded, take."""
    models.relu(tmp_path / "m.onnx", ("N", 4, 20))
    assert hwflow("synth", "m.onnx", "--board", "pynq_z2", "-o", "out", "--until", "verilog").code == 0
    description = write_board(tmp_path / "out", find_board("pynq_z2"), 100)
    link, host = description["link"], description["host"]
    beats, size = host["input_beats"], host["input_beat"]
    assert link["input_bytes"] == beats * size >= 80 and link["baud"] is None
    cycles = max(n * max(1, b / 8) for n, b in ((beats, size), (host["output_beats"], host["output_beat"])))
    assert link["frames_per_second"] == pytest.approx(100e6 / cycles)
