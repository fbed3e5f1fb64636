"""Cases whose samples are not within the bounds of tests.cores.samples: by how much they are off at most, and, where it
is known, why."""

from __future__ import annotations

# For each family and operator the share by which look-up tables and flip-flops are off.
LOOSE: dict[str, dict[str, dict[str, float]]] = {
    "ecp5": {
        # Bits that are alike for several weights of one bit are counted for each.
        "mvu": {"bits": 0.2},
        # The mapper takes a slice's multiplexers for the OR of many bits where that saves levels, or does not.
        "requantize": {"multiply_ties_late": 0.17, "multiply_negated_alike": 0.16},
        # All inputs of a lane together are so few bits that its whole sum is a table a bit.
        "scaled_add": {"bits": 0.33},
    },
    "ice40": {"scaled_add": {"bits": 0.33}},
}
