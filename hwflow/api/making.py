"""The verb ``synth``: make an output folder from a model, reusing what is up to date."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwflow.api import made_from
from hwflow.api.output_folder import Output
from hwflow.errors import Finding, Severity
from hwflow.processes import second_process
from hwflow.toolchain import vendor
from hwflow.toolchain.routing import Heard

if TYPE_CHECKING:
    from hwflow.api.compiler import Design
    from hwflow.api.request import Request
    from hwflow.schedule.schedule import Schedule

Progress = Callable[[str], None]
Compile = Callable[[Progress, Executor | None], "Design"]

SHARED = ("hwflow.codegen.converted.modules", "hwflow.schedule.search.exploration")
"""Modules whose work a second process shares, and which it imports at once."""


@dataclass(frozen=True)
class Made:
    """What is in the folder: report.json's contents, the line about the host, warnings; ``unchanged``: all was up to
    date."""

    table: dict[str, Any]
    host: str
    findings: tuple[Finding, ...]
    unchanged: bool = False


@dataclass(frozen=True)
class _Later:
    """A design written before, compiled again only when needed."""

    request: Request
    compile: Callable[[], Design]

    @cached_property
    def _design(self) -> Design:
        return self.compile()

    @property
    def schedule(self) -> Schedule:
        return self._design.schedule

    def smaller(self, executor: Executor | None = None) -> Design | None:
        return self._design.smaller(executor)


def make(
    output: Output, model: Path, request: Request, asked: Mapping[str, Any], compile: Compile, progress: Progress,
    *, until: str | None = None, force: bool = False, heard: Heard | None = None, seeds: Sequence[int] = (),
) -> Made:
    """Make ``output`` of ``model`` up to ``until`` (see :func:`hwflow.api.output.write_design`): what is out of date
    (:mod:`hwflow.api.made_from`), or with ``force`` all.

    ``request``: what ``compile`` compiles for; ``asked``: all options that it compiles with, as JSON can hold them;
    ``heard``: called with the progress of place and route; ``seeds`` of it, the best of which is kept (none: as many
    as the clock needs).
    """
    out, board = output.path, request.board
    record = None if force else made_from.unchanged(out, model, asked, board)
    if record is None or not made_from.leads_to(out, record, until):
        from hwflow.api.output import write_design

        with second_process(SHARED) as executor:
            design = compile(progress, executor)
            table = write_design(
                design, output, until, progress, executor, asked, reuse=not force, heard=heard, seeds=seeds
            )
        return _made(table, made_from.said(design))
    table = json.loads((out / "report.json").read_text())
    last = until or ("bitstream" if vendor.is_here(board.toolchain) else "verilog")
    if made_from.reaches(out, record, last):
        return _made(table, record["said"], unchanged=True)
    from hwflow.api.output import build_further, writer

    later = _Later(request, lambda: compile(progress, None))
    write = writer(output, table, progress, None, asked)
    build_further(later, out, last, table, progress, write, heard=heard, seeds=seeds)
    return _made(table, record["said"])


def _made(table: dict[str, Any], said: Mapping[str, Any], unchanged: bool = False) -> Made:
    findings = (
        Finding(f["clause"], f["where"], f["message"], f["remedy"], Severity(f["severity"])) for f in said["findings"]
    )
    return Made(table, said["host"], tuple(findings), unchanged)
