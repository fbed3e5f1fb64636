"""The command line: a thin layer over the Python API. Exit codes: 0 good, 1 refused or mismatch, 2 usage, 3 tool,
130 interrupted."""

from __future__ import annotations

import gc
import os
import sys
import warnings

from hwflow.cli.interrupts import CODE, Interrupts

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command (:func:`hwflow.cli.command.run`); return the exit code.

    Without ``arguments`` this process is the command: it takes its own, and ends here or soon.
    """
    if arguments is None and not sys.warnoptions:
        warnings.simplefilter("ignore")  # libraries' words to developers: of parts of a design that came to no end
    with Interrupts(for_good=arguments is None) as interrupts:
        try:
            from hwflow.cli.command import run  # what takes time to import does so where Ctrl-C is looked after
            from hwflow.processes import rarely_collected

            with rarely_collected():
                code = run(sys.argv[1:] if arguments is None else arguments)
                if arguments is None:
                    gc.freeze()  # looking through what ends with the process takes a tenth of a command's time
        except KeyboardInterrupt:
            code = CODE
    if not interrupts.came:
        return code
    print("interrupted", file=sys.stderr)
    if arguments is None:  # uncovered: the process ends at once, as nothing that waits at its end is worth it
        from contextlib import suppress

        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # nobody reads it
                stream.flush()
        os._exit(CODE)
    return CODE
