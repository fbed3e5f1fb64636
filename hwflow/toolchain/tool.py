"""An external program: how to find, check, install and run it."""

from __future__ import annotations

import errno
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hwflow.display import show
from hwflow.errors import ToolError
from hwflow.sim import programs

FULL = 1 << 16  # bytes: what may be left of a file system that a program has filled


@dataclass(frozen=True)
class Found:
    """An installation, usable or not: the command line prefix, its environment additions, its version."""

    command: tuple[str, ...]
    origin: str  # "PATH", "wheel"
    version: tuple[int, ...]
    version_text: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """A program that hwflow calls.

    ``candidates`` are tried in order; each returns a command prefix (and environment) or None. The first one whose
    version is at least ``minimum`` wins (a native program on PATH is listed before a wheel). ``package``: the
    distribution of the wheel; ``optional``: not everybody needs it.
    """

    name: str
    purpose: str
    minimum: tuple[int, ...]
    install: str  # what to type
    version_arguments: tuple[str, ...]
    version_pattern: str  # one group: dotted digits
    candidates: tuple[Callable[[], tuple[tuple[str, ...], str, Mapping[str, str]] | None], ...]
    package: str = ""
    optional: bool = False

    def version(self) -> str | None:
        """Return the version of the installation that :meth:`find` chooses; None if there is none. A wheel's is that of
        its package, which needs no slow start."""
        for candidate in self.candidates:
            hit = candidate()
            if hit is not None and hit[1] == "wheel" and self.package:
                return importlib.metadata.version(self.package)
            found = None if hit is None else self._probe(candidate)
            if found is not None and found.version >= self.minimum:
                return found.version_text
        return None

    def find_all(self) -> list[Found]:
        """Return every installation present, in order of preference, whatever its version."""
        return [f for c in self.candidates if (f := self._probe(c)) is not None]

    def find(self) -> Found:
        """Return the preferred installation that is new enough. Raises :class:`ToolError` naming what to install."""
        present = self.find_all()
        for found in present:
            if found.version >= self.minimum:
                return found
        want = ".".join(map(str, self.minimum))
        have = "; ".join(f"{' '.join(f.command)} has version {f.version_text}" for f in present) or "none was found"
        raise ToolError.of(
            "tool-present", f"tool {show(self.name)}", f"version must be {want} or newer, not: {have}", self.install
        )

    def _probe(self, candidate: Callable[[], tuple[tuple[str, ...], str, Mapping[str, str]] | None]) -> Found | None:
        hit = candidate()
        if hit is None:
            return None
        command, origin, environment = hit
        try:
            match = self._match([*command, *self.version_arguments], environment)
        except OSError:
            return None
        text = match.group(1) if match else "unknown"
        version = tuple(int(p) for p in re.findall(r"\d+", text)) if match else ()
        return Found(command, origin, version, text, environment)

    def _match(self, command: Sequence[str], environment: Mapping[str, str]) -> re.Match[str] | None:
        """Ask a program for its version, once in a process while its file stays the same: a start takes long."""
        file = os.stat(shutil.which(command[0]) or command[0])
        # a program may be a script, whose interpreter is on PATH
        surroundings = (*sorted(environment.items()), os.environ.get("PATH"))
        key = (*command, *surroundings, file.st_ino, file.st_mtime_ns, file.st_size, self.version_pattern)
        match = _MATCHES.get(key)
        if match is None:
            _, printed = programs.run(command, environment={**os.environ, **environment}, seconds=600)
            match = re.search(self.version_pattern, printed)
            if match is not None:
                _MATCHES[key] = match
        return match


_MATCHES: dict[tuple[object, ...], re.Match[str]] = {}


def on_path(program: str) -> Callable[[], tuple[tuple[str, ...], str, Mapping[str, str]] | None]:
    """Return a candidate: ``program`` on PATH."""

    def candidate() -> tuple[tuple[str, ...], str, Mapping[str, str]] | None:
        where = shutil.which(program)
        return ((where,), "PATH", {}) if where else None

    return candidate


# A native program ends when nobody reads what it prints; one compiled to WebAssembly goes on for as long as it takes.
_ENDS_WITH_PARENT = """
import os, threading, time
def watch(parent):
    while os.getppid() == parent: time.sleep(0.5)
    os._exit(1)
threading.Thread(target=watch, args=[os.getppid()], daemon=True).start()
"""


