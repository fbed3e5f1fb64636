"""`hwflow run` and the output folder's run.py, which is the same without hwflow, against a board in software.

Where it does not matter that hwflow is missing, run.py's main function is called here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import deque
from math import prod
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import onnx.reference
import pytest

from hwflow.cli import main
from hwflow.host.runtime import run_command
from hwflow.host.runtime.host_design import read_design
from hwflow.host.runtime.link import Moment
from hwflow.host.runtime.run_command import _latency
from tests.host.link_peer import Peer, Pipes
from tests.host.networks import branches, classifier, random_frames
from tests.host.outs import core, made

# run.py, on a machine that has numpy, pyserial and onnxruntime
BARE = (
    "import runpy, sys; sys.modules.update(dict.fromkeys(('hwflow', 'onnx', 'amaranth', 'tests'))); "
    "sys.argv = sys.argv[1:]; sys.path[0] = sys.argv[0].rpartition('/')[0]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("softmax")
    made(found, classifier("softmax"), frames=6)
    return found


def bare(out: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BARE, str(out / "host" / "run.py"), *map(str, arguments)]
    return subprocess.run(command, text=True, capture_output=True, timeout=120)


def whole(folder: Path, feeds: dict[str, Any]) -> dict[str, Any]:
    session = onnx.reference.ReferenceEvaluator(onnx.load(folder / "model.onnx"))
    names = [o.name for o in session.proto_.graph.output]
    return dict(zip(names, session.run(names, feeds), strict=True))


def wrong_once(pipes: Pipes) -> Pipes:
    """A board that is wrong in the third frame."""
    right, seen = pipes.compute, [0]

    def compute(frames: Any) -> Any:
        answers = right(frames).copy()
        third = 2 - seen[0]
        if 0 <= third < len(frames):
            answers[third, 0] ^= 1
        seen[0] += len(frames)
        return answers

    pipes.compute = compute
    return pipes


def test_both_give_the_model_s_outputs(folder, tmp_path, capsys):
    feeds = random_frames(classifier("softmax"), 20, seed=2)
    expected = whole(folder, feeds)["probabilities"]
    labels = expected.argmax(axis=1)
    labels[:5] += 1  # these are wrong
    np.savez(tmp_path / "x.npz", **feeds, label=labels)
    arguments = ["--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz", "--format", "json"]
    for run in ("hwflow", "bare"):
        with Peer(core(folder), rate=0.002, seed=5) as peer:
            if run == "bare":
                ran = bare(folder / "out", "--port", peer.port, *arguments)
                assert (ran.returncode, ran.stderr) == (0, "")
                table = json.loads(ran.stdout)
                assert table["statistics"]["frames_in"] == 26  # the test bench's 6 before
            else:
                assert main(["run", str(folder / "out"), "--port", peer.port, *map(str, arguments)]) == 0
                table = json.loads(capsys.readouterr().out)
        assert (table["frames"], table["mismatches"], table["accuracy"]) == (20, 0, 0.75)
        assert table["frames_per_second"] > 0 and 0 < table["latency_ms"]["median"] <= table["latency_ms"]["p99"]
        assert table["resent"] >= 0 and table["findings"] == []
        np.testing.assert_allclose(np.load(tmp_path / "y.npz")["probabilities"], expected, rtol=1e-6)
        (tmp_path / "y.npz").unlink()


@pytest.mark.parametrize("run", ["hwflow", "bare"])
def test_a_board_that_is_wrong(folder, run, capsys):
    """The third answer's first element is another."""
    with Peer(wrong_once(core(folder))) as peer:
        if run == "bare":
            code = run_command.main(folder / "out", ["--port", peer.port])
        else:
            code = main(["run", str(folder / "out"), "--port", peer.port])
    out, err = capsys.readouterr()
    against = "test bench" if run == "bare" else "golden model"
    assert code == 1
    assert f"6 frames, 1 DIFFERENT from the {against}" in out
    assert f"must be the {against}'s, but 1 are not; the first: 'scores' in frame 2, index [0] must be" in err


def test_the_core_reports_an_error(folder, capsys):
    pipes = core(folder)
    pipes.error = 1
    with Peer(pipes) as peer:
        assert main(["run", str(folder / "out"), "--port", peer.port]) == 1
    assert "error output: must stay 0, but the core raised it" in capsys.readouterr().err


