"""The command line: a thin layer over the Python API. Exit codes: 0 good, 1 refused or mismatch, 2 usage, 3 tool."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from hwflow.cli.parser import command_line
from hwflow.errors import Finding, HwflowError, ToolError, merged
from hwflow.processes import rarely_collected


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Every error is printed as findings on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name in the model may hold what the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        parsed = command_line().parse_args(arguments)
        with rarely_collected():
            code: int = parsed.action(parsed)
        return code
    except HwflowError as error:
        for finding in merged(error.findings):
            print(finding, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0
    except OSError as error:  # no space left, no memory for a process, ...
        where = f"file '{error.filename}'" if error.filename else "operating system"
        print(
            Finding("system-call", where, f"must work, but: {error.strerror or error}", "see that it can"),
            file=sys.stderr,
        )
        return ToolError.exit_code
