"""What tests of refusals share: the messages in whole, and that nothing is left behind."""

from __future__ import annotations

import dataclasses
import re
import shlex
import stat
from pathlib import Path

from hwflow.toolchain import yosys

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "model.onnx"
READING = "reading the model\n"
SCHEDULING = READING + "scheduling\n"
WRITING = SCHEDULING + "writing Verilog\n"
EXPORT = "give the path of an .onnx file (binary protobuf); export the model again if the file is damaged"


def error(where: str, message: str, rule: str, remedy: str) -> str:
    return f"error: {where}: {message} [{rule}]\n  remedy: {remedy}\n"


def synth(hwflow, model, *options, board="ulx3s_85f"):
    return hwflow("synth", model, "--board", board, "--until", "verilog", "-o", "out", *options)


def refused(ran, code: int, *errors: str, before: str = READING) -> None:
    """Exit code and the whole of stderr; nothing on stdout, nothing in the folder but what the test put there."""
    assert ran.err == before + "".join(errors)
    assert (ran.code, ran.out) == (code, "")
    assert not [p for p in Path.cwd().iterdir() if p.name.startswith((".", "out"))]


def too_fast(ran, mhz, asked):
    """The rate and the cycles per frame that a refusal names; all else of its first finding is as it must be."""
    found = re.search(r"not met: (\d+) frames/s .* \((\d+) cycles per frame\)", ran.err)
    rate, cycles = map(int, found.groups())
    text = error(
        "option --fps",
        f"--fps {asked} not met: {rate} frames/s on ulx3s_85f at {mhz} MHz ({cycles} cycles per frame)",
        "reachable-rate",
        f"ask for '--fps {rate}' or less, for up to '--budget lut=81840,ff=82490,bram=197', for a higher --clock, or "
        "choose a larger board",
    )
    assert ran.err.startswith(SCHEDULING + text)
    return rate, cycles


def failing(folder: Path, at: str = "") -> yosys.Tool:
    """A yosys that knows its version and fails at each script with ``at`` in it; it does the others."""
    folder.mkdir(exist_ok=True)
    program = folder / "yosys"
    real = yosys.YOSYS.find()
    settings = " ".join(shlex.quote(f"{name}={value}") for name, value in real.environment.items())
    program.write_text(f"""#!/bin/sh
case "$*" in
  *--version*) echo "Yosys 0.99";;
  *{shlex.quote(at)}*) echo "ERROR: out of paper"; exit 7;;
  *) exec env {settings} {shlex.join(real.command)} "$@";;
esac
""")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return dataclasses.replace(yosys.YOSYS, candidates=(lambda: ((str(program),), "PATH", {}),))
