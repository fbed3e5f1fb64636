"""Ctrl-C at any moment is one line, and a process that dies takes with it what it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from hwflow.cli import main
from hwflow.cli.interrupts import Interrupts
from hwflow.sim import programs
from tests.cli import models

YOSYS = """#!/bin/sh
case "$*" in
*version*) echo "Yosys 9.9" ;;
*) sleep 600 & echo $$ $! >{pids}; wait ;;
esac
"""


@pytest.fixture(autouse=True)
def interruptible():
    """What a shell starts in the background ignores Ctrl-C, and so does what that starts: not here."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def slow_yosys(tmp_path):
    """A yosys that does not end; it writes its process and one that it started to the file that this returns."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "yosys"
    program.write_text(YOSYS.format(pids=tmp_path / "pids"))
    program.chmod(0o755)
    return tmp_path / "pids"


def command(tmp_path, *arguments):
    """The program, head of a process group as a shell makes it."""
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    code = "import sys; from hwflow.cli import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=tmp_path, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PATH": path, "TMPDIR": str(tmp_path), "TESTED_IN": str(tmp_path)},
    )


def wait_for(condition):
    """Return when it is true."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never became true")


def has_ended(pid):
    """A process that nobody waits for may stay as a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def processes_of(folder):
    """Ids of the processes that work for the tests in ``folder``."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"TESTED_IN={folder}".encode() in file.read().split(b"\0") and not has_ended(pid):
                    found.append(int(pid))
        except OSError:
            continue
    return found


LINES = ("reading the model", "scheduling", "writing Verilog")


@pytest.mark.parametrize("line", LINES)
def test_at_every_step(tmp_path, line):
    """To the whole group, as terminals do."""
    models.relu(tmp_path / "m.onnx")
    program = command(tmp_path, "synth", "m.onnx", "--board", "icebreaker", "--until", "verilog", "-o", "out")
    said = []
    while not said or said[-1] != line:
        said.append(program.stderr.readline().rstrip())
    os.killpg(program.pid, signal.SIGINT)
    out, err = program.communicate(timeout=60)
    assert (program.returncode, out) == (130, "")
    assert [*said, *err.splitlines()] == [*LINES[: LINES.index(line) + 1], "interrupted"]
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    wait_for(lambda: not processes_of(tmp_path))


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_what_was_started_ends(tmp_path, slow_yosys, end):
    """A tool, what it has started, and the second process, whatever becomes of the first."""
    program = command(tmp_path, "synth", models.relu(tmp_path / "m.onnx"), "--board", "icebreaker", "-o", "out")
    wait_for(lambda: slow_yosys.is_file() and len(slow_yosys.read_text().split()) == 2)
    started = {program.pid, *map(int, slow_yosys.read_text().split())}
    wait_for(lambda: started < set(processes_of(tmp_path)))  # between fork and exec a process has no environment
    time.sleep(1)  # until the first has said of the tool that it has started it
    os.kill(program.pid, end)
    _, err = program.communicate(timeout=60)
    assert program.returncode == (130 if end == signal.SIGINT else -signal.SIGKILL)
    assert (err.splitlines()[-1] == "interrupted") == (end == signal.SIGINT)
    wait_for(lambda: not processes_of(tmp_path))
    if end == signal.SIGINT:
        assert sorted(p.name for p in tmp_path.iterdir()) == ["bin", "m.onnx", "pids"]


def test_during_imports(tmp_path):
    """Where the handler is in place nothing is imported yet."""
    code = """
import builtins, os, signal, sys
imported = builtins.__import__
def interrupted(name, *rest):
    if name == "hwflow.cli.parser":
        os.kill(os.getpid(), signal.SIGINT)
    return imported(name, *rest)
builtins.__import__ = interrupted
from hwflow.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code, "boards"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


class Interrupting:
    """An object whose end is interrupted: Python goes on as if nothing had been."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_where_no_exception_can_pass(capsys):
    def code():
        Interrupting()
        wait_for(lambda: False)

    with Interrupts(for_good=False) as interrupts, pytest.raises(KeyboardInterrupt):
        code()
    assert interrupts.came
    assert capsys.readouterr().err == ""


def test_where_it_comes_again_before_it_can_pass(monkeypatch, capsys):
    class Hasty(threading.Timer):
        starts = 0

        def start(self):
            Hasty.starts += 1
            if Hasty.starts == 1:
                signal.raise_signal(signal.SIGINT)
            super().start()

    monkeypatch.setattr(threading, "Timer", Hasty)
    test_where_no_exception_can_pass(capsys)
    assert Hasty.starts == 2


def test_a_second_one_does_not_disturb_the_end(monkeypatch, capsys):
    cleaned = []

    def action(arguments):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt), programs.started(["true"]):  # nothing is started any more
                raise AssertionError
            cleaned.append("all")

    monkeypatch.setattr("hwflow.cli.parser.run_boards", action)
    before = signal.getsignal(signal.SIGINT)
    assert main(["boards"]) == 130
    assert (cleaned, capsys.readouterr().err) == (["all"], "interrupted\n")
    assert signal.getsignal(signal.SIGINT) is before
    assert programs.run(["echo", "again"]) == (0, "again\n")


def test_ignored_it_stays(monkeypatch):
    """As a shell has it for what runs in the background."""
    monkeypatch.setattr("hwflow.cli.parser.run_boards", lambda arguments: signal.raise_signal(signal.SIGINT) or 0)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert main(["boards"]) == 0
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_is_begun_is_not_interrupted_half_way():
    """Nor does it come to what is started meanwhile."""
    steps = []
    with Interrupts(for_good=False) as interrupts:
        with pytest.raises(KeyboardInterrupt), programs.uninterrupted():
            signal.raise_signal(signal.SIGINT)
            blocked = subprocess.run(["grep", "SigBlk", "/proc/self/status"], capture_output=True, text=True).stdout
            steps.append("whole")
        assert interrupts.came
    assert steps == ["whole"]
    assert int(blocked.split()[1], 16) >> (signal.SIGINT - 1) & 1
