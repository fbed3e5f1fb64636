"""What tests of inference and folding share."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress

import coverage
import pytest


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have forked children (:mod:`hwflow.onnxspec.reading.guard`) save which lines they reached, if that is measured.
    Not in all tests: there are thousands of children, and each saves what its parent had reached as well."""
    running, end = coverage.Coverage.current(), os._exit

    def save_and_end(status: int) -> None:
        with suppress(Exception):
            if running is not None:
                signal.setitimer(signal.ITIMER_PROF, 0)
                resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)
                running.save()
        end(status)

    monkeypatch.setattr(os, "_exit", save_and_end)
