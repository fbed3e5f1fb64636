"""What ``hwflow check`` may take of a hostile file: 2 seconds of processor time and 1 GiB.

``python -m tests.onnxspec.reading.limits FILE ...`` checks files under these limits and prints, for each, the severity
of its worst finding; it dies at the first one that gives a traceback, hangs or wants more memory.
"""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from hwflow.api.checking import check
from hwflow.errors import Finding

SECONDS = 4  # twice what is promised: a slow machine is no fault of the code
BYTES = 1 << 30


class Limit(BaseException):
    """The file took too long: no ``except Exception`` may hide it."""


def _too_slow(*_: object) -> None:
    raise Limit("the file took more processor time than it may")


def limit_memory(sample: Path) -> None:
    """From now on this process gets no more than :data:`BYTES` beyond what it has after checking ``sample``, which
    imports what is imported late."""
    check(sample)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    signal.signal(signal.SIGPROF, _too_slow)


def guarded_check(path: Path, seconds: float = SECONDS) -> list[Finding]:
    """The findings; raises what the check raises, and :class:`Limit`."""
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of processor time: other processes do not count
    findings = check(path)
    signal.setitimer(signal.ITIMER_PROF, 0)
    for finding in findings:
        assert finding.where and finding.message and finding.remedy and finding.rule
        assert finding.severity in ("error", "unsupported", "warning")
    return findings


def worst(findings: Sequence[Finding]) -> str:
    """The worst severity, "none" without findings."""
    severities = {finding.severity for finding in findings}
    return next((s for s in ("error", "unsupported", "warning") if s in severities), "none")


if __name__ == "__main__":
    limit_memory(Path(sys.argv[1]))
    for name in sys.argv[1:]:
        print(name, flush=True)
        print(worst(guarded_check(Path(name))), flush=True)
