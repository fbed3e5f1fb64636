"""FuseSoC runs the core file: golden frames in Verilator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hwflow
from tests.exports.cores import verilator_on_path


def fusesoc(folder: Path, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    programs = tmp_path / "programs"
    programs.mkdir(exist_ok=True)
    path = os.pathsep.join([str(verilator_on_path(programs)), os.environ["PATH"]])
    code = "import sys; from fusesoc.main import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, "--cores-root", str(folder), *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={
            **os.environ, "PATH": path, "XDG_CONFIG_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path),
            "MAKEFLAGS": "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0",
        },
    )


def test_it_runs_in_verilator(outs, tmp_path):
    done = hwflow.export(outs["narrow"], "fusesoc", tmp_path / "narrow")
    ran = fusesoc(done.folder, tmp_path, "run", "--target", "sim", "hwflow:cores:narrow")
    assert ran.returncode == 0 and "PASS: 4 frames" in ran.stdout, ran.stdout[-3000:] + ran.stderr[-1000:]


def test_a_damaged_vector_fails_in_icarus(outs, tmp_path):
    done = hwflow.export(outs["narrow"], "fusesoc", tmp_path / "narrow")
    rows = done.folder / "vectors" / "narrow_m_axis.mem"
    words = rows.read_text().split()
    words[3] = f"{int(words[3], 16) ^ 1:x}"
    ran = fusesoc(done.folder, tmp_path, "run", "--target", "sim", "--tool", "icarus", "hwflow:cores:narrow")
    assert ran.returncode == 0 and "PASS: 4 frames" in ran.stdout, ran.stdout[-3000:]
    rows.write_text("\n".join(words) + "\n")
    ran = fusesoc(done.folder, tmp_path, "run", "--target", "sim", "--tool", "icarus", "hwflow:cores:narrow")
    assert ran.returncode != 0 and "PASS" not in ran.stdout, ran.stdout[-3000:]
