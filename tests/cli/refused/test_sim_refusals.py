"""What `sim` refuses."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hwflow.cli import main
from tests.cli import models
from tests.cli.refused.refusals import error


@pytest.fixture(scope="module")
def emitted(tmp_path_factory) -> Path:
    """The Relu network for the iCEBreaker, up to Verilog."""
    folder = tmp_path_factory.mktemp("emitted")
    models.relu(folder / "m.onnx")
    arguments = [
        "synth",
        str(folder / "m.onnx"),
        "--board",
        "icebreaker",
        "--until",
        "verilog",
        "-o",
        str(folder / "out"),
    ]
    assert main(arguments) == 0
    return folder / "out"


GOOD = np.zeros((2, 4), np.float32)
FEWER = "give as many as frames, or leave the array out"


@pytest.mark.parametrize(
    ("arrays", "message", "remedy"),
    [
        ({"z": GOOD}, "must hold an array 'x', not only 'z'", "name arrays by model input"),
        ({"x": GOOD[:, :3]}, "'x' must have shape [frames, 4], not [2, 3]", "reshape it"),
        ({"x": GOOD[:0]}, "'x' must hold at least 1 frame, not 0", "add frames"),
        ({"x": GOOD.astype(complex)}, "'x' must be of a real type (float32), not complex128", "convert it"),
        ({"x": np.full((2, 4), "a")}, "'x' must be of a real type (float32), not <U1", "convert it"),
        ({"x": GOOD * np.nan}, "'x' must hold finite numbers of type float32 only", "convert it"),
        ({"x": np.full((2, 4), 1e300)}, "'x' must hold finite numbers of type float32 only", "convert it"),
        ({"x": GOOD, "label": np.zeros(3, int)}, "'label' must have shape [2], one label per frame, not [3]", FEWER),
        ({"x": GOOD, "label": np.zeros(1, int)}, "'label' must have shape [2], one label per frame, not [1]", FEWER),
        ({"x": GOOD, "label": GOOD.astype(int)}, "'label' must have shape [2], one label per frame, not [2, 4]", FEWER),
        (
            {"x": GOOD, "label": np.zeros(2)}, "'label' must be of an integer type, not float64",
            "convert it to class numbers, or leave the array out",
        ),
    ],
)
def test_inputs_that_do_not_fit(hwflow, emitted, arrays, message, remedy):
    np.savez("x.npz", **arrays)
    ran = hwflow("sim", emitted, "--input", "x.npz")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == error("inputs 'x.npz'", message, "inputs-file", remedy)


def test_labels_are_the_same_for_all_that_read_them(hwflow, tmp_path):
    """And nobody's concern where nobody looks at them; the file is found before the model is read."""
    models.relu(tmp_path / "m.onnx")
    models.floating(tmp_path / "float.onnx")
    np.savez("inputs.npz", x=np.zeros((5, 4), np.float32), label=np.zeros((4, 2)))
    expected = error(
        "inputs 'inputs.npz'", "'label' must be of an integer type, not float64", "inputs-file",
        "convert it to class numbers, or leave the array out",
    )
    text = "'label' must have shape [5], one label per frame, not [4, 2]"
    expected += error("inputs 'inputs.npz'", text, "inputs-file", FEWER)
    quantize = ("quantize", "float.onnx", "-o", "q.onnx", "--calibration")
    for command in (("compare", "m.onnx", "--input"), quantize):
        ran = hwflow(*command, "inputs.npz")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.endswith(expected)
        ran = hwflow(*command, "nowhere.npz")
        assert (ran.code, ran.err.count("\n")) == (2, 2)
        assert ran.err.startswith("error: inputs 'nowhere.npz': must be a readable .npz file, but: No such file")
    assert hwflow("synth", "m.onnx", "--board", "icebreaker", "--until", "verilog", "-o", "out").code == 0


def test_inputs_that_are_none(hwflow, emitted, tmp_path):
    with (tmp_path / "array.npz").open("wb") as file:
        np.save(file, GOOD)
    (tmp_path / "text.npz").write_text("hello\n")
    np.savez(tmp_path / "object.npz", x=np.array([object()]))
    np.savez(tmp_path / "whole.npz", x=np.zeros((50, 4), np.float32))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:200])
    (tmp_path / "folder.npz").mkdir()
    for name, reason in (
        ("none.npz", "No such file or directory"), ("folder.npz", "Is a directory"),
        ("text.npz", "it is not an .npz file"), ("array.npz", "it is one array (.npy)"),
        ("cut.npz", "it is not an .npz file"),
        ("object.npz", "Object arrays cannot be loaded when allow_pickle=False"),
    ):
        ran = hwflow("sim", emitted, "--input", name)
        message = f"must be a readable .npz file, but: {reason}"
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == error(f"inputs '{name}'", message, "inputs-file", "write it with numpy.savez")


