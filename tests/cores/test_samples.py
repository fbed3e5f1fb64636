"""The operators' resource models against what synthesis made of every case of the harness: the samples beside the
models (``python benchmarks/measure_operators.py``), some of them measured again here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cores import samples
from tests.cores.loose import LOOSE, TOGETHER
from tests.cores.samples import Key


@pytest.mark.parametrize("family", samples.COMPLETE)
def test_every_case_has_its_sample(family: str) -> None:
    measured = {row.key for row in samples.read(family)}
    missing = [key for key in samples.all_keys(family) if key not in measured]
    assert not missing, f"measure again: python benchmarks/measure_operators.py measure {family}"


@pytest.mark.parametrize("op", dict.fromkeys(key.op for key in samples.all_keys("ecp5")))
@pytest.mark.parametrize("family", samples.MODELLED)
def test_the_model_fits_the_samples(family: str, op: str) -> None:
    """Blocks exactly, look-up tables and flip-flops within a tenth (or 12 of them), but for the cases of
    tests.cores.loose."""
    wrong = []
    for row in samples.read(family):
        if row.key.op != op:
            continue
        model = samples.predicted(family, row.key)
        share = LOOSE[family].get(op, {}).get(row.key.case, 0.0)
        found = samples.deviations(row, model, share)
        if found:
            wrong.append((row.key.case, row.key.folding_text, *found))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("op", dict.fromkeys(key.op for key in samples.all_keys("ecp5")))
def test_an_operators_cases_together_fit(op: str) -> None:
    """On ECP5, the sum of all its cases: look-up tables and flip-flops within a tenth, blocks exactly."""
    compared = [(row.cells, samples.predicted("ecp5", row.key)) for row in samples.read("ecp5") if row.key.op == op]
    for kind in samples.KINDS:
        found, model = (sum(getattr(side, kind) for side in sides) for sides in zip(*compared, strict=True))
        allowed = samples.SHARE * found if kind in ("lut", "ff") else 0
        assert abs(model - found) <= allowed, f"{kind}: {model}, found {found}"


@pytest.mark.parametrize("op", dict.fromkeys(key.op for key in samples.all_keys("ecp5")))
@pytest.mark.parametrize("family", samples.MODELLED)
def test_no_model_gets_worse(family: str, op: str) -> None:
    """Off by no more than tests.cores.loose says of all the operator's cases together."""
    rows = [row for row in samples.read(family) if row.key.op == op]
    models = [samples.predicted(family, row.key) for row in rows]
    off = sum(abs(model.lut - row.cells.lut) + abs(model.ff - row.cells.ff)
              for model, row in zip(models, rows, strict=True))
    share = 100 * off / sum(row.cells.lut + row.cells.ff for row in rows)
    assert share <= TOGETHER[family][op], f"{share:.3f} % of the cells"


@pytest.mark.parametrize("family", samples.MODELLED)
def test_no_case_is_let_off_for_nothing(family: str) -> None:
    """What is in tests.cores.loose must be off."""
    off = {
        (row.key.op, row.key.case) for row in samples.read(family)
        if samples.deviations(row, samples.predicted(family, row.key))
    }
    listed = {(op, case) for op, cases in LOOSE[family].items() for case in cases}
    assert listed <= off, sorted(listed - off)


def test_samples_are_fresh(tmp_path: Path) -> None:
    """A core of every operator, synthesized again. How many look-up tables the mapper finds depends a little on what
    else is in a run."""
    chosen: dict[str, Key] = {}
    for key in samples.all_keys("ecp5"):
        chosen.setdefault(key.op, key)
    measured = {row.key: row.cells for row in samples.read("ecp5")}
    for row in samples.synthesize("ecp5", list(chosen.values()), tmp_path):
        old, new = measured[row.key], row.cells
        stale = f"{row}: measure again: python benchmarks/measure_operators.py measure ecp5"
        assert (new.ff, new.dsp, new.bram) == (old.ff, old.dsp, old.bram), stale
        assert abs(new.lut - old.lut) <= max(samples.CELLS_OFF, samples.SHARE * old.lut), stale
