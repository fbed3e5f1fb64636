"""onnxruntime at work: a float model becomes a QDQ model, and models are run frame by frame.

The only module that imports onnxruntime, which is an optional extra of the package; it does so when it is used.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import tempfile
import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import inliner, shape_inference, version_converter

from hwflow.display import show
from hwflow.errors import ModelRefused, ToolError
from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, all_facts, facts_of
from hwflow.onnxspec.graphs.operator_names import GEMM
from hwflow.quantization.quantizer_pairs import join_affine_functions
from hwflow.quantization.quantizer_weights import linear_quantizers, part_weights

Arrays = Mapping[str, npt.NDArray[Any]]

INSTALL = "pip install 'hwflow[quantize]'"

PER_CHANNEL_OPSET = 13  # the first QuantizeLinear and DequantizeLinear with an axis
NARROW_AND_WIDE_OPSET = 21  # the first with 4 and 16 bits
MOST_IR_VERSION = 13  # what onnxruntime 1.31 reads
LEAST_IR_VERSION = 8

_SILENT, _DEFAULT_LEVEL = 4, 2  # onnxruntime: fatal errors only; warnings and errors


@dataclass(frozen=True)
class Recipe:
    """How values are quantized: ``weight_bits`` 8 or 4 (signed, symmetric, one scale per channel), ``activations``
    "uint8", "int8", "uint16" or "int16" (any zero point, one scale per tensor)."""

    weight_bits: int = 8
    activations: str = "uint8"

    @property
    def opset(self) -> int:
        """The least version of the default operator set that can say it."""
        wide = self.activations.endswith("16")
        return NARROW_AND_WIDE_OPSET if self.weight_bits < 8 or wide else PER_CHANNEL_OPSET


def quantized_operators() -> list[str]:
    """Operators whose operands become integers. What is left behind the last of these operators stays real: hardware
    takes the exact sums (ArgMax), or the host dequantized ones (Softmax)."""
    return [
        name for (domain, name), operator in all_facts()
        if not domain and (operator.integer_operands or operator.weights is not None)
    ]


def _adds_constant(node: onnx.NodeProto, constants: Container[str]) -> bool:
    """Whether a node is a sum or a product with a constant."""
    operator = facts_of(STANDARD_DOMAIN, node.op_type)
    return operator.accumulates and operator.affine and any(name in constants for name in node.input)


def require_onnxruntime() -> None:
    """Raise :class:`ToolError` saying how to install onnxruntime if it is not there or of no use."""
    _onnxruntime("onnxruntime.quantization")


def static_qdq(model: onnx.ModelProto, frames: Sequence[Arrays], recipe: Recipe) -> onnx.ModelProto:
    """``model`` with QuantizeLinear and DequantizeLinear around what :func:`quantized_operators` lists.

    ``model`` is valid, float32 and complete (no external data); it is not changed. ``frames``: calibration data, each a
    mapping from input name to an array with one frame; the ranges of activations are the least and greatest values met.
    Raises :class:`ModelRefused` where onnx or onnxruntime cannot do it, :class:`ToolError` without onnxruntime.
    """
    runtime = _onnxruntime("onnxruntime")
    with tempfile.TemporaryDirectory(prefix="hwflow-quantize-") as folder:
        prepared = _optimized(runtime, _raised(_plain(model), recipe.opset), Path(folder))
        _name_nodes(prepared)
        _plain_biases(prepared)
        part_weights(prepared)
        with _refusing(model, "be what onnxruntime's static quantizer takes"):
            prepared = shape_inference.infer_shapes(prepared, data_prop=True)
            result = _quantized(prepared, frames, recipe, Path(folder))
    return _finished(result, model)


def run_frames(model: onnx.ModelProto, frames: Sequence[Arrays], outputs: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Each of ``outputs`` for ``frames``, evaluated one by one without optimizations: shape [frames, elements].

    Raises :class:`ModelRefused` where onnxruntime cannot run the model.
    """
    runtime = _onnxruntime("onnxruntime")
    with _refusing(model, "run in onnxruntime"):
        model = _plain(model)
        session = _session(runtime, model, runtime.GraphOptimizationLevel.ORT_DISABLE_ALL)
        rows = [session.run(list(outputs), dict(frame)) for frame in frames]
        return {name: np.stack([np.asarray(row[i]).reshape(-1) for row in rows]) for i, name in enumerate(outputs)}


