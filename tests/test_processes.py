"""What the second process answers, and what becomes of jobs that cannot go there."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from threading import Thread

import pytest

from hwflow.api.making import SHARED
from hwflow.processes import Work, _import, _SecondProcess, rarely_collected, serve


@pytest.fixture
def served() -> Iterator[Connection]:
    """The other end of a connection that is served, by a thread instead of a process."""
    ours, theirs = Pipe()
    thread = Thread(target=serve, args=(theirs.fileno(),))
    with rarely_collected():  # and what serve sets is set back
        thread.start()
        yield ours
        ours.close()
        thread.join()
    theirs._handle = None  # type: ignore[attr-defined]  # the connection that serve made of it has closed it


def test_serve(served: Connection) -> None:
    """The function's value, or what it raised; it goes on after that."""
    served.send((int, ("11",), {"base": 2}))
    assert served.recv() == (True, 3)
    served.send((operator.truediv, (1, 0), {}))
    good, error = served.recv()
    assert (good, type(error)) == (False, ZeroDivisionError)
    served.send((_import, ("json",), {}))
    assert served.recv() == (True, None)


def test_modules_whose_work_is_shared() -> None:
    """They exist: a second process says nothing where it cannot import one."""
    for module in SHARED:
        import_module(module)


class Completed:
    """An object that somebody completes while it is pickled."""

    def __getstate__(self) -> dict[str, int]:
        raise RuntimeError("dictionary changed size during iteration")


def test_a_job_that_changes_while_it_is_pickled(served: Connection) -> None:
    """It is done here, the next one there."""
    executor = _SecondProcess(served)
    work: Work[str, Completed, bool] = Work(operator.truth, executor, lambda job: 1)
    jobs = {"a": Completed()}
    work.begin(jobs)
    assert executor.submit(divmod, 7, 2).result() == (3, 1)
    assert work.results(jobs) == {"a": True}
    executor.shutdown()


def test_what_cannot_be_pickled(served: Connection) -> None:
    """It is an error of that job; the next one is done. Work that has ended takes none, and does its jobs itself."""
    executor = _SecondProcess(served)
    with pytest.raises(Exception, match="pickle"):
        executor.submit(lambda: 1).result()
    assert executor.submit(divmod, 7, 2).result() == (3, 1)
    served.close()
    executor.shutdown()
    with pytest.raises(RuntimeError, match="has ended"):
        executor.submit(divmod, 7, 2)
    work: Work[str, int, str] = Work(hex, executor, abs)
    assert work.results({"a": 10, "b": 11}) == {"a": "0xa", "b": "0xb"}
