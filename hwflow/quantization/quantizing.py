"""The verb ``quantize``: make a QDQ model of a float model and calibration data, by onnxruntime's static quantizer."""

from __future__ import annotations

import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.api.checking import examine
from hwflow.api.scheduled import Progress
from hwflow.cores.costs.products.product_sums import product_without_block
from hwflow.display import show, show_path
from hwflow.errors import Finding, ModelRefused, Severity, UsageError, merged
from hwflow.frontend.frames.batches import whole_inputs
from hwflow.frontend.host_work import HOST_WORK, HostWork
from hwflow.frontend.states.ties import STATELESS, States, with_ties
from hwflow.host.inputs import Inputs, choose_inputs, require_file
from hwflow.host.runtime.tensors.levels import numpy_type
from hwflow.loaded_model import Model, load
from hwflow.onnxspec import ModelProto, TrainingModel, write_model
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.reading.bound_inputs import InputConstants
from hwflow.onnxspec.reading.external_loading import Folders
from hwflow.onnxspec.resolving.written_out import written_out
from hwflow.onnxspec.shapes.dialects import ML_DOMAIN
from hwflow.quantization.calibration import of_any_round
from hwflow.quantization.clipping import METHODS, MINMAX
from hwflow.quantization.integer_kinds import MOST_BITS, IntegerKind
from hwflow.quantization.noise.layer_errors import LayerError
from hwflow.quantization.noise.precision import accuracy_of
from hwflow.quantization.preparation import of_fused_operators
from hwflow.quantization.sessions import State, is_run, require_onnxruntime, run_frames
from hwflow.quantization.static_quantizer import Recipe, static_qdq
from hwflow.report.quantization_note import KEY, note
from hwflow.types import IntType

AUTO = "auto"

WIDTHS = range(2, 17)

BITS = (*WIDTHS, AUTO)
"""Of weights; :data:`AUTO`: for each layer as few as keep the target."""

ACTIVATIONS = (AUTO, *(f"{sign}int{bits}" for sign in ("u", "") for bits in WIDTHS))
"""Types of activations; :data:`AUTO`: uint8, and uint16 where the signal to noise ratio needs it."""

TARGET_SNR = 30.0
"""Of :data:`AUTO`, in dB, if none is given."""

COSTLIEST = 5  # layers in the text

MOST_SNR = 100.0
"""In dB; 16 bits have less."""


