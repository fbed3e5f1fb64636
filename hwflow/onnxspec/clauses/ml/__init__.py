"""The clauses of the operators of ONNX-ML (domain ai.onnx.ml) that a file decides."""
