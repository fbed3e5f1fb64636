"""What known networks become on a board: one Markdown row a design, from `hwflow synth` in a process of its own.

    python benchmarks/networks.py --shared ../shared [--until verilog|netlist|bitstream] [NAME ...]
    python benchmarks/networks.py --model MODEL.onnx -- --board ulx3s_85f --fps 1000

``utilisation`` is macs, those of padding aside, / (interval x multipliers). Intervals are exact (``--simulate``
measures them: the column then says whether prediction and simulation agree). LUT, FF, DSP, BRAM are predicted /
synthesized, the clock is that after routing, beside the one asked for; frames per second are those at the clock asked
for (or, where routing did not reach it, at the one reached). Seconds are those from the ONNX file to Verilog, memory
the process's peak until there.

Other tools' figures (NNgen, da4ml) are in the README beside the models of shared/bench.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
DIGITS = HERE.parent / "examples" / "digits" / "model.onnx"
BOARD = "ulx3s_85f"
WHOLE = ("--budget", "lut=80%,ff=80%,dsp=100%,bram=100%")  # the least interval that the part allows


@dataclass(frozen=True)
class Benchmark:
    """A network (below the shared folder) and the options of its design.

    ``calibration``: of a float network the shape of an input frame: it is quantized first, with 32 frames from a
    normal distribution, which gives its cycles and size, not its accuracy.
    """

    name: str
    model: str
    options: tuple[str, ...] = ()
    calibration: tuple[int, ...] | None = None


BENCHMARKS = (
    Benchmark("digits", str(DIGITS)),
    Benchmark("jet", "bench/jet_qdq.onnx"),
    Benchmark("jet, small", "bench/jet_qdq.onnx", ("--budget", "lut=2000")),
    # no more of anything than another tool's design of it takes (NNgen's; see the README in shared/bench)
    Benchmark("jet, tight", "bench/jet_qdq.onnx", ("--budget", "lut=6000,ff=5800,dsp=3,bram=14")),
    Benchmark("jet_ort", "bench/jet_ort_qdq.onnx"),
    Benchmark("jet6", "bench/jet6_qdq.onnx"),
    Benchmark("jet6 unrolled", "bench/jet6_qdq.onnx", ("--clock", "100", "--fps", "100e6", *WHOLE)),
    Benchmark("cnn", "bench/cnn_qdq.onnx"),
    Benchmark("cnn, small", "bench/cnn_qdq.onnx", ("--budget", "lut=3000")),
    Benchmark("cnn_ort", "bench/cnn_ort_qdq.onnx"),
    Benchmark("tfc", "bench/tfc_qdq.onnx"),
    Benchmark("ResNet-8", "models/mlperf_ic_resnet8_int8/mlperf_ic_resnet8_int8.onnx"),
    Benchmark("ResNet-8, whole part", "models/mlperf_ic_resnet8_int8/mlperf_ic_resnet8_int8.onnx", WHOLE),
    Benchmark("ResNet-8, no DSP", "models/mlperf_ic_resnet8_int8/mlperf_ic_resnet8_int8.onnx", ("--budget", "dsp=0")),
    Benchmark("micro_kws", "models/micro_kws_m_qdq/micro_kws_m_static_qdq.onnx"),
    Benchmark("micro_kws, whole part", "models/micro_kws_m_qdq/micro_kws_m_static_qdq.onnx", WHOLE),
    Benchmark("micro_kws, QOperator", "models/micro_kws_m_qoperator_std/micro_kws_m_static_qoperator_emx.onnx"),
    Benchmark(
        "micro_kws, float", "models/micro_kws_m_fp32/micro_kws_m_static_fp32.onnx", calibration=(1960,)
    ),
    Benchmark("mnist, float", "models/ort_mnist_float/mnist.onnx", calibration=(1, 28, 28)),
    Benchmark("DS-CNN", "models/mlperf_kws_dscnn_int8/mlperf_kws_dscnn_int8.onnx"),
    Benchmark("MobileNet", "models/mlperf_vww_mobilenetv1_int8/mlperf_vww_mobilenetv1_int8.onnx"),
    Benchmark("ad autoencoder", "models/mlperf_ad_autoencoder_int8/mlperf_ad_autoencoder_int8.onnx"),
    Benchmark("lenet300", "models/lenet300_mnist_int8/lenet300_mnist_int8.onnx"),
    Benchmark("TFC 1w1a", "models/zoo_tfc_1w1a/TFC_1W1A.onnx"),
    Benchmark("TFC 2w2a", "models/zoo_tfc_2w2a/TFC_2W2A.onnx"),
)

COLUMNS = (
    "network", "interval", "latency", "multipliers", "utilisation", "LUT", "FF", "DSP", "BRAM", "MHz (asked)",
    "frames/s", "seconds", "MiB",
)


def synthesize(model: Path, options: Sequence[str], until: str, out: Path) -> tuple[dict[str, Any], float, float]:
    """Return the report of `hwflow synth`, the seconds to Verilog and the peak of memory in MiB.

    Verilog is made by a run of its own, so that the tools behind it do not count. Raises :class:`RuntimeError` with
    what the command said, if it fails.
    """
    board = () if "--board" in options else ("--board", BOARD)
    command = [sys.executable, "-m", "hwflow.cli", "synth", str(model), *board, *options, "-o", str(out)]
    begin = time.perf_counter()
    peak = _peak([*command, "--until", "verilog"])
    seconds = time.perf_counter() - begin
    if until != "verilog":
        _peak([*command, "--until", until])
    return json.loads((out / "report.json").read_text()), seconds, peak


def quantized(model: Path, calibration: tuple[int, ...], folder: Path) -> Path:
    """Return the float model quantized by `hwflow quantize`, in ``folder``."""
    frames = np.random.default_rng(0).standard_normal((32, *calibration)).astype(np.float32)
    np.savez(folder / "calibration.npz", input=frames)
    result = folder / "quantized.onnx"
    command = [sys.executable, "-m", "hwflow.cli", "quantize", str(model), "-o", str(result)]
    _peak([*command, "--calibration", str(folder / "calibration.npz")])
    return result


def _peak(command: Sequence[str]) -> float:
    with tempfile.TemporaryFile("w+") as log:
        program = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
        if program.returncode:
            log.seek(0)
            raise RuntimeError(f"{shlex.join(command)}\n{log.read()}")
    return usage.ru_maxrss / 1024


def simulated(out: Path, frames: int) -> str:
    """Return "= simulated" where Verilator finds the golden model's values, the interval and the latency as
    predicted."""
    command = [sys.executable, "-m", "hwflow.cli", "sim", str(out), "--frames", str(frames), "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return " = simulated" if done.returncode == 0 else f" DIFFERS: {done.stderr.strip().splitlines()[0]}"


def cells(name: str, report: dict[str, Any], seconds: float, peak: float, note: str) -> tuple[str, ...]:
    """Return the row of a design."""
    clock, timing = report["clock"], report["timing"]
    fmax, asked = clock["fmax_mhz"], clock["target_mhz"]
    reached = asked if fmax is None else min(asked, fmax)
    multipliers = sum(kind["multipliers"] for name, kind in report["multipliers"].items() if name != "requantizer")
    products = report["model"]["macs_without_padding"]
    pairs = [report["resources"][kind] for kind in ("lut", "ff", "dsp", "bram")]
    return (
        name, f"{timing['initiation_interval']:,}{note}", f"{timing['latency']:,}", f"{multipliers:,}",
        f"{products / (timing['initiation_interval'] * multipliers):.3f}" if multipliers else "-",
        *(f"{p['predicted']:,} / {'-' if p['synthesized'] is None else format(p['synthesized'], ',')}" for p in pairs),
        f"{'-' if fmax is None else format(fmax, '.1f')} ({asked:g})",
        f"{reached * 1e6 / timing['initiation_interval']:,.0f}", f"{seconds:.1f}", f"{peak:.0f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What known networks become on a board.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run (default: all)")
    parser.add_argument("--shared", type=Path, default=HERE.parent.parent / "shared")
    parser.add_argument("--model", type=Path, help="this model, with the options of 'hwflow synth' behind --")
    parser.add_argument("--until", choices=("verilog", "netlist", "bitstream"), default="verilog")
    parser.add_argument("--simulate", type=int, metavar="FRAMES", help="simulate so many random frames")
    parser.add_argument("--keep", type=Path, help="leave the output folders there")
    arguments, options = _split(parser, sys.argv[1:])
    known = {b.name: b for b in BENCHMARKS}
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"NAME must be one of {', '.join(known)}, not {', '.join(unknown)}")
    chosen = [known[name] for name in arguments.names] or list(BENCHMARKS)
    if arguments.model is not None:
        chosen = [Benchmark(arguments.model.stem, str(arguments.model.absolute()), tuple(options))]
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for benchmark in chosen:
        model = arguments.shared.absolute() / benchmark.model  # an absolute path stays what it is
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder) if arguments.keep is None else arguments.keep
            out = base / benchmark.name.replace(" ", "_").replace(",", "")
            try:
                if benchmark.calibration is not None:
                    model = quantized(model, benchmark.calibration, Path(folder))
                report, seconds, peak = synthesize(model, benchmark.options, arguments.until, out)
            except RuntimeError as error:
                print(f"{benchmark.name}: {error}", file=sys.stderr)
                print(f"| {benchmark.name} |" + " - |" * (len(COLUMNS) - 1), flush=True)
                continue
            note = simulated(out, arguments.simulate) if arguments.simulate else ""
            print("| " + " | ".join(cells(benchmark.name, report, seconds, peak, note)) + " |", flush=True)


def _split(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return our arguments, and what stands behind ``--``."""
    place = list(words).index("--") if "--" in words else len(words)
    return parser.parse_args(list(words[:place])), list(words[place + 1 :])


if __name__ == "__main__":
    main()