def wheel_entry(module: str, function: str) -> Callable[[], tuple[tuple[str, ...], str, Mapping[str, str]] | None]:
    """Return a candidate: a ``yowasp-*`` wheel of this Python environment, whose entry function gets the arguments,
    or a module of another package, whose function reads them itself."""

    def candidate() -> tuple[tuple[str, ...], str, Mapping[str, str]] | None:
        package = module.partition(".")[0]
        if importlib.util.find_spec(package) is None:
            return None
        call = f"{function}(sys.argv[1:])" if module == package else f"{function}()"  # a yowasp wheel, another's module
        code = f"{_ENDS_WITH_PARENT}import sys, {module}; sys.exit({module}.{call})"
        return ((sys.executable, "-c", code), "wheel", {})

    return candidate


class Stop:
    """Stops programs early, with a reason: from another thread, or from the reader of their lines."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[str]] = []

    def __call__(self, reason: str) -> None:
        """Stop all running programs and those started later. The first reason counts."""
        with self._lock:
            self.reason = self.reason or reason
            for process in self._running:
                programs.kill(process)

    @contextmanager
    def over(self, process: subprocess.Popen[str]) -> Iterator[None]:
        """Let ``process`` be stopped while the body runs."""
        with self._lock:
            self._running.append(process)
            if self.reason is not None:
                programs.kill(process)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(process)


def run(
    found: Found, arguments: Sequence[str], cwd: Path, log: Path, *, step: str, remedy: str,
    outputs: Sequence[str] = (), seconds: float | None = None, heard: Callable[[str], None] | None = None,
    stop: Stop | None = None,
) -> str:
    """Run in ``cwd``, write every printed line to ``log`` as it comes and pass it to ``heard``; return them all.

    ``seconds``: the time limit (None: none); ``stop``: another way to stop the program. Either raises
    :class:`ToolError` (rule "tool-stopped"). The program is a process group of its own, and none of its processes
    outlives this call.

    ``outputs``: the files in ``cwd`` that the program must write; older ones are removed before it starts. Raises
    :class:`ToolError` with the log's tail when the exit status is not 0 (rule "tool-run"), an output is missing or
    empty (rule "tool-output": a program compiled to WebAssembly may crash with exit status 0), or the disk is full
    (rule "tool-room": many programs do not check). No output is left then.
    """
    for name in outputs:
        (cwd / name).unlink(missing_ok=True)
    stop = stop or Stop()
    printed: list[str] = []
    program = programs.started(
        [*found.command, *arguments], {**os.environ, **found.environment}, cwd=cwd, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace",
    )
    reason = f"must end within {seconds} seconds, not run on"
    late = None if seconds is None else threading.Timer(seconds, stop, [reason])
    with log.open("w", buffering=1) as file, program as process, stop.over(process):
        if late is not None:
            late.start()
        try:
            assert process.stdout is not None, "it is a pipe"
            for line in process.stdout:
                file.write(line)
                printed.append(line)
                if heard is not None:
                    heard(line)
            process.wait()
        finally:
            if late is not None:
                late.cancel()
    text = "".join(printed)
    if stop.reason is not None and process.returncode != 0:
        raise ToolError.of("tool-stopped", step, f"{stop.reason} (log: {log})", remedy)
    if process.returncode != 0:
        rule, problem = "tool-run", f"exit status must be 0, not {process.returncode} (log: {log})"
    elif missing := [name for name in outputs if not (cwd / name).is_file() or (cwd / name).stat().st_size == 0]:
        rule, problem = "tool-output", f"{', '.join(missing)} must be written, not missing (log: {log})"
    elif outputs and shutil.disk_usage(cwd).free < FULL:
        rule, problem = "tool-room", f"{', '.join(outputs)} must be written whole, not cut: {os.strerror(errno.ENOSPC)}"
    else:
        return text
    for name in outputs:  # what is half there
        (cwd / name).unlink(missing_ok=True)
    raise ToolError.of(rule, step, problem, remedy, output=_tail(text))


def _tail(text: str) -> tuple[str, ...]:
    lines = text.strip().splitlines()
    # what went wrong is not always said last: standard error and standard output are buffered apart
    said = [line for line in lines[:-8] if re.match(r"\W*error\b", line, re.IGNORECASE)][-4:]
    return (*said, *lines[-8:])