@dataclass(frozen=True)
class OutputQuality:
    """One output of the quantized model against the float model's.

    ``snr_db``: the float values' power over that of the difference, in dB over all elements and frames; infinite where
    nothing differs, None for an output without floats. ``float_accuracy`` and ``accuracy``: the shares of frames (0 to
    1) whose class is the label, float and quantized; the class is the index of the greatest element, or the only
    element of an integer output. None without labels or classes.
    """

    name: str
    snr_db: float | None
    float_accuracy: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Quantization:
    """The model written to ``output``, its quality on ``evaluated``, and the findings about it.

    ``findings`` are those of :func:`hwflow.check` on the written model, none of them an error. ``bits`` (weights) and
    ``activations`` are as asked for. ``quantized``: the values with a quantizer; ``wide``: those with 16 bits.
    ``target_snr``: what ``activations`` "auto" was to keep, in dB, else None. ``layers``: where the error comes from,
    on the calibration data. ``host``: what is left to the host; None
    where it does not compile.
    """

    output: Path
    bits: int | str
    activations: str
    calibrated: Inputs
    evaluated: Inputs
    qualities: tuple[OutputQuality, ...]
    findings: tuple[Finding, ...]
    host: HostWork | None
    quantized: tuple[str, ...]
    wide: tuple[str, ...]
    target_snr: float | None
    layers: tuple[LayerError, ...] = ()
    target_accuracy: float | None = None

    @property
    def compiles(self) -> bool:
        """Whether ``synth`` makes hardware of it, where the board has room."""
        return not any(f.severity == Severity.UNSUPPORTED for f in self.findings)

    def table(self) -> dict[str, Any]:
        """Return what ``quantize --format json`` prints; an infinite ratio is null."""
        return {
            "output": str(self.output),
            "bits": self.bits,
            "activations": self.activations,
            "target_snr_db": self.target_snr,
            "target_accuracy": self.target_accuracy,
            "quantized": list(self.quantized),
            "quantized_to_16_bits": list(self.wide),
            "calibration_frames": self.calibrated.frames,
            "frames": self.evaluated.frames,
            "outputs": [
                {
                    "name": q.name,
                    "snr_db": q.snr_db if q.snr_db is not None and math.isfinite(q.snr_db) else None,
                    "float_accuracy": q.float_accuracy,
                    "accuracy": q.accuracy,
                }
                for q in self.qualities
            ],
            "layers": _rows(self.layers),
            "compiles": self.compiles,
            "host": None if self.host is None else self.host.table(),
            "findings": [f.table() for f in self.findings],
        }

    def lines(self) -> Iterator[str]:
        """Yield the same as text."""
        bits = "weights of chosen bits" if self.bits == AUTO else f"{self.bits}-bit weights"
        yield f"{self.output}: {bits}, per-channel scales, {self.activations} activations"
        yield f"calibrated on {_frames(self.calibrated)}, compared with the float model on {_frames(self.evaluated)}"
        for q in self.qualities:
            parts = []
            if q.snr_db is not None:
                equal = q.snr_db == math.inf
                parts.append("equal to the float model" if equal else f"SNR {q.snr_db:.1f} dB against the float model")
            if q.accuracy is not None and q.float_accuracy is not None:
                accuracy, reference = 100 * q.accuracy, 100 * q.float_accuracy
                parts.append(f"accuracy {accuracy:.2f} % (float model: {reference:.2f} %)")
            yield f"output {show(q.name)}: {', '.join(parts) or 'no figures: neither floats nor labels'}"
        if self.bits == AUTO or self.target_accuracy is not None:
            yield from self._widths()
        elif self.target_snr is not None:
            yield from self._precision(self.target_snr)
        yield from self._costliest()
        for finding in merged(f for f in self.findings if f.severity == Severity.UNSUPPORTED):
            first, *rest = finding.lines()
            yield from ("note: " + first.removeprefix("unsupported: "), *rest)
        if self.host is None:
            yield "hwflow cannot compile it, for the reasons above"
            return
        for finding in self.findings:
            if finding.rule == HOST_WORK:
                yield from finding.lines()
        yield self.host.line()
        if self.host.linear:
            yield f"hwflow can compile only the rest of it: the host must do {self.host.said_share()}"
        else:
            yield "hwflow can compile it: see 'hwflow synth'"

    def _costliest(self) -> Iterator[str]:
        """Yield the layers that most of the outputs' noise comes from."""
        measured = [layer for layer in self.layers if layer.noise_share]
        worst = sorted(measured, key=lambda layer: -(layer.noise_share or 0.0))[:COSTLIEST]
        if worst:
            yield "most of the noise comes from (share, SNR behind the quantizer; all layers: --format json)"
        for layer in worst:
            what = f"weights {show(layer.name)}" if layer.weights else show(layer.name)
            ratio = "exact" if layer.snr_db == math.inf else f"{layer.snr_db:.1f} dB"
            made = f" of {layer.node}" if layer.node else ""
            yield f"  {100 * (layer.noise_share or 0.0):.1f} %  {ratio}  {layer.kind} {what}{made}"

    def _widths(self) -> Iterator[str]:
        """Yield how many layers and activations have which bits, and whether these were enough."""
        for what, of_weights in (("weights", True), ("activations", False)):
            count = Counter(layer.kind for layer in self.layers if layer.weights == of_weights)
            ordered = sorted(count, key=IntegerKind.named)
            yield f"{what}: " + ", ".join(f"{count[kind]} of {kind}" for kind in ordered)
        chosen = [layer for layer in self.layers if (self.bits if layer.weights else self.activations) == AUTO]
        widest = all(IntegerKind.named(layer.kind).bits == MOST_BITS for layer in chosen)
        why = "not even 16 bits keep more" if widest else "calibrate on more frames"
        found = [q.snr_db for q in self.qualities if q.snr_db is not None]
        if self.target_snr is not None and found and min(found) < self.target_snr:
            yield f"note: SNR is below the {self.target_snr:g} dB asked for: {why}"
        for q in self.qualities:
            target = self.target_accuracy
            if target is None or q.accuracy is None or q.float_accuracy is None:
                continue
            if 100 * (q.accuracy - q.float_accuracy) < target - 1e-6:
                lost = f"more than {-target:g} points below the float model's"
                yield f"note: accuracy is {lost}: {why}"

    def _precision(self, target: float) -> Iterator[str]:
        """Yield which activations have 16 bits, a loop's values once, and whether that was enough."""
        rounds = Counter(map(of_any_round, self.wide))
        first = {of_any_round(name): name for name in reversed(self.wide)}  # of a loop's value, the first round's
        shown = (
            show(first[name]) + (f" ({count} rounds)" if count > 1 else "") for name, count in rounds.items()
        )
        listing = ": " + ", ".join(shown) if self.wide else ""
        yield f"16 bits for {len(self.wide)} of {len(self.quantized)} activations{listing}"
        found = [q.snr_db for q in self.qualities if q.snr_db is not None]
        if found and min(found) < target:
            why = "weights need more bits" if len(self.wide) == len(self.quantized) else "calibrate on more frames"
            yield f"note: SNR is below the {target:g} dB asked for: {why}"


