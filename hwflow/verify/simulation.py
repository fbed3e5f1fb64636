"""``simulate``: golden model and RTL on the same frames, compared bit for bit; measured timing against predicted."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hwflow.api.compiler import Design
from hwflow.api.compiler import compile as compile_model
from hwflow.api.output_folder import room_in
from hwflow.api.patching.other_weights import with_weights
from hwflow.api.patching.patched_output import held_in
from hwflow.api.scheduled import Progress
from hwflow.cores.engine.layer_engine import Made
from hwflow.display import show, show_path
from hwflow.errors import Finding, ToolError, UsageError
from hwflow.exports.wave_views import write_views
from hwflow.frontend.input_types import Declarations
from hwflow.frontend.states.ties import STATELESS, States
from hwflow.host import results
from hwflow.host.boundary_models import Arrays, model_outputs, port_inputs
from hwflow.host.inputs import Inputs, choose_inputs, require_file
from hwflow.host.model_maps import own_types
from hwflow.loaded_model import Model
from hwflow.onnxspec.reading.bound_inputs import InputConstants
from hwflow.onnxspec.reading.external_loading import Folders
from hwflow.passes.pipeline import UNROLLED
from hwflow.report.folder_page import SIMULATION, refreshed
from hwflow.sim.icarus_run import run_icarus
from hwflow.sim.manifest import Design as EmittedDesign
from hwflow.sim.manifest import load_design
from hwflow.sim.result import RunResult
from hwflow.sim.run_options import wave_format
from hwflow.sim.sim_errors import ManifestError, SimulatorFailed, VectorError
from hwflow.sim.taps import Tap, load_taps
from hwflow.sim.vectors import Vectors, from_stream
from hwflow.sim.verilator_run import Load, run_verilator
from hwflow.toolchain.icarus import ICARUS, VVP
from hwflow.toolchain.verilator import VERILATOR
from hwflow.verify.compiled_folder import compiled_model, damaged, require_own
from hwflow.verify.golden_vectors import golden_vectors
from hwflow.verify.simulated_layers import Layers, judge

SIMULATORS = ("verilator", "icarus")
ICARUS_FRAMES = 4  # what an event-driven simulator is asked to do when nobody says how much
_OWN_FRAMES = 4  # of the design's own weights, in front of a load
DEFAULT_BOARD = "ulx3s_85f"  # a model that was not compiled yet is compiled for it


@dataclass(frozen=True)
class Loaded:
    """Weights that are loaded in a simulation: behind so many ``frames`` of the design's own, so many ``bytes``."""

    frames: int
    bytes: int

    def table(self, result: RunResult) -> dict[str, Any]:
        """Return what JSON has of it; ``cycles``: from the first byte to the end of the answer."""
        cycles = result.loads[0][1] - result.loads[0][0] + 1 if result.loads else None
        return {"frames": self.frames, "bytes": self.bytes, "cycles": cycles}


@dataclass(frozen=True)
class Simulation:
    """The verdict, and the hardware's results as the model's own outputs.

    ``outputs``: the model's outputs by ONNX name, frames first, computed by the host's nodes from the hardware's
    integers; lists of maps where ONNX's type is a sequence of maps; None where the hardware is wrong. ``accuracy``:
    share of frames whose class (see :func:`hwflow.host.results.classes`) is the label; None without labels, or where
    no output classifies. ``layers``: the output of every core, if asked for. ``exact``: the predicted latency is not
    only the most that it may be. ``loaded``: what was loaded behind the first frames.
    """

    model: Model
    result: RunResult
    inputs: Inputs
    predicted_interval: int | None
    predicted_latency: int
    findings: tuple[Finding, ...]
    outputs: Mapping[str, Any] | None
    accuracy: float | None
    layers: Layers | None = None
    exact: bool = True
    loaded: Loaded | None = None

    @property
    def ok(self) -> bool:
        return not self.findings

    def table(self) -> dict[str, Any]:
        """Return what ``sim --format json`` prints: figures of the simulation, and the ``expected`` ones (no cycles
        with stalls)."""
        r = self.result
        return {
            "frames": r.frames, "mismatches": r.mismatches, "cycles": r.cycles,
            "initiation_interval": r.initiation_interval, "latency": r.latency, "simulator": r.simulator,
            "expected": {
                "mismatches": 0, "initiation_interval": None if r.stall else self.predicted_interval,
                "latency": None if r.stall else self.predicted_latency,
            },
            "verdict": "equal" if self.ok else "different",
            "accuracy": self.accuracy,
            "seed": r.seed,
            "stall": r.stall,
            "inputs": self.inputs.origin,
            "findings": [finding.table() for finding in self.findings],
            **({} if self.layers is None else self.layers.table()),
            **({} if self.loaded is None else {"load": self.loaded.table(r)}),
        }

    def output_lines(self) -> Iterator[str]:
        """Yield the model's outputs of the first frames as text."""
        if self.outputs is not None:
            yield from results.lines(self.model, self.outputs, self.inputs.labels)


