"""`sim --layers`: a defect in one core is found there, at the frame and element where it was put; an intact design is
equal in every layer."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hwflow as api
from hwflow.errors import UsageError
from tests.flow.sides.layered import first_sums, network, write_frames
from tests.rewritten import accept_changes


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The emitted design, folded so that weights are in memories."""
    folder = tmp_path_factory.mktemp("layers")
    api.compile(network().save(folder), "ulx3s_85f", fps=100_000).write(folder / "out")
    return folder / "out"


@pytest.fixture
def design(intact: Path, tmp_path: Path) -> Path:
    """A copy to be spoiled, with the programs built so far."""
    return shutil.copytree(intact, tmp_path / "out")


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    write_frames(tmp_path / "x.npz")
    return tmp_path / "x.npz"


def test_an_intact_design_is_equal_in_every_layer(intact: Path, frames: Path) -> None:
    simulation = api.simulate(intact, inputs=frames, layers=True)
    assert simulation.findings == ()
    layers = simulation.layers
    assert layers is not None and layers.first is None
    assert all((row.differing, row.missing) == (0, 0) and row.elements for row in layers.rows)
    shapes = {row.value: row.shape for row in layers.rows if not row.moved}
    assert shapes["first"] == shapes["first_q"] == (6, 2, 3)
    assert shapes["second"] == shapes["second_q"] == (3, 2, 3)
    assert {row.elements for row in layers.rows if row.value == "first_q"} == {3 * 6 * 2 * 3}
    *_, last = layers.lines()
    assert last == f"all {len(layers.rows)} layers equal the golden model"
    plain = api.simulate(intact, inputs=frames)
    assert plain.layers is None and plain.table().keys() == simulation.table().keys() - {"layers", "first_difference"}


def test_stalls_leave_every_layer_equal(intact: Path, frames: Path) -> None:
    simulation = api.simulate(intact, inputs=frames, layers=True, stall=0.5, seed=4)
    assert simulation.findings == ()
    assert simulation.layers is not None and not any(row.missing or row.differing for row in simulation.layers.rows)


def test_a_broken_weight_is_blamed(design: Path, frames: Path) -> None:
    """The weight from channel 0 to channel 0, 3, becomes the one from channel 2, -4: one weight per word, rows of 4."""
    file = design / "weights" / "first_mvu_weights.mem"
    words = file.read_text().splitlines()
    assert len(words) == 6 * 4
    file.write_text("\n".join([words[2], *words[1:]]) + "\n")
    accept_changes(design)
    simulation = api.simulate(design, inputs=frames, layers=True)
    assert simulation.layers is not None
    blamed = simulation.layers.first
    assert blamed is not None and blamed.first is not None
    assert (blamed.nodes, blamed.value, blamed.moved) == (("first",), "first", False)
    right = int(first_sums(np.load(frames)["x"])[1, 0, 1, 2])
    change = 9 * (-4 - 3)
    assert (blamed.first.frame, blamed.first.index) == (1, (0, 1, 2))
    assert (blamed.first.expected, blamed.first.found) == (right, right + change)
    assert blamed.differing == 1 + 6  # frame 1 has one such pixel, frame 2 six
    said = simulation.findings[0]
    assert said.rule == "first-layer"
    assert said.where == f"layer '{blamed.core}' (mvu, ONNX node 'first')"
    assert said.message == (
        f"all layers before it are equal to the golden model; of 'first', frame 1, element [0, 1, 2] must be {right}, "
        f"not {right + change} (7 of 108 elements differ)"
    )


