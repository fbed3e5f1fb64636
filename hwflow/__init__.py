"""hwflow: quantized ONNX models to streaming FPGA accelerators.

The verbs of the command line as functions: :func:`load`, :func:`check`, :func:`compile`, :func:`simulate`,
:func:`compare`, :func:`explore`, :func:`quantize`, :func:`export`, :func:`program`, :func:`connect`, :func:`run`;
:func:`component` is a design in Amaranth. They raise subclasses of :class:`HwflowError`; a bad model gives all its
findings at once. What is wrong with a board or its link is a :class:`HostError`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes the time that all the rest of this file does ten times
if TYPE_CHECKING:
    from typing import Any

    from hwflow.api.checking import check
    from hwflow.api.compiler import Design, compile
    from hwflow.api.connection import connect
    from hwflow.errors import Finding, HwflowError
    from hwflow.exports.component import component
    from hwflow.exports.exporting import export
    from hwflow.host.runtime.board_session import Board
    from hwflow.host.runtime.host_errors import HostError
    from hwflow.host.runtime.run_command import BoardRun
    from hwflow.loaded_model import Model, load
    from hwflow.quantization.quantizing import Quantization, quantize
    from hwflow.sweep.exploring import Exploration, explore
    from hwflow.sweep.points import Axes
    from hwflow.toolchain.loading.load_bitstream import program
    from hwflow.verify.board_run import run
    from hwflow.verify.comparison import Comparison, compare
    from hwflow.verify.simulation import Simulation, simulate

_HOMES = {
    "Axes": "hwflow.sweep.points",
    "Board": "hwflow.host.runtime.board_session",
    "BoardRun": "hwflow.host.runtime.run_command",
    "Comparison": "hwflow.verify.comparison",
    "Design": "hwflow.api.compiler",
    "Exploration": "hwflow.sweep.exploring",
    "Finding": "hwflow.errors",
    "HostError": "hwflow.host.runtime.host_errors",
    "HwflowError": "hwflow.errors",
    "Model": "hwflow.loaded_model",
    "Quantization": "hwflow.quantization.quantizing",
    "Simulation": "hwflow.verify.simulation",
    "check": "hwflow.api.checking",
    "compare": "hwflow.verify.comparison",
    "compile": "hwflow.api.compiler",
    "component": "hwflow.exports.component",
    "connect": "hwflow.api.connection",
    "explore": "hwflow.sweep.exploring",
    "load": "hwflow.loaded_model",
    "program": "hwflow.toolchain.loading.load_bitstream",
    "export": "hwflow.exports.exporting",
    "quantize": "hwflow.quantization.quantizing",
    "run": "hwflow.verify.board_run",
    "simulate": "hwflow.verify.simulation",
}

__all__ = [
    "Axes",
    "Board",
    "BoardRun",
    "Comparison",
    "Design",
    "Exploration",
    "Finding",
    "HostError",
    "HwflowError",
    "Model",
    "Quantization",
    "Simulation",
    "check",
    "compare",
    "compile",
    "component",
    "connect",
    "explore",
    "export",
    "load",
    "program",
    "quantize",
    "run",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Import a verb when it is first used: the parts below (numerics, toolchain) stay quick to import alone."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hwflow' has no attribute {name!r}")