def simulate(
    target: str | os.PathLike[str],
    *,
    inputs: str | os.PathLike[str] | None = None,
    frames: int | None = None,
    simulator: str = "verilator",
    stall: float = 0.0,
    seed: int = 0,
    wave: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    dimensions: Mapping[str, int] | None = None,
    trusted: Folders = (),
    input_types: Declarations | None = None,
    constants: InputConstants | None = None,
    states: States = STATELESS,
    progress: Progress | None = None,
    on_frames: Callable[[int, int], None] | None = None,
    layers: bool = False,
    threads: int = 1,
    weights: str | os.PathLike[str] | None = None,
) -> Simulation:
    """Simulate an output folder of ``synth``, or a model (which is compiled to a temporary folder first).

    ``stall``: probability per cycle that the source pauses and that the sink is not ready; timing is checked without
    stalls only. ``output``: an .npz for the model's outputs, written if the hardware's are right. ``dimensions``,
    ``input_types``, ``constants`` and ``states`` (of a model; an output folder has its own) and ``trusted``: as for
    :func:`hwflow.load`.
    ``on_frames``: called with the number of frames that Verilator has simulated so far, and the total. ``layers``:
    compare the output of every core, and name the first that differs from the golden model (Verilator only).
    ``threads``: simulate so many equal shares of the frames side by side, each from a reset of its own
    (:mod:`hwflow.sim.side_by_side`; Verilator only, without ``wave`` and ``layers``); fewer where a share would end
    before the interval is steady, and one after the other where frames leave state.

    Raises :class:`UsageError`, :class:`ModelRefused`, :class:`ToolError`; a wrong design raises nothing.
    """
    say = progress or (lambda line: None)
    report = on_frames or (lambda done, frames: None)
    path = Path(target)
    if simulator not in SIMULATORS:
        raise UsageError.of(
            "known-simulator", "option --simulator", f"must be one of {', '.join(SIMULATORS)}, not {show(simulator)}",
            "choose one",
        )
    if not 0 <= stall < 1:
        raise UsageError.of(
            "probability", "option --stall", f"must be at least 0 and less than 1, not {stall:g}",
            "choose one such as 0.3",
        )
    if seed < 0:
        raise UsageError.of("positive-seed", "option --seed", f"must be at least 0, not {seed}", "give another number")
    if layers and simulator != "verilator":
        message = f"must be with '--simulator verilator', not {simulator}"
        raise UsageError.of("layers-simulator", "option --layers", message, "leave out --simulator")
    if threads < 1:
        message = f"must be at least 1, not {threads}"
        raise UsageError.of("positive-threads", "option --threads", message, "for example --threads 2")
    if threads > 1 and (simulator != "verilator" or layers or wave is not None):
        message = "must be with '--simulator verilator' and without --layers and --wave"
        raise UsageError.of("threads-simulator", "option --threads", message, "leave it out")
    if weights is not None and (simulator != "verilator" or layers or threads > 1 or not path.is_dir()):
        message = "must be given for an output folder, with '--simulator verilator' and without --layers and --threads"
        raise UsageError.of("weights-simulator", "option --weights", message, "leave the others out")
    require_file(inputs)
    if wave is not None:
        _check_wave(Path(wave))
    if output is not None:
        results.check_output_file(Path(output))
    if path.is_dir():
        require_own(path, dimensions, input_types, constants, states)
        model = compiled_model(path)
        if weights is not None:
            with with_weights(path, weights, say) as other:
                model = compiled_model(other)
                chosen = choose_inputs(model, other / "model.onnx", inputs, frames, np.random.default_rng(seed))
                with room_in(path, path):
                    simulation = _run(
                        model, path, chosen, frames, simulator, stall, seed, wave, say, report, layers, threads, other
                    )
            return _written(simulation, output)
        chosen = choose_inputs(model, path / "model.onnx", inputs, frames, np.random.default_rng(seed))
        with room_in(path, path):
            simulation = _run(model, path, chosen, frames, simulator, stall, seed, wave, say, report, layers, threads)
        refreshed(path, SIMULATION, simulation.table())
        return _written(simulation, output)
    design: Design = compile_model(
        path, DEFAULT_BOARD, dimensions=dimensions, trusted=trusted, input_types=input_types, constants=constants,
        states=states,
        progress=progress,
    )
    chosen = choose_inputs(design.model, path, inputs, frames, np.random.default_rng(seed))
    with tempfile.TemporaryDirectory(prefix="hwflow-") as folder:
        out = Path(folder) / "out"
        design.write(out, "verilog", progress)
        simulation = _run(
            design.model, out, chosen, frames, simulator, stall, seed, wave, say, report, layers, threads
        )
    return _written(simulation, output)


