"""The simulators, and one emitted copy of each handwritten design: what is built is built once."""

import shutil

import pytest

from hwflow.toolchain.icarus import ICARUS
from hwflow.toolchain.verilator import VERILATOR
from sim.cocotb_run import run_cocotb
from sim.manifest import load_design
from sim.vectors import Vectors
from sim.verilator_run import run_verilator
from tests.sim import designs


@pytest.fixture(scope="session")
def verilator():
    """run(out, vectors, **options) with Verilator and the bulk harness; its run-time library is compiled once."""
    found = VERILATOR.find()

    def run(out, vectors, **options):
        return run_verilator(out, vectors, command=found.command, environment=found.environment, **options)

    return run


@pytest.fixture(scope="session")
def icarus():
    """run(out, vectors, **options) with cocotb on Icarus."""
    found = ICARUS.find()

    def run(out, vectors, **options):
        return run_cocotb(out, vectors, command=found.command, **options)

    return run


@pytest.fixture(scope="session")
def plus_folder(tmp_path_factory):
    return designs.emit_plus(tmp_path_factory.mktemp("plus") / "out")


@pytest.fixture
def plus(plus_folder):
    """(design, vectors of 4 frames, set(file, text)): `plus` without a defect; what a test sets is undone after it."""
    originals = {file: file.read_text() for file in (plus_folder / "weights").iterdir()}

    def set_weights(name, text):
        (plus_folder / "weights" / name).write_text(text)

    design = load_design(plus_folder)
    yield design, Vectors.of(design, *designs.plus_data()), set_weights
    for file, text in originals.items():
        file.write_text(text)


@pytest.fixture(scope="session")
def wide(tmp_path_factory):
    design = load_design(designs.emit_wide(tmp_path_factory.mktemp("wide") / "out"))
    return design, Vectors.of(design, *designs.wide_data())


@pytest.fixture(scope="session")
def narrow(tmp_path_factory):
    design = load_design(designs.emit_narrow(tmp_path_factory.mktemp("narrow") / "out"))
    return design, Vectors.of(design, *designs.narrow_data())


@pytest.fixture
def copy_of(tmp_path):
    """copy_of(design): the emitted directory again, without anything built, to be spoiled by a test."""
    return lambda design: shutil.copytree(
        design.directory, tmp_path / "copy", ignore=shutil.ignore_patterns("testbench")
    )