def quantize(
    model: Model | TrainingModel | str | os.PathLike[str],
    calibration: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    bits: int | str = 8,
    activations: str = "uint8",
    calibration_method: str = MINMAX,
    bias_correction: bool = False,
    equalize: bool = False,
    target_snr: float | None = None,
    target_accuracy: float | None = None,
    inputs: str | os.PathLike[str] | None = None,
    frames: int | None = None,
    dimensions: Mapping[str, int] | None = None,
    constants: InputConstants | None = None,
    trusted: Folders = (),
    states: States = STATELESS,
    progress: Progress | None = None,
) -> Quantization:
    """Quantize a float model by onnxruntime's static quantizer (package extra ``quantize``) and write it to ``output``.

    Weights get ``bits`` (2 to 16) bits, signed, symmetric, with a scale for each output channel; biases int32;
    activations the type ``activations`` ("uint2" to "uint16", "int2" to "int16"), with one scale and zero point each,
    from the values on the calibration data by ``calibration_method`` ("minmax", "percentile", "entropy" or "mse":
    :mod:`hwflow.quantization.clipping`); ``bias_correction`` takes the mean error of rounded weights off biases
    (:mod:`hwflow.quantization.bias_correction`), ``equalize`` scales channels between layers so that they share a scale
    with less loss (:mod:`hwflow.quantization.equalization`). "auto": uint8, but uint16 for as few as keep
    ``target_snr`` (dB, by default :data:`TARGET_SNR`) against the float model on the calibration data. ``bits`` "auto":
    for each layer as few, of 2 to 16, and with ``activations`` "auto" for each activation, of 4 to 16, as keep
    ``target_snr`` or, with labels, ``target_accuracy`` (percentage points that the accuracy may be lower, such as
    -0.5): the least cost in the
    resource model (:mod:`hwflow.quantization.noise.mixed_precision`). ``calibration`` and ``inputs``
    are .npz files as :func:`compare` takes them; the quantized model is compared with the float model on ``inputs``, or
    on the calibration data without; an array ``label`` there gives accuracies. ``frames``: how many of the calibration
    data (default: all). ``model``, ``dimensions``, ``constants``, ``trusted``, ``states``: as :func:`load` takes them;
    the frames of a model with state are one sequence (of each channel), and the file's metadata says what its states
    are. The same arguments give the same file. A file at ``output`` is replaced as a whole, or stays as it was.

    Raises :class:`ModelRefused` (no valid model, not float, not what onnxruntime can quantize), :class:`UsageError`
    (files or arguments that do not fit), :class:`ToolError` (onnxruntime is not installed).
    """
    say = progress or (lambda line: None)
    recipe = _recipe(
        bits, activations, target_snr, target_accuracy, calibration_method, bias_correction, equalize
    )
    require_onnxruntime()
    require_file(calibration)
    require_file(inputs)
    say("reading the model")
    if not isinstance(model, Model):
        model = load(model, dimensions, trusted=trusted, constants=constants, states=states)
    target = Path(output)
    _refuse_target(target, model.path)
    _refuse_unfit(model)
    rng = np.random.default_rng(0)  # for no purpose: both files are given
    calibrated = choose_inputs(model, None, calibration, frames, rng)
    if target_accuracy is not None and calibrated.labels is None:
        raise UsageError.of(
            "quantize-option", "option --target-accuracy",
            "must be given with an array 'label' in the calibration data, not without", "add the classes of the frames",
        )
    evaluated = calibrated if inputs is None else choose_inputs(model, None, inputs, None, rng)
    whole = written_out(of_fused_operators(model.proto), model.dimensions, whole=model.whole)
    # onnxruntime lacks some operators, and ai.onnx.ml's on some types, but not what they are defined by.
    defined = any(node.domain == ML_DOMAIN for node in model.proto.graph.node) or not is_run(model.proto)
    source = whole if defined else model.proto
    say(f"running the float model on {_frames(calibrated)}")
    shown, reference = _run(model, source, calibrated)
    _refuse_infinite(reference, calibrated)
    say("quantizing")
    quantized = static_qdq(whole, shown, recipe, _states(model), calibrated.labels)
    proto = quantized.model
    if not any(facts_of(node.domain, node.op_type).quantizer for node in proto.graph.node):
        raise ModelRefused.of(
            "quantizable-operator", f"model {show(model.resolved.name)}",
            "at least one operator must be one that is quantized, not none", "there is nothing to quantize",
        )
    with tempfile.TemporaryDirectory(prefix="hwflow-quantize-") as folder:
        say("checking the quantized model")
        complete = model.maps.attached(with_ties(proto, model.resolved, whole=model.whole))
        write_model(complete, Path(folder) / target.name)
        findings, host = examine(Path(folder) / target.name)  # all given dimensions are bound
    errors = [f for f in findings if f.severity == Severity.ERROR]
    if errors:
        raise ModelRefused(errors)
    say(f"comparing with the float model on {_frames(evaluated)}")
    if evaluated is not calibrated:
        _, reference = _run(model, source, evaluated)
        _refuse_infinite(reference, evaluated)
    _, result = _run(model, proto, evaluated)
    qualities = tuple(_quality(name, array, result[name], evaluated.labels) for name, array in reference.items())
    _note(complete, quantized.layers)
    write_model(complete, target)
    return Quantization(
        target, bits, activations, calibrated, evaluated, qualities, tuple(findings), host, quantized.activations,
        quantized.wide, recipe.target_snr, quantized.layers, recipe.target_accuracy,
    )


