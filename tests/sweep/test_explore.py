"""A sweep on processes: every point has a result, whatever becomes of workers, of this process, or of the point."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import Future
from contextlib import contextmanager

import numpy as np
import onnx
import pytest
from distributed import Client, LocalCluster

import hwflow
from hwflow.errors import ToolError, UsageError
from hwflow.sweep import worker_jobs
from hwflow.sweep.cluster import NO_DASHBOARD, Workers, started_workers
from hwflow.sweep.points import Axes
from hwflow.sweep.sweep_folder import SweepFolder
from hwflow.toolchain.build_result import BuildResult
from tests.cli import models
from tests.quantization.networks import Network

BOARDS = ["icebreaker", "ulx3s_25f"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two processes, as a cluster has them."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit=0, scheduler_kwargs=NO_DASHBOARD, silence_logs=logging.CRITICAL,
        local_directory=str(tmp_path_factory.mktemp("workers")),
    ) as started:
        yield started


@pytest.fixture
def kept(monkeypatch):
    """How often the result of each point was written."""
    count = Counter()
    keep = SweepFolder.keep

    def counting(self, key, table):
        count[key] += 1
        keep(self, key, table)

    monkeypatch.setattr(SweepFolder, "keep", counting)
    return count


def dense(folder):
    """A float model of one layer, and data for it."""
    network = Network(["N", 4])
    rng = np.random.default_rng(0)
    onnx.save(network.model(network.node("MatMul", "x", network.constant(rng.normal(size=(4, 3)))), ["N", 3]),
              folder / "float.onnx")
    x = rng.normal(size=(20, 4)).astype(np.float32)
    np.savez(folder / "frames.npz", x=x)
    return folder / "float.onnx", folder / "frames.npz"


def test_points_are_the_designs_of_compile_and_refusals_are_results(tmp_path, cluster, kept):
    model = models.relu(tmp_path / "model.onnx")
    axes = Axes(BOARDS, [1000.0, None, 1e12], budgets=[None, {"lut": "60"}])
    found = hwflow.explore(model, tmp_path / "out", axes, dask=cluster.scheduler_address)
    assert found.new == len(found.results) == 12 and set(kept.values()) == {1}
    for point, result in zip(axes.points(), found.results, strict=True):
        assert result["point"] == point.table()
        try:
            design = hwflow.compile(
                model, point.board, fps=point.fps, clock_mhz=point.clock_mhz, budget=dict(point.budget) or None
            )
        except hwflow.HwflowError as error:
            assert result["status"] == "refused"
            assert result["findings"] == [finding.table() for finding in error.findings]
            continue
        figures = result["figures"]
        assert result["status"] == "done" and figures["frames_per_second"] == design.frames_per_second
        assert figures["latency"] == design.schedule.latency and figures["lut"] == design.schedule.resources.lut
    assert found.count("done") == found.count("refused") == 6 and found.front
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert written["points"] == [*found.results] and written["left"] == 0

    wider = Axes([*BOARDS, "ulx3s_12f"], axes.fps, budgets=axes.budgets)
    again = hwflow.explore(model, tmp_path / "out", wider, dask=cluster.scheduler_address)
    assert again.new == 6 and again.results[:12] == found.results and set(kept.values()) == {1}


def test_a_worker_that_is_killed_loses_and_repeats_nothing(tmp_path, cluster, kept):
    model = models.relu(tmp_path / "model.onnx")
    killed = []

    def kill(done, total):
        if done == 2 and not killed:
            with Client(cluster.scheduler_address, set_as_default=False) as client:
                busy = next(address for address, jobs in client.processing().items() if jobs)
                killed.append(client.run(os.getpid)[busy])
            os.kill(killed[0], signal.SIGKILL)

    axes = Axes(BOARDS, [float(fps) for fps in range(100, 1600, 100)])
    found = hwflow.explore(model, tmp_path / "out", axes, dask=cluster.scheduler_address, counted=kill)
    assert killed and found.count("done") == 30
    assert len(kept) == 30 and set(kept.values()) == {1}
    assert len([*(tmp_path / "out" / "points").iterdir()]) == 30


def test_results_that_are_lost_with_their_worker_are_made_again(tmp_path, cluster, kept, monkeypatch):
    """All workers end after the jobs, before the results are fetched."""
    model = models.relu(tmp_path / "model.onnx")
    all_ended = Workers.ended

    def ended(self, futures):
        done = [*all_ended(self, futures)]
        for worker in self.client.run(os.getpid).values():
            os.kill(worker, signal.SIGKILL)
        wait_for(lambda: all(future.status == "lost" for future in done))
        yield from done

    monkeypatch.setattr(Workers, "ended", ended)
    found = hwflow.explore(model, tmp_path / "out", Axes(BOARDS, [100.0, 200.0]), dask=cluster.scheduler_address)
    assert found.count("done") == 4 and set(kept.values()) == {1}


def test_a_float_model_is_quantized_once_for_each_width(tmp_path, cluster, kept):
    model, frames = dense(tmp_path)
    axes = Axes(["ulx3s_25f"], [1000.0, None], bits=[4, 8])
    found = hwflow.explore(model, tmp_path / "out", axes, calibration=frames, dask=cluster.scheduler_address)
    assert found.count("done") == 4 and len([*(tmp_path / "out" / "models").glob("*.onnx")]) == 2
    ratios = [result["figures"]["snr_db"] for result in found.results]
    assert ratios[0] == ratios[1] < 30 < ratios[2] == ratios[3]
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "out" / "models").iterdir()}
    wider = Axes(["icebreaker", "ulx3s_25f"], [1000.0, None], bits=[4, 8])
    assert hwflow.explore(
        model, tmp_path / "out", wider, calibration=frames, dask=cluster.scheduler_address
    ).new == 4
    assert times == {file: file.stat().st_mtime_ns for file in (tmp_path / "out" / "models").iterdir()}
    refused = hwflow.explore(model, tmp_path / "as_it_is", Axes(["icebreaker"]), dask=cluster.scheduler_address)
    assert refused.count("refused") == 1 and "hwflow quantize" in refused.results[0]["findings"][0]["remedy"]


def test_what_a_worker_lacks_fails_and_is_tried_again(tmp_path, cluster, monkeypatch):
    model = models.relu(tmp_path / "model.onnx")
    with monkeypatch.context() as patch:
        patch.setattr("hwflow.api.made_from.code_digest", lambda: "another version")
        found = hwflow.explore(model, tmp_path / "out", Axes(["icebreaker"]), dask=cluster.scheduler_address)
        assert found.results[0]["findings"][0]["clause"] == "worker-version"
        again = hwflow.explore(model, tmp_path / "out", Axes(["icebreaker"]), dask=cluster.scheduler_address)
    assert found.count("failed") == again.count("failed") == 1 and again.new == 1


class Inline:
    """Workers that are this process."""

    @contextmanager
    def started(*_):
        yield Inline()

    def submit(self, function, *arguments, key):
        future = Future()
        future.status, future.release = "finished", lambda: None
        given = (a.result() if isinstance(a, Future) else a for a in arguments)
        future.set_result(function(*given))
        return future

    def ended(self, futures):
        return futures


def test_the_best_clock_of_all_seeds_is_kept_and_a_design_synthesized_once(tmp_path, monkeypatch):
    """Where place and route are stood in for: they reach 90, 120, 110 and 80 MHz, and write their seed."""
    reached, compiled = {1: 90.0, 2: 120.0, 3: 110.0, 4: 80.0}, []

    def built(out, until, progress, heard, another, seeds, nearly):
        (seed,) = seeds
        (out / "seed").write_text(str(seed))
        counts = {"lut": 10, "ff": 20, "dsp": 0, "bram": 0}
        return BuildResult(
            100.0, (), reached[seed], reached[seed] >= 100, counts, counts, {}, {"place_route": 1.0}, out / "n", None,
        )

    monkeypatch.setattr("hwflow.toolchain.build.build", built)
    monkeypatch.setattr("hwflow.sweep.exploring.started_workers", Inline.started)
    compile_as = worker_jobs.compile_as
    monkeypatch.setattr(worker_jobs, "compile_as", lambda *a, **k: compiled.append(a) or compile_as(*a, **k))
    model = models.relu(tmp_path / "model.onnx")

    def explored(seeds):
        found = hwflow.explore(model, tmp_path / "out", Axes(["ulx3s_25f"], clocks=[100.0], seeds=seeds))
        (folder,) = (tmp_path / "out" / "designs").iterdir()
        return found, (folder / "seed").read_text(), json.loads((folder / "report.json").read_text())["clock"]

    assert explored(1)[1:] == ("1", {"target_mhz": 100.0, "fmax_mhz": 90.0})
    found, seed, clock = explored(4)
    assert (seed, clock["fmax_mhz"], found.new, len(compiled)) == ("2", 120.0, 3, 1)
    assert [result["figures"]["fmax_mhz"] for result in found.results] == [*reached.values()]
    assert [result["figures"]["timing_met"] for result in found.results] == [False, True, True, False]
    assert found.front == (1,) and len({result["design"] for result in found.results}) == 1


@pytest.mark.parametrize(("axes", "options", "words"), [
    (Axes(["icebraker"]), {}, "did you mean 'icebreaker'"),
    (Axes(["icebreaker"]), {"until": "gds"}, "must be one of schedule, verilog, netlist, bitstream, not 'gds'"),
    (Axes(["icebreaker"], bits=[8]), {}, "option --bits: must be given with --calibration"),
    (Axes(["arty_a7_35"], seeds=2), {}, "must not be given with board arty_a7_35: "),
    (Axes(["icebreaker"], seeds=2), {"until": "verilog"}, "must not be given with --until verilog"),
    (Axes(["icebreaker"]), {"workers_here": 0}, "must be 1 or more, not 0"),
    (Axes(["icebreaker"]), {"dask": "tcp://127.0.0.1:9"}, "a scheduler of Dask must answer at 'tcp://127.0.0.1:9'"),
])  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_runs(tmp_path, monkeypatch, axes, options, words):
    monkeypatch.setattr("hwflow.sweep.cluster.CONNECT_SECONDS", 0.3)
    with pytest.raises(UsageError) as refused:
        hwflow.explore(models.relu(tmp_path / "model.onnx"), tmp_path / "out", axes, **options)
    assert words in str(refused.value)


def test_without_dask_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ToolError, match=r"pip install 'hwflow\[explore\]'"):
        hwflow.explore(models.relu(tmp_path / "model.onnx"), tmp_path / "out", Axes(["icebreaker"]))


def test_sweeps_at_once_have_workers_each_and_nothing_to_warn_of(tmp_path):
    here = tmp_path / "here", tmp_path / "there"
    with started_workers(None, 1, here[0]) as some, started_workers(None, 1, here[1]) as others:
        assert some.submit(len, "ab", key="a").result() == 2 and others.submit(len, "abc", key="a").result() == 3


def test_a_folder_of_something_else_stays_as_it_is(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text("{}")
    with pytest.raises(UsageError, match="must be a new, an empty or an earlier output folder"):
        hwflow.explore(models.relu(tmp_path / "model.onnx"), tmp_path / "out", Axes(["icebreaker"]))


def ended(folder):
    """No process works in ``folder`` any more."""
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                mine = f"TESTED_IN={folder}".encode() in file.read().split(b"\0")
            with open(f"/proc/{pid}/stat") as file:
                alive = file.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            continue
        if mine and alive:
            return False
    return True


def wait_for(condition, seconds=120):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it never became true"
        time.sleep(0.02)


def test_a_command_that_is_killed_or_interrupted_goes_on_where_it_ended(tmp_path):
    """With processes of its own, of which none is left."""
    models.relu(tmp_path / "model.onnx")
    points = tmp_path / "out" / "points"
    rates = ",".join(str(fps) for fps in range(1, 200))
    arguments = ["explore", "model.onnx", "--board", "ulx3s_25f", "--fps", rates, "--workers", "1", "-o", "out"]
    code = "import sys; from hwflow.cli import main\nif __name__ == '__main__': sys.exit(main())"

    def start(*more):
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments, *more], cwd=tmp_path, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TESTED_IN": str(tmp_path)},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def files():
        return {file.name: file.stat().st_mtime_ns for file in points.glob("*.json")} if points.exists() else {}

    before = {}
    for kind, status in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
        command = start()
        enough = len(before) + 3
        wait_for(lambda enough=enough, command=command: len(files()) >= enough or command.poll() is not None)
        os.kill(command.pid, kind) if kind == signal.SIGKILL else os.killpg(command.pid, kind)  # as a terminal does
        out, errors = command.communicate(timeout=60)
        assert command.returncode == status, errors
        assert "Traceback" not in errors
        wait_for(lambda: ended(tmp_path))
        now = files()
        assert before.items() <= now.items() and len(before) < len(now) < 199
        before = now
    command = start("--format", "json")
    out, errors = command.communicate(timeout=300)
    assert command.returncode == 0, errors
    table = json.loads(out)
    assert len(table["points"]) == 199 and table["new"] == 199 - len(before)
    assert all(result["status"] == "done" for result in table["points"])
    assert before.items() <= files().items() and len(files()) == 199
    assert sorted(os.listdir(tmp_path / "out")) == [
        "designs", "explore.json", "models", "pareto.html", "points", "results.csv", "results.json",
    ]
