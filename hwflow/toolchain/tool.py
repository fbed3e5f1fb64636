"""One external program: where it is, which version, whether it is good enough, how to install it, how to run it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hwflow.errors import Finding, ToolError


@dataclass(frozen=True)
class Found:
    """A usable or unusable installation: the command line prefix, its environment additions, its version."""

    command: tuple[str, ...]
    origin: str  # "PATH", "wheel"
    version: tuple[int, ...]
    version_text: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """A program hwflow calls.

    ``candidates`` are tried in order; each returns a command prefix (and environment) or None. The first one whose
    version is at least ``minimum`` wins (a native program on PATH is listed before a wheel).
    """

    name: str
    purpose: str
    minimum: tuple[int, ...]
    install: str  # what to type
    version_arguments: tuple[str, ...]
    version_pattern: str  # one group: dotted digits
    candidates: tuple[Callable[[], tuple[tuple[str, ...], str, Mapping[str, str]] | None], ...]

    def find_all(self) -> list[Found]:
        """Every installation present, in order of preference, whatever its version."""
        return [f for c in self.candidates if (f := self._probe(c)) is not None]

    def find(self) -> Found:
        """The preferred installation that is new enough. Raises :class:`ToolError` naming what to install."""
        present = self.find_all()
        for found in present:
            if found.version >= self.minimum:
                return found
        want = ".".join(map(str, self.minimum))
        have = "; ".join(f"{' '.join(f.command)} has version {f.version_text}" for f in present) or "none was found"
        raise ToolError(
            Finding(
                "tool-present", f"tool '{self.name}'", f"version must be {want} or newer, not: {have}", self.install
            )
        )

    def _probe(self, candidate: Callable[[], tuple[tuple[str, ...], str, Mapping[str, str]] | None]) -> Found | None:
        hit = candidate()
        if hit is None:
            return None
        command, origin, environment = hit
        try:
            result = subprocess.run(
                [*command, *self.version_arguments],
                capture_output=True, text=True, timeout=600, env={**os.environ, **environment}, check=False,
            )
        except OSError:
            return None
        match = re.search(self.version_pattern, result.stdout + result.stderr)
        text = match.group(1) if match else "unknown"
        version = tuple(int(p) for p in re.findall(r"\d+", text)) if match else ()
        return Found(command, origin, version, text, environment)


def on_path(program: str) -> Callable[[], tuple[tuple[str, ...], str, Mapping[str, str]] | None]:
    """A candidate: ``program`` on PATH."""

    def candidate() -> tuple[tuple[str, ...], str, Mapping[str, str]] | None:
        where = shutil.which(program)
        return ((where,), "PATH", {}) if where else None

    return candidate


def wheel_entry(module: str, function: str) -> Callable[[], tuple[tuple[str, ...], str, Mapping[str, str]] | None]:
    """A candidate: a ``yowasp-*`` wheel of this Python environment, called through its entry function with the
    arguments, or a module of another package, whose function reads them itself."""

    def candidate() -> tuple[tuple[str, ...], str, Mapping[str, str]] | None:
        package = module.partition(".")[0]
        if importlib.util.find_spec(package) is None:
            return None
        call = f"{function}(sys.argv[1:])" if module == package else f"{function}()"  # a yowasp wheel, another's module
        code = f"import sys, {module}; sys.exit({module}.{call})"
        return ((sys.executable, "-c", code), "wheel", {})

    return candidate


def run(
    found: Found, arguments: Sequence[str], cwd: Path, log: Path, *, step: str, remedy: str,
    outputs: Sequence[str] = (), seconds: float | None = None,
) -> str:
    """Run in ``cwd``, write everything printed to ``log``, return it.

    ``seconds``: after that long the program is stopped (None: never) and :class:`ToolError` raised (rule "tool-time").

    ``outputs``: the files in ``cwd`` the program must write; older ones are removed before it starts. Raises
    :class:`ToolError` with the log's tail when the exit status is not 0 (rule "tool-run") or an output is missing or
    empty (rule "tool-output": a program compiled to WebAssembly may die with exit status 0).
    """
    for name in outputs:
        (cwd / name).unlink(missing_ok=True)
    try:
        result = subprocess.run(
            [*found.command, *arguments],
            cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", env={**os.environ, **found.environment}, check=False, timeout=seconds,
        )
    except subprocess.TimeoutExpired as late:
        log.write_bytes(late.output or b"")
        problem = f"must end within {seconds:g} seconds, not go on (log: {log})"
        raise ToolError(Finding("tool-time", step, problem, remedy)) from None
    log.write_text(result.stdout)
    if result.returncode != 0:
        rule, problem = "tool-run", f"exit status must be 0, not {result.returncode} (log: {log})"
    elif missing := [name for name in outputs if not (cwd / name).is_file() or (cwd / name).stat().st_size == 0]:
        rule, problem = "tool-output", f"{', '.join(missing)} must be written, not missing (log: {log})"
    else:
        return result.stdout
    raise ToolError(Finding(rule, step, f"{problem}\n    {_tail(result.stdout)}", remedy))


def _tail(text: str) -> str:
    lines = text.strip().splitlines()
    # what went wrong is not always said last: standard error and standard output are buffered apart
    said = [line for line in lines[:-8] if re.match(r"\W*error\b", line, re.IGNORECASE)][-4:]
    return "\n    ".join([*said, *lines[-8:]])
