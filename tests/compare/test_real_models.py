"""compare on models that others made (they are no part of the project: ../shared/models)."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwflow.comparison import compare

MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"
COMPARED = (
    "lenet300_mnist_int8", "micro_kws_m_qdq", "micro_kws_m_qoperator_std", "mlperf_ad_autoencoder_int8",
    "mlperf_ic_resnet8_int8", "zoo_tfc_1w1a", "zoo_tfc_2w2a",
)


@pytest.mark.parametrize("name", COMPARED)
def test_nothing_is_unexplained(name: str) -> None:
    if not MODELS.is_dir():
        pytest.skip(f"the models are not here: {MODELS}")
    (path,) = (MODELS / name).glob("*.onnx")
    comparison = compare(path, frames=2)
    assert [(row.name, row.first) for row in comparison.rows if row.first] == []
    assert comparison.ok and not comparison.drift.failed
    assert len(comparison.rows) >= 5 and all(row.elements for row in comparison.rows)
    assert sum(row.mismatches for row in comparison.rows) <= 20
