"""What `hwflow check` costs beside onnx's own full check, as ratios.

``python benchmarks/check_models.py`` builds three models in a temporary folder (10,000 float nodes; 10,000 nodes of
quantized convolutions; 100 MB of weights in a file beside the model) and prints for each, the median of ``--runs``:

* command: the time of ``hwflow check MODEL`` over that of a Python program that calls
  ``onnx.checker.check_model(path, full_check=True)``, both from their start to their end;
* validation: the time of ``read_model`` and ``validate`` over that of ``check_model``, inside a running process.

``hwflow check`` also says whether hardware can be made of the model, which onnx's checker does not: of the quantized
network that is most of the time (every layer is lowered and its requantizers are proved), and no bound is put on it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import checker, helper, numpy_helper
from rich.console import Console
from rich.table import Table

from hwflow.onnxspec import read_model, validate

NODES = 10_000
OPSET, IR_VERSION = 17, 8
BOUND = 2.0


def _save(path: Path, nodes: list[onnx.NodeProto], shape: list[int], constants: dict[str, np.ndarray]) -> Path:
    """Save a model from float x [N, ...shape] to float y of the same shape; the last node's result becomes y."""
    nodes[-1].output[0] = "y"
    dims = ["N", *shape]
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, dims)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
        doc_string="Made by a benchmark.",
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, domain="org.hwflow.benchmarks"
    )
    onnx.save(model, path)
    return path


def float_chain(folder: Path) -> Path:
    """Save a chain of Relu, Add, Neg, Mul, Relu, ..."""
    nodes, value = [], "x"
    for k in range(NODES):
        op = ("Relu", "Add", "Neg", "Mul")[k % 4]
        nodes.append(helper.make_node(op, [value, "c"] if op in ("Add", "Mul") else [value], [f"v{k}"], name=f"n{k}"))
        value = f"v{k}"
    return _save(folder / "float_chain.onnx", nodes, [16], {"c": np.ones(16, np.float32)})


def quantized_network(folder: Path) -> Path:
    """Save a chain of QuantizeLinear, DequantizeLinear, DequantizeLinear of the weights, Conv, Relu, ..., each layer
    with its own."""
    rng = np.random.default_rng(0)
    nodes, constants, value = [], {}, "x"
    for k in range(NODES // 5):
        constants |= {
            f"s{k}": np.float32(0.5), f"z{k}": np.int8(3),
            f"w{k}": rng.integers(-128, 128, (4, 4, 3, 3)).astype(np.int8),
            f"ws{k}": np.full(4, 0.1, np.float32), f"wz{k}": np.zeros(4, np.int8),
        }  # fmt: skip
        nodes += [
            helper.make_node("QuantizeLinear", [value, f"s{k}", f"z{k}"], [f"q{k}"]),
            helper.make_node("DequantizeLinear", [f"q{k}", f"s{k}", f"z{k}"], [f"d{k}"]),
            helper.make_node("DequantizeLinear", [f"w{k}", f"ws{k}", f"wz{k}"], [f"wd{k}"], axis=0),
            helper.make_node("Conv", [f"d{k}", f"wd{k}"], [f"c{k}"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"c{k}"], [f"r{k}"]),
        ]
        value = f"r{k}"
    return _save(folder / "quantized_network.onnx", nodes, [4, 8, 8], constants)


def external_data(folder: Path) -> Path:
    """Save 25 MatMul and Relu with weights of 4 MiB each in one file beside the model."""
    width, nodes, constants, value = 1024, [], {}, "x"
    for k in range(25):
        constants[f"w{k}"] = np.full((width, width), 1 / width, np.float32)
        nodes.append(helper.make_node("MatMul", [value, f"w{k}"], [f"m{k}"]))
        nodes.append(helper.make_node("Relu", [f"m{k}"], [f"r{k}"]))
        value = f"r{k}"
    path = _save(folder / "external_data.onnx", nodes, [width], constants)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="external_data.bin", size_threshold=0)
    return path


MODELS: tuple[Callable[[Path], Path], ...] = (float_chain, quantized_network, external_data)


def _median(runs: int, action: Callable[[], object]) -> float:
    """Return the median of the seconds."""
    action()  # what a first call imports or caches
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def _command(*arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *arguments], capture_output=True, check=False)


def main() -> int:
    """Print the table; exit code 1 if the command takes more than twice as long as onnx's on a model that it does not
    have to lower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    table = Table("model", "command s", "onnx s", "ratio", "validation ms", "onnx ms", "ratio")
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        for make in MODELS:
            path = make(Path(name))
            program = f"import onnx.checker; onnx.checker.check_model({str(path)!r}, full_check=True)"
            ours = _median(runs, _command("-m", "hwflow.cli", "check", str(path)))
            theirs = _median(runs, _command("-c", program))
            inside = _median(runs, lambda path=path: validate(read_model(path), path))
            onnx_inside = _median(runs, lambda path=path: checker.check_model(str(path), full_check=True))
            if make is not quantized_network:
                worst = max(worst, ours / theirs)
            table.add_row(
                path.stem, f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.2f}",
                f"{1e3 * inside:.1f}", f"{1e3 * onnx_inside:.1f}", f"{inside / onnx_inside:.2f}",
            )  # fmt: skip
    Console().print(table)
    return 0 if worst < BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
