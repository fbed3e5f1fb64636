"""The operators' resource models against what synthesis made of every case of the harness: the samples beside the
models (``python benchmarks/measure_operators.py``), some of them measured again here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ops import samples
from tests.ops.samples import Key

# Cases in which a row is not within the bounds of tests.ops.samples, with the share by which look-up tables and
# flip-flops are off there at most: mostly tables of so few words, or windows of so few rows, that synthesis leaves
# little of a core.
LOOSE: dict[str, dict[str, float]] = {
    "mvu": {
        "one_step": 1.1, "one_vector": 0.2, "bits": 0.35, "ternary": 0.3, "wide_weights": 0.5,
        "wide_products": 0.35, "wide_inputs": 0.7, "random_0": 0.2, "random_3": 0.4, "shift_add_windows": 0.15,
        "shift_add_ternary": 0.15, "pairs_one_step": 0.2, "pairs_unsigned": 0.25, "xnor_whole_vectors": 0.2,
    },
    "requantize": {
        "multiply": 0.15, "multiply_wide": 0.2, "search_ties_alike": 0.15, "multiply_intervals": 0.15,
        "constant": 1.85, "multiply_falling": 0.25, "multiply_both": 0.35, "multiply_both_intervals": 0.15,
        "multiply_negated_alike": 0.5, "multiply_falling_ties": 0.45, "thresholds_both": 0.25,
        "thresholds_bases": 1.05, "thresholds_bases_alike": 0.3, "sign_both": 0.35, "search": 0.15,
        "search_values": 0.15, "search_values_both": 0.3, "multiply_powers_odd_constants6": 0.2,
        "multiply_negated_constants4": 0.15, "multiply_both_rows": 0.4,
    },
    "scaled_add": {
        "a_channel": 0.35, "both_a_channel": 1.1, "bits": 0.35,
    },
    "sliding_window": {
        "3x3": 0.15, "stride_2": 0.15, "all_padding_above": 0.25, "single_pixel": 0.55, "pad_beyond_the_type": 0.25,
        "random_2": 0.15, "random_3": 0.35, "valid": 0.3, "pool": 0.4, "uneven_pads": 0.15, "right_pad": 0.15,
        "skips": 1, "random_whole_0": 0.15, "random_whole_2": 0.2, "random_whole_3": 0.15,
        "random_whole_4": 0.25,
    },
    "stream_concat": {
        "three": 0.15,
    },
    "sum_pool": {
        "copies": 0.25,
    },
}


@pytest.mark.parametrize("family", samples.MODELLED)
def test_every_case_has_its_sample(family: str) -> None:
    measured = {row.key for row in samples.read(family)}
    missing = [key for key in samples.all_keys() if key not in measured]
    assert not missing, f"measure again: python benchmarks/measure_operators.py measure {family}"


@pytest.mark.parametrize("op", dict.fromkeys(key.op for key in samples.all_keys()))
@pytest.mark.parametrize("family", samples.MODELLED)
def test_the_model_fits_the_samples(family: str, op: str) -> None:
    """Blocks exactly, look-up tables and flip-flops within a tenth (or 12 of them)."""
    wrong = []
    for row in samples.read(family):
        if row.key.op != op:
            continue
        model = samples.predicted(family, row.key)
        found = samples.deviations(row, model)
        share = LOOSE.get(op, {}).get(row.key.case)
        if share is not None and samples.error(row, model) <= share:
            continue
        if found:
            wrong.append((row.key.case, row.key.folding_text, *found))
    assert not wrong, "\n".join(map(str, wrong))


def test_samples_are_fresh(tmp_path: Path) -> None:
    """A core of every operator, synthesized again. How many look-up tables the mapper finds depends a little on what
    else is in a run."""
    chosen: dict[str, Key] = {}
    for key in samples.all_keys():
        chosen.setdefault(key.op, key)
    measured = {row.key: row.cells for row in samples.read("ecp5")}
    for row in samples.synthesize("ecp5", list(chosen.values()), tmp_path):
        old, new = measured[row.key], row.cells
        stale = f"{row}: measure again: python benchmarks/measure_operators.py measure ecp5"
        assert (new.ff, new.dsp, new.bram) == (old.ff, old.dsp, old.bram), stale
        assert abs(new.lut - old.lut) <= max(samples.CELLS_OFF, samples.SHARE * old.lut), stale
