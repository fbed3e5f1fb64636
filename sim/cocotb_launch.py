"""Run one cocotb job in a process of its own: `python -m <package>.cocotb_launch JOB.json`.

cocotb's runner reads and changes the environment, prints, and ends the process when a program is missing: hence a
process of its own. The job: "simulator", "sources", "top", "module", "build_folder", "run_folder", "build_log",
"run_log", "results", "environment", "build_arguments", "run_arguments", "plusargs", "waves".
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from cocotb_tools.runner import get_runner


def main(path: str) -> None:
    """Build (if out of date) and run the job. The verdict is what the test module writes, not the exit status."""
    job = json.loads(Path(path).read_text())
    begin = time.monotonic()
    runner = get_runner(job["simulator"])
    runner.build(
        sources=job["sources"],
        hdl_toplevel=job["top"],
        build_dir=job["build_folder"],
        build_args=job["build_arguments"],
        timescale=("1ns", "1ps"),
        waves=job["waves"],
        log_file=job["build_log"],
    )
    built = time.monotonic()
    runner.test(
        test_module=job["module"],
        hdl_toplevel=job["top"],
        build_dir=job["build_folder"],
        test_dir=job["run_folder"],
        results_xml=job["results"],
        extra_env=job["environment"],
        test_args=job["run_arguments"],
        plusargs=job["plusargs"],
        waves=job["waves"],
        timescale=("1ns", "1ps"),
        log_file=job["run_log"],
    )
    print(json.dumps({"build_seconds": built - begin}))


if __name__ == "__main__":
    main(sys.argv[1])
