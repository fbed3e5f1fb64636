"""Options, answers and interrupts that other tests of the command line do not meet."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

from hwflow.api.operator_list import markdown
from hwflow.api.options import texts
from hwflow.cli import junit
from hwflow.cli.arguments import Wanted, wanted
from hwflow.cli.interrupts import Interrupts
from hwflow.errors import UsageError
from hwflow.toolchain import doctor
from tests.cli import models


def test_operators_as_markdown(hwflow):
    ran = hwflow("ops", "--format", "markdown")
    assert (ran.code, ran.out) == (0, "\n".join(markdown()) + "\n")


def test_tools_as_json(hwflow, monkeypatch):
    status = doctor.ToolStatus("odd", "to test", True, "/bin/odd", "2.0", "1.0", "", "")
    monkeypatch.setattr(doctor, "doctor", lambda: (status,))
    ran = hwflow("doctor", "--format", "json")
    (tool,) = json.loads(ran.out)["tools"]
    assert tool["name"] == "odd" and ran.code == 0


def test_numbers_of_options():
    assert texts.whole_number("--frames", "12", "5") == 12 and texts.whole_number("--frames", None, "5") is None
    with pytest.raises(UsageError, match=r"option --frames: must be a whole number, not .1\.5."):
        texts.whole_number("--frames", "1.5", "5")


def test_what_is_wanted_of_a_command_line_that_is_wrong():
    assert wanted(["check", "--format", "json", "--junit", "j", "--nonsense"]) == Wanted(True, "j")
    assert wanted(["check", "--junit=", "--format=x"]) == Wanted(False, "")


def test_a_report_that_cannot_be_written(hwflow, tmp_path, monkeypatch):
    """Without permission (root has it everywhere), and on a full disk: nothing is left of it."""
    models.relu(tmp_path / "m.onnx")
    monkeypatch.setattr(junit.os, "access", lambda path, mode: False)
    ran = hwflow("check", "m.onnx", "--junit", "j.xml")
    assert (ran.code, "must be a file that can be written, but: Permission denied" in ran.err) == (2, True)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UsageError, match="but: No space left on device"):
        junit.write("j.xml", [])
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_interrupts_in_another_thread():
    """The main thread looks after them."""
    before, found = signal.getsignal(signal.SIGINT), []

    def run():
        with Interrupts(for_good=False) as interrupts:
            found.append(interrupts._active)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    assert found == [False] and signal.getsignal(signal.SIGINT) is before


def test_what_finalizers_raise(monkeypatch):
    """It is reported as ever, if it is no interrupt."""
    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    with Interrupts(for_good=False) as interrupts:
        interrupts._not_raised(SimpleNamespace(exc_type=ValueError))
    assert [what.exc_type for what in said] == [ValueError]
