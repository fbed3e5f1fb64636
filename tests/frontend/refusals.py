"""Tables of models that the front end refuses, each with its findings in full."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from hwflow.api.compiler import dataflow
from hwflow.errors import ModelRefused
from hwflow.loaded_model import quantized_of
from hwflow.onnxspec import read_model, validate
from tests.models import Builder

Make = Callable[[Builder], str | None]

QUANTIZE = "quantize the model so that QuantizeLinear and DequantizeLinear precede this node"
DECLARE = "declare the integers of a float input: --input-type NAME=int8[,SCALE[,ZERO_POINT]]"
FLOAT_MODEL = (
    "error: model 'model': the model must be quantized (QDQ, QOperator or QONNX), not hold float operators only "
    "[quantized-model]\n"
    "  remedy: quantize the model first, for example with 'hwflow quantize' and calibration data, or, where its "
    f"weights are integers already, {DECLARE}"
)


class Cases:
    """Functions that build a model (and return the name of its output, if it has one), by ``@cases(*findings)``."""

    def __init__(self) -> None:
        self._table: dict[str, tuple[Make, tuple[str, ...], bool]] = {}

    def __call__(self, *findings: str, quantized: bool = True) -> Callable[[Make], Make]:
        """``quantized``: put a quantizer behind an output, so that its maker is not left to the host."""

        def add(make: Make) -> Make:
            self._table[make.__name__] = (make, findings, quantized)
            return make

        return add

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def verify(self, name: str) -> None:
        """A compilation must be refused with exactly the findings of case ``name``, in order."""
        make, expected, quantized = self._table[name]
        b = Builder(21, 10)
        output = make(b)
        if output is not None:
            b.output(_quantized(b, output) if quantized else output)
        with tempfile.TemporaryDirectory() as folder:
            path = b.save(Path(folder))
            proto = read_model(path)
            findings = [f for f in validate(proto, path) if f.severity == "error"]
        if not findings:
            with pytest.raises(ModelRefused) as refused:
                dataflow(quantized_of(proto, {})[1])
            findings = list(refused.value.findings)
        assert [str(f) for f in findings] == list(expected)


def _quantized(b: Builder, name: str) -> str:
    """An output behind a quantizer; integers behind a dequantizer first."""
    trial = Builder(b.opset, b.ir_version)
    trial.nodes, trial.constants, trial.inputs, trial.declared = b.nodes, b.constants, b.inputs, b.declared
    trial.output(name)
    (output,) = trial.build().graph.output
    kind = TensorProto.DataType.Name(output.type.tensor_type.elem_type).lower()
    if kind in ("float", "float16", "double"):
        return b.quantize(name, 1.0, name="last") if kind == "float" else name
    return b.quantize(b.dequantize(name, 1.0, None, kind), 1.0, name="last") if "int" in kind else name


def image(b: Builder, *shape: int) -> str:
    """A dequantized input."""
    return b.requantize(b.input("x", ["N", *(shape or (2, 4, 4))]), 0.5, 3)


def conv(b: Builder, x: str, **attributes: object) -> str:
    """A convolution of two channels by three kernels of 3 x 3."""
    return b.node("Conv", x, b.weights(np.ones((3, 2, 3, 3), int), 0.5), name="conv", **attributes)