def _rows(layers: Sequence[LayerError]) -> list[dict[str, Any]]:
    """Return layers as tables; an infinite ratio is null."""
    return [
        {
            "name": layer.name, "node": layer.node, "type": layer.kind, "weights": layer.weights,
            "snr_db": layer.snr_db if math.isfinite(layer.snr_db) else None, "noise_share": layer.noise_share,
        }
        for layer in layers
    ]  # fmt: skip


def _note(model: ModelProto, layers: Sequence[LayerError]) -> None:
    """Let the model's metadata say where the error comes from: the page of a design shows it."""
    for number in reversed(range(len(model.metadata_props))):
        if model.metadata_props[number].key == KEY:
            del model.metadata_props[number]
    if layers:
        model.metadata_props.add(key=KEY, value=note(_rows(layers)))


def _recipe(
    bits: int | str, activations: str, target_snr: float | None, target_accuracy: float | None, method: str,
    bias_correction: bool, equalize: bool,
) -> Recipe:
    _chosen("--bits", bits, BITS)
    _chosen("--activations", activations, ACTIVATIONS)
    _chosen("--calibration-method", method, METHODS)
    mixed, auto = bits == AUTO, activations == AUTO
    for option, target in (("--target-snr", target_snr), ("--target-accuracy", target_accuracy)):
        if target is not None and not (mixed or auto):
            message = f"must be given with --bits auto or --activations auto, not with {bits} and {activations}"
            raise UsageError.of("quantize-option", f"option {option}", message, "leave one of them out")
    if target_snr is not None and target_accuracy is not None:
        message = "must not be given with --target-accuracy"
        raise UsageError.of("quantize-option", "option --target-snr", message, "leave one of them out")
    if target_accuracy is not None and not -100 < target_accuracy <= 0:
        message = f"must be percentage points from -100 to 0, not {target_accuracy:g}"
        raise UsageError.of("quantize-option", "option --target-accuracy", message, "for example -0.5")
    if (mixed or auto) and target_accuracy is None:
        target_snr = TARGET_SNR if target_snr is None else target_snr
        if not 0 < target_snr < MOST_SNR:
            message = f"must be more than 0 and less than {MOST_SNR:g} dB, not {target_snr:g}"
            raise UsageError.of("quantize-option", "option --target-snr", message, "choose what 16 bits can keep")
    return Recipe(
        8 if isinstance(bits, str) else bits, "uint8" if auto else activations, target_snr, method, mixed, auto,
        target_accuracy, bias_correction, equalize, _look_up_tables,
    )


