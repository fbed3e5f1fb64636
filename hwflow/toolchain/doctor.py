"""Check the external tools: path, version, minimum version, and how to install missing ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hwflow.errors import ToolError
from hwflow.toolchain.catalogue import all_tools
from hwflow.toolchain.tool import Tool


@dataclass(frozen=True)
class ToolStatus:
    """The status of a tool: ``good`` if the installation that hwflow would use is present and new enough.

    ``where``: "" if missing, else the program's path or "wheel"; ``version``: "" if missing or unknown; ``minimum``: ""
    if any version suffices; ``install``: the command; ``problem``: "" if good, else what is wrong; ``optional``: not
    everybody needs it.
    """

    name: str
    purpose: str
    good: bool
    where: str
    version: str
    minimum: str
    install: str
    problem: str
    optional: bool = False


def doctor(tools: Iterable[Tool] | None = None) -> list[ToolStatus]:
    """Probe ``tools`` (default: all). Starts each program once to ask its version; never raises for a missing one.

    A yowasp-* tool compiles itself when it is first started, which takes a minute or two.
    """
    return [_status(tool) for tool in (all_tools() if tools is None else tools)]


def _status(tool: Tool) -> ToolStatus:
    problem = ""
    try:
        found = tool.find()
    except ToolError as error:
        problem = "; ".join(finding.message for finding in error.findings)
        present = tool.find_all()
        if not present:
            return ToolStatus(
                tool.name, tool.purpose, False, "", "", _dotted(tool.minimum), tool.install, problem, tool.optional
            )
        found = present[0]
    return ToolStatus(
        name=tool.name,
        purpose=tool.purpose,
        good=not problem,
        where=found.command[0] if found.origin == "PATH" else found.origin,
        version=found.version_text if found.version else "",
        minimum=_dotted(tool.minimum),
        install=tool.install,
        problem=problem,
        optional=tool.optional,
    )


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def table(statuses: Iterable[ToolStatus]) -> str:
    """Format the statuses for a terminal: a line per tool, with problem and remedy below it."""
    lines = []
    for s in statuses:
        mark = "ok     " if s.good else "missing" if not s.where else "too old"
        if s.where and not s.good and s.version and s.minimum and "version must" not in s.problem:
            mark = "broken "
        place = f"{s.version or 'no version'} ({s.where})" if s.where else "-"
        if s.optional and not s.where:
            lines.append(f"-        {s.name:<14} {'-':<28} {s.purpose}: {s.install}")
            continue
        lines.append(f"{mark}  {s.name:<14} {place:<28} {s.purpose}")
        if not s.good:
            lines.append(f"         {s.problem}")
            lines.append(f"         remedy: {s.install}")
    return "\n".join(lines)
