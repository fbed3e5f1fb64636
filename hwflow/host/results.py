"""The model's own outputs: shown, judged against labels, written. All arrays are of :func:`numpy_types`."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hwflow.display import show, show_path
from hwflow.errors import UsageError
from hwflow.host.runtime.tensors.map_rows import beside as maps_beside
from hwflow.host.runtime.tensors.map_rows import map_text, plain_text, write_maps
from hwflow.onnxspec import OnnxNode
from hwflow.onnxspec.graphs.operator_facts import OperatorFacts, facts_of
from hwflow.onnxspec.reading.numpy_tensors import plain

if TYPE_CHECKING:
    from hwflow.loaded_model import Model

Array = npt.NDArray[Any]
Results = Mapping[str, Array]

SHOWN_FRAMES = 3
SHOWN_VALUES = 10



def classes(model: Model, results: Results) -> tuple[str, Array] | None:
    """Return the first output that classifies, and the class of each frame, int64[frames]; None if no output does.

    Such an output is a vector per frame (but for axes of length 1), whose class is the first index of its greatest
    value; or an integer made by ArgMax, which is the class.
    """
    for name in model.resolved.outputs:
        if name not in results:
            continue
        array = results[name]
        if name in model.resolved.fixed or array.ndim == 0 or array.dtype.kind in "OSU":
            continue
        frame = array.shape[1:]
        if sum(size > 1 for size in frame) == 1:
            return name, array.reshape(len(array), -1).argmax(axis=1)
        if array.size == len(array) and _is_class(model, name):
            return name, array.reshape(-1).astype(np.int64)
    return None


def accuracy(found: Array, labels: Array | None) -> float | None:
    """Return the share of frames whose class is the label; None without labels. Surplus labels are ignored."""
    return None if labels is None else float(np.mean(found == labels[: len(found)]))


def numpy_types(model: Model, results: Results) -> Results:
    """Convert the outputs to numpy's own types: bfloat16 and smaller floats to float32, integers below 8 bits to int8
    or uint8, all without loss."""
    return {name: plain(array, model.resolved.values[name].dtype)[0] for name, array in results.items()}


def lines(model: Model, results: Mapping[str, Any], labels: Array | None = None) -> Iterator[str]:
    """Yield the outputs of the first frames as text; lists of maps among them."""
    maps = {name: value for name, value in results.items() if isinstance(value, list)}
    found = classes(model, {name: value for name, value in results.items() if name not in maps})
    for name in model.resolved.outputs:
        array = results[name]
        if name in maps:
            yield f"output {show(name)} (a map of each frame)"
            yield from (f"  frame {frame}: {map_text(each)}" for frame, each in enumerate(array[:SHOWN_FRAMES]))
            continue
        info = model.resolved.values[name]
        shape = ", ".join(map(str, array.shape[1:]))
        yield f"output {show(name)} ({info.dtype} [{shape}])"
        for frame, values in enumerate(map(np.asarray, array[:SHOWN_FRAMES])):
            yield f"  frame {frame}: {_values(values)}{_judged(found, name, frame, values.size, labels)}"


def check_output_file(path: Path) -> None:
    """Raise :class:`UsageError` unless ``path`` names a file that can be written: before a long run."""
    if path.suffix != ".npz":
        raise _unwritable(f"must end in .npz, not {show(path.name)}")
    if not path.absolute().parent.is_dir():
        raise _unwritable(f"folder {show_path(path.parent)} must exist")
    if path.is_dir():
        raise _unwritable("must be a file, not a folder")
    beside = _beside(path)
    try:
        beside.open("ab").close()
        beside.unlink()
    except OSError as error:
        raise _unwritable(f"must be a file that can be written, but: {error.strerror}") from None


def write_results(path: Path, results: Mapping[str, Any]) -> None:
    """Write an .npz of the outputs by ONNX name, frames first (beside, then renamed), and lists of maps to the JSON
    file of its name."""
    beside = _beside(path)
    maps = {name: value for name, value in results.items() if isinstance(value, list)}
    try:
        if maps:
            write_maps(maps_beside(path), maps)
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in results.items():
                if name in maps:
                    continue
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, plain_text(array), allow_pickle=False)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise _unwritable(f"must be a file that can be written, but: {error.strerror}") from None


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def _unwritable(message: str) -> UsageError:
    return UsageError.of("results-file", "option --output", message, "choose another name")


def _is_class(model: Model, name: str) -> bool:
    """Tell whether an output is the result of ArgMax, but for its type and shape."""
    producers = {output: node for node in model.resolved.nodes for output in node.outputs}
    while name in producers and _operator(producers[name]).keeps_elements:
        name = producers[name].inputs[0]
    return name in producers and _operator(producers[name]).class_number


def _operator(node: OnnxNode) -> OperatorFacts:
    return facts_of(node.domain, node.op_type)


def _values(values: Array) -> str:
    flat = values.reshape(-1)
    shown = " ".join(_number(v) for v in flat[:SHOWN_VALUES].tolist())
    return shown if flat.size <= SHOWN_VALUES else f"{shown} ... ({flat.size} values)"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else show(value) if isinstance(value, str) else str(value)


def _judged(
    found: tuple[str, Array] | None, name: str, frame: int, values: int, labels: Array | None
) -> str:
    if found is None or found[0] != name:
        return ""
    text = f"; greatest: {found[1][frame]}" if values > 1 else ""
    return text if labels is None else f"{text}; label: {labels[frame]}"
