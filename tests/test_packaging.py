"""The wheel: what is in it, and that it works from another place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def pip(*arguments: str, cwd: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        *arguments,
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
        "--quiet",
    ]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy: a build leaves folders behind in its source."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for package in ("hwflow", "hdl_lib", "sim", "boards"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copyfile(file, source / file.name)
    pip("wheel", ".", "--no-build-isolation", "-w", str(folder), cwd=source)
    (found,) = folder.glob("hwflow-*.whl")
    return found


def test_what_is_in_it(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {n.split("/")[0] for n in names if ".dist-info/" not in n} == {"hwflow", "hdl_lib"}
    kinds = (".py", ".wat", ".js", ".css", ".html", ".LICENSE")
    expected = {
        f"hwflow/{p.relative_to(ROOT / 'hwflow')}" for p in (ROOT / "hwflow").rglob("*") if p.suffix in kinds
    }
    expected |= {
        f"hdl_lib/{p.relative_to(ROOT / 'hdl_lib')}" for p in (ROOT / "hdl_lib").rglob("*") if p.suffix in (".py", ".v")
    }
    for package in ("sim", "boards"):
        files = (p for p in (ROOT / package).rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        expected |= {f"hwflow/{package}/{p.relative_to(ROOT / package)}" for p in files}
    assert {
        "hwflow/sim/verilator/harness.cpp", "hwflow/sim/verilator/waivers.vlt", "hwflow/sim/verilog/ecp5.v",
        "hwflow/sim/verilog/ice40.v", "hdl_lib/verilog/hwflow_rom.v", "hwflow/boards/ulx3s.py",
        "hwflow/cli/__init__.py",
    } <= expected
    assert expected <= names, sorted(expected - names)
    assert {"hwflow/py.typed", "hdl_lib/py.typed"} <= names
    assert {n.split("/")[-1] for n in names if ".dist-info/licenses/" in n} == {"LICENSE", "NOTICE"}
    assert not [n for n in names if n.endswith((".pyc", ".onnx", ".npz"))]


def test_it_works_elsewhere(wheel, tmp_path):
    target = tmp_path / "site"
    pip("install", "--target", str(target), str(wheel), cwd=tmp_path)
    code = """
import hdl_lib.memories.rom, hwflow.boards, hwflow.cli, hwflow.api.compiler, hwflow.sim.verilator_build
for module in (hdl_lib, hwflow, hwflow.boards, hwflow.sim):
    print(module.__file__)
print(hdl_lib.memories.rom.VERILOG.is_file(), [b.name for b in hwflow.boards.all_boards()][0])
hwflow.cli.main(["boards"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(target)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    places = ("hdl_lib/__init__.py", "hwflow/__init__.py", "hwflow/boards/__init__.py", "hwflow/sim/__init__.py")
    assert lines[:4] == [str(target / place) for place in places]
    assert lines[4] == "True arty_a7_100"
    assert (target / "bin" / "hwflow").is_file()