def _written(simulation: Simulation, output: str | os.PathLike[str] | None) -> Simulation:
    if output is not None and simulation.outputs is not None:
        results.write_results(Path(output), simulation.outputs)
    return simulation


def _check_wave(wave: Path) -> None:
    try:
        wave_format(wave)
    except ValueError as error:
        raise UsageError.of("wave-file", "option --wave", str(error), "choose another name") from None
    if not wave.absolute().parent.is_dir():
        message = f"folder {show_path(wave.parent)} must exist"
        raise UsageError.of("wave-file", "option --wave", message, "make it first")
    there = wave.exists()
    try:
        wave.open("ab").close()
    except OSError as error:
        raise UsageError.of(
            "wave-file", "option --wave", f"must be a file that can be written, but: {error.strerror}",
            "choose another name",
        ) from None
    if not there:
        wave.unlink()


def _loops(out: Path) -> str:
    """Return the form of the loops in the design of a folder."""
    return str(json.loads((out / "manifest.json").read_text()).get("loops", UNROLLED))


def _fetched(out: Path) -> Mapping[str, int]:
    """Return for how many vectors each node fetches its weights, of those that have them in memory outside."""
    groups: Mapping[str, int] = json.loads((out / "manifest.json").read_text()).get("memory", {}).get("groups", {})
    return groups


def _rows(out: Path) -> list[str]:
    """Return the line buffers whose rows wait in memory outside."""
    rows: list[str] = json.loads((out / "manifest.json").read_text()).get("memory", {}).get("rows", [])
    return rows


def _engine(out: Path) -> Made | None:
    """Return how the design got an engine for layers in turn; None if it has none."""
    engines = json.loads((out / "manifest.json").read_text()).get("memory", {}).get("engines", ())
    return Made.of_table(engines[0]) if engines else None


def _waiting(out: Path) -> list[str]:
    """Return the values that wait in memory outside."""
    queues = json.loads((out / "manifest.json").read_text()).get("memory", {}).get("queues", ())
    return [queue["value"] for queue in queues]


