"""Guarded calls that share a process: when they do, and that none suffers from what another one did to it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from hwflow.onnxspec.reading import kept_process
from hwflow.onnxspec.reading.guard import GaveUp, TimeBudget, guarded
from hwflow.onnxspec.reading.kept_process import guarded_call


@pytest.fixture(autouse=True)
def kept(measured: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that has made a few calls."""
    state = kept_process._State()
    state.calls = kept_process._FEW
    monkeypatch.setattr(kept_process, "_state", state)
    yield
    if state.kept is not None:
        state.kept.connection.close()
        os.waitpid(state.kept._process, 0)


def process() -> int:
    """The one that calls are made in now."""
    return guarded_call(os.getpid, (), TimeBudget(9))


def test_a_process_is_kept_after_a_few_calls() -> None:
    kept_process._state.calls = 0
    alone = {process() for _ in range(kept_process._FEW)}
    assert len(alone) == kept_process._FEW
    (together,) = {process() for _ in range(5)}
    assert together not in {*alone, os.getpid()}


def test_a_result_and_what_it_took() -> None:
    budget = TimeBudget(9)
    assert guarded_call(sorted, ([3, 1, 2],), budget) == [1, 2, 3]
    before = budget.left
    assert 0 < before <= 9
    guarded_call(sum, (range(1 << 21),), budget)
    assert 0 < budget.left < before


def dies_once(path: Path, number: int) -> str:
    if path.exists():
        path.unlink()
        os.kill(os.getpid(), number)
    return "done"


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_the_other_calls_fault(tmp_path: Path, number: int) -> None:
    """What ends the kept process is called again in one of its own."""
    first, path = process(), tmp_path / "dies"
    path.touch()
    assert guarded_call(dies_once, (path, number), TimeBudget(9)) == "done"
    assert not path.exists()
    assert process() != first


def dies(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number, reason", [
    (signal.SIGSEGV, "it crashes (SIGSEGV)"),
    (signal.SIGPROF, "it takes more than 9.0 s"),
])
def test_its_own_fault(number: int, reason: str) -> None:
    """The budget is used up; the next call has another process."""
    first, budget = process(), TimeBudget(9)
    with pytest.raises(GaveUp) as gave_up:
        guarded_call(dies, (number,), budget)
    assert str(gave_up.value) == reason
    with pytest.raises(GaveUp, match="it takes more than 9"):
        guarded_call(os.getpid, (), budget)
    assert process() != first


def test_time_is_limited() -> None:
    with pytest.raises(GaveUp, match=r"it takes more than 0\.0 s"):
        guarded_call(pow, (3, 1 << 40), TimeBudget(0.02))


leaks: list[bytes] = []


def leaking(size: int) -> int:
    leaks.append(bytes(size))
    return os.getpid()


def test_memory_that_is_not_given_back() -> None:
    """It counts, but not against a call that needs little."""
    first = guarded_call(leaking, (300 << 20,), TimeBudget(9))
    assert guarded_call(leaking, (1 << 20,), TimeBudget(9)) == first == process()
    assert guarded_call(leaking, (300 << 20,), TimeBudget(9)) != first != process()
    with pytest.raises(GaveUp, match="it takes more than 512 MiB of memory"):
        guarded_call(leaking, (600 << 20,), TimeBudget(9))


def test_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends, and its answer is not that of the next call."""
    first = process()

    def interrupted(self: Connection) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "recv", interrupted)
        with pytest.raises(KeyboardInterrupt):
            guarded_call(sorted, ([],), TimeBudget(9))
    with pytest.raises(ChildProcessError):
        os.waitpid(first, os.WNOHANG)
    assert process() != first


def test_no_process_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> int:
        raise BlockingIOError

    descriptors = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fork", none)
        with pytest.raises(GaveUp, match="the system has no process left for it"):
            process()
    assert len(os.listdir("/proc/self/fd")) == descriptors
    process()


def test_calls_in_a_fork() -> None:
    """It has processes of its own; this one's stays."""
    first = process()
    assert guarded(process, TimeBudget(9)) != first
    assert process() == first


def test_pipes_come_to_their_end() -> None:
    """Although the process began while they were open."""
    read, write = os.pipe()
    process()
    os.close(write)
    assert os.read(read, 1) == b""
    os.close(read)
