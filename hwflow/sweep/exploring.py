"""The verb ``explore``: a sweep over the axes of a design, with a result for every point, whatever becomes of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hwflow.api.made_from import request_of
from hwflow.api.request import Gathered, board_named, check_until, require_seeds
from hwflow.display import show_path
from hwflow.errors import Finding, ToolError, UsageError
from hwflow.frontend.input_types import parsed
from hwflow.frontend.states.ties import STATELESS, States
from hwflow.onnxspec import read_model
from hwflow.onnxspec.reading.bound_inputs import InputConstants, bind_inputs
from hwflow.onnxspec.reading.external_loading import Folders, load_external_data
from hwflow.sim.digests import digest
from hwflow.sweep.cluster import Workers, started_workers
from hwflow.sweep.pareto import fronts
from hwflow.sweep.points import SCHEDULE, STEPS, Axes, Point, key_of
from hwflow.sweep.sweep_folder import SweepFolder, sweep_folder
from hwflow.sweep.sweep_tables import write_tables
from hwflow.sweep.worker_jobs import (
    FAILED,
    Job,
    Options,
    Outcome,
    Quantizing,
    Source,
    ended,
    passed_on,
    quantized,
    run_point,
)
from hwflow.toolchain.build import MOST_SEEDS
from hwflow.versions import package_version

Counted = Callable[[int, int], None]
Kind = tuple[int, str | None] | None
"""Of a model: its bits and activations; None as it is."""

MadeOf = tuple[str, Source | Quantizing]
"""A model's key, and itself or how it is made."""


@dataclass(frozen=True)
class Exploration:
    """The folder ``output`` of a sweep, with a result for each point in ``results``, in the order of the axes. ``new``:
    how many were done by this call; ``front``: the numbers of those that no other one is better than."""

    output: Path
    results: tuple[Mapping[str, Any], ...]
    new: int
    front: tuple[int, ...]

    def count(self, status: str) -> int:
        """Return how many points ended so ("done", "refused" or "failed")."""
        return sum(result["status"] == status for result in self.results)

    def table(self) -> dict[str, Any]:
        """Return what ``explore --format json`` prints, and ``results.json`` has but for ``output`` and ``new``."""
        return {
            "output": str(self.output), "new": self.new, "points": [dict(result) for result in self.results],
            "front": list(self.front),
        }