def _onnxruntime(module: str) -> Any:
    """A module of onnxruntime, imported now."""
    try:
        with _quiet():
            return importlib.import_module(module)
    except ImportError as error:
        raise ToolError.of(
            "tool-present", "package 'onnxruntime'", f"must be installed with its quantizer, but: {error}", INSTALL
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Nothing on stdout, no Python warnings, no log records: what matters is said in findings."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


@contextlib.contextmanager
def _refusing(model: onnx.ModelProto, must: str, remedy: str = "see what the reason names") -> Iterator[None]:
    """Whatever onnx and onnxruntime raise becomes a finding about ``model``."""
    try:
        with _quiet():
            yield
    except (ModelRefused, MemoryError):
        raise
    except Exception as error:  # both raise many kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        message = f"the model must {must}, but it says: {reason}"
        raise ModelRefused.of("onnxruntime", f"model {show(model.graph.name)}", message, remedy) from error


def _session(runtime: Any, model: onnx.ModelProto, level: Any, optimized: Path | None = None) -> Any:
    options = runtime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = _SILENT
    options.intra_op_num_threads = 1  # the same sums in the same order on every machine
    if optimized is not None:
        options.optimized_model_filepath = str(optimized)
    return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that onnxruntime reads: its newest IR version at most; initializers are constants and no inputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = min(max(copy.ir_version, LEAST_IR_VERSION), MOST_IR_VERSION)
    del copy.training_info[:]
    initializers = {i.name for i in copy.graph.initializer} | {s.values.name for s in copy.graph.sparse_initializer}
    inputs = [i for i in copy.graph.input if i.name not in initializers]
    del copy.graph.input[:]
    copy.graph.input.extend(inputs)
    return copy


def _raised(model: onnx.ModelProto, least: int) -> onnx.ModelProto:
    """The model at version ``least`` of the default operator set, or its own where that is newer."""
    default = [o for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if all(o.version >= least for o in default):
        return model
    remedy = f"export the model for operator set {least} or newer"
    with _refusing(model, f"be what onnx can convert to operator set {least}", remedy):
        if model.functions:
            model = inliner.inline_local_functions(model)
            _drop_unused_opsets(model)  # the converter knows none but ONNX's own
        converted: onnx.ModelProto = version_converter.convert_version(model, least)
        converted.ir_version = max(converted.ir_version, onnx.helper.find_min_ir_version_for(converted.opset_import))
        return converted


def _optimized(runtime: Any, model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """Constants folded, BatchNormalization folded into Conv, MatMul and Add joined to Gemm: ONNX operators still."""
    with _refusing(model, "run in onnxruntime"):
        file = folder / "optimized.onnx"
        _session(runtime, model, runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC, file)
        optimized = onnx.load(file)
    optimized.ir_version = max(model.ir_version, optimized.ir_version)
    _drop_unused_opsets(optimized)
    return optimized


def _drop_unused_opsets(model: onnx.ModelProto) -> None:
    """onnxruntime imports every domain that it knows."""
    used = {""}
    graphs = [model.graph]
    while graphs:
        for node in graphs.pop().node:
            used.add("" if node.domain == "ai.onnx" else node.domain)
            graphs += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    kept = [o for o in model.opset_import if ("" if o.domain == "ai.onnx" else o.domain) in used]
    del model.opset_import[:]
    model.opset_import.extend(kept)


def _drop_leftovers(graph: onnx.GraphProto) -> None:
    """Initializers that nothing reads, and types of values that are gone."""
    graphs, read = [graph], {output.name for output in graph.output}
    while graphs:
        for node in graphs.pop().node:
            read.update(node.input)
            graphs += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    values = {name for node in graph.node for name in node.output} | {tensor.name for tensor in kept}
    infos = [info for info in graph.value_info if info.name in values]
    del graph.value_info[:]
    graph.value_info.extend(infos)


def _name_nodes(model: onnx.ModelProto) -> None:
    """A unique name for every node: the quantizer knows nodes by name."""
    taken = {node.name for node in model.graph.node}
    seen: set[str] = set()
    for node in model.graph.node:
        if not node.name or node.name in seen:
            stem, number = node.name or node.op_type, 1
            while f"{stem}_{number}" in taken:
                number += 1
            node.name = f"{stem}_{number}"
            taken.add(node.name)
        seen.add(node.name)


def _plain_biases(model: onnx.ModelProto) -> None:
    """Every constant addend of a Gemm as one value per column, to be added as it is.

    The quantizer takes an addend's first axis for the channels, and (onnxruntime 1.31) loses a beta other than 1.
    """
    graph = model.graph
    constants = {i.name: i for i in graph.initializer}
    for node in graph.node:
        if node.op_type != GEMM or len(node.input) < 3 or not constants.keys() >= {*node.input[1:3]}:
            continue
        weights, addend = (constants[name] for name in node.input[1:3])
        attributes = {a.name: a for a in node.attribute}
        columns = weights.dims[0 if "transB" in attributes and attributes["transB"].i else 1]
        beta = attributes["beta"].f if "beta" in attributes else 1.0
        if len(addend.dims) == 2 and addend.dims[0] != 1:  # one value per row: frames of several rows
            continue
        if [*addend.dims] == [columns] and beta == 1.0:
            continue
        values = onnx.numpy_helper.to_array(addend)
        flat = np.broadcast_to(values.reshape(-1) * values.dtype.type(beta), (columns,))
        name = f"{node.input[2]}_of_{node.name}"
        graph.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(flat), name))
        node.input[2] = name
        if "beta" in attributes:
            attributes["beta"].f = 1.0


class _Reader:
    """Calibration data as onnxruntime asks for it."""

    def __init__(self, frames: Sequence[Arrays]) -> None:
        self._left = iter(frames)

    def get_next(self) -> dict[str, npt.NDArray[Any]] | None:
        frame = next(self._left, None)
        return None if frame is None else dict(frame)


def _quantized(
    model: onnx.ModelProto, frames: Sequence[Arrays], recipe: Recipe, folder: Path
) -> onnx.ModelProto:
    quantization = _onnxruntime("onnxruntime.quantization")
    runtime = _onnxruntime("onnxruntime")
    kinds = quantization.QuantType

    constants = {i.name for i in model.graph.initializer}
    target = folder / "quantized.onnx"
    runtime.set_default_logger_severity(_SILENT)
    registry = _onnxruntime("onnxruntime.quantization.registry").QDQRegistry
    try:
        with linear_quantizers(registry):
            quantization.quantize_static(
                model, target, _Reader(frames),
                quant_format=quantization.QuantFormat.QDQ,
                op_types_to_quantize=quantized_operators(),
                per_channel=True,
                activation_type=kinds[f"Q{recipe.activations.replace('uint', 'UInt').replace('int', 'Int')}"],
                weight_type=kinds.QInt8 if recipe.weight_bits == 8 else kinds.QInt4,
                nodes_to_exclude=[node.name for node in model.graph.node if _adds_constant(node, constants)],
                calibrate_method=quantization.CalibrationMethod.MinMax,
                extra_options={
                    "WeightSymmetric": True,
                    "ActivationSymmetric": False,
                    "ForceQuantizeNoInputCheck": True,  # a pool behind a float function works on integers, too
                    "QDQKeepRemovableActivations": True,  # what is affine, or clips, is joined by what follows
                },
            )
    finally:
        runtime.set_default_logger_severity(_DEFAULT_LEVEL)
    result = onnx.load(target)
    join_affine_functions(result)
    return result


def _finished(model: onnx.ModelProto, source: onnx.ModelProto) -> onnx.ModelProto:
    """``model`` under the name and with the documentation of the model that it was made of."""
    _drop_unused_opsets(model)
    model.ir_version = min(
        max(model.ir_version, onnx.helper.find_min_ir_version_for(model.opset_import)), MOST_IR_VERSION
    )
    model.producer_name = "hwflow quantize"
    model.graph.name = source.graph.name
    for old, new, fields in (
        (source, model, ("producer_version", "domain", "model_version", "doc_string")),
        (source.graph, model.graph, ("doc_string",)),
    ):
        for field in fields:
            new.ClearField(field)
            if old.HasField(field) and field != "producer_version":
                setattr(new, field, getattr(old, field))
    _drop_leftovers(model.graph)
    del model.metadata_props[:]
    model.metadata_props.extend(source.metadata_props)
    return model
