"""Real models that others made: every one compares with nothing unexplained, or is refused for a real limit.

They are not part of the project (see the table in tests/README.md); without them these tests are skipped.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hwflow.api.checking import check
from hwflow.verify.comparison import compare

MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"
README = Path(__file__).resolve().parents[1] / "README.md"

pytestmark = pytest.mark.skipif(not MODELS.is_dir(), reason="the models of others are not here")

# folder: frames to compare, or the rules that refuse it
EXPECTED: dict[str, int | set[str]] = {
    "cct_2_32_32_128_float": {"quantized-model"},
    "fraud_gbc_trees": 64,
    "lenet300_mnist_int8": 8,
    "micro_kws_m_fp32": {"quantized-model"},
    "micro_kws_m_qdq": 4,
    "micro_kws_m_qoperator_std": 4,
    "mlperf_ad_autoencoder_int8": 16,
    "mlperf_ic_resnet8_int8": 3,
    "mlperf_kws_dscnn_int8": 4,
    "mlperf_vww_mobilenetv1_int8": 2,
    "ort_mnist_float": {"quantized-model"},
    "silero_vad_float": {"input-type", "quantized-model"},
    "zoo_tfc_1w1a": 16,
    "zoo_tfc_2w2a": 16,
}


def test_every_model_is_in_the_table() -> None:
    assert {folder.name for folder in MODELS.iterdir() if folder.is_dir()} == EXPECTED.keys()
    rows = dict(re.findall(r"^\| (\w+) \|.*\| ([^|]*) \|$", README.read_text(), re.MULTILINE))
    assert {name: rows[name].startswith("refused") for name in EXPECTED} == {
        name: isinstance(expected, set) for name, expected in EXPECTED.items()
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_compares_or_is_refused(name: str) -> None:
    path, *others = sorted((MODELS / name).glob("*.onnx"), reverse=True)
    expected = EXPECTED[name]
    if isinstance(expected, set):
        assert {f.rule for f in check(path) if f.severity == "unsupported"} == expected
        return
    assert not others
    comparison = compare(path, frames=expected, seed=1)
    assert [(row.name, row.first) for row in comparison.rows if row.first] == []
    assert comparison.ok and not comparison.drift.failed
    assert len(comparison.rows) >= 5 and all(row.elements for row in comparison.rows)
