"""The command line: a thin layer over the Python API. Exit codes: 0 good, 1 refused or mismatch, 2 usage, 3 tool."""

from __future__ import annotations

import argparse
import gc
import io
import json
import os
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from hwflow.errors import Finding, HwflowError, ToolError, UsageError, merged

if TYPE_CHECKING:
    from rich.table import Table

WIDE = 1000  # columns of what is no terminal: a row of a table stays a line


class _Parser(argparse.ArgumentParser):
    """Complains as a finding, not with argparse's usage text alone."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(Finding("command-line", self.prog, message, f"see '{self.prog} --help'"))


class _Progress:
    """A live line on a terminal, with a bar where it is known how much there is to do; one line a step elsewhere. On
    stderr, so that stdout stays data."""

    def __enter__(self) -> Self:
        from rich.console import Console  # takes longer to import than many models to check
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

        console = Console(stderr=True, highlight=False)
        self._shown: Progress | None = None
        if console.is_terminal:
            columns = SpinnerColumn(), TextColumn("{task.description}", markup=False)
            self._shown = Progress(*columns, console=console, transient=True).__enter__()
            self._task = self._shown.add_task("starting", total=None)
            self._counting = *columns, BarColumn(), MofNCompleteColumn()
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown is not None:
            self._shown.stop()

    def __call__(self, line: str) -> None:
        """A step begins."""
        if self._shown is None:
            print(line, file=sys.stderr, flush=True)
        else:
            self._shown.update(self._task, description=line)

    def count(self, done: int, total: int) -> None:
        """So much of the step is done."""
        if self._shown is not None:
            self._shown.columns = self._counting
            self._shown.update(self._task, completed=done, total=total)


def _table(*columns: str) -> Table:
    from rich.table import Table

    return Table(*columns)


def _print_table(grid: Table) -> None:
    from rich.console import Console

    terminal = Console().is_terminal
    Console(highlight=False, markup=False, width=None if terminal else WIDE).print(grid)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _folder(text: str) -> str:
    """argparse type of --trust."""
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"must be a folder, not '{text}'")
    return text


def _seed(text: str) -> int:
    """argparse type of --seed."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer of at least 0, not '{text}'")
    return int(text)


def _budget(text: str) -> dict[str, str]:
    """argparse type of --budget; the values are looked at where the board is known."""
    result = {}
    for part in text.split(","):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if not (name and sign and value):
            raise argparse.ArgumentTypeError(f"must be NAME=VALUE,..., not '{text}' (for example lut=30000,dsp=50%)")
        if name in result:
            raise argparse.ArgumentTypeError(f"must name each resource once, not '{name}' twice")
        result[name] = value
    return result