def test_a_broken_core_is_blamed(design: Path, frames: Path) -> None:
    """A core is replaced by one that inverts the lowest bit of lane 0 of one beat."""
    (tap,) = (t for t in json.loads((design / "manifest.json").read_text())["streams"] if t["instance"] == "first_q")
    lanes, channels = tap["lanes"], tap["channels"]
    a_pixel = -(-channels // lanes)
    beat = tap["beats"] + 4 * a_pixel  # frame 1, pixel 4 (row 1, column 1), its first channel
    module = "hwflow_top__first_q"
    text = (design / "design.v").read_text()
    header = re.search(rf"(?ms)^module {module}\((.*?)\);\n((?:  (?:input|output|wire|parameter)[^\n]*\n)*)", text)
    assert header is not None and channels == 6
    ports = [p.strip() for p in header[1].split(",")]
    declared = "".join(
        line + "\n" for line in header[2].splitlines() if line.split()[0] in ("input", "output", "parameter")
    )
    wires = ", ".join(f".{p}({'right' if p == 'o__payload' else p})" for p in ports)
    broken = (
        f"module {module}({', '.join(ports)});\n{declared}"
        f"  wire [{lanes * tap['element']['width'] - 1}:0] right;\n"
        "  reg [31:0] beat = 0;\n"
        "  always @(posedge clk) if (rst) beat <= 0; else if (o__valid && o__ready) beat <= beat + 1;\n"
        f"  assign o__payload = right ^ (beat == {beat});\n"
        f"  {module}_right inner ({wires});\n"
        "endmodule\n"
    )
    (design / "design.v").write_text(text.replace(f"module {module}(", f"module {module}_right(") + broken)
    accept_changes(design)
    x = np.load(frames)["x"]
    # (sum / 3, rounded half to even) + 90, of 8 bits
    right = int(np.clip(np.rint(first_sums(x)[1, 0, 1, 1] / 3) + 90, 0, 255))
    simulation = api.simulate(design, inputs=frames, layers=True)
    assert simulation.layers is not None
    blamed = simulation.layers.first
    assert blamed is not None and blamed.first is not None
    assert (blamed.core, blamed.value, blamed.differing) == ("first_q", "first_q", 1)
    assert (blamed.first.frame, blamed.first.index) == (1, (0, 1, 1))
    assert (blamed.first.expected, blamed.first.found) == (right, right ^ 1)
    lines = list(simulation.layers.lines())
    assert lines[-1] == (
        f"the first layer that differs: 'first_q', value 'first_q', frame 1, element [0, 1, 1]: must be {right}, "
        f"not {right ^ 1}"
    )
    first = simulation.table()["first_difference"]
    assert (first["core"], first["first"]["index"]) == ("first_q", [0, 1, 1])


def test_icarus_is_refused(intact: Path) -> None:
    with pytest.raises(UsageError) as refused:
        api.simulate(intact, layers=True, simulator="icarus")
    assert str(refused.value) == (
        "error: option --layers: must be with '--simulator verilator', not icarus [layers-simulator]\n"
        "  remedy: leave out --simulator"
    )


def test_the_command_line(intact: Path, frames: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hwflow.cli import main

    assert main(["sim", "--layers", "--format", "json", "--input", str(frames), str(intact)]) == 0
    table = json.loads(capsys.readouterr().out)
    assert table["first_difference"] is None
    assert [row["value"] for row in table["layers"] if row["core"] == "second_q"] == ["second_q"]
    assert main(["sim", "--layers", "--input", str(frames), str(intact)]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert ["layer", "elements", "differing", "missing", "value"] in rows
    assert ["second_q", str(3 * 3 * 2 * 3), "0", "0", "second_q [3, 2, 3]"] in rows


def test_threads_take_a_share_of_the_frames_each(intact: Path) -> None:
    """The same verdict; the second share begins from a reset, so its first frame's latency is simulated once more."""
    alone, both = (api.simulate(intact, frames=13, seed=4, threads=count).table() for count in (1, 2))
    assert alone.pop("cycles") < both.pop("cycles")
    assert alone == both
    assert alone["verdict"] == "equal"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"threads": 0}, "must be at least 1, not 0 [positive-threads]\n  remedy: for example --threads 2"),
        (
            {"threads": 2, "layers": True},
            "must be with '--simulator verilator' and without --layers and --wave [threads-simulator]\n"
            "  remedy: leave it out",
        ),
    ],
)
def test_threads_that_cannot_be(intact: Path, options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError) as refused:
        api.simulate(intact, **options)
    assert str(refused.value) == f"error: option --threads: {text}"
