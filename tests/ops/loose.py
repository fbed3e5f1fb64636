"""Cases whose samples are not within the bounds of tests.ops.samples: by how much they are off at most. Most are cores
of fewer than a hundred look-up tables, of which constants leave little, windows of few rows, and queues of so few beats
that the mapper folds what is in front of them into their registers."""

from __future__ import annotations

# For each family and operator the share by which look-up tables and flip-flops are off.
LOOSE: dict[str, dict[str, dict[str, float]]] = {
    "ecp5": {
        "elementwise": {
            "right": 0.2,
        },
        "requantize": {
            "multiply_ties_odd": 0.35,
            "multiply_negated_constants4": 0.15,
        },
        "scaled_add": {
            "bits": 0.35,
        },
        "sliding_window": {
            "single_pixel": 0.2,
            "random_3": 0.2,
        },
        "stream_concat": {
            "three": 0.15,
        },
        "stream_top_k": {
            "alone": 0.35, "three": 0.15, "three_side_by_side": 0.15, "all_sorted": 0.2,
        },
        "sum_pool": {
            "copies": 0.25,
        },
        "weighted_pool": {
            "one_pixel": 0.15,
        },
    },
    "ice40": {
        "elementwise": {
            "quotient_of_constant": 0.3,
            "modulus_of_negative": 0.25,
        },
        "mvu": {
            "conv": 0.15,
            "random_2": 0.15,
            "conv_sets": 0.15,
        },
        "position_sum": {
            "cubic_columns": 0.15,
        },
        "rearrange": {
            "pad": 0.2,
        },
        "requantize": {
            "multiply_ties": 0.15,
            "search_values_both": 0.25,
            "multiply_negated_constants4": 0.15,
            "multiply_negated_odd_constants2": 0.15,
        },
        "scaled_add": {
            "bits": 0.35,
        },
        "sliding_window": {
            "single_pixel": 0.15,
            "random_whole_5": 0.15,
        },
        "stream_top_k": {
            "alone": 0.35, "last_of_equal": 0.25, "pixels_of_channels": 0.15,
        },
        "sum_pool": {
            "3x3_groups": 0.15,
        },
        "weighted_pool": {
            "one_weight": 0.2,
        },
    },
}