def explore(
    model: str | os.PathLike[str],
    output: str | os.PathLike[str],
    axes: Axes,
    *,
    until: str | None = None,
    calibration: str | os.PathLike[str] | None = None,
    dask: str | None = None,
    workers_here: int | None = None,
    dimensions: Mapping[str, int] | None = None,
    trusted: Folders = (),
    input_types: Mapping[str, str] | None = None,
    constants: InputConstants | None = None,
    states: States = STATELESS,
    progress: Callable[[str], None] | None = None,
    counted: Counted | None = None,
) -> Exploration:
    """Make a design for every combination of the ``axes`` up to ``until`` ("schedule", the default, "verilog",
    "netlist" or "bitstream", the default where seeds are an axis), and write ``output``: ``results.csv``,
    ``results.json``, ``pareto.html`` and the folders of the designs.

    Every point that is done is on disk; the same call goes on after the last of them, after whatever end. A point that
    cannot be made is a result with its findings. ``calibration``: the .npz file that a float model is quantized with,
    where ``axes.bits`` are given. ``workers_here``: processes of this machine (default: one a core); ``dask``: the
    address of a scheduler, whose workers have hwflow installed, instead. ``model`` and the rest: as
    :func:`hwflow.load` takes them. ``counted`` is called with how many points are done, and of how many.

    Raises :class:`UsageError` (axes that no board has, a folder that is not ours), :class:`ModelRefused` (no ONNX
    file), :class:`ToolError` (no Dask: extra ``explore``; the cluster is lost).
    """
    say, count = progress or (lambda line: None), counted or (lambda done, total: None)
    until = until or ("bitstream" if axes.seeds else SCHEDULE)
    _check(axes, until, calibration)
    states_files = [digest(file) for file in states.files]
    say("reading the model")
    path = Path(model)
    source = _source(path, constants or {}, trusted)
    options = Options(dict(dimensions or {}), {name: str(t) for name, t in (input_types or {}).items()}, states)
    parsed(options.input_types)
    of_model = {"sha256": hashlib.sha256(next(iter(source.files.values()))).hexdigest()}
    about = {
        "dimensions": options.dimensions, "input_types": options.input_types,
        "states": [*states.texts, states.channels, *states_files],
    }
    requests = {name: request_of(path, of_model, about, board_named(name)) for name in axes.boards}
    for request in requests.values():
        del request["model"]["file"]
    data = b"" if calibration is None else Path(calibration).read_bytes()
    points = axes.points()
    code = next(iter(requests.values()))["hwflow_sha256"]
    model_key = key_of(of_model, about)
    quantizing = {
        (point.bits, point.activations): Quantizing(point.bits, point.activations or "uint8", data, options, code)
        for point in points if point.bits is not None
    }
    quantizer = {"calibration": hashlib.sha256(data).hexdigest(), "onnxruntime": package_version("onnxruntime")}
    keys = [
        key_of(requests[p.board], p.table(), {"until": until}, quantizer if p.bits is not None else {}) for p in points
    ]
    asked = {"model": path.name, **of_model, "until": until, "points": [point.table() for point in points]}
    with sweep_folder(Path(output), asked) as folder:
        sweep = _Sweep(folder, until, options, code, dict(zip(points, keys, strict=True)), say, count)
        left = sweep.left()
        if left:
            sources: dict[Kind, MadeOf] = {None: (model_key, source)}
            for kind, job in quantizing.items():
                widths = {"code": code, "bits": job.bits, "activations": job.activations}
                sources[kind] = key_of(of_model, about, widths, quantizer), job
            say("starting workers" if dask is None else "connecting to the cluster")
            try:
                with started_workers(dask, workers_here, folder.scratch) as workers:
                    say(f"exploring {len(points):,} points, {len(points) - len(left):,} done before")
                    sweep.run(workers, left, sources)
            finally:
                sweep.write()
        results, front = sweep.write()
        return Exploration(Path(output), tuple(results), len(left), front)


def _check(axes: Axes, until: str, calibration: str | os.PathLike[str] | None) -> None:
    """Raise :class:`UsageError` with all that is wrong with the axes by themselves."""
    gathered = Gathered()
    boards = []
    for name in axes.boards:
        with gathered.check():
            boards.append(board_named(name))
    with gathered.check():
        for board in [None, *boards]:
            check_until(until, board, STEPS)
    with gathered.check():
        if not 0 <= axes.seeds <= MOST_SEEDS:
            message = f"must be from 1 to {MOST_SEEDS}, not {axes.seeds}"
            raise _wrong("--place-route-seeds", message, "for example --place-route-seeds 8")
        if axes.seeds:
            require_seeds(until, boards)
    with gathered.check():
        bits = [number for number in axes.bits if number is not None]
        if bits and calibration is None:
            raise _wrong("--bits", "must be given with --calibration, the frames to quantize with", "give both")
        if calibration is not None and not bits:
            raise _wrong("--calibration", "must be given with --bits, the widths of weights", "give both")
        if not bits and any(axes.activations):
            raise _wrong("--activations", "must be given with --bits, the widths of weights", "give both")
        if calibration is not None:
            from hwflow.host.inputs import require_file

            require_file(calibration)
    gathered.require_none()


def _wrong(option: str, message: str, remedy: str) -> UsageError:
    return UsageError.of("explore-option", f"option {option}", message, remedy)


def _source(path: Path, constants: InputConstants, trusted: Folders) -> Source:
    """Return the model with all its data inside, and the frames beside it: workers may be on other machines."""
    proto = read_model(path)
    bind_inputs(proto, constants)
    external = load_external_data(proto, path, trusted)
    try:
        data = proto.SerializeToString(deterministic=True) if external or constants else path.read_bytes()
    except ValueError:  # protobuf: more than it can write
        raise UsageError.of(
            "model-size", f"model {show_path(path)}", "must have less than 2 GiB with its external data, not more",
            "see 'hwflow check': no board has room for it",
        ) from None
    files = {"model.onnx": data}
    frames = path.parent / "inputs.npz"
    if frames.is_file():
        files[frames.name] = frames.read_bytes()
    return Source(files)


