"""What becomes of work in a separate process that ends in another way than by its result."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from hwflow.onnxspec.reading.guard import GaveUp, TimeBudget, guarded

pytestmark = pytest.mark.usefixtures("measured")


def test_a_result() -> None:
    budget = TimeBudget(10)
    assert guarded(lambda: {"a": [1, 2]}, budget) == {"a": [1, 2]}
    assert 0 < budget.left <= 10


@pytest.mark.parametrize("work, reason", [
    (lambda: os.kill(os.getpid(), signal.SIGKILL), "the system has stopped it"),
    (lambda: os.kill(os.getpid(), signal.SIGSEGV), "it crashes (SIGSEGV)"),
    (lambda: os.kill(os.getpid(), signal.SIGPROF), "it takes more than 9.0 s"),
    (lambda: bytes(1 << 40), "it takes more than 512 MiB of memory"),
    (lambda: len({}["none"]), "it takes more than 512 MiB of memory"),  # whatever it raises
])
def test_no_result(work: Any, reason: str) -> None:
    """The budget is used up."""
    budget = TimeBudget(9)
    with pytest.raises(GaveUp) as gave_up:
        guarded(work, budget)
    assert str(gave_up.value) == reason
    with pytest.raises(GaveUp, match="it takes more than 9"):
        guarded(lambda: 1, budget)


def test_no_process_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> int:
        raise BlockingIOError

    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    descriptors = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "fork", none)
    with pytest.raises(GaveUp, match="the system has no process left for it"):
        guarded(lambda: 1, TimeBudget(9))
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends with it: nothing is left to wait for."""
    waited = []

    def wait(child: int, options: int, own: Any = os.wait4) -> Any:
        if not waited:
            waited.append(child)
            raise KeyboardInterrupt
        return own(child, options)

    monkeypatch.setattr(os, "wait4", wait)
    with pytest.raises(KeyboardInterrupt):
        guarded(lambda: 1, TimeBudget(9))
    with pytest.raises(ChildProcessError):
        os.waitpid(waited[0], os.WNOHANG)
