"""The options of every command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from hwflow.cli.arguments import Parser
from hwflow.cli.commands.check import run_check
from hwflow.cli.commands.compare import run_compare
from hwflow.cli.commands.completion import SHELLS, run_completion
from hwflow.cli.commands.explore import run_explore
from hwflow.cli.commands.export import run_export
from hwflow.cli.commands.lists import Version, run_boards, run_doctor, run_ops
from hwflow.cli.commands.patch import run_patch
from hwflow.cli.commands.program import run_program
from hwflow.cli.commands.quantize import run_quantize
from hwflow.cli.commands.report_page import run_report
from hwflow.cli.commands.run import run_run
from hwflow.cli.commands.sim import run_sim
from hwflow.cli.commands.synth import run_synth
from hwflow.cli.options import bits, folder, seed
from hwflow.exports.targets import target_names


def command_line() -> argparse.ArgumentParser:
    """Return the parser of all commands; its result has the command's function as `action`."""
    parser = Parser(prog="hwflow", description="Quantized ONNX models to streaming FPGA accelerators.")
    parser.add_argument("--version", action=Version, help="print the versions of hwflow and of its dependencies")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser, metavar="COMMAND")

    def add(
        name: str, action: Callable[[argparse.Namespace], int], text: str, formats: tuple[str, ...] = ("text", "json")
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(action=action)
        command.add_argument(
            "--format", choices=formats, default="text",
            help="format of stdout (default: text); with json, errors are JSON, too",
        )
        return command

    def frames(command: argparse.ArgumentParser, default: str, seeds: str) -> None:
        command.add_argument(
            "--input", metavar="X.npz",
            help="arrays by model input name, frames first; maps in X.json (default: inputs.npz beside the model, else "
            "random ones)",
        )
        command.add_argument("--frames", type=int, metavar="N", help=f"how many frames (default: {default})")
        command.add_argument("--seed", type=seed, metavar="N", help=f"of {seeds} (default: random, printed)")

    def junit(command: argparse.ArgumentParser) -> None:
        command.add_argument("--junit", metavar="FILE", help="also write the results as JUnit XML")

    def of_model(command: argparse.ArgumentParser, *, is_quantized: bool = True) -> None:
        """Add what is said of a model beside its file; a float model (not ``is_quantized``) has no integers to
        declare."""
        command.add_argument(
            "--dim", action="append", default=[], metavar="NAME=VALUE", help="bind a dimension variable"
        )
        command.add_argument(
            "--const", action="append", default=[], metavar="NAME=VALUE",
            help="bind an input to a constant: a number, numbers between commas, or a .npy or .npz file",
        )
        if is_quantized:
            command.add_argument(
                "--input-type", action="append", default=[], metavar="NAME=TYPE[,SCALE[,ZERO_POINT]]",
                help="integers that a float input without a quantizer carries: int2 to int16, uint1 to uint16 or "
                "bipolar; the input is SCALE * (integer - ZERO_POINT), for example image=uint8,1/255",
            )
        command.add_argument(
            "--state", action="append", default=[], metavar="OUTPUT=INPUT[:INITIAL.npz]",
            help="keep an output on the chip, as an input of the next frame; zeros or INITIAL.npz at first",
        )
        command.add_argument(
            "--channels", metavar="N", help="independent states that take turns, frame by frame (default: 1)"
        )
        command.add_argument(
            "--trust", action="append", default=[], metavar="DIR", type=folder,
            help="another folder that may hold external data and link targets, besides the model's own",
        )

    def design(command: argparse.ArgumentParser, *, required: bool = True) -> None:
        command.add_argument(
            "--board", required=required, help="see 'hwflow boards'" + ("" if required else " (needed for a model)")
        )
        command.add_argument(
            "--fps", metavar="N",
            help="target throughput in frames/s: the cheapest design that meets it (default: the fastest that fits); "
            "link: what the board's link carries",
        )
        command.add_argument(
            "--clock", metavar="MHZ", help="target clock (default: the board's)"
        )
        command.add_argument(
            "--baud", metavar="N",
            help="baud rate of the board's serial port (default: the highest that its chip makes and the clock "
            "reaches)",
        )
        command.add_argument(
            "--ethernet", metavar="ADDRESS",
            help="the board's IPv4 address: the link to the host is UDP over gigabit Ethernet, not the serial port",
        )
        command.add_argument(
            "--usb", action="store_true",
            help="the link to the host is a USB serial device on the socket that is wired to the FPGA (OrangeCrab and "
            "TinyFPGA BX have it anyway, unless --baud asks for a serial adapter)",
        )
        command.add_argument(
            "--budget", metavar="NAME=VALUE,...",
            help="limits on lut, ff, dsp, bram: numbers, or percent of what is available (50%%); default: half of the "
            "lut and ff, at most 20,000 lut without --fps, all dsp, 90%% of the bram; if nothing fits, what is not "
            "named may be all of the part; with --until verilog, limits may exceed it",
        )
        command.add_argument(
            "--loops", metavar="FORM", default="auto",
            help="once: one body for all rounds of a loop (of a recurrent network's steps); unrolled: hardware for "
            "each round; shared: as once, and layers of one shape that follow each other take turns on one core; "
            "auto: once or unrolled, what is cheaper at the rate, or without --fps faster; and shared if neither "
            "fits, or is faster where look-up tables run out",
        )
        command.add_argument(
            "--interleave", "--share", metavar="K", default="1",
            help="frames that go through the hardware as one: in a loop, the cores of its body work while each frame "
            "waits for its round before; with weights in memory outside, they share each fetch. auto: as many as pay "
            "(default: 1)",
        )
        command.add_argument(
            "--memory", metavar="WHOSE", default="auto",
            help="whose weights lie in the board's memory outside the part, if it has one: auto (of as few layers as "
            "must be, where the weights exceed the block RAM), none, all; but with none, large states and streams with "
            "deep queues wait there as well where no design fits otherwise",
        )
        command.add_argument(
            "--patchable", metavar="all|NAMES",
            help="layers whose weights, scales and biases 'hwflow patch' can replace: they stand in block RAM, in "
            "hardware with room for others; the names of their nodes, between commas",
        )
        command.add_argument(
            "--loadable", metavar="all|NAMES|none",
            help="layers whose weights, scales and biases 'hwflow run --weights' can load while the design runs: as of "
            "--patchable, with more room, and a port that writes them; the names of nodes or tensors, between commas "
            "(default: those whose weights are initializers that are graph inputs, too, as far as they can be)",
        )

    command = add(
        "check", run_check, "check a model against the ONNX specification and hwflow's rules; all findings at once"
    )
    command.add_argument("models", nargs="+", metavar="model", help="one or more ONNX files")
    junit(command)
    command.add_argument(
        "--pedantic", action="store_true", help="also show remarks of form: harmless, caused by nearly every exporter"
    )
    of_model(command)

    command = add("synth", run_synth, "compile a model for a board: Verilog, test bench, report, bitstream")
    command.add_argument("model", help="an ONNX file")
    command.add_argument("-o", "--output", metavar="OUT", help="output folder (default: build/<model>)")
    design(command)
    command.add_argument(
        "--name", metavar="NAME",
        help="what the names of all modules and files of the hardware begin with, so that several designs can be in "
        "one project (default: modules with hwflow, files without)",
    )
    command.add_argument(
        "--inline-weights", action="store_true", help="write the weights into the Verilog, not into files beside it"
    )
    command.add_argument(
        "--until", metavar="STEP",
        help="verilog, netlist or bitstream (default: bitstream, or the project if the vendor's tool is not installed)",
    )
    command.add_argument(
        "--place-route-seeds", metavar="N",
        help="place and route with N seeds, and keep the best clock (default: as many as the clock needs)",
    )
    command.add_argument(
        "--force", action="store_true",
        help="redo every step (default: only what is out of date)",
    )
    of_model(command)

    command = add(
        "explore", run_explore,
        "make a design for every combination of boards, rates, clocks, budgets, bit widths and seeds: tables and a "
        "Pareto page; goes on where it was ended",
    )
    command.add_argument("model", help="an ONNX file")

    def axis(name: str, metavar: str, text: str) -> None:
        command.add_argument(
            name, action="append", default=[], metavar=metavar, help=f"{text}; may be given several times"
        )

    command.add_argument(
        "--board", action="append", required=True, metavar="NAME,...",
        help="boards (see 'hwflow boards'); may be given several times",
    )
    command.add_argument(
        "-o", "--output", metavar="OUT", help="output folder (default: build/<model>-explore)"
    )
    axis("--fps", "N,...", "target throughputs in frames/s; max: the fastest that fits (default); link")
    axis("--clock", "MHZ,...", "target clocks (default: the board's)")
    command.add_argument(
        "--budget", action="append", default=[], metavar="NAME=VALUE,...",
        help="one budget, as of synth; given several times, each is a value of the axis",
    )
    axis("--bits", "N,...", "bits of weights that 'hwflow quantize' gives a float model")
    axis("--activations", "TYPE,...", "with --bits: element types of activations, as of quantize (default: uint8)")
    command.add_argument("--calibration", metavar="X.npz", help="with --bits: the frames to quantize with")
    command.add_argument(
        "--place-route-seeds", metavar="N", help="place and route each design with N seeds; the best clock is kept"
    )
    command.add_argument(
        "--until", choices=("schedule", "verilog", "netlist", "bitstream"),
        help="schedule (default: exact cycles, predicted resources), verilog, netlist or bitstream (default with "
        "--place-route-seeds)",
    )
    command.add_argument("--workers", metavar="N", help="processes of this machine (default: one a core)")
    command.add_argument(
        "--dask", metavar="ADDRESS", help="run on the workers of a Dask scheduler, for example tcp://host:8786"
    )
    of_model(command)

    command = add(
        "sim", run_sim, "simulate the hardware and compare it with the golden model, bit for bit and cycle for cycle"
    )
    command.add_argument("target", metavar="OUT|MODEL", help="an output folder of synth, or an ONNX file")
    frames(
        command, "all of the file, else 16 random ones; of either 4 with '--simulator icarus'",
        "random inputs and stalls",
    )
    junit(command)
    command.add_argument(
        "--simulator", choices=("verilator", "icarus"), default="verilator",
        help="the Verilog simulator (default: verilator)",
    )
    command.add_argument(
        "--stall", type=float, default=0.0, metavar="P", help="stall both sides with probability P a cycle"
    )
    command.add_argument(
        "--layers", action="store_true",
        help="also compare the output of every core; name the first layer, frame and element that differ",
    )
    command.add_argument(
        "--threads", type=int, default=1, metavar="N",
        help="simulate N equal shares of the frames side by side, each from a reset of its own",
    )
    command.add_argument(
        "--weights", metavar="NEW.onnx",
        help="load OUT's design with this model's weights while some of its own frames are inside, then run all frames",
    )
    command.add_argument("--wave", metavar="F", help="write a waveform (F.vcd or F.fst)")
    command.add_argument("--output", metavar="Y.npz", help="write the model's outputs, by name; maps to Y.json")
    of_model(command)

    command = add("export", run_export, "write the core for other tools and projects: AXI4-Stream, in their form")
    command.add_argument("out", metavar="OUT", help="an output folder of synth")
    command.add_argument(
        "--to", required=True, choices=target_names(), help="FuseSoC, LiteX, IP-XACT, Vivado, Amaranth or plain Verilog"
    )
    command.add_argument("-o", "--output", metavar="FOLDER", help="where to (default: OUT/export/TARGET)")
    command.add_argument(
        "--reset", choices=("rst", "aresetn"),
        help="rst: clk and rst, active high; aresetn: aclk and aresetn, active low (default: aresetn for ipxact and "
        "vivado-ip, else rst)",
    )

    command = add(
        "patch", run_patch,
        "give an output folder the weights of another model: change the bitstream without synthesis or place and route",
    )
    command.add_argument("out", metavar="OUT", help="an output folder of synth with a bitstream")
    command.add_argument("model", help="an ONNX file, compiled with the options that OUT was made with")

    command = add(
        "report", run_report, "write a page with all that is known of a design: figures, dataflow, time line, findings"
    )
    command.add_argument(
        "target", metavar="OUT|MODEL", help="an output folder of synth, or an ONNX file, which is compiled for it"
    )
    command.add_argument(
        "-o", "--output", metavar="FILE", help="the page (default: OUT/report.html, or build/<model>.html)"
    )
    design(command, required=False)
    of_model(command)

    command = add("program", run_program, "load the bitstream into the board")
    command.add_argument("out", metavar="OUT", help="an output folder of synth")

    command = add(
        "run", run_run, "run the design on its board: frames in, the model's outputs out, compared bit for bit"
    )
    command.add_argument("out", metavar="OUT", help="an output folder of synth, whose bitstream the board holds")
    command.add_argument(
        "--port", metavar="P", help="a serial device, or udp:HOST[:PORT] (default: the one where the board answers)"
    )
    command.add_argument("--baud", type=int, metavar="N", help="of the serial port (default: the design's)")
    command.add_argument(
        "--input", metavar="X.npz",
        help="arrays by model input name, frames first, maps in X.json, and optionally 'label' (default: the folder's)",
    )
    command.add_argument("--frames", type=int, metavar="N", help="how many frames (default: all; more are repeated)")
    command.add_argument("--output", metavar="Y.npz", help="write the model's outputs, by name; maps to Y.json")
    command.add_argument("--no-verify", action="store_true", help="do not compare with the golden model")
    command.add_argument(
        "--weights", metavar="NEW.onnx",
        help="load this model's weights, scales and biases into the running design first (of 'synth --loadable')",
    )
    command.add_argument(
        "--simulated", action="store_true", help="simulate the whole board in Verilator, and run on that"
    )
    command.add_argument(
        "--faults", type=float, default=0.0, metavar="RATE",
        help="share of the bytes on the simulated board's line that are lost, added, changed, delayed or repeated",
    )
    command.add_argument("--seed", type=seed, metavar="N", help="of the faults (default: random, printed)")
    junit(command)

    command = add(
        "compare", run_compare,
        "compare the golden model with the ONNX reference evaluator, value by value; no simulator runs",
    )
    command.add_argument("model", metavar="OUT|MODEL", help="an ONNX file, or an output folder of synth")
    frames(command, "all of the file, else 16 random ones", "random inputs")
    junit(command)
    command.add_argument(
        "--layers", action="store_true",
        help="layer by layer: name the first value, its node, the frame and the element that differ",
    )
    command.add_argument(
        "--weights", metavar="NEW.onnx", help="compare this model, whose weights OUT's design can be loaded with"
    )
    of_model(command)

    command = add("quantize", run_quantize, "quantize a float model to QDQ by onnxruntime's static quantizer")
    command.add_argument("model", help="an ONNX file")
    command.add_argument(
        "--calibration", required=True, metavar="X.npz",
        help="arrays by model input name, frames first, and optionally 'label'",
    )
    command.add_argument("-o", "--output", required=True, metavar="Q.onnx", help="the quantized model")
    command.add_argument(
        "--bits", type=bits, choices=(*range(2, 17), "auto"), default=8, metavar="N",
        help="bits of weights, 2 to 16 (default: 8); auto: for each layer as few as keep the target, and for each "
        "activation with --activations auto",
    )
    command.add_argument(
        "--activations", choices=("auto", *(f"{sign}int{bits}" for sign in ("u", "") for bits in range(2, 17))),
        default="uint8", metavar="TYPE",
        help="type of activations, uint2 to uint16 or int2 to int16 (default: uint8); auto: uint16 for as few as keep "
        "--target-snr, else uint8",
    )
    command.add_argument(
        "--calibration-method", choices=("minmax", "percentile", "entropy", "mse"), default="minmax",
        help="the range of an activation: all that was met (default), all but a hundredth of a percent, the one whose "
        "levels tell most of the distribution, or the one of least squared error",
    )
    command.add_argument(
        "--bias-correction", action="store_true", help="take the mean error that rounded weights make off the biases"
    )
    command.add_argument(
        "--equalize", action="store_true",
        help="scale the channels between two layers, so that they share one scale with less loss",
    )
    command.add_argument(
        "--target-snr", type=float, metavar="DB",
        help="with auto: the outputs' signal to noise ratio against the float model (default: 30)",
    )
    command.add_argument(
        "--target-accuracy", type=float, metavar="POINTS",
        help="with auto, and labels: percentage points that the accuracy may be below the float model's, such as -0.5",
    )
    command.add_argument(
        "--input", metavar="X.npz", help="frames to compare both models on (default: the calibration data)"
    )
    command.add_argument("--frames", type=int, metavar="N", help="how many frames of calibration data (default: all)")
    of_model(command, is_quantized=False)

    add("boards", run_boards, "list the boards")
    add(
        "ops", run_ops, "list the ONNX operators: dialects, what each becomes, limits",
        formats=("text", "json", "markdown"),
    )
    add("doctor", run_doctor, "check external tools: path, version, minimum version")
    command = add(
        "completion", partial(run_completion, parser), "print a script that completes hwflow's command line in a shell"
    )
    command.add_argument("shell", choices=SHELLS, help="the shell to complete in")
    return parser
