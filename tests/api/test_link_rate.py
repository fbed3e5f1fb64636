"""A design that is as fast as the board's link, and no faster than that takes."""

from __future__ import annotations

import json

import pytest

import hwflow
from hwflow.api.request import requested
from hwflow.cli.__main__ import main
from hwflow.codegen.board.carriers import LinkOptions
from hwflow.errors import UsageError
from tests.flow.conftest import DIGITS
from tests.flow.networks import dense_network


def test_the_smallest_design_for_the_line(capsys, tmp_path):
    """By hand: 125 MHz in 2667/64 cycles per bit and 10 bits per byte, 512 bytes of payload in a packet of 512 + 15,
    with 3 codes and a zero 531 on the line, 64 bytes in a frame: 4519.1 frames per second, 27660.2 cycles."""
    design = hwflow.compile(DIGITS, "ulx3s_25f", fps="link")
    assert 27_660 // 2 < design.schedule.initiation_interval <= 27_660
    options = ["--fps", "link", "--until", "verilog", "--format", "json", "-o", str(tmp_path / "out")]
    assert main(["synth", str(DIGITS), "--board", "ulx3s_25f", *options]) == 0
    table = json.loads(capsys.readouterr().out)
    link = table["link"]
    assert (link["limit"], link["baud"]) == ("link", 3_000_000) and int(link["frames_per_second"]) == 4519
    assert table["timing"]["initiation_interval"] == design.schedule.initiation_interval


def test_a_link_that_is_faster_than_any_design(tmp_path, monkeypatch):
    network = dense_network(tmp_path / "model.onnx")
    fastest = hwflow.compile(network, "ulx3s_25f")
    monkeypatch.setattr("hwflow.api.scheduled.link_rate", lambda request, graph: 1e12)
    design = hwflow.compile(network, "ulx3s_25f", fps="link")
    assert design.schedule.initiation_interval == fastest.schedule.initiation_interval


def test_a_core_much_faster_than_its_link_is_said(tmp_path, capsys):
    network, out = dense_network(tmp_path / "model.onnx"), tmp_path / "out"
    assert main(["synth", str(network), "--board", "ulx3s_25f", "--until", "verilog", "-o", str(out)]) == 0
    text = capsys.readouterr().out
    assert "the link limits them" in text and "'--fps link' makes the smallest one that is as fast" in text


def test_other_words_are_refused():
    with pytest.raises(UsageError) as error:
        requested("ulx3s_25f", fps="line")  # type: ignore[arg-type]
    assert "must be a number of frames per second, or link, not 'line'" in str(error.value)
    with pytest.raises(UsageError) as error:
        requested("pynq_z2", link=LinkOptions(baud=115_200))
    assert "option --baud: pynq_z2 must have a serial port" in str(error.value)
    with pytest.raises(UsageError) as error:
        requested("ulx3s_25f", link=LinkOptions(baud=0))
    assert "option --baud: must be 1 or more, not 0" in str(error.value)
