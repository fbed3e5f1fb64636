"""The command line in this process, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hwflow.cli import main


@dataclass(frozen=True)
class Ran:
    """Exit code and what was printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def hwflow(capsys, tmp_path, monkeypatch) -> Callable[..., Ran]:
    """hwflow(argument, ...): run the command line here, in `tmp_path`."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = main([str(a) for a in arguments])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return Ran(code, printed.out, printed.err)

    return run
