"""What a worker of a sweep does: quantize a model, make one design. Jobs and results can be pickled; a refusal is a
result."""

from __future__ import annotations

import io
import resource
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hwflow.api.compiler import Design, compile_as
from hwflow.api.made_from import code_digest
from hwflow.api.output import build_further
from hwflow.api.request import requested
from hwflow.api.scheduled import ScheduledModel
from hwflow.errors import Finding, HwflowError, InternalError, ModelRefused, ToolError, UsageError
from hwflow.frontend.states.ties import STATELESS, States
from hwflow.loaded_model import Model, load
from hwflow.sweep.points import SCHEDULE, Point

DONE, REFUSED, FAILED = "done", "refused", "failed"
"""What becomes of a point: a design; the reasons why there is none; a fault that another run may not have."""

EQUAL_SNR = 200.0
"""In dB: stands for no difference at all, which JSON has no number for."""

_RESOURCES = ("lut", "ff", "dsp", "bram")


@dataclass(frozen=True)
class Source:
    """A model's ``files`` by name, the first one the model, whole in itself; none where ``findings`` say why there is
    none. ``figures``: its quality, if it was quantized."""

    files: Mapping[str, bytes]
    figures: Mapping[str, float | None] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    failed: bool = False


@dataclass(frozen=True)
class Options:
    """How a model is read: as :func:`hwflow.load` takes them."""

    dimensions: Mapping[str, int] = field(default_factory=dict)
    input_types: Mapping[str, str] = field(default_factory=dict)
    states: States = STATELESS


@dataclass(frozen=True)
class Quantizing:
    """A quantization: the float model is a :class:`Source`; ``calibration``: the contents of that file."""

    bits: int
    activations: str
    calibration: bytes
    options: Options
    code: str


@dataclass(frozen=True)
class Job:
    """A point, made up to a step of :data:`hwflow.sweep.points.STEPS`. ``source``: names the model that comes with it;
    ``code``: the digest of hwflow's files."""

    point: Point
    until: str
    source: str
    options: Options
    code: str


@dataclass(frozen=True)
class Outcome:
    """A point's result, as JSON holds it, and the design's folder as a tar file, if one was made."""

    table: dict[str, Any]
    folder: bytes | None = None


def passed_on(source: Source) -> Source:
    """Return the model: a job whose result every worker can make again."""
    return source


def quantized(job: Quantizing, source: Source) -> Source:
    """Quantize a float model."""
    from hwflow.quantization.quantizing import quantize

    try:
        _require_same(job.code)
        with TemporaryDirectory(prefix="hwflow-") as name:
            folder = Path(name)
            model = _written(source, folder)
            calibration, target = folder / "calibration.npz", folder / "quantized.onnx"
            calibration.write_bytes(job.calibration)
            made = quantize(
                model, calibration, target, bits=job.bits, activations=job.activations,
                dimensions=job.options.dimensions, states=job.options.states,
            )
            ratios = [min(q.snr_db, EQUAL_SNR) for q in made.qualities if q.snr_db is not None]
            shares = [q.accuracy for q in made.qualities if q.accuracy is not None]
            floats = [q.float_accuracy for q in made.qualities if q.float_accuracy is not None]
            figures = {
                "snr_db": min(ratios, default=None), "accuracy": min(shares, default=None),
                "float_accuracy": min(floats, default=None),
            }
            others = {file: data for file, data in source.files.items() if file != model.name}
            return Source({model.name: target.read_bytes(), **others}, figures)
    except HwflowError as error:
        return Source({}, findings=error.findings, failed=not isinstance(error, ModelRefused | UsageError))


def run_point(job: Job, source: Source) -> Outcome:
    """Make the design of a point."""
    begin, before = time.perf_counter(), _processor_seconds()
    folder = None
    try:
        _require_same(job.code)
        if not source.files:
            raise (ToolError if source.failed else ModelRefused)(source.findings)
        figures, findings, folder = _made(job, source)
        status = DONE
    except HwflowError as error:
        refused = isinstance(error, ModelRefused | UsageError)
        status, figures, findings = REFUSED if refused else FAILED, {}, error.findings
    except MemoryError as error:
        finding = Finding(
            "memory", "the worker", f"the design must fit into memory, but it does not: {error or 'out of memory'}",
            "run it on a machine with more memory",
        )
        status, figures, findings = FAILED, {}, (finding,)
    return Outcome({
        **ended(job.point, status, findings), "figures": {**source.figures, **figures},
        "seconds": round(time.perf_counter() - begin, 3), "processor_seconds": round(_processor_seconds() - before, 3),
    }, folder)  # fmt: skip


