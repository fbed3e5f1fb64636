"""A C++ compiler that reads the simulators' headers once and optimizes little: half of its work for a small design.

Called in place of ``c++`` (CXX), in a process of its own: ``compiler.py FOLDER ARGUMENT...``. Headers are precompiled
in FOLDER for each set of switches that a design is compiled with: GCC crashes where they were read with others.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HEADERS = ("verilated.h", "algorithm", "cstdint", "fstream", "memory", "sstream", "string", "vector")


def main(folder: Path, arguments: list[str]) -> None:
    if "-c" not in arguments and shutil.which("ld.gold"):
        arguments = [*arguments, "-fuse-ld=gold"]  # half of the time of ld.bfd
    sources = [Path(a) for a in arguments if a.endswith((".cc", ".cpp"))]
    designs = sources and all(source.name.startswith("unit") for source in sources)
    # Boards take millions of cycles, and so do designs in folders that say so; others some hundred.
    if not any("/board/" in a or (designs and "/many_cycles" in a) for a in arguments):
        arguments = ["-O0" if a in ("-O1", "-O2") else a for a in arguments]
    more: list[str] = []
    if designs and "-c" in arguments and "-DVM_TRACE=1" not in arguments:
        own = {f"-I{source.parent}" for source in sources}
        switches = [a for a in arguments if a.startswith(("-O", "-D", "-I", "-w")) and a not in own]
        header = folder / hashlib.sha256("\0".join(switches).encode()).hexdigest()[:16] / "simulation.h"
        compiled = header.with_suffix(".h.gch")
        with alone(folder / "compiler.lock"):
            if not header.is_file():
                header.parent.mkdir()
                header.write_text("".join(f"#include <{name}>\n" for name in HEADERS))
                command = ["c++", *switches, "-x", "c++-header", str(header), "-o", str(compiled)]
                subprocess.run(command, capture_output=True, check=False)
        if compiled.is_file():
            more = ["-include", str(header)]
    elif "-c" in arguments and arguments[-2] == "-o" and Path(arguments[-1]).is_relative_to(folder):
        sys.exit(compile_library(Path(arguments[-1]), arguments))
    os.execvp("c++", ["c++", *more, *arguments])


def compile_library(target: Path, arguments: list[str]) -> int:
    """Compile a file of the simulators' run-time library, which each worker's first design asks for at the same time:
    one compiles, the others wait for it."""
    kept = target.with_suffix("").with_suffix(".kept")  # without the process' number
    with alone(kept.with_suffix(".lock")):
        if kept.is_file():
            shutil.copy(kept, target)
            return 0
        status = subprocess.run(["c++", *arguments], check=False).returncode
        if status == 0:
            shutil.copy(target, kept)
        return status


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """One process at a time."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
