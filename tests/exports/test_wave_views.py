"""Views beside a waveform: every signal in them is in the waveform, as wide, and the streams are grouped by layer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hwflow
from tests.flow.networks import dense_network


def signals_of(vcd: Path) -> dict[str, int]:
    """The bits of each signal by its name with all scopes."""
    scopes, found = [], {}
    for line in vcd.read_text().split("$enddefinitions")[0].splitlines():
        words = line.split()
        if words[:1] == ["$scope"]:
            scopes.append(words[2])
        elif words[:1] == ["$upscope"]:
            scopes.pop()
        elif words[:1] == ["$var"]:
            found[".".join([*scopes, words[4].split("[")[0]])] = int(words[2])
    return found


@pytest.mark.parametrize(("simulator", "layers"), [("icarus", False), ("verilator", True)])
def test_every_signal_is_in_the_waveform(simulator, layers, tmp_path):
    model = dense_network(tmp_path / "model.onnx", (3, 2, 2))
    hwflow.compile(model, "ulx3s_85f", fps=1000).write(tmp_path / "out")
    wave = tmp_path / "w.vcd"
    assert hwflow.simulate(tmp_path / "out", frames=1, simulator=simulator, wave=wave, layers=layers).ok
    there = signals_of(wave)
    gtkwave = (tmp_path / "w.gtkw").read_text().splitlines()
    shown = {}
    for line in gtkwave[3:]:
        if line[0] not in "@-":
            name, _, high = line.rstrip("]").partition("[")
            shown[name] = int(high.partition(":")[0] or 0) + 1
    assert len(shown) > 30 and {name: there.get(name) for name in shown} == shown
    assert gtkwave[1] == f'[dumpfile] "{wave}"'
    surfer = (tmp_path / "w.sucl").read_text().splitlines()
    assert [line.split()[1] for line in surfer if line.startswith("variable_add ")] == list(shown)
    titles = [line.removeprefix("divider_add ") for line in surfer if line.startswith("divider_add ")]
    assert titles[0] == "clock" and titles[-1] == "error" and "dense0_mvu: mvu of 'dense0'" in titles
    assert [line[1:] for line in gtkwave if line.startswith("-")] == [t for title in titles for t in (title, title)]
    (dense,) = (i for i, line in enumerate(surfer) if "dense0_mvu: mvu" in line)
    inside = [re.sub(r".*dense0_mvu\.", "", line) for line in surfer[dense + 1 : dense + 7]]
    assert inside == ["i__valid", "i__ready", "i__payload", "o__valid", "o__ready", "o__payload"]
