"""A network whose weights are in a board's flash: the same integers, no later than predicted, beside a model of the
flash that ends the simulation where it is used as it must not be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.api.forms.memory_outside import MemoryOutside
from hwflow.boards import find_board
from hwflow.boards.board import Board
from hwflow.cli import main
from hwflow.errors import ModelRefused
from hwflow.sim import digests
from tests.flow.networks import dense_network
from tests.flow.test_layers_in_turn import deep

EVERYTHING = {"lut": "100%", "ff": "100%"}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All weights of two layers, at a clock at which the flash brings 12 MB/s."""
    folder = tmp_path_factory.mktemp("flash")
    path = dense_network(folder / "model.onnx", (48, 96, 16))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Board, "memory_timing", Board.flash_timing)
        design = compile(path, "icebreaker", clock_mhz=24, budget=EVERYTHING, memory="all")
    assert [node.op for node in design.schedule.graph.nodes].count("fetched_matrix") == 2
    design.write(folder / "out")
    return folder / "out"


@pytest.mark.parametrize("more", [(), ("--stall", "0.4"), ("--simulator", "icarus"), ("--layers",)])
def test_simulated(out: Path, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """All results are right, no later than said, and a frame takes little longer than its words: one in four cycles."""
    assert main(["sim", str(out), "--frames", "3", "--seed", "1", *more, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["mismatches"] == 0
    table = json.loads((out / "manifest.json").read_text())
    words = sum(region["words"] for region in table["memory"]["regions"])
    assert (table["memory"]["kind"], words) == ("flash", (48 * 96 + 96 * 16) // 2)
    assert 4 * words < table["timing"]["initiation_interval"] < 1.25 * 4 * words


def test_the_image_is_a_file_of_bytes(out: Path) -> None:
    table = json.loads((out / "manifest.json").read_text())["memory"]
    words = [int(word, 16) for word in (out / table["image"]).read_text().split()]
    data = (out / table["flash"]["file"]).read_bytes()
    assert data == np.array(words, dtype="<u2").tobytes() and len(data) == 2 * table["words"]
    board = find_board("icebreaker")
    assert board.flash is not None and board.flash.chip.offset == table["flash"]["offset"]
    described = json.loads((out / "board" / "board.json").read_text())
    assert described["program"] == "iceprog -o 1048576 board/flash.bin && iceprog {bitstream}"
    assert described["other_programs"] == [
        "openFPGALoader -b ice40_generic -o 1048576 board/flash.bin && openFPGALoader -b ice40_generic {bitstream}"
    ]


def test_a_flash_that_wakes_too_late(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, table = out / "testbench" / "memory.v", json.loads((out / "manifest.json").read_text())
    before, manifest = model.read_text(), (out / "manifest.json").read_text()
    assert ".T_RES1(3000000)" in before
    try:
        model.write_text(before.replace(".T_RES1(3000000)", ".T_RES1(300000000)"))
        table[digests.KEY]["testbench/memory.v"] = digests.digest(model)
        (out / "manifest.json").write_text(json.dumps(table))
        assert main(["sim", str(out), "--frames", "1"]) == 3
        assert "flash: tRES1, 300000000 ps from waking it, is violated" in capsys.readouterr().err
    finally:
        model.write_text(before)
        (out / "manifest.json").write_text(manifest)


def test_weights_alone_go_there() -> None:
    """Boards with a flash have another memory, or none, for all that waits."""
    for name, chip in (("icebreaker", "W25Q128JV"), ("icesugar", "W25Q64JV"), ("upduino_3", None)):
        timing = find_board(name).flash_timing(find_board(name).clock.hz)
        assert (timing.chip.name if timing else None) == chip
        memory = find_board(name).memory_timing(find_board(name).clock.hz)
        assert memory is not None and not memory.read_only


def test_layers_in_turn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An engine that takes its weights from the flash of a board with a larger part, no later than said: two frames
    after each other, stalled, and layer by layer."""
    board = find_board("icebreaker")
    part = replace(board.part, lut=20_000, ff=20_000, dsp=24, bram=101)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Board, "memory_timing", Board.flash_timing)
        patch.setattr(MemoryOutside, "_without_engine", _refused)
        design = compile(deep().save(tmp_path), replace(board, part=part), clock_mhz=24, budget=EVERYTHING)
    out = tmp_path / "many_cycles"
    design.write(out)
    memory = json.loads((out / "manifest.json").read_text())["memory"]
    assert (memory["kind"], len(memory["engines"]), len(memory["regions"])) == ("flash", 1, 1)
    assert 4 * memory["regions"][0]["words"] < design.schedule.initiation_interval
    for more in ((), ("--stall", "0.3"), ("--layers",)):
        assert main(["sim", str(out), "--frames", "2", "--seed", "1", *more, "--format", "json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["mismatches"] == 0
        if not more:
            assert told["latency"] <= told["expected"]["latency"]
            assert told["initiation_interval"] <= design.schedule.initiation_interval


def _refused(*_: object) -> None:
    raise ModelRefused([])
