"""Dense networks around the limits of a part: a budget that names one resource leaves the others at what the part has,
and a refusal asks for a larger board only where the part has no more.

1,024 - 440 - 10 are 454,960 weights, more than the 403,456 bytes of an ULX3S's block RAM beside the link (197 blocks of
2 KiB): some lie in look-up tables, of which the default allows 20,000.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hwflow
from hwflow.errors import Finding, ModelRefused
from tests.flow.networks import dense_network

THERE = {"lut": 81_840, "ff": 82_490, "dsp": 156, "bram": 197}
SEEDS = [11, 2_027, 90_001]


def used(path: Path, **budget: int | str) -> dict[str, int]:
    """All of it inside the part."""
    resources = hwflow.compile(path, "ulx3s_85f", budget=budget, memory="none").schedule.resources
    return {name: getattr(resources, name) for name in THERE}


def refusal(path: Path, **budget: int | str) -> Finding:
    with pytest.raises(ModelRefused) as caught:
        used(path, **budget)
    return caught.value.findings[0]


def remedy(path: Path, **budget: int | str) -> str:
    return refusal(path, **budget).remedy or ""


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_not_named_is_the_parts(tmp_path: Path, seed: int) -> None:
    path = dense_network(tmp_path / "model.onnx", (1024, 440, 10), seed)
    assert "larger board" not in remedy(path)
    for budget, more_luts in (({"dsp": 78}, True), ({"bram": 197}, False)):
        need = used(path, **budget)
        assert all(need[name] <= (THERE | budget)[name] for name in THERE)
        assert (need["lut"] > 20_000) is more_luts


@pytest.mark.parametrize("seed", SEEDS)
def test_a_refusal_names_what_is_free(tmp_path: Path, seed: int) -> None:
    """The budget that it names is one that the board has, and enough."""
    path = dense_network(tmp_path / "model.onnx", (1024, 440, 10), seed)
    text = remedy(path, lut=5_000, dsp=20)
    assert text.endswith(": request it with --budget")
    named = {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", text)}
    assert named.keys() == THERE.keys() and all(named[name] <= THERE[name] for name in THERE)
    need = used(path, **named)
    assert all(need[name] <= named[name] for name in THERE)


def test_what_lower_bounds_refuse_may_fit_all_there_is(tmp_path: Path) -> None:
    """1,024 - 520 - 10: more than the 4 million bits from which on bounds are asked before the search."""
    path = dense_network(tmp_path / "model.onnx", (1024, 520, 10))
    assert remedy(path, lut=20_000) == "all that is there may hold it: request '--budget lut=81840'"
    assert "bram must be at most 197" in str(refusal(path, lut=81_840))  # it does not, as the search then says


def test_a_larger_board_where_the_part_has_no_more(tmp_path: Path) -> None:
    path = dense_network(tmp_path / "larger.onnx", (1024, 1060, 10))
    assert remedy(path, bram=197).startswith("no board of hwflow holds it")
    design = hwflow.compile(path, "ulx3s_85f", budget={"bram": 500}, what_if=True, memory="none")
    assert design.schedule.resources.lut <= THERE["lut"]
