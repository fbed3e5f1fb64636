"""Networks whose weights lie in a board's SDRAM: the same integers, no later than predicted, beside a model of the
memory that ends the simulation at any violation of its timing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile, dataflow
from hwflow.cli import main
from hwflow.errors import ModelRefused, UsageError
from hwflow.loaded_model import load
from hwflow.passes.outside.fetch_weights import ANY_TIMING, fetch_weights, groups_of, may_be_fetched
from hwflow.schedule import queues, weights_outside
from hwflow.sim import digests
from hwflow.verify import golden
from tests.flow.networks import conv_network, dense_network, two_convolutions


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A convolution of 3x3 with pads and a dense layer: one shares fetches among its pixels, the other does not."""
    return conv_network(tmp_path_factory.mktemp("network") / "model.onnx", side=6)


@pytest.fixture(scope="module")
def out(network: Path) -> Path:
    folder = network.parent / "out"
    arguments = ["--board", "ulx3s_85f", "--clock", "100", "--memory", "all", "--until", "verilog"]
    assert main(["synth", str(network), *arguments, "-o", str(folder)]) == 0
    return folder


def test_any_group_gives_the_same_integers(network: Path) -> None:
    streams = dataflow(load(network).quantized)
    nodes = [node for node in streams.nodes if may_be_fetched(node, 16)]
    assert len(nodes) == 2
    port = streams.inputs[0]
    ends = port.value.typed.interval
    frames = {port.name: np.random.default_rng(3).integers(ends.lo, ends.hi + 1, (3, *port.shape))}
    expected = golden.evaluate(streams, frames)
    sizes = groups_of(nodes[0])
    assert sizes[0] == 36 and sizes[-1] == 1
    for group in sizes:
        for groups in ({nodes[0].name: group}, {nodes[0].name: group, nodes[1].name: 1}):
            found = golden.evaluate(fetch_weights(streams, groups, ANY_TIMING), frames)
            for name, values in expected.items():
                np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("stall", ["0", "0.4"])
