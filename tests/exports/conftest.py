"""Designs that the tests of exports share, which only read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exports.cores import FPS, made


@pytest.fixture(scope="session")
def outs(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("exported")
    return {name: made(folder, name) for name in FPS}