def test_junit(folder, tmp_path, capsys):
    def cases(pipes, *arguments):
        with Peer(pipes) as peer:
            main(["run", str(folder / "out"), "--port", peer.port, "--junit", str(tmp_path / "j.xml"), *arguments])
        (suite,) = ElementTree.parse(tmp_path / "j.xml").getroot()
        assert suite.attrib["name"] == str(folder / "out") and suite.attrib["tests"] == "2"
        assert [element.attrib for element in suite.iter("property")] == [{"name": "frames", "value": "6"}]
        return {case.attrib["name"]: [part.tag for part in case] for case in suite.iter("testcase")}

    assert cases(core(folder)) == {"board-answer": [], "error-output": []}
    assert cases(core(folder), "--no-verify") == {"board-answer": ["skipped"], "error-output": []}
    pipes = wrong_once(core(folder))
    pipes.error = 1
    assert cases(pipes) == {"board-answer": ["failure"], "error-output": ["failure"]}
    refused = ["run", str(folder / "out"), "--port", str(tmp_path / "nowhere"), "--junit", str(tmp_path / "j.xml")]
    assert main(refused) != 0
    ((case,),) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert case[0].attrib["type"] in capsys.readouterr().err


def test_nothing_is_compared(folder, capsys):
    with Peer(wrong_once(core(folder))) as peer:
        assert main(["run", str(folder / "out"), "--port", peer.port, "--no-verify", "--frames", "13"]) == 0
        assert "13 frames, not compared" in capsys.readouterr().out
    with Peer(core(folder)) as peer:
        assert run_command.main(folder / "out", ["--port", peer.port, "--no-verify", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["mismatches"] is None


def test_labels(folder, tmp_path, capsys):
    """By "input", as a sole input may be called; of four labels one is right."""
    feeds = random_frames(classifier("softmax"), 4, seed=2)
    labels = whole(folder, feeds)["probabilities"].argmax(axis=1)
    labels[1:] = (labels[1:] + 1) % 5
    np.savez(tmp_path / "x.npz", input=feeds["image"], label=labels)
    with Peer(core(folder)) as peer:
        arguments = ["--port", peer.port, "--input", str(tmp_path / "x.npz"), "--output", str(tmp_path / "y.npz")]
        assert run_command.main(folder / "out", arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith(f"; greatest: {labels[0]}; label: {labels[0]}")
    assert lines[4] == "4 frames, all equal to the test bench"
    assert lines[-1] == "accuracy against the labels: 25.00 %"
    assert np.load(tmp_path / "y.npz")["probabilities"].shape == (4, 5)


@pytest.mark.parametrize("shape, dtype, classes", [
    ((3, 1, 4), "float32", [3, 3, 3]), ((3, 1), "int64", [0, 1, 2]), ((3,), "uint8", [0, 1, 2]),
    ((3, 1), "float32", None), ((3, 2, 2), "float32", None), ((3, 4), "bool", None),
])
def test_what_classifies(folder, shape, dtype, classes):
    """The greatest of a vector, or an integer alone."""
    design = read_design(folder / "out")
    array = np.arange(prod(shape)).reshape(shape).astype(dtype)
    found = run_command.classes(design, {design.model_outputs[0].name: array})
    assert (None if found is None else found[1].tolist()) == classes


def test_the_test_bench_is_damaged(folder, tmp_path, capsys):
    out = tmp_path / "out"
    shutil.copytree(folder / "out", out)
    (out / run_command.BENCH).write_bytes(b"PK")
    with Peer(core(folder)) as peer:
        assert run_command.main(out, ["--port", peer.port]) == 2
        assert "must hold the test bench's frames, but cannot be read" in capsys.readouterr().err
    (out / "host" / "frames.npz").unlink()
    assert run_command.main(out, []) == 2
    assert "frames: must be given, not missing" in capsys.readouterr().err


def test_ctrl_c(folder, monkeypatch, capsys):
    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "connect", interrupted)
    assert run_command.main(folder / "out", []) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_what_is_shown(folder, capsys):
    feeds = dict(np.load(folder / "out" / "host" / "frames.npz"))
    expected = whole(folder, feeds)["probabilities"]
    with Peer(core(folder)) as peer:
        assert main(["run", str(folder / "out"), "--port", peer.port]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "output 'probabilities' (float32 [5])"
    for frame in range(3):
        values = " ".join(f"{value:.6g}" for value in expected[frame])
        assert lines[1 + frame] == f"  frame {frame}: {values}; greatest: {expected[frame].argmax()}"
    assert lines[4] == "6 frames, all equal to the golden model"
    assert lines[-1] == "on the chip at least 129 cycles per frame (scheduled: 128)"


def test_the_host_s_part_without_onnxruntime(tmp_path, capsys, monkeypatch):
    """hwflow's reference evaluator runs it; the folder by itself says what is missing."""
    network = branches()
    out = made(tmp_path, network)
    feeds = random_frames(network, 5, seed=8)
    np.savez(tmp_path / "x.npz", **feeds)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with Peer(core(tmp_path)) as peer:
        arguments = ["--port", peer.port, "--input", str(tmp_path / "x.npz"), "--output", str(tmp_path / "y.npz")]
        assert main(["run", str(out), *arguments]) == 0
    for name, array in whole(tmp_path, feeds).items():
        np.testing.assert_array_equal(np.load(tmp_path / "y.npz")[name], array)
    assert "5 frames, all equal to the golden model" in capsys.readouterr().out
    code = BARE.replace("'tests'", "'onnxruntime'")
    ran = subprocess.run([sys.executable, "-c", code, str(out / "host" / "run.py")], text=True, capture_output=True)
    assert ran.returncode == 3
    assert ran.stderr == (
        "error: package onnxruntime: must be installed to run prefix.onnx, not missing [package-present]\n"
        "  remedy: pip install onnxruntime\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--frames", "0"], 2, "option --frames: must be at least 1, not 0"),
        (["--input", "none.npz"], 2, "inputs 'none.npz': must be a readable .npz file, but: No such file or directory"),
        (["--input", "text.npz"], 2, "inputs 'text.npz': must be a readable .npz file, but: it is not an .npz file"),
        (["--input", "other.npz"], 2, "input 'image': must be given, not missing (there is nothing)"),
        (["--input", "label.npz"], 2, "'label' must be 2 integers, one a frame, not float64 [2]"),
        (["--input", "none_at_all.npz"], 2, "must hold at least 1 frame, not 0"),
        (["--port", "/dev/no_such"], 3, "port '/dev/no_such': must be a device, not missing"),
        (["--output", "no/such/y.npz"], 2, "option --output: "),
    ],
)
def test_refusals(folder, tmp_path, monkeypatch, capsys, arguments, code, message):
    """The same from both."""
    monkeypatch.chdir(tmp_path)
    Path("text.npz").write_text("text")
    np.savez("other.npz", other=np.zeros(3))
    np.savez("label.npz", image=np.zeros((2, 3, 4, 2)), label=np.zeros(2))
    np.savez("none_at_all.npz", image=np.zeros((0, 3, 4, 2)))
    with Peer(core(folder)) as peer:
        port = [] if "--port" in arguments else ["--port", peer.port]
        assert main(["run", str(folder / "out"), *port, *arguments, "--format", "json"]) == code
        told = capsys.readouterr()
        assert message in told.err
        assert json.loads(told.out)["findings"]
        assert run_command.main(folder / "out", [*port, *arguments, "--format", "json"]) == code
        told = capsys.readouterr()
        assert message in told.err
        assert json.loads(told.out)["findings"]


def test_latency_by_hand():
    """Frames of 10 bytes in, 2 out; packets of 15 and of 4 bytes. Frame 1 went with the second packet, its answer came
    with the first: 5 - 2 seconds; frame 2: 8 - 2; frame 0: 5 - 1."""
    sent = deque([Moment(15, 1.0), Moment(30, 2.0)])
    arrived = deque([Moment(4, 5.0), Moment(6, 8.0)])
    assert _latency(sent, arrived, 10, 2, 0, 3) == pytest.approx({"median": 4000, "p99": 5960})
    assert _latency(sent, arrived, 10, 2, 2, 1) == {"median": 6000, "p99": 6000}
    assert _latency(deque(sent, 2), deque(arrived, 2), 10, 2, 0, 3) == {"median": 6000, "p99": 6000}  # some forgotten
    assert _latency(deque(), deque(), 10, 2, 0, 0) is None
    assert _latency(sent, arrived, 10, 2, 3, 1) is None  # that frame has not gone
