"""The command line in this process, and one emitted `digits` that tests share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hwflow.cli import main

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "model.onnx"


@dataclass(frozen=True)
class Ran:
    """Exit code and what was printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def hwflow(capsys) -> Callable[..., Ran]:
    """hwflow(argument, ...): run the command line here."""

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = main([str(a) for a in arguments])
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def digits(tmp_path_factory) -> Path:
    """`hwflow synth` of examples/digits for the ULX3S, up to Verilog. Tests leave it as it is."""
    out = tmp_path_factory.mktemp("digits") / "out"
    assert main(["synth", str(DIGITS), "--board", "ulx3s_85f", "--until", "verilog", "-o", str(out)]) == 0
    return out


@pytest.fixture
def digits_copy(digits, tmp_path) -> Path:
    """A copy of `digits`, with what was built for simulators, to be spoiled."""
    return Path(shutil.copytree(digits, tmp_path / "copy"))