def _run(
    model: Model, out: Path, chosen: Inputs, frames: int | None, simulator: str, stall: float, seed: int,
    wave: str | os.PathLike[str] | None, say: Progress, report: Callable[[int, int], None], layers: bool,
    threads: int, other: Path | None = None,
) -> Simulation:
    """Run the simulation. ``other``: what the design is loaded with, and whose ``model`` is."""
    arrays = chosen.arrays
    if simulator == "icarus" and frames is None:
        arrays = {name: array[:ICARUS_FRAMES] for name, array in arrays.items()}
    say("golden model")
    inside: Layers | None = None
    side_by_side = 1
    loaded: Loaded | None = None
    try:
        integers = port_inputs(model, arrays)
        vectors = golden_vectors(model, out, integers)
        say(f"simulating {vectors.frames} frames with {simulator}")
        interval, latency, exact, steady = _predicted(out, vectors.frames)
        waveform = Path(wave) if wave is not None else None
        if layers:
            design, taps = load_taps(load_design(out))
            with tempfile.TemporaryDirectory(prefix="hwflow-layers-") as records:
                result = _verilator(design, vectors, stall, seed, waveform, report, taps, Path(records))
                say(f"comparing {len(taps)} layers with the golden model")
                inside = judge(
                    model, taps, Path(records), integers, vectors.frames, loops=_loops(out), fetched=_fetched(out),
                    waiting=_waiting(out), rows=_rows(out), engine=_engine(out), held=held_in(out),
                )
        elif other is not None:
            emitted, first = load_design(out), compiled_model(out)
            some = {name: array[:_OWN_FRAMES] for name, array in arrays.items()}
            before = golden_vectors(first, out, port_inputs(first, some))
            assert emitted.load is not None, "asked for before"
            packet = emitted.load.packet(other)
            loaded = Loaded(before.frames, len(packet))
            result = _verilator(
                emitted, before.then(vectors), stall, seed, waveform, report,
                loads=[Load(before.frames, packet, emitted.load.answer())],
            )
        elif simulator == "verilator":
            side_by_side = 1 if model.resolved.ties else max(1, min(threads, vectors.frames // steady))
            result = _verilator(load_design(out), vectors, stall, seed, waveform, report, threads=side_by_side)
        else:
            result = _icarus(out, vectors, stall, seed, waveform)
    except (ManifestError, VectorError) as error:
        raise damaged(out, error) from None
    except SimulatorFailed as error:
        raise ToolError.of(
            "simulator-run", error.step, f"must succeed, not fail (log: {error.log})", "read the log",
            output=tuple(error.tail.splitlines()),
        ) from None
    if waveform is not None:
        emitted = load_design(out)
        write_views(waveform, out, emitted, design.top if layers else emitted.top, simulator)
    findings = list(_findings(result, interval, latency, stall, exact))
    if not exact and stall == 0 and side_by_side == 1 and not findings:
        findings += _later_than(result, _latest(out, vectors.frames))
    wrong = None if inside is None else inside.first
    if wrong is not None:
        findings.insert(0, wrong.finding())
    outputs = _model_outputs(model, out, vectors, arrays) if result.ok else None
    found = None if outputs is None else results.classes(model, outputs)
    accuracy = None if found is None else results.accuracy(found[1], chosen.labels)
    own = None if outputs is None else own_types(model, outputs)
    return Simulation(model, result, chosen, interval, latency, tuple(findings), own, accuracy, inside, exact, loaded)


def _verilator(
    design: EmittedDesign, vectors: Vectors, stall: float, seed: int, wave: Path | None,
    report: Callable[[int, int], None], taps: tuple[Tap, ...] = (), records: Path | None = None,
    threads: int = 1, loads: Sequence[Load] = (),
) -> RunResult:
    verilator = VERILATOR.find()
    return run_verilator(
        design, vectors, command=verilator.command, environment=verilator.environment, stall=stall, seed=seed,
        wave=wave, on_frames=lambda done: report(done, vectors.frames), taps=taps, records=records,
        threads=threads, loads=loads,
    )


def _icarus(out: Path, vectors: Vectors, stall: float, seed: int, wave: Path | None) -> RunResult:
    icarus = ICARUS.find()
    VVP.find()
    return run_icarus(
        out, vectors, command=icarus.command, environment=icarus.environment, stall=stall, seed=seed, wave=wave
    )


def _predicted(out: Path, frames: int) -> tuple[int | None, int, bool, int]:
    """Return the predicted initiation interval over ``frames`` frames, the latency, whether these are exact, and the
    number of frames from which on the interval is steady. The interval of few frames, while queues fill, may differ
    from the steady one; the manifest has the cycle of the last beat of each of the first frames. Not exact: an upper
    bound on the latency, and no interval of so few frames."""
    path = out / "manifest.json"
    timing = json.loads(path.read_text()).get("timing")
    try:
        last = [int(cycle) for cycle in timing["last_output"]]
        interval, latency = int(timing["initiation_interval"]), int(timing["latency"])
        cyclic = int(timing.get("cyclic", 1))
    except (KeyError, TypeError, ValueError):
        raise ManifestError(f"{path}: 'timing' must hold what was predicted, not {timing!r}") from None
    if not timing.get("exact", True):
        return None, latency, False, max(2, len(last))
    if frames < 2:
        return None, latency, True, max(2, len(last))
    if frames > len(last):  # what comes then repeats
        if cyclic == 1:
            return interval, latency, True, max(2, len(last))
        frames -= -(-(frames - len(last)) // cyclic) * cyclic
    return last[frames - 1] - last[frames - 2], latency, True, max(2, len(last))


def _latest(out: Path, frames: int) -> int:
    """Return the bound on the cycle of the last beat of the last of ``frames``, counted from the first input beat."""
    timing = json.loads((out / "manifest.json").read_text())["timing"]
    last = [int(cycle) for cycle in timing["last_output"]]
    return last[min(frames, len(last)) - 1] + max(0, frames - len(last)) * int(timing["initiation_interval"])


def _later_than(result: RunResult, latest: int) -> list[Finding]:
    """Return the finding that outputs came later than a proved bound, if they did in one of the runs side by side."""
    first = min(each.first[0] for name, each in result.streams.items() if name.startswith("s"))
    last = max(each.last[-1] for name, each in result.streams.items() if name.startswith("m"))
    if last - first <= latest:
        return []
    text = f"the last output must come at most {latest} cycles after the first input, not {last - first}"
    return [Finding("exact-timing", "simulation", text, "report this model as a defect of hwflow")]


def _findings(
    result: RunResult, interval: int | None, latency: int, stall: float, exact: bool = True
) -> list[Finding]:
    found = []
    if result.hang is not None:
        found.append(Finding("no-deadlock", "simulation", str(result.hang), "report this model as a defect of hwflow"))
    if result.first_violation is not None:
        text = f"{result.violations} violations of the stream protocol; the first: {result.first_violation}"
        found.append(Finding("stream-protocol", "simulation", text, "report this model as a defect of hwflow"))
    if result.error:
        found.append(
            Finding(
                "error-output",
                "simulation",
                f"'error' must stay 0, not rise at cycle {result.error_cycle}",
                "report this model as a defect of hwflow",
            )
        )
    if result.mismatches:
        elements = f"{result.mismatches} elements in {result.mismatching_frames} of {result.frames} frames differ"
        text = f"{elements}; the first: {result.first_mismatch}" if result.first_mismatch else elements
        found.append(
            Finding(
                "bit-exact",
                "simulation",
                text,
                "if the output folder was changed, run 'hwflow synth' again; else report it",
            )
        )
    if stall == 0 and not found and not exact:
        if result.latency is not None and result.latency > latency:
            text = f"measured latency must be at most the predicted {latency} cycles, not {result.latency}"
            found.append(Finding("exact-timing", "simulation", text, "report this model as a defect of hwflow"))
    elif stall == 0 and not found:
        for name, measured, predicted in (
            ("initiation interval", result.initiation_interval, interval), ("latency", result.latency, latency)
        ):
            if measured != predicted:
                text = f"measured {name} must be the predicted {predicted} cycles, not {measured}"
                found.append(Finding("exact-timing", "simulation", text, "report this model as a defect of hwflow"))
    return found


def _model_outputs(model: Model, out: Path, vectors: Vectors, arrays: Arrays) -> results.Results:
    """Return the model's outputs. Every element from the hardware equals the expected one, so they are computed from
    those."""
    streams = {s.port: s for s in load_design(out).outputs}
    integers = {streams[port].name: from_stream(streams[port], beats) for port, beats in vectors.expected.items()}
    return results.numpy_types(model, model_outputs(model, integers, arrays))
