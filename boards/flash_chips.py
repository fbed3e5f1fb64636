"""SPI flashes that boards have. Times are those of Winbond's data sheets, AC characteristics: tRES1 3 us, tSHSL2 50 ns.
Data come at most 7 ns after the clock's falling edge (tCLQV), and stay for 1.5 ns (tCLQX)."""

from __future__ import annotations

from hdl_lib.external.spi_flash import SpiFlashChip

W25Q128JV = SpiFlashChip("W25Q128JV", size=1 << 24, source="Winbond W25Q128JV")
"""16 MB. iCEBreaker boards have this chip; QE may be 0 (-IM) or fixed to 1 (-IQ)."""

W25Q64JV = SpiFlashChip("W25Q64JV", size=1 << 23, source="Winbond W25Q64JV")
"""8 MB."""