def ended(point: Point, status: str, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return a result without figures."""
    return {
        "point": point.table(), "status": status, "findings": [finding.table() for finding in findings], "figures": {},
        "seconds": None, "processor_seconds": None,
    }


@dataclass(frozen=True)
class _Loaded:
    """The model of the last job, or why there is none, and the folder of its files."""

    key: tuple[str, Options]
    model: Model | HwflowError
    folder: TemporaryDirectory[str]


_last: _Loaded | None = None  # a worker gets the points of a model one after the other


def _loaded(job: Job, source: Source) -> Model:
    global _last
    key = (job.source, job.options)
    if _last is None or _last.key != key:
        folder = TemporaryDirectory(prefix="hwflow-")
        try:
            model: Model | HwflowError = load(
                _written(source, Path(folder.name)), job.options.dimensions, input_types=job.options.input_types,
                states=job.options.states,
            )
        except HwflowError as error:
            model = error
        _last = _Loaded(key, model, folder)
    if isinstance(_last.model, HwflowError):
        raise _last.model
    return _last.model


@dataclass(frozen=True)
class _Built:
    """The design of the last job, in ``folder``."""

    key: tuple[Any, ...]
    design: Design
    table: dict[str, Any]
    folder: TemporaryDirectory[str]

    @property
    def out(self) -> Path:
        return Path(self.folder.name) / "out"


_design: _Built | None = None  # a worker gets the seeds of a design one after the other


def _made(job: Job, source: Source) -> tuple[dict[str, Any], Sequence[Finding], bytes | None]:
    """Return the figures of the point's design, the findings about it, and its folder if there is one."""
    if job.until == SCHEDULE:
        design = _compiled(job, source)
        return _scheduled(design), _remarks(design), None
    built = _built(job, source)
    return _reported(built.table), _remarks(built.design), _packed(built.out)


def _compiled(job: Job, source: Source) -> Design:
    point = job.point
    request = requested(point.board, fps=point.fps, clock_mhz=point.clock_mhz, budget=dict(point.budget) or None)
    return compile_as(_loaded(job, source), request)


def _remarks(design: Design) -> list[Finding]:
    return [*design.model.host_work.findings(design.model.resolved)]


def _built(job: Job, source: Source) -> _Built:
    """Build a design; of another seed only what is not synthesized yet."""
    global _design
    seed = job.point.seed
    key = (job.source, job.options, job.until, job.point.design)
    if seed is not None and _design is not None and _design.key == key:
        build_further(
            _design.design, _design.out, job.until, _design.table, _silent, _unwritten, seeds=(seed,), settle=False
        )
        return _design
    _design = None
    design, folder = _compiled(job, source), TemporaryDirectory(prefix="hwflow-")
    seeds = () if seed is None else (seed,)
    table = design.write(Path(folder.name) / "out", job.until, seeds=seeds, settle=seed is None)
    _design = _Built(key, design, table, folder)
    return _design


def _silent(line: str) -> None:
    """Say nothing of progress: many points are made at a time."""


def _unwritten(design: ScheduledModel, larger: Mapping[str, Any] | None) -> None:
    raise InternalError.of(
        "sweep", "a design of one seed", "must stay as it is, not be replaced", "report this as a defect of hwflow"
    )


def _scheduled(design: Design) -> dict[str, Any]:
    schedule, part = design.schedule, design.board.part
    resources = {name: getattr(schedule.resources, name) for name in _RESOURCES}
    available = {name: getattr(part, name) for name in _RESOURCES}
    return _figures(
        design.frames_per_second, schedule.initiation_interval, schedule.latency, design.clock_mhz, None,
        resources, available, synthesized=False,
    )


def _reported(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of report.json."""
    timing, clock, rows = table["timing"], table["clock"], table["resources"]
    synthesized = rows["lut"]["synthesized"] is not None
    kind = "synthesized" if synthesized else "predicted"
    resources = {name: rows[name][kind] for name in _RESOURCES}
    available = {name: rows[name]["available"] for name in _RESOURCES}
    return _figures(
        timing["frames_per_second"], timing["initiation_interval"], timing["latency"], clock["target_mhz"],
        clock["fmax_mhz"], resources, available, synthesized=synthesized,
    )


def _figures(
    fps: float, interval: int, latency: int, clock: float, fmax: float | None, resources: Mapping[str, int | None],
    available: Mapping[str, int], *, synthesized: bool,
) -> dict[str, Any]:
    shares = {
        f"{name}_share": None if used is None or not available[name] else round(used / available[name], 4)
        for name, used in resources.items()
    }
    return {
        "frames_per_second": fps, "initiation_interval": interval, "latency": latency,
        "latency_us": latency / clock, "clock_mhz": clock, "fmax_mhz": fmax,
        "timing_met": None if fmax is None else fmax >= clock, **resources, **shares, "synthesized": synthesized,
    }


def _written(source: Source, folder: Path) -> Path:
    """Write the files; return the model's."""
    for name, data in source.files.items():
        (folder / name).write_bytes(data)
    return folder / next(iter(source.files))


def _packed(folder: Path) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", compresslevel=1) as tar:
        tar.add(folder, arcname=".")
    return data.getvalue()


def _require_same(code: str) -> None:
    if code_digest() != code:
        raise ToolError.of(
            "worker-version", "the worker", "hwflow's files must be the same on all machines, but they differ",
            "install the same version on each",
        )


def _processor_seconds() -> float:
    """Return the processor time of this process and of the programs that it has run."""
    here, programs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return here.ru_utime + here.ru_stime + programs.ru_utime + programs.ru_stime


