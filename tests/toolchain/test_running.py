"""Running a program: its lines as they come, and that it ends, with all that it started, when it is stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hwflow.errors import ToolError
from hwflow.toolchain.tool import Found, Stop, run

PYTHON = Found((sys.executable, "-c"), "PATH", (), "")
CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
child.wait()
"""


@pytest.fixture
def options(tmp_path):
    return {"cwd": tmp_path, "log": tmp_path / "log", "step": "s", "remedy": "r"}


def test_lines_are_heard_and_in_the_log_while_the_program_runs(options):
    """The program waits for what its first line brings about."""
    program = """
import os, time
print("first", flush=True)
while not os.path.exists("go"): time.sleep(0.01)
print("second")
"""
    logs = []

    def heard(line: str) -> None:
        logs.append(options["log"].read_text())
        (options["cwd"] / "go").touch()

    assert run(PYTHON, [program], heard=heard, **options) == "first\nsecond\n"
    assert logs == ["first\n", "first\nsecond\n"]


def test_what_a_line_tells_may_stop_the_program(options):
    stop = Stop()
    with pytest.raises(ToolError) as error:
        run(PYTHON, [CHILD], heard=lambda line: stop("must be quiet"), stop=stop, **options)
    assert error.value.findings[0].rule == "tool-stopped"
    assert error.value.findings[0].message == f"must be quiet (log: {options['log']})"
    assert ended(int(options["log"].read_text()))


def test_another_thread_may_stop_it(options):
    stop, started = Stop(), threading.Event()
    threading.Thread(target=lambda: (started.wait(), stop("enough"))).start()
    with pytest.raises(ToolError, match="enough"):
        run(PYTHON, [CHILD], heard=lambda line: started.set(), stop=stop, **options)
    assert ended(int(options["log"].read_text()))


def test_what_is_stopped_does_not_start_again(options):
    stop = Stop()
    stop("too late")
    with pytest.raises(ToolError, match="too late"):
        run(PYTHON, ["import time; time.sleep(600)"], stop=stop, **options)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, ValueError])
def test_nothing_of_it_outlives_the_call(options, interruption):
    def heard(line: str) -> None:
        raise interruption

    with pytest.raises(interruption):
        run(PYTHON, [CHILD], heard=heard, **options)
    assert ended(int(options["log"].read_text()))


def test_a_program_that_was_done_is_not_stopped(options):
    stop = Stop()
    program = "import os, sys; print('done', flush=True); os._exit(0)"
    assert run(PYTHON, [program], stop=stop, **options) == "done\n"
    stop("too late")


def test_a_wheels_program_ends_with_whoever_called_it(tmp_path):
    """The caller is killed, so that it can end nothing itself."""
    entry = "import os, time\ndef main(arguments):\n    print(os.getpid(), flush=True)\n    time.sleep(60)\n"
    (tmp_path / "wheel_module.py").write_text(entry)
    caller = f"""
from pathlib import Path
from hwflow.toolchain.tool import Found, run, wheel_entry
found = Found(*wheel_entry("wheel_module", "main")()[:2], (), "")
folder = Path({str(tmp_path)!r})
run(found, [], folder, folder / "log", step="s", remedy="r", heard=print)
"""
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}
    command = [sys.executable, "-uc", caller]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())
        os.kill(process, 0)  # it is there
        parent.kill()
    assert ended(process)


def ended(process: int) -> bool:
    """Whether there is no such process, or what is left of one that nobody has waited for."""
    for _ in range(500):
        try:
            with open(f"/proc/{process}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        os.sched_yield()
        threading.Event().wait(0.01)
    return False
