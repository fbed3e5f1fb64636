"""Write the emitted `testbench/` folder: a few golden vectors and a cocotb test that runs there with one command.

It is self-contained: `python run.py` needs cocotb, numpy and a simulator, not hwflow.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from .manifest import load_design
from .vectors import Vectors

VECTORS = "testbench/vectors.npz"
PACKAGE = "hwflow_testbench"  # what our modules are called there
_MODULES = (
    "cocotb_axis.py",
    "cocotb_bench.py",
    "cocotb_launch.py",
    "cocotb_run.py",
    "digests.py",
    "manifest.py",
    "programs.py",
    "result.py",
    "run_options.py",
    "sim_errors.py",
    "vectors.py",
    "verilator/waivers.vlt",
)


def write_overlay_host(out: Path | str) -> None:
    """Write ``OUT/board/overlay.py``, which runs the design on a PYNQ board."""
    shutil.copyfile(Path(__file__).resolve().parent / "pynq_run.py", Path(out) / "board" / "overlay.py")


def write_testbench(out: Path | str, vectors: Vectors, frames: int = 4) -> Path:
    """Write ``OUT/testbench`` with the first ``frames`` frames of ``vectors``; return the folder.

    ``OUT/manifest.json``, sources and weights must be there. Raises ManifestError and VectorError. An existing test
    bench is replaced; its ``build`` folder stays.
    """
    design = load_design(out)
    vectors.check(design)
    folder = design.directory / "testbench"
    package = folder / PACKAGE
    shutil.rmtree(package, ignore_errors=True)
    here = Path(__file__).resolve().parent
    for name in _MODULES:
        target = package / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(here / name, target)
    (package / "__init__.py").write_text(
        '"""The test bench of an emitted design: cocotb agents, the test, its runner."""\n'
    )
    shutil.copyfile(here / "testbench_run.py", folder / "run.py")
    vectors.head(frames).save(design.directory / VECTORS)
    return folder
