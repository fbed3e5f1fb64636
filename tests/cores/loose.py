"""Cases whose samples are not within the bounds of tests.cores.samples: by how much they are off at most, and, where it
is known, why."""

from __future__ import annotations

# For each family and operator the share by which look-up tables and flip-flops are off.
LOOSE: dict[str, dict[str, dict[str, float]]] = {"ecp5": {}, "ice40": {}}
