"""What all tests share: a cache of their own, and a garbage collector that seldom looks."""

from __future__ import annotations

import gc

import pytest

# Most of what tests make, cases and netlists, stays, or goes at once: looking through it took a tenth of the time.
gc.set_threshold(200_000, 20, 50)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """Verilator's run-time library is compiled once a session, and not into the user's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HWFLOW_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
