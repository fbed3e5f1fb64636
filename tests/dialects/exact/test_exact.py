"""Random networks of every dialect: the golden model equals exact arithmetic, and the hardware the golden model.

The exact evaluation (:mod:`tests.dialects.exact.exact_model`) is written from the specifications and shares nothing
with hwflow.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from hwflow.api.compiler import compile
from tests.dialects.checking import assert_exact, compiled, frames_of
from tests.dialects.choices import Seeded
from tests.dialects.exact import reals
from tests.dialects.nets import Net
from tests.dialects.strategies import NETWORKS, networks
from tests.simulated_model import check_simulated

EXAMPLES = {"QDQ": 120, "QOperator": 120, "QONNX": 120, "binary": 60}

# What hwflow says about networks that it has a reason not to compile.
REASONS = {
    "one-channel-axis",
    "operand-width",
    "padded-zero-point",
    "pool-count",
    "product-zero-point",
    "stream-order",
    "zero-point-fraction",
}


def profile(examples: int) -> settings:
    """The same examples each time, and no clock."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=slow)


@pytest.mark.parametrize("dialect", EXAMPLES)
def test_golden_model_is_exact(dialect: str) -> None:
    outcome: Counter[str] = Counter()

    @profile(EXAMPLES[dialect])
    @given(networks(dialect))
    def run(net: Net) -> None:
        model = compiled(net)
        if isinstance(model, tuple):
            assert {finding.rule for finding in model} <= REASONS, [str(finding) for finding in model]
            outcome["refused"] += 1
            return
        try:
            assert_exact(model, frames_of(net, 2))
        except reals.Undecided:  # a tie between irrational numbers that happen to be equal
            outcome["undecided"] += 1
        else:
            outcome["exact"] += 1

    run()
    assert outcome["exact"] >= 0.75 * outcome.total(), outcome
    assert outcome["undecided"] <= 0.02 * outcome.total(), outcome


def saved(net: Net, folder: Path, frames: int) -> Path:
    """The model, and inputs beside it: random ones and those at the limits."""
    path = net.builder.save(folder)
    inputs = frames_of(net, frames)
    arrays = {name: np.concatenate([frame[name] for frame in inputs]) for name in inputs[0]}
    arrays = {name: a if a.dtype.kind in "iuf" else a.astype(np.int16) for name, a in arrays.items()}  # int4 and such
    np.savez(folder / "inputs.npz", **arrays)
    return path


# Sums and products of streams, a Concat and a convolution, a Softmax left to the host, a sum over windows, XNOR.
@pytest.mark.parametrize(
    ("dialect", "seed"),
    [("QDQ", 2), ("QDQ", 3), ("QOperator", 7), ("QOperator", 38), ("QONNX", 14), ("QONNX", 45), ("binary", 4)],
)
def test_hardware_is_the_golden_model(dialect: str, seed: int, tmp_path: Path) -> None:
    path = saved(NETWORKS[dialect](Seeded(seed)), tmp_path, 3)
    check_simulated(compile(path, "ulx3s_85f"), path=path, frames=6, stalls=(0.0,))
