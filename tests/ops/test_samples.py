"""The operators' resource models against what synthesis made of every case of the harness: the samples beside the
models (``python benchmarks/measure_operators.py``), some of them measured again here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ops import samples
from tests.ops.samples import Key

# Cases in which the model is not within the bounds of tests.ops.samples, with the most by which LUTs and flip-flops
# are off there, as a share: tables of so few words, or constants, that little is left of a core.
LOOSE = {
}


@pytest.mark.parametrize("family", samples.MODELLED)
def test_every_case_has_its_sample(family: str) -> None:
    measured = {row.key for row in samples.read(family)}
    missing = [key for key in samples.keys() if key not in measured]
    assert not missing, f"measure again: python benchmarks/measure_operators.py measure {family}"


@pytest.mark.parametrize("op", dict.fromkeys(key.op for key in samples.keys()))
@pytest.mark.parametrize("family", samples.MODELLED)
def test_the_model_fits_the_samples(family: str, op: str) -> None:
    """Blocks exactly, look-up tables and flip-flops within a tenth (or 12 of them)."""
    wrong = []
    for row in samples.read(family):
        if row.key.op != op:
            continue
        model = samples.predicted(family, row.key)
        found = samples.deviations(row, model)
        share = LOOSE.get((op, row.key.case))
        if share is not None and samples.error(row, model) <= share:
            continue
        if found:
            wrong.append((row.key.case, row.key.folding_text, *found))
    assert not wrong, "\n".join(map(str, wrong))


def test_samples_are_fresh(tmp_path: Path) -> None:
    """A core of most operators, synthesized again."""
    chosen: dict[str, Key] = {}
    for key in samples.keys():
        chosen.setdefault(key.op, key)
    measured = {row.key: row for row in samples.read("ecp5")}
    for row in samples.synthesize("ecp5", list(chosen.values()), tmp_path):
        assert row == measured[row.key], "measure again: python benchmarks/measure_operators.py measure ecp5"
