"""ONNX's reference evaluator: mended where it is wrong, with bounds of its rounding errors."""
