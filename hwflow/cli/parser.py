"""The options of every command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NoReturn

from hwflow.cli.commands import run_boards, run_check, run_compare, run_doctor, run_ops, run_quantize, run_sim
from hwflow.cli.options import folder, seed
from hwflow.cli.synth import run_synth
from hwflow.errors import Finding, UsageError


class _Parser(argparse.ArgumentParser):
    """Complains as a finding, not with argparse's usage text alone."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(Finding("command-line", self.prog, message, f"see '{self.prog} --help'"))


def command_line() -> argparse.ArgumentParser:
    """The parser of all commands; what it returns has the command's function as `action`."""
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
            "--seed", type=seed, metavar="N", help="of random inputs and stalls (default: random, printed)"
        )
        command.add_argument("--format", choices=("text", "json"), default="text")

    def dimension(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "--dim", action="append", default=[], metavar="NAME=VALUE", help="bind a dimension variable"
        )

    def trust(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "--trust", action="append", default=[], metavar="DIR", type=folder,
            help="a folder in which external data may lie and to which links may lead, beside the model's own",
        )

    command = add(
        "check", run_check, "check a model against the ONNX specification and hwflow's rules; all findings at once"
    )
    command.add_argument("model")
    command.add_argument("--format", choices=("text", "json"), default="text")
    command.add_argument(
        "--pedantic", action="store_true", help="also the clauses that nearly every model breaks and nobody misses"
    )
    dimension(command)
    trust(command)

    command = add("synth", run_synth, "compile a model for a board: Verilog, test bench, report, bitstream")
    command.add_argument("model")
    command.add_argument("--board", required=True, help="see 'hwflow boards'")
    command.add_argument("-o", "--output", metavar="OUT", help="output folder (default: build/<model>)")
    command.add_argument(
        "--fps", metavar="N",
        help="the cheapest design of so many frames a second (default: the fastest that fits)",
    )
    command.add_argument(
        "--clock", metavar="MHZ", help="the clock that the design is to run at (default: the board's)"
    )
    command.add_argument(
        "--budget", metavar="NAME=VALUE,...",
        help="what the design may use of lut, ff, dsp, bram: numbers, or percent of what there is (50%%); default: "
        "half of the lut and ff, but no more than 20,000 lut without --fps, all dsp, 90%% of the bram; with --until "
        "verilog also more than the part has",
    )
    command.add_argument(
        "--until", metavar="STEP",
        help="verilog, netlist or bitstream (default: bitstream, or the project where a vendor's tool is not here)",
    )
    dimension(command)
    trust(command)

    command = add(
        "sim", run_sim, "simulate the hardware and compare it with the golden model, bit for bit and cycle for cycle"
    )
    command.add_argument("target", metavar="OUT|MODEL")
    common(command)
    command.add_argument("--simulator", choices=("verilator", "icarus"), default="verilator")
    command.add_argument(
        "--stall", type=float, default=0.0, metavar="P", help="stall both sides with probability P a cycle"
    )
    command.add_argument(
        "--layers", action="store_true",
        help="look at the output of every core too, and name the first layer, frame and element that differ",
    )
    command.add_argument("--wave", metavar="F", help="write a waveform (.vcd or .fst)")
    command.add_argument("--output", metavar="Y.npz", help="write the model's outputs, by name, frames first")
    dimension(command)
    trust(command)

    command = add("compare", run_compare, "compare the golden model with the ONNX reference evaluator, value by value")
    command.add_argument("model")
    common(command)
    command.add_argument(
        "--layers", action="store_true",
        help="layer by layer: name the first value, its node, the frame and the element that differ",
    )
    dimension(command)
    trust(command)

    command = add("quantize", run_quantize, "quantize a float model to QDQ by onnxruntime's static quantizer")
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

    add("boards", run_boards, "list the boards")
    command = add("ops", run_ops, "list the ONNX operators: dialects, what each becomes, devices, limits")
    command.add_argument("--format", choices=("text", "json", "markdown"), default="text")
    add("doctor", run_doctor, "list the external tools: found where, which version, good enough")
    return parser
