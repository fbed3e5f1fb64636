"""The records of all ONNX operators, by family."""