def _number(text: str) -> float:
    """argparse type of --fps and --clock."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not '{text}'") from None


def _dimensions(options: Sequence[str]) -> dict[str, int]:
    result = {}
    for option in options:
        name, _, value = option.rpartition("=")  # a name may hold the sign
        if not name or not value.isdecimal() or int(value) < 1:
            raise UsageError(
                Finding(
                    "dimension-option",
                    "option --dim",
                    f"must be NAME=VALUE with VALUE at least 1, not '{option}'",
                    "for example --dim N=1",
                )
            )
        result[name] = int(value)
    return result


def _check(arguments: argparse.Namespace) -> int:
    gc.disable()  # the process ends soon, and collecting costs a tenth of the time on large models
    from hwflow.checking import check

    findings = check(arguments.model, _dimensions(arguments.dim), pedantic=arguments.pedantic, trusted=arguments.trust)
    count = Counter(f.severity for f in findings)
    if arguments.format == "json":
        rows = [
            {"clause": f.rule, "severity": f.severity, "where": f.where, "message": f.message, "remedy": f.remedy}
            for f in findings
        ]
        _print_json({"findings": rows, "errors": count["error"], "warnings": count["warning"]})
    else:
        verdict = [_count(count["error"], "error"), _count(count["warning"], "warning")]
        if count["unsupported"]:
            verdict.insert(1, f"{count['unsupported']} unsupported")
        print("\n".join([*map(str, merged(findings)), f"{arguments.model}: {', '.join(verdict)}"]))
    return 1 if count["error"] or count["unsupported"] else 0


def _synth(arguments: argparse.Namespace) -> int:
    from hwflow.compiler import board_named, compile
    from hwflow.output import check_writable

    board = board_named(arguments.board)
    target = Path(f"build/{Path(arguments.model).stem}" if arguments.output is None else arguments.output)
    check_writable(target.absolute())
    with _Progress() as progress:
        design = compile(
            arguments.model, board, fps=arguments.fps, clock_mhz=arguments.clock, budget=arguments.budget,
            dimensions=_dimensions(arguments.dim), trusted=arguments.trust, progress=progress,
        )
        table = design.write(target, arguments.until, progress)
    _print_report(table, target, arguments.fps)
    return 0


def _print_report(table: dict[str, Any], target: Path, fps: float | None) -> None:
    timing, clock = table["timing"], table["clock"]
    print(f"{table['model']['name']} on {table['board']} ({table['device']}): {target}")
    print(f"  initiation interval {timing['initiation_interval']} cycles, latency {timing['latency']} cycles")
    fmax = f"{clock['fmax_mhz']:.1f} MHz" if clock["fmax_mhz"] else "not placed and routed"
    print(f"  clock {clock['target_mhz']:g} MHz (reached: {fmax}), {timing['frames_per_second']:,.0f} frames a second")
    print(f"  {table['multipliers']} multipliers, {100 * (table['multiplier_utilization'] or 0):.1f} % busy")
    forms = Counter(layer["requantizer"]["form"] for layer in table["layers"] if layer["requantizer"])
    if forms:
        counts = ", ".join(f"{count} {form}" for form, count in forms.most_common())
        print(f"  requantizers, proved exact: {counts}")
    grid = _table("resource", "predicted", "synthesized", "available")
    for name, row in table["resources"].items():
        grid.add_row(
            name, *("" if row[k] is None else f"{row[k]:,}" for k in ("predicted", "synthesized", "available"))
        )
    _print_table(grid)
    if clock["fmax_mhz"] is not None and clock["fmax_mhz"] < clock["target_mhz"]:
        print(
            f"warning: the clock must reach {clock['target_mhz']:g} MHz, not {clock['fmax_mhz']:.1f} MHz: "
            "the bitstream may fail",
            file=sys.stderr,
        )
    if fps is not None and timing["frames_per_second"] < fps:
        print(
            f"warning: --fps {fps:g} must be reached, not {timing['frames_per_second']:,.0f} frames a second: "
            f"place and route allow {clock['target_mhz']:g} MHz only; ask for a higher rate to get more multipliers",
            file=sys.stderr,
        )


def _sim(arguments: argparse.Namespace) -> int:
    from hwflow.simulation import require, simulate

    seed = secrets.randbelow(1 << 31) if arguments.seed is None else arguments.seed
    with _Progress() as progress:
        simulation = simulate(
            arguments.target, inputs=arguments.input, frames=arguments.frames, simulator=arguments.simulator,
            stall=arguments.stall, seed=seed, wave=arguments.wave, output=arguments.output,
            dimensions=_dimensions(arguments.dim), trusted=arguments.trust, progress=progress, on_frames=progress.count,
        )
    if arguments.format == "json":
        _print_json(simulation.table())
    else:
        _print_simulation(simulation, seed, arguments.stall)
    require(simulation)
    return 0


def _print_simulation(simulation: Any, seed: int, stall: float) -> None:
    result = simulation.result
    grid = _table("what", "expected", "measured")
    grid.add_row("frames", str(simulation.result.frames), str(result.frames - result.mismatching_frames) + " right")
    grid.add_row("elements that differ", "0", str(result.mismatches))
    if stall == 0:
        if result.frames > 1:
            grid.add_row(
                "initiation interval (cycles)", str(simulation.predicted_interval), str(result.initiation_interval)
            )
        grid.add_row("latency (cycles)", str(simulation.predicted_latency), str(result.latency))
    grid.add_row("verdict", "equal", "equal" if simulation.ok else "DIFFERENT")
    _print_table(grid)
    print(
        f"simulator {result.simulator}, inputs {simulation.inputs.origin}, stall {stall:g}, seed {seed}, "
        f"{result.cycles} cycles"
    )
    for line in simulation.output_lines():
        print(line)
    if simulation.accuracy is not None:
        print(f"accuracy against the labels: {100 * simulation.accuracy:.2f} %")


def _compare(arguments: argparse.Namespace) -> int:
    from hwflow.comparison import compare, require

    seed = secrets.randbelow(1 << 31) if arguments.seed is None else arguments.seed
    with _Progress() as progress:
        comparison = compare(
            arguments.model, inputs=arguments.input, frames=arguments.frames, seed=seed, progress=progress,
            dimensions=_dimensions(arguments.dim), trusted=arguments.trust,
        )
    if arguments.format == "json":
        _print_json(comparison.table())
    else:
        for line in comparison.lines():
            print(line)
        print(f"inputs {comparison.inputs.origin}, seed {seed}")
    require(comparison)
    return 0


def _quantize(arguments: argparse.Namespace) -> int:
    from hwflow.quantization import quantize

    with _Progress() as progress:
        quantization = quantize(
            arguments.model, arguments.calibration, arguments.output, bits=arguments.bits,
            activations=arguments.activations, inputs=arguments.input, frames=arguments.frames,
            dimensions=_dimensions(arguments.dim), trusted=arguments.trust, progress=progress,
        )
    if arguments.format == "json":
        _print_json(quantization.table())
    else:
        for line in quantization.lines():
            print(line)
    return 0


def _boards(arguments: argparse.Namespace) -> int:
    from hwflow.boards import all_boards

    grid = _table("board", "what", "device", "LUT", "FF", "DSP", "BRAM", "clock MHz")
    for b in all_boards():
        p = b.part
        grid.add_row(b.name, b.title, p.device, f"{p.lut:,}", f"{p.ff:,}", str(p.dsp), str(p.bram), f"{b.clock_mhz:g}")
    _print_table(grid)
    return 0


def _ops(arguments: argparse.Namespace) -> int:
    from hwflow.frontend.handlers import HANDLERS, NEVER
    from hwflow.ops.registry import OPERATORS

    by_onnx = {spelling: operator for operator in OPERATORS.values() for spelling in operator.onnx}
    grid = _table("domain", "ONNX operator", "becomes", "limits")
    for domain, name in sorted(HANDLERS.keys() - NEVER):
        operator = by_onnx.get(name)
        grid.add_row(domain, name, operator.name if operator else "no hardware", operator.limits if operator else "")
    _print_table(grid)
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from hwflow.toolchain.doctor import doctor, table

    statuses = doctor()
    print(table(statuses))
    return 0 if all(s.good for s in statuses) else ToolError.exit_code


def _print_json(table: Any) -> None:
    print(json.dumps(table))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="hwflow", description="Quantized ONNX models to streaming FPGA accelerators.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser, metavar="COMMAND")

    def add(name: str, action: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(action=action)
        return command

    def common(command: argparse.ArgumentParser) -> None:
        command.add_argument("--input", metavar="X.npz", help="arrays by model input name, frames first")
        command.add_argument(
            "--frames", type=int, metavar="N",
            help="how many frames (default: all of the file, else 16 random ones; of either 4 by icarus)",
        )
        command.add_argument(
            "--seed", type=_seed, metavar="N", help="of random inputs and stalls (default: random, printed)"
        )
        command.add_argument("--format", choices=("text", "json"), default="text")

    def dimension(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "--dim", action="append", default=[], metavar="NAME=VALUE", help="bind a dimension variable"
        )

    def trust(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "--trust", action="append", default=[], metavar="DIR", type=_folder,
            help="a folder in which external data may lie and to which links may lead, beside the model's own",
        )

    command = add(
        "check", _check, "check a model against the ONNX specification and hwflow's rules; all findings at once"
    )
    command.add_argument("model")
    command.add_argument("--format", choices=("text", "json"), default="text")
    command.add_argument(
        "--pedantic", action="store_true", help="also the clauses that nearly every model breaks and nobody misses"
    )
    dimension(command)
    trust(command)

    command = add("synth", _synth, "compile a model for a board: Verilog, test bench, report, bitstream")
    command.add_argument("model")
    command.add_argument("--board", required=True, help="see 'hwflow boards'")
    command.add_argument("-o", "--output", metavar="OUT", help="output folder (default: build/<model>)")
    command.add_argument(
        "--fps", type=_number, metavar="N",
        help="the cheapest design of so many frames a second (default: the fastest that fits)",
    )
    command.add_argument(
        "--clock", type=_number, metavar="MHZ", help="the clock that the design is to run at (default: the board's)"
    )
    command.add_argument(
        "--budget", type=_budget, metavar="NAME=VALUE,...",
        help="what the design may use of lut, ff, dsp, bram: numbers, or percent of what there is (50%%); default: "
        "half of the lut and ff, but no more than 20,000 lut without --fps, all dsp, 90%% of the bram",
    )
    command.add_argument("--until", choices=("verilog", "netlist", "bitstream"), default="bitstream")
    dimension(command)
    trust(command)

    command = add(
        "sim", _sim, "simulate the hardware and compare it with the golden model, bit for bit and cycle for cycle"
    )
    command.add_argument("target", metavar="OUT|MODEL")
    common(command)
    command.add_argument("--simulator", choices=("verilator", "icarus"), default="verilator")
    command.add_argument(
        "--stall", type=float, default=0.0, metavar="P", help="stall both sides with probability P a cycle"
    )
    command.add_argument("--wave", metavar="F", help="write a waveform (.vcd or .fst)")
    command.add_argument("--output", metavar="Y.npz", help="write the model's outputs, by name, frames first")
    dimension(command)
    trust(command)

    command = add("compare", _compare, "compare the golden model with the ONNX reference evaluator, value by value")
    command.add_argument("model")
    common(command)
    dimension(command)
    trust(command)

    command = add("quantize", _quantize, "quantize a float model to QDQ by onnxruntime's static quantizer")
    command.add_argument("model")
    command.add_argument(
        "--calibration", required=True, metavar="X.npz",
        help="arrays by model input name, frames first, and perhaps 'label'",
    )
    command.add_argument("-o", "--output", required=True, metavar="Q.onnx", help="the quantized model")
    command.add_argument("--bits", type=int, choices=(8, 4), default=8, help="of weights (default: 8)")
    command.add_argument(
        "--activations", choices=("uint8", "int8", "uint16", "int16"), default="uint8",
        help="element type of activations (default: uint8)",
    )
    command.add_argument(
        "--input", metavar="X.npz", help="frames to compare both models on (default: the calibration data)"
    )
    command.add_argument("--frames", type=int, metavar="N", help="how many frames of calibration data (default: all)")
    command.add_argument("--format", choices=("text", "json"), default="text")
    dimension(command)
    trust(command)

    add("boards", _boards, "list the boards")
    add("ops", _ops, "list the operators")
    add("doctor", _doctor, "list the external tools: found where, which version, good enough")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Every error is printed as findings on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name in the model may hold what the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        parsed = _parser().parse_args(arguments)
        code: int = parsed.action(parsed)
        return code
    except HwflowError as error:
        for finding in merged(error.findings):
            print(finding, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0
    except OSError as error:  # no space left, no memory for a process, ...
        where = f"file '{error.filename}'" if error.filename else "operating system"
        print(
            Finding("system-call", where, f"must work, but: {error.strerror or error}", "see that it can"),
            file=sys.stderr,
        )
        return ToolError.exit_code


if __name__ == "__main__":
    sys.exit(main())
