"""Cases whose samples are not within the bounds of tests.cores.samples: by how much they are off at most, and, where it
is known, why."""

from __future__ import annotations

# For each family and operator the share by which look-up tables and flip-flops are off.
LOOSE: dict[str, dict[str, dict[str, float]]] = {
    "ecp5": {
        # Three rows' products side by side take a table a lane and tap less than counted. The longest addresses: what
        # chooses among their steps is less than a share of each bit. A row of one lane: what counts goes into a table
        # or two less for each bit, or does not, which depends on what else is in a run.
        "depthwise": {"by_pixel_strided": 0.12, "in_parts": 0.24},
        # Bits that are alike for several weights of one bit are counted for each. Small cores of few lanes, likewise.
        "mvu": {"bits": 0.2, "clipped_strided": 0.12},
        "root": {"fractions": 0.15, "with_an_addend": 0.15},
        # The mapper takes a slice's multiplexers for the OR of many bits where that saves levels, or does not. The
        # address of a table, or of a few words, that goes on every few beats, beside a small core.
        "requantize": {
            "multiply_ties_late": 0.17, "multiply_negated_alike": 0.16, "multiply_deep_by_row": 0.13,
            "multiply_serial_by_row": 0.11, "multiply_serial_by_row_apart": 0.11,
        },
        # All inputs of a lane together are so few bits that its whole sum is a table a bit.
        "scaled_add": {"bits": 0.33},
        # One output row: the mapper makes 29 tables more where the sums of its next place have registers.
        # Columns of two or three bits whose next one is chosen in a table or two more, or less.
        # What says which of several inputs take part is shared or repeated, beside a small core.
        "side_by_side": {"same": 0.26, "some_rows": 0.15},
        # Small images of one column, whose rows are counted in few bits.
        "sliding_window": {
            "random_6": 0.13, "segments_of_a_row": 0.2, "segments_of_one": 0.12, "stacked": 0.18,
            "images_stacked": 0.14, "images_stacked_centred": 0.17,
        },
        # A divisor whose highest bit is always 0.
        "quotient": {"of_a_signed_type": 0.17},
        # What chooses among the blocks of the memory and of the first beats.
        "stream_delay": {"in_block_ram": 0.18},
        # What fifteen runs send is chosen for each lane anew.
        "rearrange": {"pad": 0.19},
        # What chooses between the inputs is repeated for each of the queue's registers.
        "followed_by": {"rows": 0.23},
        # A single product of four bits by four, folded into what is around it.
        "fetched_matrix": {"a_vector": 0.18},
        # What is alike in several units.
        "tree_ensemble": {"deep_at_once": 0.14},
        # The fifteen single bits of a word of the memory; the choice of two parts, which what follows takes in.
        "stream_matrix": {"bits": 0.14, "parts_at_once": 0.13},
    },
    "ice40": {
        "depthwise": {"by_pixel_strided": 0.13, "in_parts": 0.19},
        # A constant first row takes no tables beside the others' multiplexers.
        "followed_by": {"constant": 0.3},
        # The longest addresses, as of depthwise; columns of two or three bits.
        "sliding_window": {
            "centred_unsigned": 0.11, "in_parts": 0.31, "segments_of_a_row": 0.13, "segments_of_one": 0.13,
            "images_stacked_dilated": 0.12, "images_stacked_centred": 0.11,
        },
        "side_by_side": {"same_of_many_channels": 0.13, "some_rows": 0.12},
        # An address that goes on every few beats, beside a small core.
        "requantize": {"multiply_deep_by_row": 0.12, "table_by_row": 0.16, "multiply_serial_by_row_apart": 0.11},
        "root": {"squares": 0.22, "fractions": 0.16, "with_an_addend": 0.19},
        "scaled_add": {"bits": 0.33},
        # Products of parts of which only bits above the wrapped result are left are counted.
        "product": {"wrapped_wide": 0.14},
        # Products of four bits by four, too short for a multiplier block: of an odd row, where the others are packed.
        "stream_matrix": {
            "bits": 0.11, "one_product": 0.25, "packed": 0.29, "packed_columns": 0.12, "parts_at_once": 0.11,
        },
        # What chooses among a row's words in registers of a queue is a table more for each bit than beside other logic.
        "table_rows": {"in_banks": 0.49, "in_block_ram": 0.13, "parts": 0.12, "powers_of_two": 0.17},
        # The table of nodes, likewise.
        "tree_ensemble": {
            "regressor": 0.13, "missing": 0.11, "classes": 0.13, "classes_at_once": 0.14, "least": 0.21,
        },
    },
}

# The share of look-up tables and flip-flops by which an operator's cases are off together, in percent, as measured and
# rounded up: a model that gets worse has a reason.
TOGETHER: dict[str, dict[str, float]] = {
    "ecp5": {
        "depthwise": 3.63, "elementwise": 1.94, "fetched_matrix": 2.71, "fetched_row": 2.12, "fifo": 2.42,
        "followed_by": 6.1, "fork": 1.96, "frame_sync": 4.08,
        "max_pool": 1.5, "mvu": 2, "position_sum": 2.5, "product": 1.36, "quotient": 2.5, "rearrange": 2.04, "relay": 0,
        "repeated": 1.68, "requantize": 1.37, "root": 3.7,
        "running_sum": 3.5, "scaled_add": 2.92, "side_by_side": 3.9,
        "sliding_window": 2.32, "softmax_row": 1.7, "stream_concat": 2.5, "stream_delay": 2.94,
        "stream_matrix": 1.66,
        "stream_top_k": 3.3,
        "sum_pool": 1.5, "table_rows": 4, "tree_ensemble": 2.14, "weighted_pool": 2.5, "width_converter": 5.6,
    },
    "ice40": {
        "depthwise": 2.5, "elementwise": 1.68, "fetched_matrix": 2.13, "fetched_row": 1.71, "fifo": 1.22,
        "followed_by": 1.8, "fork": 0.84,
        "frame_sync": 3.04, "max_pool": 2.5, "mvu": 2, "position_sum": 2, "product": 1.62, "quotient": 2.1,
        "rearrange": 0.82, "relay": 0,
        "repeated": 1.84, "requantize": 1.86, "root": 7,
        "running_sum": 2, "scaled_add": 2.38, "side_by_side": 1.38,
        "sliding_window": 2, "softmax_row": 2, "stream_concat": 0.66, "stream_delay": 1.76,
        "stream_matrix": 1.57,
        "stream_top_k": 1.8,
        "sum_pool": 1, "table_rows": 4, "tree_ensemble": 2.46, "weighted_pool": 2, "width_converter": 3.02,
    },
}
