"""Cases whose samples are not within the bounds of tests.ops.samples: by how much they are off at most. Most are cores
of fewer than a hundred look-up tables, of which constants leave little, windows of few rows, and queues of so few beats
that the mapper folds what is in front of them into their registers."""

from __future__ import annotations

# For each family and operator the share by which look-up tables and flip-flops are off.
LOOSE: dict[str, dict[str, dict[str, float]]] = {
    "ecp5": {
        "elementwise": {
            "right": 0.2, "tensor_or_tensor": 0.4,
        },
        "product": {
            "wrapped": 0.2, "wrapped_wide": 0.45,
        },
        "requantize": {
            "multiply_ties_odd": 0.35, "multiply_negated_constants4": 0.15, "multiply_both_rows": 0.3,
        },
        "scaled_add": {
            "both_a_channel": 0.15, "bits": 0.35,
        },
        "sliding_window": {
            "single_pixel": 0.2, "random_3": 0.2,
        },
        "stream_concat": {
            "three": 0.15,
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
            "quotient_of_constant": 0.35, "modulus_of_negative": 0.3, "tensor_or_tensor": 0.4,
        },
        "fifo": {
            "pixels": 0.4,
        },
        "fork": {
            "two": 0.2, "three": 0.25,
        },
        "max_pool": {
            "3x3_groups": 0.25, "least_groups": 0.15,
        },
        "mvu": {
            "conv": 0.2, "vectors": 0.2, "vector_of_pixels": 0.15, "one_step": 0.15, "one_vector": 0.15,
            "wide_weights": 0.15, "wide_inputs": 0.15, "random_2": 0.15, "random_3": 0.3, "constant_products": 0.15,
            "constant_products_scalar": 0.15, "pairs_one_step": 0.35, "pairs_unsigned": 0.4, "conv_sets": 0.25,
        },
        "product": {
            "wrapped": 0.25, "wrapped_wide": 0.15,
        },
        "rearrange": {
            "columns_first": 0.15, "crop": 0.15, "first_half": 0.15, "second_half": 0.15, "one_of_all": 0.15,
            "pad": 0.2, "pad_beyond_the_type": 0.2, "vector_to_pixels": 0.15,
        },
        "requantize": {
            "multiply": 0.15, "multiply_wide": 0.15, "multiply_alike": 0.2, "multiply_ties": 0.2, "constant": 2.1,
            "multiply_falling_alike": 0.2, "multiply_negated_alike": 0.2, "multiply_shifted_alike": 0.15,
            "multiply_falling_ties": 0.2, "thresholds_both": 0.15, "thresholds_bases": 1.1,
            "thresholds_bases_alike": 1.1, "search_alike": 0.25, "search_values": 0.25, "search_values_both": 0.25,
            "search_one": 1.55, "multiply_negated_constants4": 0.2, "multiply_negated_odd_constants2": 0.2,
            "multiply_products_constants5shift_add": 0.2, "multiply_alike_products_constants3shift_add": 0.15,
            "multiply_rows": 0.25, "multiply_many_rows": 0.15, "multiply_unsigned_rows": 0.25,
            "multiply_both_rows": 0.45,
        },
        "scaled_add": {
            "powers_of_two": 0.15, "both_negative": 0.25, "a_channel": 0.15, "both_a_channel": 0.15, "bits": 0.5,
            "intervals": 0.15,
        },
        "sliding_window": {
            "stride_2": 0.25, "single_pixel": 0.15, "pad_beyond_the_type": 0.25, "same": 0.15, "same_channels": 0.15,
            "valid": 0.2, "pool": 0.15, "uneven_pads": 0.15, "right_pad": 0.15, "skips": 0.15,
        },
        "stream_concat": {
            "channels": 0.15, "three": 0.25,
        },
        "sum_pool": {
            "in_memory": 0.35, "3x3_groups": 0.25,
        },
        "weighted_pool": {
            "3x3": 0.15, "one_pixel": 0.15, "in_turns": 0.15,
        },
    },
}

# Multiplier blocks and block RAMs that are off: products with constants of which synthesis makes something smaller
# before two of them could share a block, and a memory so small that it stays in flip-flops.
BLOCKS: dict[str, dict[str, dict[str, int]]] = {
    "ecp5": {},
    "ice40": {
        "mvu": {"vector_of_pixels": 1, "constant_products": 8},
        "requantize": {"multiply": 2, "multiply_falling": 2, "multiply_both": 2},
        "sum_pool": {"in_memory": 1},
    },
}
