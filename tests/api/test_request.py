"""What is asked of a design: checked once, and all that later steps need of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwflow.api import compiler
from hwflow.api import request as subject
from hwflow.api.budget import Amount, amounts
from hwflow.api.request import requested
from hwflow.boards import find_board
from hwflow.errors import UsageError
from tests.models import Builder


def test_an_interval_by_hand() -> None:
    """The ULX3S runs at 50 MHz if asked to: 1000 frames per second are 50,000 cycles, and 7 are 7,142,857.1."""
    for fps, cycles in ((1000, 50_000), (7, 7_142_857), (1e30, 1), (None, None)):
        assert requested("ulx3s_85f", fps=fps, clock_mhz=50).interval == cycles


def test_what_was_asked_for() -> None:
    assert not requested("ulx3s_85f", budget={"lut": 5}).asks_speed
    assert requested("ulx3s_85f", fps=3).asks_speed
    asked = requested(find_board("ulx3s_85f"), clock_mhz=25, budget={"lut": " 50% ", "dsp": "7", "ff": 9}, what_if=True)
    assert asked.asks_speed and asked.what_if and asked.fps is None
    assert (asked.board.name, asked.clock.frequency_hz) == ("ulx3s_85f", 25_000_000)
    assert asked.budget == {"lut": Amount(50, percent=True), "dsp": Amount(7), "ff": Amount(9)}


def test_amounts_by_hand() -> None:
    found = amounts({"lut": "12.5%", "ff": "0", "dsp": 3, "bram": "250%"})
    assert [amount.of(101) for amount in found.values()] == [12, 0, 3, 252]
    with pytest.raises(UsageError) as raised:
        amounts({"lut": "nan%", "cells": 4, "ff": "1e3", "dsp": "inf%", "bram": -1})
    assert len(raised.value.findings) == 5


def test_options_are_checked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the call to the design, and to a smaller one."""
    b = Builder()
    x = b.requantize(b.input("x", ["N", 6]), 0.5, 3, "int8")
    b.output(b.requantize(b.node("Relu", x), 0.25, 0, "int8"))
    calls: list[str] = []
    for name in ("clock_for", "amounts", "beyond_part", "board_named"):
        real = getattr(subject, name)
        monkeypatch.setattr(
            subject, name,
            lambda *given, real=real, name=name, **more: (calls.append(name), real(*given, **more))[1],
        )
    design = compiler.compile(b.load(tmp_path), "ulx3s_85f", fps=1000, clock_mhz=50, budget={"lut": "20%"})
    design.smaller()
    assert sorted(calls) == ["amounts", "beyond_part", "board_named", "clock_for"]
    assert design.request.interval == 50_000
    assert design.schedule.initiation_interval <= 50_000
