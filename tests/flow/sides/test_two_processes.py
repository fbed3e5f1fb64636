"""Cores converted in two processes make the Verilog that one makes, whatever becomes of the other process."""

from __future__ import annotations

import re
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool

import pytest

import hwflow
from hwflow import processes
from hwflow.codegen.converted.modules import core_module
from hwflow.cores.beat_movers import PLUMBING
from hwflow.cores.windows.sliding_window import has_line_buffer
from hwflow.processes import second_process
from tests.flow.networks import conv_network


class Attached(Executor):
    """Runs what it is given at once, here; ``broken``: as if its process had died. Counts what it was given."""

    def __init__(self, *, broken=False, busy=False):
        self.broken, self.busy = broken, busy
        self.ran = []

    def submit(self, function, /, *arguments, **named):
        future = Future()
        if self.busy:  # never comes to it
            return future
        future.set_running_or_notify_cancel()
        self.ran.append(function)
        if self.broken:
            future.set_exception(BrokenProcessPool("gone"))
        else:
            future.set_result(function(*arguments, **named))
        return future


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    path = conv_network(tmp_path_factory.mktemp("network") / "model.onnx", side=6, channels=3, outputs=3)
    return path, hwflow.compile(path, "icebreaker", fps=20_000)


@pytest.fixture(scope="module")
def alone(network, tmp_path_factory):
    """Made in one process."""
    out = tmp_path_factory.mktemp("alone") / "out"
    network[1].write(out)
    return out


def assert_same(out, alone):
    for file in sorted(alone.rglob("*")):
        if file.is_file() and file.name not in ("report.json", "report.html", "top_verilog.log"):  # with times
            assert (out / file.relative_to(alone)).read_bytes() == file.read_bytes(), file


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(processes, "core_count", lambda: 2)


def test_a_second_process_makes_the_same(network, alone, tmp_path, two_cores):
    with second_process() as executor:
        design = hwflow.compile(network[0], "icebreaker", fps=20_000, executor=executor)
        design.write(tmp_path / "out", executor=executor)
    assert_same(tmp_path / "out", alone)


EXECUTORS = {"does all": Attached(), "does nothing": Attached(busy=True), "dies": Attached(broken=True)}


@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS.keys())
def test_whoever_does_the_work(network, alone, tmp_path, executor):
    design = hwflow.compile(network[0], "icebreaker", fps=20_000, executor=executor)
    nodes = design.schedule.graph.nodes
    begun = executor.ran.count(core_module)
    design.write(tmp_path / "out", executor=executor)
    assert_same(tmp_path / "out", alone)
    if executor.busy:
        assert not executor.ran
    else:
        assert executor.ran[0] is not core_module  # foldings come first
        assert begun == sum(not isinstance(node.attributes, PLUMBING) for node in nodes) < len(nodes)
        anew = executor.ran.count(core_module) - len(nodes)
        assert 0 <= anew <= sum(map(has_line_buffer, nodes))  # whose rows became fewer after the beginning


def test_a_single_core_has_no_second_process():
    with second_process() as executor:
        assert executor is None


def test_no_room_for_a_process(monkeypatch, two_cores):
    def full(*arguments, **options):
        raise BlockingIOError("no more processes")

    monkeypatch.setattr("subprocess.Popen", full)
    with second_process() as executor:
        assert executor is None


def test_parts_of_a_large_design(network, alone, tmp_path, monkeypatch):
    """Verilog from two runs of yosys: the same modules; private names may be numbered otherwise."""
    monkeypatch.setattr("hwflow.codegen.verilog.SMALL", 0)
    network[1].write(tmp_path / "out")
    parts, whole = (modules_of(folder) for folder in (tmp_path / "out", alone))
    assert parts.keys() == whole.keys()
    assert len(parts) > 10
    for name, text in parts.items():
        assert sorted(line_kinds(text)) == sorted(line_kinds(whole[name])), name
    there = [{file.relative_to(folder) for file in folder.rglob("*")} for folder in (tmp_path / "out", alone)]
    assert there[0] == there[1], "nothing of yosys' files is left"


def modules_of(folder):
    """The text of each module by its name."""
    text = (folder / "design.v").read_text().partition("// A table")[0]
    _, *modules = re.split(r"(?m)^(?=module )", re.sub(r"(?m)^//.*\n", "", text))
    named = {re.match(r"module (\w+)", module)[1]: module.strip() for module in modules}
    assert len(named) == len(modules), "no module twice"
    return named


def line_kinds(text):
    return [re.sub(r"\b_\d+_|__(part|next|enable|carry)\w*", "_", line) for line in text.splitlines()]
