"""Run one command: parse its options, call its function, print its errors."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import suppress

from hwflow.cli import junit
from hwflow.cli.arguments import wanted
from hwflow.cli.parser import command_line
from hwflow.cli.terminal import print_findings, print_json
from hwflow.display import show_path
from hwflow.errors import Finding, HwflowError, ToolError, UsageError
from hwflow.host.runtime.host_errors import HostError


def run(arguments: Sequence[str]) -> int:
    """Run one command; return the exit code. Print every error as findings on stderr, and if asked for as JSON on
    stdout and in a JUnit file."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name in the model may hold what the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        parsed = command_line().parse_args(arguments)
        if getattr(parsed, "junit", None) is not None:
            junit.check_file(parsed.junit)
        code: int = parsed.action(parsed)
        return code
    except HwflowError as error:
        return _refused(arguments, error.findings, error.exit_code)
    except HostError as error:
        return _refused(arguments, [Finding(*finding) for finding in error.findings], error.exit_code)
    except BrokenPipeError:
        return 0
    except OSError as error:  # no space left, no memory for a process, ...
        where = f"file {show_path(error.filename)}" if error.filename else "operating system"
        message = f"the system call must succeed, but: {error.strerror or error}"
        finding = Finding("system-call", where, message, "check permissions and free space")
        return _refused(arguments, (finding,), ToolError.exit_code)


def _refused(arguments: Sequence[str], findings: Sequence[Finding], code: int) -> int:
    print_findings(findings)
    also = wanted(arguments)
    if also.json:
        print_json({"findings": [finding.table() for finding in findings]})
    if also.junit is not None:
        with suppress(UsageError):  # a finding says so already, or the one that matters is another
            junit.write(also.junit, [junit.refusal(" ".join(arguments[:1]), findings)])
    return code
