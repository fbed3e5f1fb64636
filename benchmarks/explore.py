"""How a sweep scales: the same points on one worker and on more, as a Markdown table.

    python benchmarks/explore.py [MODEL.onnx] [--workers 2] [--rates 24]

``longest`` is the processor time of the worker that had most to do: what the sweep takes on a machine that does nothing
else. Wall-clock seconds stand beside it; on a machine with other work they say little. Workers have imported hwflow
before, as those of a cluster have.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from pathlib import Path

from distributed import Client, LocalCluster

import hwflow

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "digits" / "model.onnx"
BOARDS = ("ulx3s_12f", "ulx3s_85f", "colorlight_i9")


def warmed_up() -> None:
    """Import what a point needs."""
    import hwflow.sweep.worker_jobs  # noqa: F401


def measured(model: Path, axes: hwflow.Axes, workers: int) -> tuple[float, float, float]:
    """Return the seconds of the clock on the wall, of the processor on the busiest worker, and on all."""
    with tempfile.TemporaryDirectory() as folder, LocalCluster(
        n_workers=workers, threads_per_worker=1, memory_limit=0, dashboard_address=None, silence_logs=logging.CRITICAL,
        local_directory=folder,
    ) as cluster, Client(cluster) as client:
        client.run(warmed_up)
        before, begin = client.run(time.process_time), time.perf_counter()
        found = hwflow.explore(model, Path(folder) / "out", axes, dask=cluster.scheduler_address)
        seconds = time.perf_counter() - begin
        spent = {worker: after - before[worker] for worker, after in client.run(time.process_time).items()}
        assert found.new == len(found.results) and not found.count("failed"), "each point once"
    return seconds, max(spent.values()), sum(spent.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=Path, default=EXAMPLE)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rates", type=int, default=24)
    arguments = parser.parse_args()
    axes = hwflow.Axes(BOARDS, [float(1000 * 1.25**number) for number in range(arguments.rates)])
    print(f"{len(axes.points())} points of {arguments.model.name}\n")
    print("| workers | wall s | longest s | all s | times as fast |\n|---:|---:|---:|---:|---:|")
    alone = 0.0
    for workers in (1, arguments.workers):
        seconds, longest, every = measured(arguments.model, axes, workers)
        alone = alone or longest
        print(f"| {workers} | {seconds:.1f} | {longest:.1f} | {every:.1f} | {alone / longest:.2f} |", flush=True)


if __name__ == "__main__":
    main()