def test_simulated(out: Path, stall: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--frames", "4", "--stall", stall, "--seed", "1", "--format", "json"]
    assert main(["sim", str(out), *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mismatches"] == 0


def test_layer_by_layer(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", str(out), "--frames", "2", "--layers"]) == 0
    assert "layers equal the golden model" in capsys.readouterr().out


@pytest.fixture(scope="module")
def sent_again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The second convolution has so many channels that its line buffer sends windows again."""
    return two_convolutions(tmp_path_factory.mktemp("sent_again"))


def test_windows_sent_again_give_the_same_integers(sent_again: Path) -> None:
    streams = dataflow(load(sent_again).quantized)
    first, second = [node for node in streams.nodes if may_be_fetched(node, 16)]
    port = streams.inputs[0]
    ends = port.value.typed.interval
    frames = {port.name: np.random.default_rng(3).integers(ends.lo, ends.hi + 1, (3, *port.shape))}
    expected = golden.evaluate(streams, frames)
    rows = {}
    for group in groups_of(second):
        fetched = fetch_weights(streams, {first.name: 2, second.name: group}, ANY_TIMING)
        found = golden.evaluate(fetched, frames)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)
        rows[group] = [node.op for node in fetched.nodes].count("fetched_row")
    assert rows == {18: 0, 9: 0, 6: 1, 3: 1, 2: 1, 1: 1}  # rows of six windows; the first one has 3 channels


@pytest.mark.parametrize("even", [False, True])
def test_windows_sent_again(
    sent_again: Path, tmp_path: Path, even: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Small frames, and such as count as large: no output comes later than said, and all are right, layer by layer."""
    if even:
        monkeypatch.setattr(queues, "MOST_BEATS", 0)
        monkeypatch.setattr("hwflow.passes.outside.fetch_weights.MANY", 0)
    monkeypatch.setattr(weights_outside, "groups_of", lambda node: [6, 3, 1])
    design = compile(sent_again, "ulx3s_85f", memory="all", clock_mhz=100)
    (row,) = [node for node in design.schedule.graph.nodes if node.op == "fetched_row"]
    assert row.attributes.rounds.vectors == 6
    design.write(tmp_path / "out")
    for stall in ("0", "0.3"):
        arguments = ["--frames", "3", "--stall", stall, "--seed", "2", "--format", "json"]
        assert main(["sim", str(tmp_path / "out"), *arguments]) == 0
        assert json.loads(capsys.readouterr().out)["mismatches"] == 0
    assert main(["sim", str(tmp_path / "out"), "--frames", "2", "--layers"]) == 0
    assert "layers equal the golden model" in capsys.readouterr().out


def test_icarus_and_a_violation(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A design for which the memory is too slow by a cycle is found out."""
    assert main(["sim", str(out), "--frames", "1", "--simulator", "icarus"]) == 0
    table = json.loads((out / "manifest.json").read_text())
    assert table["memory"]["model"]["T_RCD"] == 20000
    model = out / "testbench" / "memory.v"
    text = model.read_text()
    model.write_text(text.replace(".T_RCD(20000)", ".T_RCD(20001)"))
    assert main(["sim", str(out), "--frames", "1"]) == 1  # not as it was written
    table[digests.KEY]["testbench/memory.v"] = digests.digest(model)
    (out / "manifest.json").write_text(json.dumps(table))
    capsys.readouterr()
    assert main(["sim", str(out), "--frames", "1"]) == 3
    assert "tRCD, 20001 ps from opening a row, is violated" in capsys.readouterr().err


def test_layers_go_outside_where_block_ram_is_too_small(tmp_path: Path) -> None:
    """Of two layers, the larger one is enough; without a memory the model is refused."""
    path = dense_network(tmp_path / "model.onnx", (512, 280, 16))
    with pytest.raises(ModelRefused):
        compile(path, "ulx3s_25f", memory="none")
    inside = compile(path, "ulx3s_85f")
    assert inside.schedule.run.exact
    design = compile(path, "ulx3s_25f")
    outside = [node.name for node in design.schedule.graph.nodes if node.op == "fetched_matrix"]
    assert outside == ["dense0_mvu"], outside
    assert design.schedule.resources.bram <= 56
    assert not design.schedule.run.exact


def test_frames_share_a_fetch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four frames as one: each takes a third of the time, at most, and the report says the latency of all."""
    path = dense_network(tmp_path / "model.onnx", (64, 32, 16))
    arguments = ["--board", "ulx3s_85f", "--clock", "100", "--memory", "all", "--until", "verilog", "--format", "json"]
    timing = {}
    for count in (1, 4):
        assert main(["synth", str(path), *arguments, "--share", str(count), "-o", str(tmp_path / f"{count}")]) == 0
        timing[count] = json.loads(capsys.readouterr().out)["timing"]
    assert timing[4]["interleave"] == 4 and timing[4]["latency"] > timing[1]["latency"]
    assert timing[4]["frames_per_second"] > 3 * timing[1]["frames_per_second"]
    assert main(["sim", str(tmp_path / "4"), "--frames", "3", "--stall", "0.3", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["mismatches"] == 0


def test_images_share_no_fetch(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--board", "ulx3s_85f", "--memory", "all", "--share", "4"]
    assert main(["synth", str(network), *arguments, "-o", str(network.parent / "shared")]) == 1
    said = capsys.readouterr().err
    assert "'conv_node' (Conv): must work on each row of a matrix for several frames" in said
    assert "leave the option out" in said and "batch of 1" not in said


def test_a_board_without_a_memory_is_refused() -> None:
    with pytest.raises(UsageError, match="tinyfpga_bx must have a memory"):
        compile("none.onnx", "tinyfpga_bx", memory="all")
    with pytest.raises(UsageError, match="must be one of auto, none, all, not 'some'"):
        compile("none.onnx", "ulx3s_85f", memory="some")


@pytest.fixture(scope="module")
def within(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More weights than an UP5K has block RAM, beside the single-port RAM within it."""
    folder = tmp_path_factory.mktemp("within")
    path = dense_network(folder / "model.onnx", (96, 192, 16))
    with pytest.raises(ModelRefused, match="bram must be at most"):
        compile(path, "icebreaker", memory="none", budget={"lut": "100%", "ff": "100%"})
    design = compile(path, "icebreaker", budget={"lut": "100%", "ff": "100%"})
    assert [node.op for node in design.schedule.graph.nodes].count("fetched_matrix") == 1
    design.write(folder / "out")
    return folder / "out"


@pytest.mark.parametrize("more", [(), ("--stall", "0.4"), ("--simulator", "icarus"), ("--layers",)])
def test_memory_within_the_part(within: Path, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """All results are right, no later than said, and the words come at nearly the rate of the RAM: one a cycle."""
    assert main(["sim", str(within), "--frames", "3", "--seed", "1", *more, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["mismatches"] == 0
    table = json.loads((within / "manifest.json").read_text())
    (region,) = table["memory"]["regions"]
    assert (table["memory"]["kind"], region["words"]) == ("spram", 96 * 192 // 2)
    assert table["timing"]["initiation_interval"] < 1.1 * region["words"]


def test_it_is_not_exported(within: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model that simulations have is no memory."""
    assert main(["export", str(within), "--to", "verilog"]) == 2
    assert "must be of a design without a memory beside it" in capsys.readouterr().err


def test_the_memory_has_an_end(tmp_path: Path) -> None:
    """What exceeds it is refused; layers stay inside where it has no room for all."""
    budget = {"lut": "100%", "ff": "100%"}
    path = dense_network(tmp_path / "large.onnx", (784, 180, 16))
    with pytest.raises(ModelRefused, match="UP5K SPRAM must take at most 131,072 bytes, not 14"):
        compile(path, "icebreaker", budget=budget)
    nearly = dense_network(tmp_path / "nearly.onnx", (784, 160, 32, 10))
    with pytest.raises(ModelRefused, match="at most 131,072 bytes, not 13"):
        compile(nearly, "icebreaker", budget=budget, memory="all")
    design = compile(nearly, "icebreaker", budget=budget)
    assert [node.op for node in design.schedule.graph.nodes].count("fetched_matrix") == 2


def test_weights_go_outside_where_only_block_ram_is_short(tmp_path: Path) -> None:
    """Also those that all block RAM of the part would hold: here they exceed what the budget has, and queues of a
    design for which it is enough would be refused."""
    path = dense_network(tmp_path / "model.onnx", (256, 160, 16))
    design = compile(path, "ulx3s_85f", budget={"bram": 10})
    assert [node.op for node in design.schedule.graph.nodes].count("fetched_matrix") == 1
    assert design.schedule.resources.bram <= 10
    with pytest.raises(ModelRefused, match="bram must be at most 10"):
        compile(path, "ulx3s_85f", budget={"bram": 10}, memory="none")
    with pytest.raises(ModelRefused, match="lut must be at most 200"):  # the memory has none
        compile(path, "ulx3s_85f", budget={"lut": 200})
