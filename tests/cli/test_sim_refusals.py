"""What `sim` refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hwflow.cli import main
from tests.cli import models
from tests.cli.refusals import error


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
    ],
)
def test_inputs_that_do_not_fit(hwflow, emitted, arrays, message, remedy):
    np.savez("x.npz", **arrays)
    ran = hwflow("sim", emitted, "--input", "x.npz")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == error("inputs 'x.npz'", message, "inputs-file", remedy)


def test_inputs_that_are_none(hwflow, emitted, tmp_path):
    with (tmp_path / "array.npz").open("wb") as file:
        np.save(file, GOOD)
    (tmp_path / "text.npz").write_text("hello\n")
    np.savez(tmp_path / "object.npz", x=np.array([object()]))
    np.savez(tmp_path / "whole.npz", x=np.zeros((50, 4), np.float32))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:200])
    (tmp_path / "folder.npz").mkdir()
    for name, reason in (
        ("none.npz", "No such file or directory"), ("folder.npz", "Is a directory"), ("text.npz", "it is no .npz file"),
        ("array.npz", "it is one array (.npy)"), ("cut.npz", "it is no .npz file"),
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
            "a waveform file of verilator must end in .vcd, not 'w.txt'",
            "wave-file",
            "choose another name or simulator",
        ),
        (
            ("--wave", "w.fst"),
            "option --wave",
            "a waveform file of verilator must end in .vcd, not 'w.fst'",
            "wave-file",
            "choose another name or simulator",
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
                ("y.npy", "must be called something.npz, not 'y.npy'"),
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


@pytest.mark.parametrize("spoil", ["timing", "inputs", "outputs", "sources", "top"])
def test_an_output_folder_that_lost_something(hwflow, emitted, tmp_path, spoil):
    out = Path(shutil.copytree(emitted, tmp_path / "copy"))
    table = json.loads((out / "manifest.json").read_text())
    if spoil == "sources":
        (out / "design.v").unlink()
    elif spoil in ("inputs", "outputs"):
        table[spoil][0]["name"] = "someone else's"
    else:
        del table[spoil]
    (out / "manifest.json").write_text(json.dumps(table))
    ran = hwflow("sim", "copy")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("error: folder 'copy': ") == 1
    assert ran.err.endswith(" [output-folder]\n  remedy: run 'hwflow synth' again\n")
