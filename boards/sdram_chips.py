"""Memories that boards have. Sizes, tRP, tRCD, tWR, tRFC and refresh are those that litedram 2024.12 has for the chip
(litedram/modules.py); where it leaves tRAS and tRC out, they are those of the slowest grade of the chips fitted."""

from __future__ import annotations

from hdl_lib.external.sdram import SdramChip

IS42S16160 = SdramChip(
    "IS42S16160", banks=4, rows=8192, columns=512, width=16, rcd=20, rp=20, ras=45, rc=70, wr=20, rfc=70,
    refresh=64e6 / 8192, two_mhz=100, source="litedram 2024.12; tRAS, tRC: ISSI IS42S16160G, grade -7, with a margin",
)
"""32 MB, 16 bits. ULX3S boards have this chip, or one of Winbond (W9825G6KH) that is no slower."""

M12L16161A = SdramChip(
    "M12L16161A", banks=2, rows=2048, columns=256, width=32, rcd=15, rp=15, ras=40, rc=55, wr=15, rfc=55,
    refresh=64e6 / 4096, two_mhz=100, source="litedram 2024.12; two chips of 16 bits side by side",
)
"""4 MB, 32 bits: two chips."""

M12L64322A = SdramChip(
    "M12L64322A", banks=4, rows=2048, columns=256, width=32, rcd=15, rp=15, ras=40, rc=55, wr=15, rfc=55,
    refresh=64e6 / 4096, two_mhz=100, source="litedram 2024.12, which boards with an EM638325 take as well",
)
"""8 MB, 32 bits."""
