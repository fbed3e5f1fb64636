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
from pathlib import Path

HEADERS = ("verilated.h", "algorithm", "cstdint", "fstream", "memory", "sstream", "string", "vector")


def main(folder: Path, arguments: list[str]) -> None:
    if not any("/board/" in a for a in arguments):  # boards take millions of cycles, other tests some hundred
        arguments = ["-O0" if a in ("-O1", "-O2") else a for a in arguments]
    if "-c" not in arguments and shutil.which("ld.gold"):
        arguments = [*arguments, "-fuse-ld=gold"]  # half of the time of ld.bfd
    sources = [Path(a) for a in arguments if a.endswith((".cc", ".cpp"))]
    designs = sources and all(source.name.startswith("unit") for source in sources)
    more: list[str] = []
    if designs and "-c" in arguments and "-DVM_TRACE=1" not in arguments:
        own = {f"-I{source.parent}" for source in sources}
        switches = [a for a in arguments if a.startswith(("-O", "-D", "-I", "-w")) and a not in own]
        header = folder / hashlib.sha256("\0".join(switches).encode()).hexdigest()[:16] / "simulation.h"
        compiled = header.with_suffix(".h.gch")
        with (folder / "compiler.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not header.is_file():
                header.parent.mkdir()
                header.write_text("".join(f"#include <{name}>\n" for name in HEADERS))
                command = ["c++", *switches, "-x", "c++-header", str(header), "-o", str(compiled)]
                subprocess.run(command, capture_output=True, check=False)
        if compiled.is_file():
            more = ["-include", str(header)]
    os.execvp("c++", ["c++", *more, *arguments])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
