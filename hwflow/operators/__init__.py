"""Lowering of ONNX operators to integer operators, by family."""
