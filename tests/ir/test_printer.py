"""A small graph as text, in full, at two stages."""

from __future__ import annotations

from pathlib import Path

from hwflow.ir.printer import to_text
from hwflow.passes import pipeline
from tests.models import Builder

QUANTIZED = """\
graph model (Quantized)
  input x: q: u8[2] in [0, 255]
  fc = dense(q) {weights=array[2, 2]} : i10[2] in [-510, 510]
  y = requantize(fc) {axis=0, stages=((QuantizerStage(scale=Fraction(1, 4), zero_point=Fractio..., \
steps=(StepFunction(lo=-510, hi=510, breaks=(5, 12, 21, 28, 37,...} : u7[2] in [7, 71]
  output y: y: u7[2] in [7, 71]
  output fc: fc: i10[2] in [-510, 510]
"""

DATAFLOW = """\
graph model (Dataflow)
  input x: q: u8[1x2] in [0, 255]
  fc_mvu = mvu(q) {weights=array[2, 2], pixels_per_vector=1} : i10[1x2] in [-510, 510]
  fc_mvu_fork_0, fc_mvu_fork_1 = fork(fc_mvu) {outputs=2} : i10[1x2] in [-510, 510], i10[1x2] in [-510, 510]
  y = requantize(fc_mvu_fork_0) {axis=1, stages=((QuantizerStage(scale=Fraction(1, 4), zero_point=Fractio..., \
steps=(StepFunction(lo=-510, hi=510, breaks=(5, 12, 21, 28, 37,...} : u7[1x2] in [7, 71]
  output y: y: u7[1x2] in [7, 71]
  output fc: fc_mvu_fork_1: i10[1x2] in [-510, 510]
"""


def test_printer(tmp_path: Path) -> None:
    b = Builder()
    q = b.quantize(b.input("x", ["N", 2]), 0.5, 0, name="q")
    fc = b.node("MatMul", b.dequantize(q, 0.5), b.weights([[2, 1], [-2, 1]], 0.5), name="fc")
    b.output(b.quantize(b.node("Relu", fc), 2.0, 7, name="y"), fc)
    graph = b.load(tmp_path).quantized
    assert to_text(graph) == QUANTIZED
    assert to_text(pipeline.run(graph, pipeline.DATAFLOW)) == DATAFLOW
