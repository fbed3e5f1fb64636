"""Run programs that end when this process does.

Each leads a process group of its own, and has a folder of its own for temporary files. A small process, the guardian,
is told of each; when this process has died for any reason, it kills the remaining groups and removes their folders. A
terminal's Ctrl-C reaches this process alone, which ends them (:func:`stop`).
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# Its input ends when no process has the other end of the pipe any more.
_GUARDIAN = r"""
import os, signal, sys
left = {}
for line in sys.stdin:
    word, group, folder = line.rstrip("\n").split(" ", 2)
    if word == "begin":
        left[int(group)] = folder
    else:
        left.pop(int(group), None)
for group in left:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
if left:
    import shutil, time
    time.sleep(0.2)  # until they have gone
    for folder in filter(None, left.values()):
        shutil.rmtree(folder, ignore_errors=True)
"""


def core_count() -> int:
    """Return how many of the machine's cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


_lock = threading.Lock()
_running: set[subprocess.Popen[Any]] = set()
_stopped = False
_guardian: subprocess.Popen[str] | None = None


@contextmanager
def started(
    command: Sequence[str], environment: Mapping[str, str] | None = None, **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Start a program that runs at most as long as the body, in ``environment`` (None: that of this process);
    ``options``: further ones of :class:`subprocess.Popen`.

    Raises OSError if it cannot be started, KeyboardInterrupt if :func:`stop` was called, before or meanwhile.
    """
    with ExitStack() as scratch:
        with uninterrupted(), _lock:
            if _stopped:
                raise KeyboardInterrupt
            variables, folder = dict(os.environ if environment is None else environment), ""
            with suppress(OSError):  # no room for one: the program may do without
                folder = scratch.enter_context(TemporaryDirectory(prefix="hwflow-", ignore_cleanup_errors=True))
                variables["TMPDIR"] = folder
            program = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0, env=variables, **options)
            _running.add(program)
            _tell(f"begin {program.pid} {folder}\n")
        try:
            yield program
        finally:
            with uninterrupted():
                _end(program)
        if _stopped:
            raise KeyboardInterrupt


def run(
    command: Sequence[str], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> tuple[int, str]:
    """Run a program; return its exit status and what it printed, on standard output and standard error.

    Raises OSError if it cannot be started, :class:`subprocess.TimeoutExpired` after ``seconds``, with the output so far
    as ``output``, KeyboardInterrupt if :func:`stop` was called.
    """
    with started(
        command, environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    ) as program:
        text, _ = program.communicate(timeout=seconds)
    return program.returncode, str(text)


def stop() -> None:
    """End all programs now, and start no others until :func:`go_on`."""
    global _stopped
    with _lock:
        _stopped = True
        for program in _running:
            kill(program)


def go_on() -> None:
    """Allow programs to be started again."""
    global _stopped
    _stopped = False


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer Ctrl-C until the body has ended, and keep it from the processes that it starts."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # what is started inherits this
    handler = signal.getsignal(signal.SIGINT)
    here = callable(handler) and threading.current_thread() is threading.main_thread()
    held = []
    if here:  # the signal may come by way of another thread
        signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    try:
        yield
    finally:
        if here:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if held:
            signal.raise_signal(signal.SIGINT)


def _end(program: subprocess.Popen[Any]) -> None:
    if program.poll() is None:
        kill(program)
    for stream in (program.stdout, program.stderr):
        if stream is not None:
            stream.close()
    program.wait()
    with _lock:
        _running.discard(program)
        _tell(f"end {program.pid} \n")


def kill(program: subprocess.Popen[Any]) -> None:
    """End a program that was started here, with its process group."""
    with suppress(OSError):  # it has ended by itself
        os.killpg(program.pid, signal.SIGKILL)


def _tell(line: str) -> None:
    """Send a line to the guardian, started if need be."""
    global _guardian
    if _guardian is None:
        _guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GUARDIAN], text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        atexit.register(_dismiss, _guardian)
    assert _guardian.stdin is not None, "it is a pipe"
    with suppress(OSError, ValueError):  # somebody has ended it, or this process is about to
        _guardian.stdin.write(line)
        _guardian.stdin.flush()


def _dismiss(guardian: subprocess.Popen[str]) -> None:
    assert guardian.stdin is not None, "it is a pipe"
    with suppress(OSError):
        guardian.stdin.close()
    guardian.wait()
