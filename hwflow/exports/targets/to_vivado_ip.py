"""A script that packages the core as an IP block of Vivado."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from hwflow.exports.exported_core import ARESETN, ExportedCore
from hwflow.exports.targets import Target

_SCRIPT = Path(__file__).with_name("package_ip.tcl")
_OTHER_PART = "xc7z020clg400-1"  # of designs for other vendors' boards: a block fits every part of the family


def _write(core: ExportedCore, folder: Path) -> Sequence[str]:
    board = json.loads((core.out / "board" / "board.json").read_text())
    part = board["part"]["device"] if board["toolchain"] == "vivado" else _OTHER_PART
    settings = {
        "top": core.name, "part": part, "clock": core.clock, "reset": core.reset, "verilog": " ".join(core.rtl),
        "weights": " ".join(core.tables), "interfaces": " ".join(stream.port for stream in core.streams),
    }
    (folder / "settings.tcl").write_text("".join(f"set {name} {{{value}}}\n" for name, value in settings.items()))
    shutil.copyfile(_SCRIPT, folder / _SCRIPT.name)
    return (
        "`vivado -mode batch -source package_ip.tcl` makes the folder `ip`: add it to the IP repositories of projects",
        f"(Settings, IP, Repository), and the block `{core.name}` is in the catalogue, under UserIP. `settings.tcl`",
        f"has the part that it is packaged for, `{part}`; others can use it, too. The weights are in the block.",
    )


TARGET = Target("An IP block of Vivado.", ARESETN, _write)
