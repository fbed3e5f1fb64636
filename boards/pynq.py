"""PYNQ-Z1 (Digilent) and PYNQ-Z2 (TUL): AMD Zynq XC7Z020. Serial port and memory belong to the processors, which run
Linux with PYNQ: a design is a block of an overlay, behind a DMA engine, at a clock of the processor system."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, ZynqSystem
from .parts import XC7Z020


def _no_platform() -> Any:
    raise ValueError("a design on PYNQ has no pins: there is no platform")


def _board(name: str, maker: str, board_part: str) -> Board:
    return Board(
        name=f"pynq_{name.lower()}",
        title=f"{maker} PYNQ-{name}, Zynq XC7Z020",
        part=XC7Z020,
        # 50 MHz crystal, the processors' PLL at 1 GHz: Digilent and TUL, PYNQ board files
        clock=ClockInput("", 0, 1_000_000_000, "processor"),
        clock_mhz=100,
        uart=None,
        toolchain="vivado",
        platform=_no_platform,
        program="copy the output folder to the board; board/overlay.py there loads {bitstream}",
        zynq=ZynqSystem(board_part, 50),
    )


BOARDS = (
    _board("Z1", "Digilent", "www.digilentinc.com:pynq-z1:part0:1.0"),
    _board("Z2", "TUL", "tul.com.tw:pynq-z2:part0:1.0"),
)
