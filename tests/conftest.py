"""What all tests share: a cache of their own."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """Verilator's run-time library is compiled once a session, and not into the user's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HWFLOW_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
