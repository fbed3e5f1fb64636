"""hwflow: quantized ONNX models to streaming FPGA accelerators.

The verbs of the command line as functions: :func:`load`, :func:`check`, :func:`compile`, :func:`simulate`,
:func:`compare`, :func:`quantize`. They raise subclasses of :class:`HwflowError`; a bad model gives all its findings at
once.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes the time that all the rest of this file does ten times
if TYPE_CHECKING:
    from typing import Any

    from hwflow.checking import check
    from hwflow.comparison import Comparison, compare
    from hwflow.compiler import Design, Model, compile, load
    from hwflow.errors import Finding, HwflowError
    from hwflow.quantization import Quantization, quantize
    from hwflow.simulation import Simulation, simulate

_HOMES = {
    "Comparison": "hwflow.comparison",
    "Design": "hwflow.compiler",
    "Finding": "hwflow.errors",
    "HwflowError": "hwflow.errors",
    "Model": "hwflow.compiler",
    "Quantization": "hwflow.quantization",
    "Simulation": "hwflow.simulation",
    "check": "hwflow.checking",
    "compare": "hwflow.comparison",
    "compile": "hwflow.compiler",
    "load": "hwflow.compiler",
    "quantize": "hwflow.quantization",
    "simulate": "hwflow.simulation",
}

__all__ = [
    "Comparison",
    "Design",
    "Finding",
    "HwflowError",
    "Model",
    "Quantization",
    "Simulation",
    "check",
    "compare",
    "compile",
    "load",
    "quantize",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Import a verb when it is first used: the parts below (numerics, toolchain) stay quick to import alone."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hwflow' has no attribute {name!r}")
