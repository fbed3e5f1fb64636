"""`completion`: what a shell makes of the script."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from boards import all_boards

# Completes the last of its arguments as bash does when somebody presses Tab behind it; prints one candidate per line.
COMPLETE = """
source hwflow.bash
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
"$(complete -p hwflow | sed 's/.*-F \\([^ ]*\\) .*/\\1/')"
printf '%s\\n' "${COMPREPLY[@]}"
"""
WORDS = [
    ("hwflow", "sy"), ("hwflow", "synth", "--bo"), ("hwflow", "synth", "m.onnx", "--board", "ulx"),
    ("hwflow", "synth", "m.onnx", "--until", ""), ("hwflow", "check", "mod"), ("hwflow", "--vers"),
    ("hwflow", "completion", ""), ("hwflow", "explore", "m.onnx", "--until", ""),
]
CANDIDATES = [
    {"synth"}, {"--board"}, {board.name for board in all_boards() if board.name.startswith("ulx")},
    {"verilog", "netlist", "bitstream"}, {"model.onnx"}, {"--version"}, {"bash", "zsh", "fish"},
    {"schedule", "verilog", "netlist", "bitstream"},
]


@pytest.mark.parametrize(("words", "candidates"), list(zip(WORDS, CANDIDATES, strict=True)))
def test_bash(hwflow, tmp_path, words, candidates):
    (tmp_path / "hwflow.bash").write_text(hwflow("completion", "bash").out)
    (tmp_path / "model.onnx").touch()
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert {line.strip() for line in done.stdout.splitlines()} == candidates


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_theirs(hwflow, tmp_path, shell):
    ran = hwflow("completion", shell)
    assert ran.code == 0
    names = ["check", "synth", "quantize", "doctor", "junit", "ulx3s_85f", "icarus", "markdown"]
    assert [name for name in names if name not in ran.out] == []
    if shutil.which(shell):
        (tmp_path / "script").write_text(ran.out)
        subprocess.run([shell, "-n", "script"], cwd=tmp_path, check=True)


def test_json(hwflow):
    table = json.loads(hwflow("completion", "fish", "--format", "json").out)
    assert table["shell"] == "fish" and table["script"] + "\n" == hwflow("completion", "fish").out
