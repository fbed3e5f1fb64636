"""The script for a PYNQ board, with a stand-in for the pynq package whose DMA engine has the golden model behind it."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.sim.testbench import write_overlay_host
from tests.host.networks import branches, classifier, random_frames
from tests.host.outs import core, made
from tests.host.runtime.test_run_command import whole

BEAT = 32  # bytes of the DMA engine's beats, of which a stream's have fewer


def pynq(compute: Any, shapes: Any, said: list[str]) -> ModuleType:
    """Beats of all streams, one after the other, into the core and out of it."""

    class Buffer(np.ndarray):
        def freebuffer(self):
            said.append(f"freed {self.shape}")

    class Channel:
        def __init__(self, dma):
            self.dma = dma

        def transfer(self, buffer):
            self.buffer = buffer

        def wait(self):
            if self is self.dma.sendchannel:
                return
            sent, got = self.dma.sendchannel.buffer, self.buffer
            into, outof = shapes
            assert sent.shape[1:] == (sum(beats for _, beats in into), BEAT)
            data = compute(np.asarray(_cut(sent, into)))
            got[:] = 99
            beat = byte = 0
            for size, beats in outof:
                got[:, beat : beat + beats, :size] = data[:, byte : byte + size * beats].reshape(-1, beats, size)
                beat, byte = beat + beats, byte + size * beats

    class Dma:
        def __init__(self):
            self.sendchannel, self.recvchannel = Channel(self), Channel(self)

    class Overlay:
        def __init__(self, path):
            said.append(f"loads {path.rpartition('/')[2]}")
            self.dma = Dma()

    module: Any = ModuleType("pynq")
    module.Overlay = Overlay
    module.allocate = lambda shape, dtype: np.full(shape, 99, dtype).view(Buffer)
    return module


def _cut(buffer: Any, shapes: Any) -> Any:
    parts, beat = [], 0
    for size, beats in shapes:
        parts.append(np.array(buffer[:, beat : beat + beats, :size]).reshape(len(buffer), -1))
        assert not np.asarray(buffer[:, beat : beat + beats, size:]).any()
        beat += beats
    return np.concatenate(parts, axis=1)


@pytest.fixture(scope="module", params=["classifier", "branches"])
def network(request, tmp_path_factory):
    """One stream each way, and two."""
    network = classifier("softmax") if request.param == "classifier" else branches()
    folder = tmp_path_factory.mktemp(request.param)
    out = made(folder, network)
    (out / "board" / "board.json").write_text(json.dumps({
        "link": {"carrier": "dma"}, "host": {"input_beat": BEAT, "output_beat": BEAT},
    }))  # fmt: skip
    write_overlay_host(out)
    return network, folder


@pytest.fixture
def overlay(network, monkeypatch):
    """The module, and what was said; the names of the host's modules are those of this folder while it is used."""
    _, folder = network
    said: list[str] = []
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    shapes = [[(s["lanes"] * s["element_bytes"], s["beats"]) for s in manifest[w]] for w in ("inputs", "outputs")]
    monkeypatch.setitem(sys.modules, "pynq", pynq(core(folder).compute, shapes, said))
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.startswith("hwflow_host")]:
        monkeypatch.delitem(sys.modules, name)
    path = folder / "out" / "board" / "overlay.py"
    spec = importlib.util.spec_from_file_location("overlay", path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, said


def test_it_takes_and_gives_the_model_s_arrays(network, overlay, monkeypatch):
    module, said = overlay
    monkeypatch.setattr(module, "MOST", 400)  # several transfers
    feeds = random_frames(network[0], 20, seed=4)
    accelerator = module.Accelerator()
    found = accelerator.run(feeds)
    expected = whole(network[1], feeds)
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-6)
    assert said[0] == "loads hwflow.bit" and len(said) >= 5 and all(line.startswith("freed") for line in said[1:])
    assert all(not len(a) for a in accelerator.run({name: array[:0] for name, array in feeds.items()}).values())
    with pytest.raises(Exception, match=r"shape must be \[frames, "):
        accelerator.run({name: array[:, :1] for name, array in feeds.items()})


def test_the_host_s_part_may_be_another(network, overlay):
    module, _ = overlay
    if network[0].sinks != ("scores",):
        pytest.skip("one network is enough")
    feeds = random_frames(network[0], 2)
    accelerator = module.Accelerator(suffix=lambda arrays: {"probabilities": arrays["scores"] + 0.5})
    found = accelerator.run(feeds)["probabilities"]
    assert (found - 0.5 == np.rint(found - 0.5)).all() and found.shape == (2, 5)


@pytest.mark.parametrize("wrong", [False, True])
def test_the_test_benchs_frames_are_checked(network, overlay, capsys, monkeypatch, wrong):
    module, _ = overlay
    if wrong:
        right = module.Accelerator._transfer

        def transfer(self, frames):
            answers = right(self, frames).copy()
            answers[1, 0] ^= 1
            return answers

        monkeypatch.setattr(module.Accelerator, "_transfer", transfer)
    assert module.main() == wrong
    said = capsys.readouterr().out
    assert said.startswith("4 frames, 1 differ: DIFFERENT, first " if wrong else "4 frames, 0 differ: equal")


def test_it_is_the_file_that_synth_writes(network):
    source = Path(__file__).resolve().parents[2] / "sim" / "pynq_run.py"
    assert (network[1] / "out" / "board" / "overlay.py").read_bytes() == source.read_bytes()


def test_a_network_of_two_streams_each_way_compiles_for_it(tmp_path):
    """The block has one stream each way, as wide as the widest; board.json tells the script how wide."""
    network = branches()
    design = compile(network.save(tmp_path / "model.onnx"), "pynq_z2")
    design.write(tmp_path / "out", "verilog")
    board = json.loads((tmp_path / "out" / "board" / "board.json").read_text())
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    for way in ("input", "output"):
        streams = manifest[f"{way}s"]
        assert len(streams) == 2
        assert board["host"][f"{way}_beats"] == sum(stream["beats"] for stream in streams)
        assert board["host"][f"{way}_beat"] >= max(stream["lanes"] * stream["element_bytes"] for stream in streams)
    verilog = (tmp_path / "out" / "board" / "hwflow_axis.v").read_text()
    assert ".s1_axis_tdata" in verilog and "s1_axis_tdata" not in verilog.partition(".s1_axis")[0].partition(");")[0]
