"""--const: inputs bound to constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from hwflow.api.checking import check
from hwflow.cli.__main__ import main
from hwflow.errors import UsageError
from hwflow.loaded_model import load
from hwflow.verify import golden
from tests.models import Builder


def chosen(folder: Path) -> Path:
    """Twice x at a rate of 16000, else its opposite; and a gain of each of three elements."""
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 3]), 0.5, 0, "int8")
    rate, gain = b.input("sr", [], "int64"), b.input("gain", [1, 3])
    info = [helper.make_tensor_value_info("r", TensorProto.FLOAT, ["N", 3])]
    two = b.constant([2.0])
    graphs = {
        "then_branch": helper.make_graph([helper.make_node("Mul", [x, two], ["r"])], "then", [], info),
        "else_branch": helper.make_graph([helper.make_node("Neg", [x], ["r"])], "else", [], info),
    }
    y = b.node("If", b.node("Equal", rate, b.constant(16000, "int64")), name="by_rate", **graphs)
    b.output(b.declare(b.requantize(b.node("Mul", y, gain), 0.5, 0, "int8"), ["N", 3]))
    return b.save(folder)


@pytest.mark.parametrize(("rate", "factor"), [("16000", 2), (8000, -1)])
def test_a_branch_is_chosen(rate: str | int, factor: int, tmp_path: Path) -> None:
    np.savez(tmp_path / "gain.npz", gain=np.array([[1, 2, 1]], np.float32))
    model = load(chosen(tmp_path), constants={"sr": rate, "gain": str(tmp_path / "gain.npz")})
    assert [port.name for port in model.quantized.inputs] == [info.name for info in model.proto.graph.input] == ["x"]
    found = golden.evaluate(model.quantized, {"x": np.array([[1, -2, 3]])})
    (result,) = found.values()
    assert result.tolist() == [[factor, -4 * factor, 3 * factor]]


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"se": 1}, "must name an input of the model ('x', 'sr', 'gain'), not 'se'"),
        ({"sr": "1.5"}, "'sr' must be int64, but '1.5' is not"),
        ({"sr": "fast"}, "must be a number, numbers between commas, or a .npy or .npz file, not 'fast'"),
        ({"gain": "1,2"}, "'gain' must be of shape [1, 3], not [2]"),
        ({"gain": "nowhere.npz"}, "'nowhere.npz' must be a .npy or .npz file that can be read, but: No such file"),
    ],
)
def test_what_does_not_fit(constants: dict[str, str | int], message: str, tmp_path: Path) -> None:
    path = chosen(tmp_path)
    with pytest.raises(UsageError) as caught:
        load(path, constants=constants)
    (finding,) = caught.value.findings
    assert message in finding.message and finding.where == "option --const"
    assert check(path, constants=constants) == [finding]


def test_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "gain.npy").write_bytes(b"\x93NUMPY nothing")
    (finding,) = check(chosen(tmp_path), constants={"gain": str(tmp_path / "gain.npy")})
    assert "it is not one that numpy reads" in finding.message


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(chosen(tmp_path))
    assert main(["check", path, "--const", "sr=16000", "--const", "gain=[1]"]) == 1
    assert main(["check", path, "--const", "sr"]) == 2
    assert "must be NAME=VALUE, not 'sr'" in capsys.readouterr().err
    np.save(tmp_path / "ones.npy", np.ones((1, 3), np.float32))
    bound = ["--const", "sr=16000", "--const", f"gain={tmp_path / 'ones.npy'}"]
    assert main(["check", path, *bound]) == 0
    assert main(["compare", path, *bound, "--frames", "4"]) == 0
