"""The emitted test bench runs in another place, by itself."""

import ast
import os
import shutil
import subprocess
import sys
from hashlib import sha256

import pytest

from sim.testbench import write_testbench
from tests.rewritten import accept_changes
from tests.sim import designs


@pytest.fixture(scope="module")
def emitted(tmp_path_factory):
    from sim.manifest import load_design
    from sim.vectors import Vectors

    out = designs.emit_plus(tmp_path_factory.mktemp("emit") / "out")
    write_testbench(out, Vectors.of(load_design(out), *designs.plus_data(6)))
    accept_changes(out)
    return shutil.move(out, tmp_path_factory.mktemp("elsewhere") / "moved here")


def run(out, *options):
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    return subprocess.run(
        [sys.executable, str(out / "testbench" / "run.py"), *options],
        cwd=out.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_command_checks_the_design(emitted):
    done = run(emitted)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "PASS: 4 frames, 0 mismatches, 28 cycles, initiation interval 7, latency 3 (icarus)\n"


def test_options_and_verdict(emitted):
    defect = emitted / "weights" / "defect.mem"
    before = (emitted / "manifest.json").read_text()
    defect.write_text("01\n")
    changed = run(emitted)
    accept_changes(emitted)
    done = run(emitted, "--frames", "3", "--stall", "0.2", "--seed", "4", "--wave", str(emitted / "w.vcd"))
    defect.write_text("00\n")
    (emitted / "manifest.json").write_text(before)
    good, bad = (sha256(text).hexdigest() for text in (b"00\n", b"01\n"))
    assert (changed.returncode, changed.stdout) == (1, "")
    assert changed.stderr == f"{defect}: must be as it was written, with SHA-256 {good}, not {bad}\n"
    assert done.returncode == 1
    assert done.stderr == (
        "m_axis: frame 2, beat 1, lane 0, element [1, 0] of 'y': must be 77, not 93 "
        "(1 elements wrong or missing in 1 of 3 frames)\n"
    )
    assert done.stdout.startswith("FAIL: 3 frames, 1 mismatches, ")
    assert (emitted / "w.vcd").is_file()


def test_wrong_options_are_usage_errors(emitted):
    done = run(emitted, "--stall", "1.5")
    assert done.returncode == 2
    assert done.stderr.endswith("stall must be at least 0 and less than 1, not 1.5\n")


def test_it_imports_nothing_but_cocotb_and_numpy(emitted):
    files = list((emitted / "testbench").rglob("*.py"))
    assert len(files) > 8
    imported = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported.add(node.module.split(".")[0])
    assert imported - set(sys.stdlib_module_names) == {"cocotb", "cocotb_tools", "numpy", "hwflow_testbench"}