@dataclass
class _Sweep:
    """The points of a sweep, by key, and what is known of them."""

    folder: SweepFolder
    until: str
    options: Options
    code: str
    points: Mapping[Point, str]
    say: Callable[[str], None]
    count: Counted
    results: dict[Point, Mapping[str, Any]] = field(default_factory=dict)

    def left(self) -> list[Point]:
        """Return the points that are not done, and take up the others' results."""
        for point, key in self.points.items():
            if (known := self.folder.result(key)) is not None:
                self.results[point] = known
        return [point for point in self.points if point not in self.results]

    def run(self, workers: Workers, left: Iterable[Point], sources: Mapping[Kind, MadeOf]) -> None:
        """Let the workers do the points that are ``left``, and keep each result as it comes. ``sources``: by
        quantization the key of the model and how it is made."""
        given: dict[Kind, tuple[str, Any]] = {}
        waiting: dict[Any, Point | str] = {}
        whole: list[Any] = []

        def source_of(kind: Kind) -> tuple[str, Any]:
            key, made_of = sources[kind]
            if isinstance(made_of, Source):
                known: Source | None = made_of
            else:
                known = self.folder.model(key)
            if known is not None:
                return key, workers.submit(passed_on, known, key=f"model-{key}")
            if not whole:
                whole.append(source_of(None)[1])
            future = workers.submit(quantized, made_of, whole[0], key=f"quantized-{key}")
            waiting[future] = key
            return key, future

        for point in left:
            kind: Kind = None if point.bits is None else (point.bits, point.activations)
            if kind not in given:
                given[kind] = source_of(kind)
            name, future = given[kind]
            job = Job(point, self.until, name, self.options, self.code)
            waiting[workers.submit(run_point, job, future, key=f"point-{self.points[point]}")] = point
        self.count(len(self.results), len(self.points))
        for future in workers.ended([*waiting]):
            what = waiting.pop(future)
            outcome = _result(future)
            if isinstance(what, str):
                if isinstance(outcome, Source):
                    self.folder.keep_model(what, outcome)
                continue
            self._keep(what, outcome)
            self.count(len(self.results), len(self.points))
            future.release()

    def _keep(self, point: Point, outcome: Outcome | Finding) -> None:
        if isinstance(outcome, Finding):
            outcome = Outcome(ended(point, FAILED, (outcome,)))
        table = outcome.table
        if outcome.folder is not None:
            name = f"{point.board}-{self._design_key(point)[:12]}"
            if not self._is_worse(point, table):
                self.folder.keep_design(name, outcome.folder)
            table = {**table, "design": f"designs/{name}"}
        self.folder.keep(self.points[point], table)
        self.results[point] = table

    def _design_key(self, point: Point) -> str:
        """Return the key of the first seed's point: all seeds of a design have its folder."""
        return next(key for other, key in self.points.items() if other.design == point.design)

    def _is_worse(self, point: Point, table: Mapping[str, Any]) -> bool:
        """Tell whether another seed of the same design has a better clock."""
        reached = table["figures"].get("fmax_mhz") or 0.0
        others = (result for other, result in self.results.items() if other.design == point.design and other != point)
        return any((result["figures"].get("fmax_mhz") or 0.0) > reached for result in others)

    def write(self) -> tuple[list[Mapping[str, Any]], tuple[int, ...]]:
        """Write the tables and the page of what is known; return the results in order, and those on the front."""
        results = [self.results[point] for point in self.points if point in self.results]
        front = fronts(results)
        write_tables(self.folder.path, results, front, len(self.points))
        return results, front


def _result(future: Any) -> Any:
    """Return the result of a job that has ended, or a finding where there is none. A result that was lost with its
    worker since then is waited for: another worker makes it again.

    Raises :class:`ToolError` if the cluster is lost.
    """
    try:
        return future.result()
    except Exception as error:
        if future.status != "error":
            raise ToolError.of(
                "dask-scheduler", "the cluster", "must be reachable until the end, not be lost",
                "start the same command again: it goes on where this one ended",
            ) from None
        if type(error).__name__ == "KilledWorker":
            return Finding(
                "worker-lost", "the worker",
                "must run until the point is done, not be killed every time (out of memory?)",
                "give it a machine with more memory, or fewer --workers",
            )
        return Finding(
            "worker-defect", "the worker", f"must end with a result, not with {type(error).__name__}: {error}",
            "report this as a defect of hwflow",
        )