@cache
def _look_up_tables(x: IntegerKind, w: IntegerKind) -> float:
    """Return the look-up tables of a product, by the resource model of products without multiplier blocks."""
    resources = product_without_block("ecp5", IntType(x.bits, x.signed), IntType(w.bits, w.signed))
    return resources.lut + resources.ff / 2


def _chosen(option: str, value: Any, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        listing = ", ".join(map(str, choices))
        message = f"must be one of {listing}, not {value}"
        raise UsageError.of("quantize-option", f"option {option}", message, "choose one of these")
    return value


def _refuse_target(target: Path, source: Path | None) -> None:
    """Refuse, before anything takes long, an output that is a folder, in a missing folder, or the model."""
    if target.is_dir() or not target.absolute().parent.is_dir():
        what = "it is a folder" if target.is_dir() else f"there is no folder {show_path(target.absolute().parent)}"
        raise UsageError.of(
            "output-file", f"output {show_path(target)}", f"must be a file, but {what}", "choose another path"
        )
    if source is not None and target.exists() and target.samefile(source):
        raise UsageError.of(
            "output-file", f"output {show_path(target)}",
            "must be another file than the model, not the model itself",
            "choose another path",
        )


def _refuse_unfit(model: Model) -> None:
    """Refuse a model that is already quantized, or whose inputs hold several frames at once."""
    values, whole = model.resolved.values, whole_inputs(model.proto)
    findings = [
        Finding(
            "float-model", node.where, "the model must be a float model, without quantizers, not quantized already",
            "give the float model that it was made of, or compile it as it is",
        )
        for node in model.resolved.nodes
        if facts_of(node.domain, node.op_type).quantizer
    ]
    for name in model.resolved.inputs:
        dtype = values[name].dtype
        if dtype not in ("float32", "bool", "string") and "int" not in dtype:
            message = f"elements must be of type float32, bool or integers, not {dtype}"
            findings.append(Finding("input-type", f"input {show(name)}", message, "convert the model to float32"))
        if name in whole and not (model.whole and whole[name]):
            message = f"the first axis must be frames, of size 1 or a variable; the shape must not be {whole[name]}"
            findings.append(Finding("frames-first", f"input {show(name)}", message, "export the model for one frame"))
    if not model.resolved.inputs:
        message, remedy = "must have an input, not none", "there is nothing to quantize"
        findings.append(Finding("model-input", f"model {show(model.resolved.name)}", message, remedy))
    if findings:
        raise ModelRefused(findings)


def _refuse_infinite(values: Mapping[str, npt.NDArray[Any]], inputs: Inputs) -> None:
    """Refuse infinite outputs. ``values``: outputs of the float model, [frames, elements]."""
    findings = []
    for name, array in values.items():
        if array.dtype.kind != "f":
            continue
        wrong = np.flatnonzero(~np.isfinite(array).all(axis=1))
        if wrong.size:
            message = (
                f"the float model's results must be finite, not infinite or NaN as for {len(wrong)} of "
                f"{_frames(inputs)}, first frame {wrong[0]}"
            )
            findings.append(Finding("finite-results", f"output {show(name)}", message, "leave such frames out"))
    if findings:
        raise UsageError(findings)


def _run(
    model: Model, proto: ModelProto, inputs: Inputs
) -> tuple[list[dict[str, npt.NDArray[Any]]], dict[str, npt.NDArray[Any]]]:
    """Return the frames that ``proto``, which has the inputs and outputs of ``model``, is given, with the state that
    frames before them leave, and its outputs, [frames, elements]."""
    shown, ties, outputs = _by_frame(model, inputs), model.resolved.ties, model.resolved.outputs
    for tie in ties:
        first = tie.initial.astype(model.resolved.values[tie.target].dtype)
        for frame in shown[: tie.frames]:
            frame[tie.target] = first if model.whole else first[np.newaxis]
    found = run_frames(proto, shown, [*outputs, *(tie.source for tie in ties)], _states(model))
    for tie in ties:
        for frame, left in zip(shown[tie.frames :], found[tie.source], strict=False):
            frame[tie.target] = left.reshape(shown[0][tie.target].shape)
    return shown, {name: found[name] for name in outputs}


def _states(model: Model) -> list[State]:
    return [State(tie.source, tie.target, tie.frames) for tie in model.resolved.ties]


def _by_frame(model: Model, inputs: Inputs) -> list[dict[str, npt.NDArray[Any]]]:
    """Return one mapping per frame, with arrays of the model's types."""
    dtypes = {name: numpy_type(model.resolved.values[name].dtype) for name in inputs.arrays}
    return [
        {
            name: (array[i] if model.whole else array[i : i + 1]).astype(dtypes[name])
            for name, array in inputs.arrays.items()
        }
        for i in range(inputs.frames)
    ]


def _quality(
    name: str, before: npt.NDArray[Any], after: npt.NDArray[Any], labels: npt.NDArray[Any] | None
) -> OutputQuality:
    """Compare two outputs. ``before`` and ``after``: shape [frames, elements]."""
    ratio = None
    if before.dtype.kind == "f":
        reference = before.astype(np.float64)
        ratio = _decibels(float((reference**2).sum()), float(((reference - after) ** 2).sum()))
    accuracies: list[float | None] = [None, None]
    if labels is not None:
        accuracies = [accuracy_of(values, labels) for values in (before, after)]
    return OutputQuality(name, ratio, *accuracies)


def _decibels(signal: float, noise: float) -> float:
    if not noise:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf


def _frames(inputs: Inputs) -> str:
    return f"{inputs.frames} frame{'s' if inputs.frames != 1 else ''} of {inputs.origin}"
