"""The output folder of `synth`: whole, or as it was."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli import models
from tests.cli.refusals import DIGITS, error, failing, refused, synth


def test_an_output_folder_that_cannot_be(hwflow, tmp_path):
    """Root may write anywhere, but not below a file, and not in /proc."""
    (tmp_path / "file").write_text("mine\n")

    def attempt(out: str, where: str, reason: str) -> None:
        ran = hwflow("synth", DIGITS, "--board", "ulx3s_85f", "-o", out)
        message = f"must be a folder that can be written, but {reason}"
        refused(
            ran, 2, error(f"output '{where}'", message, "output-folder", "choose another folder with -o"), before=""
        )

    attempt("file/below", f"{tmp_path}/file/below", f"'{tmp_path}/file' is a file")
    attempt("file", f"{tmp_path}/file", "it is a file")
    attempt("/proc/out", "/proc/out", "the system says: No such file or directory")
    attempt("x" * 300, f"{tmp_path}/{'x' * 300}", "the system says: File name too long")
    assert (tmp_path / "file").read_text() == "mine\n"


def test_a_folder_with_other_files_is_left_alone(hwflow, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("mine\n")
    ran = hwflow("synth", DIGITS, "--board", "ulx3s_85f", "-o", "thesis")
    message = "must be a new, an empty or an earlier output folder, not one with other files"
    remedy = "choose another folder with -o"
    refused(ran, 2, error(f"output '{tmp_path}/thesis'", message, "output-folder", remedy), before="")
    assert [p.name for p in (tmp_path / "thesis").iterdir()] == ["chapter1.tex"]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_an_earlier_output_stays_until_a_new_one_is_whole(hwflow, tmp_path, monkeypatch):
    models.relu(tmp_path / "good.onnx")
    models.unsupported(tmp_path / "bad.onnx")
    assert synth(hwflow, "good.onnx", board="icebreaker").code == 0
    before = snapshot(tmp_path)
    assert synth(hwflow, "bad.onnx").code == 1
    assert snapshot(tmp_path) == before
    for at in ("", "board/top.v"):  # the design's Verilog, the board's top
        with monkeypatch.context() as patch:
            patch.setattr("hwflow.output.YOSYS", failing(tmp_path.parent / f"{tmp_path.name}-tools", at))
            assert synth(hwflow, "good.onnx", board="ulx3s_12f").code == 3
        assert snapshot(tmp_path) == before
    assert synth(hwflow, "good.onnx", board="ulx3s_12f").code == 0  # and then it is replaced
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["board"] == "ulx3s_12f"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.onnx", "good.onnx", "out"]


def test_without_o_the_output_is_named_after_the_model(hwflow, tmp_path):
    models.relu(tmp_path / "good.onnx")
    ran = hwflow("synth", "good.onnx", "--board", "icebreaker", "--until", "verilog")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "good on icebreaker (iCE40UP5K): build/good")
    assert (tmp_path / "build" / "good" / "design.v").is_file()