@pytest.mark.parametrize(
    ("options", "where", "message", "rule", "remedy"),
    [
        (
            ("--frames", "0"),
            "option --frames",
            "must be at least 1, not 0",
            "positive-frames",
            "give a number of frames",
        ),
        (
            ("--frames", "-3"),
            "option --frames",
            "must be at least 1, not -3",
            "positive-frames",
            "give a number of frames",
        ),
        *(
            (
                (f"--stall={p}",),
                "option --stall",
                f"must be at least 0 and less than 1, not {p}",
                "probability",
                "choose one such as 0.3",
            )
            for p in ("1", "-0.1", "nan")
        ),
        (
            ("--wave", "w.txt"),
            "option --wave",
            "a waveform file must end in .vcd or .fst, not 'w.txt'",
            "wave-file",
            "choose another name",
        ),
        (("--wave", "none/w.vcd"), "option --wave", "folder 'none' must exist", "wave-file", "make it first"),
        (
            ("--wave", "/proc/w.vcd"),
            "option --wave",
            "must be a file that can be written, but: No such file or directory",
            "wave-file",
            "choose another name",
        ),
        *(
            (("--output", name), "option --output", message, "results-file", "choose another name")
            for name, message in (
                ("y.npy", "must end in .npz, not 'y.npy'"),
                ("none/y.npz", "folder 'none' must exist"),
                ("/proc/y.npz", "must be a file that can be written, but: No such file or directory"),
            )
        ),
    ],
)
def test_options_of_sim(hwflow, emitted, options, where, message, rule, remedy):
    ran = hwflow("sim", emitted, *options)
    assert (ran.code, ran.out, ran.err) == (2, "", error(where, message, rule, remedy))


def test_a_folder_that_is_no_output(hwflow, tmp_path):
    (tmp_path / "folder").mkdir()
    message = "must be an output folder of 'hwflow synth', but it has no manifest.json"
    ran = hwflow("sim", "folder")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == error("folder 'folder'", message, "output-folder", "run 'hwflow synth' first")
    for text in ("{", "[]", "{}", '{"dimensions": 3}'):
        (tmp_path / "folder" / "manifest.json").write_text(text)
        ran = hwflow("sim", "folder")
        message = "must be an output folder of 'hwflow synth', but its manifest.json is damaged"
        assert (ran.code, ran.err) == (
            2,
            error("folder 'folder'", message, "output-folder", "run 'hwflow synth' first"),
        )


@pytest.mark.parametrize("spoil", ["timing", "inputs", "outputs", "top"])
def test_an_output_folder_that_lost_something(hwflow, emitted, tmp_path, spoil):
    out = Path(shutil.copytree(emitted, tmp_path / "copy"))
    table = json.loads((out / "manifest.json").read_text())
    if spoil in ("inputs", "outputs"):
        table[spoil][0]["name"] = "someone else's"
    else:
        del table[spoil]
    (out / "manifest.json").write_text(json.dumps(table))
    ran = hwflow("sim", "copy")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("error: folder 'copy': ") == 1
    assert ran.err.endswith(" [output-folder]\n  remedy: run 'hwflow synth' again\n")


def test_every_file_is_what_was_written(hwflow, emitted, tmp_path):
    """Whatever the frames show: one digit more in each file by itself, none, and digests that are not there."""
    out = tmp_path / "copy"
    shutil.copytree(emitted, out)
    manifest = json.loads((out / "manifest.json").read_text())
    files = {*manifest["sources"], *manifest["weights"], "testbench/vectors.npz", "testbench/layers.v", "model.onnx"}
    assert files | {"prefix.onnx", "suffix.onnx"} == set(manifest["sha256"])
    remedy = "restore it, or run 'hwflow synth' again"
    for name in manifest["sha256"]:
        content = (out / name).read_bytes()
        good = hashlib.sha256(content).hexdigest()
        (out / name).write_bytes(content + b"1")
        bad = hashlib.sha256(content + b"1").hexdigest()
        message = f"must be as it was written, with SHA-256 {good}, not {bad}"
        ran = hwflow("sim", out)
        assert (ran.code, ran.out, ran.err) == (1, "", error(f"file '{out / name}'", message, "changed-file", remedy))
        (out / name).write_bytes(content)
    for name in ("design.v", "model.onnx"):
        (out / name).unlink()
    ran = hwflow("sim", out)
    assert (ran.code, ran.err.count(", not missing [changed-file]")) == (1, 2)
    del manifest["sha256"]
    (out / "manifest.json").write_text(json.dumps(manifest))
    message = f"{out}/manifest.json: 'sha256' must hold the files' digests, not be missing"
    ran = hwflow("sim", out)
    assert (ran.code, ran.err) == (
        2, error(f"folder '{out}'", message, "output-folder", "run 'hwflow synth' again")
    )
